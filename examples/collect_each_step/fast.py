"""The same job; Python collects when it has to."""

from slow import train

if __name__ == "__main__":
    train(collects=False)
