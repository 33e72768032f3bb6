"""The same job; each place sees the 128 places of its window."""

from slow import train

if __name__ == "__main__":
    train(window=128)
