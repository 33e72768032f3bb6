"""The same job; the workers stay from epoch to epoch."""

from slow import train

if __name__ == "__main__":
    train(persistent_workers=True)
