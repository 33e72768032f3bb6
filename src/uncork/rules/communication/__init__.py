"""Rules of the class communication."""
