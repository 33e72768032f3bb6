"""uncork finds why a PyTorch job is slow or out of memory, and what to change."""

__all__ = ["__version__"]

__version__ = "0.1.0"
