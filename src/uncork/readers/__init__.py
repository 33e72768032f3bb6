"""One file per recording format."""
