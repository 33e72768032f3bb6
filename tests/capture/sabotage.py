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
    "marks-close": ("uncork.capture.regions", "StepMarks", "close"),
    "garbage": ("uncork.capture.garbage", "Garbage", "close"),
    "cores": ("uncork.capture.core_time", "CoreTime", "facts"),
    "home": ("uncork.capture.recorder", "Recorder", "home"),
    "spans": ("uncork.capture.spans", "SpanWriter", "add"),
    "settings": ("uncork.capture.settings", None, "facts"),
    "files": ("uncork.capture.files", None, "write_json"),
    "sampler": ("uncork.capture.stacks", None, "innermost"),
    "holdings": ("uncork.capture.journal", "Journal", "count"),
    "finish": ("uncork.capture.recorder", "Recorder", "finish"),
}
IN_TRACES = ("marks-close", "garbage", "cores", "home")
"""These break where a trace is on already, which must not stay on."""


def main(part):
    """Replace a function of ours by one that raises."""
    module_name, owner_name, name = WHERE[part]
    module = importlib.import_module(module_name)

    owner = getattr(module, owner_name) if owner_name else module
    whole = getattr(owner, name)

    def broken(*args, **kwargs):
        if part in IN_TRACES and not torch._C._autograd._profiler_enabled():
            return whole(*args, **kwargs)
        raise RuntimeError(f"injected fault in {part}")

    setattr(owner, name, broken)
    if part == "files":
        importlib.import_module("uncork.capture.journal").write_json = broken


if __name__ == "__main__":
    if sys.argv[1] != "none" and "uncork.capture" in sys.modules:
        main(sys.argv[1])
    train(20)
    assert torch.is_grad_enabled()
    assert not torch._C._autograd._profiler_enabled()
