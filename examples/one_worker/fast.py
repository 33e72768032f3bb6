"""The same job with as many workers as hide the disk: they mostly wait, so they may be more than the cores."""

from slow import train

if __name__ == "__main__":
    train(workers=6)
