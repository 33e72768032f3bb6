"""The patches on torch: each tells the recorder what the program does and then does exactly what torch did.

All are inert while torch.compile traces, so they cause no graph break and no recompilation, and each part of ours is
guarded: a fault ends the recording, never the program.
"""

import functools
import threading
import weakref
from collections.abc import Callable
from typing import Any

from uncork.capture.imports import AfterImport
from uncork.capture.recorder import Recorder

OLDEST = (2, 3)
"""First torch with all that recording needs (`torch.compiler.is_compiling`)."""


class Depth(threading.local):
    """How deep a thread is inside calls of one kind."""

    value = 0


def install(torch: Any, recorder: Recorder, after: AfterImport) -> None:
    """Patch what the program has imported, and the rest once it does."""
    recorder.torch = torch
    compiling = torch.compiler.is_compiling
    updates = Depth()
    in_backward = _hook_backward(torch, recorder, compiling)
    _hook_optimizers(torch, recorder, after, compiling, updates, in_backward)
    _hook_scaler(torch, recorder, compiling, updates, in_backward)
    _hook_modules(torch, recorder, compiling)
    _hook_profilers(recorder)
    after.when("transformers.generation.utils", lambda module: _hook_generate(module, recorder, compiling))


def version(torch: Any) -> tuple[int, int]:
    """Return major and minor version of torch."""
    major, minor = str(torch.__version__).split("+")[0].split(".")[:2]
    return int(major), int(minor)


class InBackward(threading.local):
    """Where a thread is with respect to backward.

    Args:
        depth: Nested calls of backward.
        updated: An optimiser made a step inside the running backward.
    """

    depth = 0
    updated = False


def _hook_backward(torch: Any, recorder: Recorder, compiling: Callable[[], bool]) -> InBackward:
    """Patch ``torch.autograd.backward``, which ``Tensor.backward`` calls; return where threads are inside it."""
    original = torch.autograd.backward
    inside = InBackward()

    @functools.wraps(original)
    def backward(*args: Any, **kwargs: Any) -> Any:
        if compiling() or recorder.broken:
            return original(*args, **kwargs)
        inside.depth += 1
        try:
            result = original(*args, **kwargs)
        finally:
            inside.depth -= 1
        if inside.depth == 0:
            recorder.guard(lambda: ended(inside))
        return result

    def ended(inside: InBackward) -> None:
        updated, inside.updated = inside.updated, False
        if recorder.finder.rule == "mark" or not recorder.is_ours():
            return
        if recorder.thread is None:
            recorder.thread = threading.get_ident()
        recorder.take(recorder.finder.backward(updated_inside=updated))

    torch.autograd.backward = backward
    return inside


def _hook_optimizers(
    torch: Any,
    recorder: Recorder,
    after: AfterImport,
    compiling: Callable[[], bool],
    updates: Depth,
    in_backward: InBackward,
) -> None:
    """Wrap each optimiser class's ``step`` from outside, so that boundaries lie outside torch's own region of it."""
    optimizer_class = torch.optim.Optimizer
    patch = optimizer_class._patch_step_function

    @functools.wraps(patch)
    def _patch_step_function(self: Any) -> None:
        patch(self)
        recorder.guard(lambda: wrap(self))

    def wrap(optimizer: Any) -> None:
        recorder.seen["optimizers"].append(weakref.ref(optimizer))
        del recorder.seen["optimizers"][:-16]
        recorder.take(recorder.finder.optimizer_built())
        step_of_class = type(optimizer).step
        if getattr(step_of_class, "_uncork", False):
            return

        @functools.wraps(step_of_class)
        def step(self: Any, *args: Any, **kwargs: Any) -> Any:
            if compiling() or recorder.broken:
                return step_of_class(self, *args, **kwargs)
            updates.value += 1
            try:
                return step_of_class(self, *args, **kwargs)
            finally:
                updates.value -= 1
                if updates.value == 0:
                    recorder.guard(lambda: updated(recorder, id(self), in_backward))

        step.hooked = step._uncork = True  # type: ignore[attr-defined]
        # A compiled ``optimizer.step`` runs ours as plain Python and compiles torch's below it, as without us.
        after.when("torch._dynamo.eval_frame", lambda dynamo: recorder.guard(lambda: dynamo.skip_code(step.__code__)))
        type(optimizer).step = step

    optimizer_class._patch_step_function = _patch_step_function


