"""The same amount of work, dealt out evenly."""

from slow import train

if __name__ == "__main__":
    train(lambda *_: 288)
