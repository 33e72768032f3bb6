"""The same job; only the last micro-batch exchanges gradients."""

from slow import train

if __name__ == "__main__":
    train(rarely=True)
