"""The same without the look: the whole model is one piece of compiled code."""

from slow import train

if __name__ == "__main__":
    train(look=False)
