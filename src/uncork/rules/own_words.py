"""What frameworks that make the DataLoader themselves call its settings: advice to paste is written in their words.

So is what they do for the program besides: compiling the model, building the optimizer.
"""

import re
from collections.abc import Mapping
from functools import partial

Call = tuple[str, Mapping[str, str]]
"""A template of the call that takes the settings, and DataLoader's name of each → theirs."""

_LOADER = re.compile(r"^loader = DataLoader\(dataset, (?P<settings>[^#\n]*)\)", re.MULTILINE)
_SETTING = re.compile(r"(\w+)=([^,]+)(?:, )?")
_WORKERS = re.compile(r"\bnum_workers=")
_MAY_LACK = frozenset(("batch_size", "shuffle", "persistent_workers"))
"""Settings that stand beside what is to be changed: advice holds without them where a framework has none."""
_HELPS = ("persistent_workers", "prefetch_factor", "pin_memory", "num_workers")


def _same(*names: str, before: str = "", **others: str) -> dict[str, str]:
    return {name: f"{before}{name}" for name in names} | others


CALLS: Mapping[str, tuple[Call, ...]] = {
    "fastai": (
        (
            "dls = DataLoaders.from_dsets(train, valid, {})",
            _same("num_workers", "persistent_workers", "pin_memory", batch_size="bs"),
        ),
    ),
    "keras": (
        ("items = Items({}, use_multiprocessing=True)  # a keras.utils.PyDataset", {"num_workers": "workers"}),
        ("model.fit(x, y, {})", _same("batch_size")),
    ),
    "skorch": (("net.set_params({})", _same(*_HELPS, before="iterator_train__", batch_size="batch_size")),),
    "transformers": (
        (
            "args = TrainingArguments(output_dir, {})",
            _same(*_HELPS, before="dataloader_", batch_size="per_device_train_batch_size"),
        ),
    ),
    "ultralytics": (("model.train(data=data, {})", {"num_workers": "workers", "batch_size": "batch"}),),
}
"""By package, the call that is wanted first."""

_COMPILE = re.compile(r"^model = torch\.compile\(model\)$", re.MULTILINE)
_FUSED = re.compile(r"^optimizer = torch\.optim\.\w+\(model\.parameters\(\), lr=\.\.\., fused=True\)$", re.MULTILINE)
_FUSED_ADAMW = re.compile(_FUSED.pattern.replace(r"\w+", "AdamW"), re.MULTILINE)
LINES: Mapping[str, tuple[tuple[re.Pattern[str], str], ...]] = {
    "keras": ((_COMPILE, "model.compile(optimizer, loss, jit_compile=True)"),),
    "skorch": ((_COMPILE, "net.set_params(compile=True)"), (_FUSED, "net.set_params(optimizer__fused=True)")),
    "transformers": (
        (_COMPILE, "args = TrainingArguments(output_dir, torch_compile=True)"),
        (_FUSED_ADAMW, 'args = TrainingArguments(output_dir, optim="adamw_torch_fused")'),
    ),
    "ultralytics": ((_COMPILE, "model.train(data=data, compile=True)"),),
}
"""By package, whole lines and theirs instead."""


def own_words(text: str, framework: object) -> str:
    """Return advice in the words of the framework that makes the program's loader, as it is where none does.

    Args:
        text: Advice, or code to paste.
        framework: Its package, as the recorder saw it.
    """
    framework = framework if isinstance(framework, str) else ""
    for line, theirs in LINES.get(framework, ()):
        text = line.sub(theirs, text)
    for template, names in CALLS.get(framework, ()):
        if "DataLoader(" in text:
            text = _LOADER.sub(partial(_call, template=template, names=names), text)
        elif "num_workers" in names:
            text = _WORKERS.sub(f"{names['num_workers']}=", text)
    return text


def _call(found: re.Match[str], template: str, names: Mapping[str, str]) -> str:
    """Return the framework's call in place of DataLoader's, which stays where the framework lacks what matters."""
    settings = [(name, value) for name, value in _SETTING.findall(found["settings"]) if value != "..."]
    kept = [f"{names[name]}={value}" for name, value in settings if name in names]
    lacks = {name for name, _ in settings} - {*names, *_MAY_LACK}
    return found[0] if lacks or not kept else template.format(", ".join(kept))
