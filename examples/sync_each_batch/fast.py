"""The same training with gradients summed over four batches before they are exchanged."""

from slow import train

if __name__ == "__main__":
    train(every=4)
