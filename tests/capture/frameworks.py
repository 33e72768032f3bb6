"""Loops of frameworks, each printing how many steps the recorder saw and how many there were."""

import json
import sys
import tempfile
import warnings

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

X, Y = torch.randn(64, 8), torch.randint(0, 3, (64,))


def loader(batches=8):
    """Return a loader."""
    return DataLoader(TensorDataset(X[: 4 * batches], Y[: 4 * batches]), 4)


def net():
    """Return a small model."""
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))


def accelerate():
    """Accelerate with two batches per update."""
    from accelerate import Accelerator

    machine = Accelerator(gradient_accumulation_steps=2, cpu=True)
    model = net()
    model, optimizer, data = machine.prepare(model, torch.optim.SGD(model.parameters(), lr=0.1), loader(16))
    for x, y in data:
        with machine.accumulate(model):
            machine.backward(nn.functional.cross_entropy(model(x), y))
            optimizer.step()
            optimizer.zero_grad()
    return 8


class Items(Dataset):
    """Items as the Trainer wants them."""

    def __len__(self):
        return 96

    def __getitem__(self, index):
        return {"x": X[index % 64], "labels": Y[index % 64]}


def trainer(callbacks=()):
    """Hugging Face's Trainer with three batches per update: 24 batches, 8 updates."""
    from transformers import Trainer, TrainingArguments

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = net()

        def forward(self, x, labels=None):
            logits = self.net(x)
            return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}

    asked = TrainingArguments(
        tempfile.mkdtemp(), per_device_train_batch_size=4, gradient_accumulation_steps=3, num_train_epochs=1,
        report_to=[], save_strategy="no", disable_tqdm=True, use_cpu=True, logging_strategy="no",
    )  # fmt: skip
    Trainer(Model(), asked, train_dataset=Items(), callbacks=list(callbacks)).train()
    return 8


def lightning(callbacks=()):
    """Lightning: two epochs of eight steps, a sanity check first, a validation after each epoch."""
    import lightning as pl

    class Module(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = net()

        def training_step(self, batch, _):
            return nn.functional.cross_entropy(self.net(batch[0]), batch[1])

        def validation_step(self, batch, _):
            self.net(batch[0])

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    runner = pl.Trainer(
        max_epochs=2, logger=False, enable_checkpointing=False, enable_progress_bar=False, accelerator="cpu",
        enable_model_summary=False, callbacks=list(callbacks),
    )  # fmt: skip
    runner.fit(Module(), loader(8), loader(3))
    return 16


def generate():
    """Hugging Face's generate, five calls of six tokens: four whole steps and one that is open."""
    from transformers import GPT2Config, GPT2LMHeadModel

    model = GPT2LMHeadModel(
        GPT2Config(vocab_size=50, n_positions=32, n_embd=16, n_layer=1, n_head=2, bos_token_id=0, eos_token_id=1)
    ).eval()
    for _ in range(5):
        model.generate(torch.tensor([[2, 3, 4]]), max_new_tokens=6, do_sample=False, pad_token_id=1)
    return 4


def called_back(name, folder):
    """Run a loop without ``uncork run``, its framework's callback in it; print what the report says."""
    from importlib import import_module

    package = {"trainer": "transformers", "lightning": "lightning"}[name]
    callback = import_module(f"uncork.{package}").UncorkCallback(folder, show=False, functions=False)
    globals()[name]([callback])
    told = callback.recording.report.json()["run"]
    sys.stdout.write("\n" + json.dumps([told["steps_seen"], told["step_rule"], told["settings"]["optimizer"]]) + "\n")


def main(name, folder=""):
    """Run one loop."""
    warnings.simplefilter("ignore")
    if folder:
        called_back(name, folder)
        return
    from uncork.capture import inside

    inside.recorder.begin_anew()
    expected = globals()[name]()
    finder = inside.recorder.finder
    told = [expected, finder.seen + finder.step_is_open, finder.rule, inside.recorder.journal.faults]
    sys.stdout.write("\n" + json.dumps(told) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
