"""The same job; gradients are dropped, and the backward pass writes them anew."""

from slow import train

if __name__ == "__main__":
    train(set_to_none=True)
