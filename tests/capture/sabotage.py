"""Breaks one part of the recorder, then trains: the program must not notice."""

import importlib
import sys

import torch  # the recorder installs itself after this line
from training import train

WHERE = {
    "finder": ("uncork.capture.steps", "StepFinder", "fetch"),
    "update": ("uncork.capture.steps", "StepFinder", "update"),
    "backward": ("uncork.capture.steps", "StepFinder", "backward"),
    "plan": ("uncork.capture.plan", None, "stages"),
    "light-start": ("uncork.capture.probes", "TraceProbe", "start"),
    "light-stop": ("uncork.capture.probes", "TraceProbe", "stop"),
    "functions-stop": ("uncork.capture.probes", "FunctionsProbe", "stop"),
    "names": ("uncork.capture.regions", "Regions", "name"),
    "marks": ("uncork.capture.regions", "StepMarks", "open"),
    "spans": ("uncork.capture.spans", "SpanWriter", "add"),
    "settings": ("uncork.capture.settings", None, "facts"),
    "files": ("uncork.capture.files", None, "write_json"),
    "sampler": ("uncork.capture.stacks", None, "innermost"),
    "holdings": ("uncork.capture.journal", "Journal", "count"),
    "finish": ("uncork.capture.recorder", "Recorder", "finish"),
}


def main(part):
    """Replace a function of ours by one that raises."""
    module_name, owner_name, name = WHERE[part]
    module = importlib.import_module(module_name)

    def broken(*args, **kwargs):
        raise RuntimeError(f"injected fault in {part}")

    setattr(getattr(module, owner_name) if owner_name else module, name, broken)
    if part == "files":
        importlib.import_module("uncork.capture.journal").write_json = broken


if __name__ == "__main__":
    if sys.argv[1] != "none" and "uncork.capture" in sys.modules:
        main(sys.argv[1])
    train(20)
    assert torch.is_grad_enabled()
