"""Rules of the class compute."""
