"""The same job with one worker per core, less one for the main process."""

import os

from slow import train

if __name__ == "__main__":
    train(workers=max(len(os.sched_getaffinity(0)) - 1, 1))
