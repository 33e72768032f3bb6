"""The same in single precision."""

import numpy as np
from slow import train

if __name__ == "__main__":
    train(np.float32)
