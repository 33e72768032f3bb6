"""The same samples in one file, which is opened once and mapped into memory."""

import numpy as np
from slow import train
from torch.utils.data import Dataset


class Mapped(Dataset):
    """Samples in one file.

    Args:
        folder: Where it lies.
        samples: What to write there first.
    """

    def __init__(self, folder, samples):
        np.save(folder / "samples.npy", samples)
        self.samples = np.load(folder / "samples.npy", mmap_mode="r")

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        return np.array(self.samples[index])


if __name__ == "__main__":
    train(Mapped)
