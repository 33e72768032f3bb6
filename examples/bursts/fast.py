"""The same job; the worker may run ten batches ahead."""

from slow import train

if __name__ == "__main__":
    train(prefetch_factor=10)
