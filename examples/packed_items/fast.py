"""The same job with samples that were unpacked before the first step."""

from slow import Unpacked, train

if __name__ == "__main__":
    train(Unpacked)
