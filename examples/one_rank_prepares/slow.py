"""One of two processes also cleans the texts of both: the other waits for it in each reduction (``torchrun``)."""

import os
import sys

import torch
from torch import distributed, nn
from torch.utils.data import DataLoader, TensorDataset

BATCHES = 170
TEXTS = 240


def clean(texts):
    """Return texts without double spaces, in lower case: plain Python."""
    return [" ".join(word.lower() for word in text.split()) for text in texts]


def train(shared):
    """Train; rank 1 prepares the texts for all unless the work is shared."""
    distributed.init_process_group("gloo")
    torch.manual_seed(0)
    torch.set_num_threads(1)
    rank = distributed.get_rank()
    model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    texts = ["A  line of  some   Words that  nobody  reads"] * TEXTS
    for (x,) in DataLoader(TensorDataset(torch.randn(32 * BATCHES, 256)), batch_size=32):
        mine = texts[rank::2] if shared else texts * rank
        clean(mine * 40)
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    sys.stdout.write(f"rank {os.environ['RANK']}: loss {loss.item():.4f}\n")
    distributed.destroy_process_group()


if __name__ == "__main__":
    train(shared=False)
