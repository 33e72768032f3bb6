"""The same job; the collector is off in the loop, since counting references frees all there is."""

from slow import train

if __name__ == "__main__":
    train(frozen=True)
