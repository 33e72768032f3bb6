"""The same predictions in evaluation mode."""

from slow import predict

if __name__ == "__main__":
    predict(evaluate=True)
