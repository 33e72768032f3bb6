"""Advice in the words of the framework that makes the loader, and how the recorder knows which one that is."""

import sys
import types

import pytest

from uncork.capture.packages import FRAMEWORKS, framework
from uncork.capture.settings import of_loader
from uncork.findings import Finding
from uncork.pipeline import analyze_recordings
from uncork.report import finding_texts
from uncork.rules.own_words import CALLS, own_words
from uncork.testing import sketch

WORKERS = "loader = DataLoader(dataset, batch_size=8, num_workers=2, persistent_workers=True)"
TRAINER = "per_device_train_batch_size=8, dataloader_num_workers=2, dataloader_persistent_workers=True"
FACTOR = "loader = DataLoader(dataset, batch_size=8, num_workers=2, prefetch_factor=4, persistent_workers=True)"


@pytest.mark.parametrize(
    ("package", "workers"),
    [
        ("", WORKERS),
        ("fastai", "dls = DataLoaders.from_dsets(train, valid, bs=8, num_workers=2, persistent_workers=True)"),
        ("keras", "items = Items(workers=2, use_multiprocessing=True)  # a keras.utils.PyDataset"),
        (
            "skorch",
            "net.set_params(batch_size=8, iterator_train__num_workers=2, iterator_train__persistent_workers=True)",
        ),
        (
            "transformers",
            f"args = TrainingArguments(output_dir, {TRAINER})",
        ),
        ("ultralytics", "model.train(data=data, batch=8, workers=2)"),
    ],
)
def test_each_framework_has_its_call(package: str, workers: str):
    """What stands around the line stays."""
    assert own_words(f"import x\n{WORKERS}\n# more", package) == f"import x\n{workers}\n# more"


def test_a_batch_size_that_nobody_knows_is_not_asked_for():
    """The framework's call has other settings, too: what is not to be changed is left out."""
    unknown = WORKERS.replace("batch_size=8", "batch_size=...")
    assert own_words(unknown, "ultralytics") == "model.train(data=data, workers=2)"
    assert own_words(unknown, "") == unknown


def test_what_a_framework_has_no_word_for_is_left_as_pytorch_has_it():
    """There is no prefetch factor in fastai's; a loader of prepared items is a change to more than settings."""
    assert own_words(FACTOR, "fastai") == FACTOR
    assert "dataloader_prefetch_factor=4" in own_words(FACTOR, "transformers")
    prepared = "loader = DataLoader(Prepared(items), batch_size=8, num_workers=2)"
    assert own_words(prepared, "skorch") == prepared
    assert own_words("loader = DataLoader(dataset, batch_size=16)", "keras") == "model.fit(x, y, batch_size=16)"
    assert own_words("Load with num_workers=2", "ultralytics") == "Load with workers=2"
    assert own_words("Load with num_workers=2", 7) == "Load with num_workers=2"


def test_what_a_framework_does_besides_is_asked_of_it():
    """Compiling and the optimizer are settings of theirs; lines that only resemble these stay."""
    compiled = "model = torch.compile(model)"
    fused = "optimizer = torch.optim.AdamW(model.parameters(), lr=..., fused=True)"
    assert own_words(compiled, "transformers") == "args = TrainingArguments(output_dir, torch_compile=True)"
    assert own_words(fused, "transformers") == 'args = TrainingArguments(output_dir, optim="adamw_torch_fused")'
    assert own_words(f"{compiled}\n{fused}", "skorch") == (
        "net.set_params(compile=True)\nnet.set_params(optimizer__fused=True)"
    )
    assert own_words(fused, "ultralytics") == fused
    other = fused.replace("AdamW", "SGD")
    assert own_words(other, "transformers") == other
    assert own_words(f"{compiled}  # once", "keras") == f"{compiled}  # once"
    assert own_words(compiled, "") == compiled


def test_every_framework_that_is_noticed_has_words():
    """The recorder's list and the rules' are one."""
    assert set(CALLS) == FRAMEWORKS


def _starved(text: str) -> Finding:
    report = analyze_recordings(sketch(text))
    return next(one for one in report.findings if one.rule == "starved")


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_finding_speaks_them(lang: str):
    """As the recording says who made the loader."""
    text = """
    setting num_workers 0
    setting batch_size 4
    steps 4 x 10ms
      main 0ms..7ms enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__
      main 7ms..9.9ms aten::mm
    """
    told = "setting loader_of transformers\n" + text
    snippets = [finding_texts(_starved(one), lang)["advice"][0]["snippet"] for one in (text, told)]
    assert snippets[0].startswith("loader = DataLoader(dataset, batch_size=4, shuffle=..., num_workers=")
    assert snippets[1].startswith(
        "args = TrainingArguments(output_dir, per_device_train_batch_size=4, dataloader_num_w"
    )


def _called(names: list[tuple[str, str]]) -> str:
    """Return the framework that is told where functions of some modules and files call each other, outermost first."""
    source = "def call(rest, ask):\n    return rest[0](rest[1:], ask) if rest else ask()\n"
    calls = []
    for module, file in names:
        scope: dict[str, object] = {"__name__": module}
        exec(compile(source, file, "exec"), scope)  # noqa: S102 - frames of files that are not there
        calls.append(scope["call"])
    return calls[0](calls[1:], lambda: framework(sys._getframe().f_back))


LOOP = ("transformers.trainer", "/venv/lib/python3.11/site-packages/transformers/trainer.py")
HELPER = ("accelerate.data_loader", "/venv/lib/python3.11/site-packages/accelerate/data_loader.py")
TORCH = ("torch.utils.data.dataloader", "/src/pytorch/torch/utils/data/dataloader.py")
USER = ("__main__", "/home/me/train.py")


def test_the_framework_is_the_one_whose_loop_asks_for_batches():
    """Not one that has called a function of the user's, in which the user's own loop runs."""
    assert _called([USER, LOOP, HELPER, TORCH]) == "transformers"
    assert _called([USER, HELPER, TORCH]) == ""
    assert _called([USER, LOOP, USER, TORCH]) == ""
    assert framework(None) == ""


def test_a_loader_that_is_not_pytorchs_is_read_all_the_same():
    """PyTorch's iterators go over a stand-in of fastai's, which knows the workers; what is behind it knows the rest."""
    items = [1, 2, 3]
    behind = types.SimpleNamespace(bs=16, dataset=items, num_workers=1)
    told = of_loader(types.SimpleNamespace(num_workers=0, pin_memory=False, dataset="stand-in", d=behind))
    assert (told["num_workers"], told["batch_size"], told["dataset"], told["batches"]) == (0, 16, "list", None)


@pytest.mark.torch
def test_whether_the_loader_shuffles_is_read_off_it():
    """A loader that draws by itself has no such setting to keep: an own sampler, own batches, a stream of items."""
    data = pytest.importorskip("torch.utils.data")

    class Stream(data.IterableDataset):
        def __iter__(self):
            return iter(range(8))

    own = data.WeightedRandomSampler([1.0] * 8, 8)
    batches = data.BatchSampler(data.RandomSampler(range(8)), 2, drop_last=False)
    loaders = {
        data.DataLoader(range(8), 2, shuffle=True): True,
        data.DataLoader(range(8), 2): False,
        data.DataLoader(range(8), 2, sampler=own): None,
        data.DataLoader(range(8), batch_sampler=batches): None,
        data.DataLoader(range(8), batch_size=None): None,
        data.DataLoader(Stream(), 2): None,
    }
    assert [of_loader(one)["shuffle"] for one in loaders] == list(loaders.values())
