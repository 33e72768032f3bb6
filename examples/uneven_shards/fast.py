"""The same data in equal shards."""

from slow import train

if __name__ == "__main__":
    train(waits_s=(0.0002, 0.0002))
