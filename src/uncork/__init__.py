"""uncork finds why a PyTorch job is slow or out of memory, and what to change."""

__version__ = "0.1.0"
