"""The job of ``slow.py`` with its one mistake mended: a picture is changed as a whole, not pixel by pixel."""

import random

import torch
from slow import Pictures, train


class QuickPictures(Pictures):
    """The same pictures, brightened and mirrored by three tensor operations."""

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Return one picture, changed a little at random, and its kind."""
        return augment(self.pictures[index]), self.labels[index]


def augment(picture: torch.Tensor) -> torch.Tensor:
    """Return the picture, brightened at random and half the time mirrored."""
    gain, mirrored = random.uniform(0.8, 1.2), random.random() < 0.5
    brighter = (picture * gain).clamp(max=1.0)
    return brighter.flip(-1) if mirrored else brighter


if __name__ == "__main__":
    torch.manual_seed(0)
    random.seed(0)
    train(QuickPictures(960))
