"""Texts are continued token by token, and the model goes through the whole text for each new one."""

import sys

import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention
from torch.utils.data import DataLoader, TensorDataset

BATCHES, BATCH, PROMPT, NEW, WIDTH = 30, 8, 16, 20, 128


class Layer(nn.Module):
    """Causal attention, then two products."""

    def __init__(self):
        super().__init__()
        self.qkv, self.up, self.down = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, 512), nn.Linear(512, WIDTH)

    def forward(self, x, past=None):
        """Return the output, and the keys and values of all tokens so far."""
        query, *known = self.qkv(x).chunk(3, dim=-1)
        if past is not None:
            known = [torch.cat(both, dim=1) for both in zip(past, known, strict=True)]
        x = x + scaled_dot_product_attention(query, *known, is_causal=past is None)
        return x + self.down(self.up(x).relu()), known


class Model(nn.Module):
    """Three layers between a table of tokens and its transpose."""

    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(256, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(3))

    def forward(self, ids, pasts):
        """Return the next token of each text, and what the layers keep."""
        x, kept = self.tokens(ids), []
        for layer, past in zip(self.layers, pasts, strict=True):
            x, known = layer(x, past)
            kept.append(known)
        return (x[:, -1] @ self.tokens.weight.T).argmax(-1, keepdim=True), kept


def again(model, ids):
    """Continue texts without keeping anything."""
    for _ in range(NEW):
        new, _ = model(ids, [None] * 3)
        ids = torch.cat([ids, new], dim=1)
    return ids


def predict(generate):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model, total = Model().eval(), 0
    with torch.no_grad():
        for (ids,) in DataLoader(TensorDataset(torch.randint(256, (BATCH * BATCHES, PROMPT))), batch_size=BATCH):
            total += generate(model, ids).sum().item()
    sys.stdout.write(f"sum of tokens {total}\n")


if __name__ == "__main__":
    predict(again)
