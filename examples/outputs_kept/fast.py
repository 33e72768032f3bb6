"""The same job keeps the one number of each output that the report needs."""

from slow import train

if __name__ == "__main__":
    train(keep=lambda output: output.mean().item())  # no tensor: small ones keep the heap from being given back
