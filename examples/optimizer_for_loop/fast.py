"""The same job; one fused operator updates all tables."""

from slow import train

if __name__ == "__main__":
    train(fused=True)
