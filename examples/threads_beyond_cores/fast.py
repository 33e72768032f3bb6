"""The same job with a thread per core."""

import os

from slow import train

if __name__ == "__main__":
    train(threads=len(os.sched_getaffinity(0)))
