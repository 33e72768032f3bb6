"""The same job with two workers, which wait for their samples side by side while the model trains."""

from slow import train

if __name__ == "__main__":
    train(num_workers=2, persistent_workers=True)
