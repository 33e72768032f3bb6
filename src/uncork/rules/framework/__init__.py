"""Rules of the class framework."""
