"""The same job with each clip's spectrum computed once."""

from slow import train

if __name__ == "__main__":
    train(prepared=True)
