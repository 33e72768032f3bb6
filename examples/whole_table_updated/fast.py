"""The same; only the rows that were used have a gradient."""

from slow import train

if __name__ == "__main__":
    train(sparse=True)
