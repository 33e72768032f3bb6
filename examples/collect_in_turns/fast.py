"""The same, both in the same steps."""

from slow import train

if __name__ == "__main__":
    train(lambda number, _: number % 2 == 0)
