"""The same loss over the whole batch at once."""

from slow import ROWS, train


def at_once(found, wanted, weight):
    error = found - wanted
    return (weight * (error * error).mean(1)).sum() / ROWS


if __name__ == "__main__":
    train(at_once)
