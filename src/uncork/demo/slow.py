"""Train a small convolutional network on pictures that are brightened and flipped one pixel at a time.

The bundled example of ``uncork demo``: an ordinary PyTorch script with one mistake, and no word of uncork in it.
"""

import argparse
import random

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SIZE = 32


class Pictures(Dataset[tuple[torch.Tensor, torch.Tensor]]):
    """Made-up pictures of two kinds, bright above or bright below, and which kind each is."""

    def __init__(self, count: int) -> None:
        generator = torch.Generator().manual_seed(0)
        self.labels = torch.randint(0, 2, (count,), generator=generator)
        self.pictures = torch.rand(count, 3, SIZE, SIZE, generator=generator)
        for picture, label in zip(self.pictures, self.labels, strict=True):
            half = slice(0, SIZE // 2) if label else slice(SIZE // 2, SIZE)
            picture[:, half] += 0.3

    def __len__(self) -> int:
        """Return how many pictures there are."""
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Return one picture, changed a little at random, and its kind."""
        return augment(self.pictures[index]), self.labels[index]


def augment(picture: torch.Tensor) -> torch.Tensor:
    """Return the picture, brightened at random and half the time mirrored."""
    gain, mirrored = random.uniform(0.8, 1.2), random.random() < 0.5
    pixels = picture.tolist()
    for channel in pixels:
        for row in channel:
            for column, value in enumerate(row):
                brighter = value * gain
                row[column] = brighter if brighter < 1.0 else 1.0
            if mirrored:
                row.reverse()
    return torch.tensor(pixels)


class Net(nn.Module):
    """Three convolutions and a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 16, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d((2, 1)),
        )  # fmt: skip
        self.head = nn.Linear(32, 2)

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        """Return one score per kind, shape (pictures, 2)."""
        return self.head(self.features(pictures).flatten(1))


def train(pictures: Pictures) -> None:
    """Train for some epochs and print how well it goes."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=10)
    epochs = parser.parse_args().epochs
    torch.set_num_threads(1)  # the model is too small to be worth sharing out
    loader = DataLoader(pictures, batch_size=32, shuffle=True)
    model = Net()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    loss_of = nn.CrossEntropyLoss()
    for epoch in range(epochs):
        right = 0
        for batch, labels in loader:
            scores = model(batch)
            loss = loss_of(scores, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            right += int((scores.argmax(1) == labels).sum())
        print(f"epoch {epoch + 1}: {right / len(pictures):.0%} right")


if __name__ == "__main__":
    torch.manual_seed(0)
    random.seed(0)
    train(Pictures(960))