def updated(recorder: Recorder, key: int, in_backward: InBackward) -> None:
    """Tell the recorder of one update (an optimiser's step, or an attempt that a scaler skipped)."""
    if in_backward.depth:
        in_backward.updated = True
    elif recorder.finder.rule != "mark" and recorder.is_ours():
        recorder.take(recorder.finder.update(key))


def _hook_scaler(
    torch: Any, recorder: Recorder, compiling: Callable[[], bool], updates: Depth, in_backward: InBackward
) -> None:
    """Count a gradient scaler's attempts: a step it skips for infinite gradients is a step of the loop."""
    scaler_class = torch.amp.GradScaler
    original = scaler_class.step

    @functools.wraps(original)
    def step(self: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        if compiling() or recorder.broken:
            return original(self, optimizer, *args, **kwargs)
        updates.value += 1
        try:
            return original(self, optimizer, *args, **kwargs)
        finally:
            updates.value -= 1
            if updates.value == 0:
                recorder.guard(lambda: updated(recorder, id(optimizer), in_backward))

    scaler_class.step = step


def _hook_modules(torch: Any, recorder: Recorder, compiling: Callable[[], bool]) -> None:
    """Patch ``nn.Module.__call__``: module regions while a trace is recorded, and forwards for the inference rule."""
    module_class = torch.nn.Module
    original = module_class.__call__
    region = torch._C._profiler._RecordFunctionFast
    regions, finder, depth = recorder.regions, recorder.finder, Depth()

    def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N807
        if compiling():
            return original(self, *args, **kwargs)
        if regions.on:
            name = named(self)
            if name is not None:
                with region(name):
                    return original(self, *args, **kwargs)
        elif recorder.model_wanted or finder.wants_forwards:
            return outermost(self, args, kwargs)
        return original(self, *args, **kwargs)

    def named(module: Any) -> str | None:
        try:
            return regions.name(module)
        except Exception:
            recorder.break_down()
            return None

    def outermost(module: Any, args: Any, kwargs: Any) -> Any:
        if depth.value == 0:
            recorder.guard(lambda: entered(module))
        depth.value += 1
        try:
            return original(module, *args, **kwargs)
        finally:
            depth.value -= 1

    def entered(module: Any) -> None:
        recorder.saw_model(module)
        if finder.wants_forwards and recorder.is_ours() and finder.rule != "mark":
            recorder.take(finder.forward())

    module_class.__call__ = __call__


def _hook_profilers(recorder: Recorder) -> None:
    """Notice profilers of the program's own; ours is started through another door."""
    from torch.autograd import profiler as low
    from torch.profiler import profiler as high

    def pair(owner: Any, begin: str, end: str) -> None:
        begins, ends = getattr(owner, begin), getattr(owner, end)

        @functools.wraps(begins)
        def begun(self: Any, *args: Any, **kwargs: Any) -> Any:
            recorder.guard(recorder.user_profiler_starts)
            self._uncork_begun = end
            return begins(self, *args, **kwargs)

        @functools.wraps(ends)
        def ended(self: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                return ends(self, *args, **kwargs)
            finally:
                if getattr(self, "_uncork_begun", "") == end:
                    self._uncork_begun = ""
                    recorder.guard(recorder.user_profiler_ends)

        setattr(owner, begin, begun)
        setattr(owner, end, ended)

    pair(high.profile, "start", "stop")
    pair(low.profile, "__enter__", "__exit__")


def _hook_generate(module: Any, recorder: Recorder, compiling: Callable[[], bool]) -> None:
    """Patch Hugging Face's ``generate``: one call is one step of an inference loop."""
    mixin = module.GenerationMixin
    original, depth = mixin.generate, Depth()

    @functools.wraps(original)
    def generate(self: Any, *args: Any, **kwargs: Any) -> Any:
        if compiling() or recorder.broken:
            return original(self, *args, **kwargs)
        if depth.value == 0:
            recorder.guard(begun)
        depth.value += 1
        try:
            return original(self, *args, **kwargs)
        finally:
            depth.value -= 1

    def begun() -> None:
        if recorder.is_ours() and recorder.finder.rule != "mark":
            recorder.take(recorder.finder.generate())

    mixin.generate = generate
