"""One measurement per file."""
