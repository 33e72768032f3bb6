"""What runs inside the user's process: the only importer of torch."""
