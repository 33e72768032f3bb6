"""Rules of the class hygiene."""
