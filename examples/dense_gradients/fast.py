"""The same training with a sparse gradient: only the rows that a batch used are exchanged."""

from slow import train

if __name__ == "__main__":
    train(sparse=True)
