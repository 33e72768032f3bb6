"""The same job without anomaly detection."""

from slow import train

if __name__ == "__main__":
    train()
