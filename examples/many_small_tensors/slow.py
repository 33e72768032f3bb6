"""Workers hand each batch over as hundreds of small tensors: each goes through shared memory by itself."""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

BATCHES = 60
FIELDS = 150
ROUNDS = 10


class Records(Dataset):
    """Made-up records of many fields."""

    def __init__(self, count):
        self.fields = torch.randn(count, FIELDS, generator=torch.Generator().manual_seed(0))

    def __len__(self):
        return len(self.fields)

    def __getitem__(self, index):
        return self.fields[index]


def by_field(records):
    return [torch.stack([one[field] for one in records]) for field in range(FIELDS)]


def train(collate):
    torch.manual_seed(0)
    torch.set_num_threads(1)  # the model is too small for more
    model = nn.Sequential(nn.Linear(FIELDS, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for batch in DataLoader(Records(16 * BATCHES), 16, num_workers=2, collate_fn=collate):
        records = torch.stack(batch, 1) if isinstance(batch, list) else batch
        for _ in range(ROUNDS):
            loss = (model(records) - records.mean(1, keepdim=True)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    sys.stdout.write(f"loss {loss.item():.4f}\n")


if __name__ == "__main__":
    train(by_field)
