"""The patches on torch: each tells the recorder what the program does and then does exactly what torch did.

All are inert while torch.compile traces, so they cause no graph break and no recompilation, and each part of ours is
guarded: a fault ends the recording, never the program.
"""

import functools
import gc
import sys
import threading
import weakref
from collections.abc import Callable
from dataclasses import field
from typing import Any

from uncork.capture.apart import is_capturing, is_theirs, run_as_python
from uncork.capture.imports import AfterImport
from uncork.capture.recorder import Recorder
from uncork.capture.roles import MOST_OPTIMIZERS, Roles
from uncork.capture.threads import in_engine
from uncork.records import dataclass

NESTED = 32
"""Modules called inside each other that few models reach: those that call themselves, along a tree say, do."""
MOST_CALLS = 2**31 - 1
"""What Python takes at most for a recursion limit; some programs set just that."""


class Depth(threading.local):
    """How deep a thread is inside calls of one kind."""

    value = 0


class InBackward(threading.local):
    """Where a thread is with respect to backward.

    Args:
        depth: Nested calls of backward.
        updated: An optimiser made a step inside the running backward.
    """

    depth = 0
    updated = False


@dataclass(frozen=True)
class Patches:
    """What the patches share.

    Args:
        torch: The program's torch.
        recorder: Whom they tell.
        after: Calls back when the program imports something more.
        compiling: Whether torch.compile traces the code that runs.
        updates: How deep a thread is in updates: optimisers may step others, and scalers do.
        in_backward: Where a thread is with respect to backward.
        by_engine: Not empty if an optimiser made a step inside a backward, on a thread of autograd's own (a device's).
        roles: What each optimiser is in the loop.
    """

    torch: Any
    recorder: Recorder
    after: AfterImport
    compiling: Callable[[], bool]
    updates: Depth = field(default_factory=Depth)
    in_backward: InBackward = field(default_factory=InBackward)
    by_engine: list[bool] = field(default_factory=list)
    roles: Roles = field(default_factory=Roles)

    def __reduce__(self) -> Any:
        """Return nothing: what was pickled into another process has nobody to tell there."""
        return type(None), ()

    def updated(self, optimizer: Any) -> None:
        """Tell the recorder of one update (an optimiser's step, or an attempt that a scaler skipped)."""
        if self.in_backward.depth:
            self.in_backward.updated = True
            return
        if in_engine(self.torch):
            self.by_engine.append(True)
            return
        if is_capturing(self.torch):
            return
        self.count_holdings()
        if self.recorder.threads.hears("updates") and self.recorder.finder.rule != "mark":
            key, begins = self.roles.of(optimizer)
            self.recorder.take(self.recorder.finder.update(key, begins=begins))

    def count_holdings(self) -> None:
        """Count what each module holds where gradients and state are both there, in a step that nobody measures."""
        recorder = self.recorder
        journal, step, window = recorder.journal, recorder.finder.seen, recorder.observer.window
        wanted = window.stage.name == "settle" if window is not None else journal.is_due(step)
        if wanted and recorder.is_ours():
            journal.count(recorder.regions.named(), step)


def install(torch: Any, recorder: Recorder, after: AfterImport, *, is_late: bool = False) -> None:
    """Patch what the program has imported, and the rest once it does.

    Args:
        torch: The program's torch.
        recorder: Whom to tell.
        after: Calls back when the program imports something more.
        is_late: The program runs already, and may have built its optimisers.
    """
    recorder.torch = torch
    recorder.journal.garbage.watch(torch, recorder.regions)
    patches = Patches(torch, recorder, after, torch.compiler.is_compiling)
    _hook_backward(patches)
    kind = torch.optim.Optimizer
    _hook_optimizers(patches, [one for one in gc.get_objects() if issubclass(type(one), kind)] if is_late else [])
    _hook_scaler(patches)
    _hook_modules(patches)
    _hook_profilers(recorder)
    after.when("torch._dynamo.eval_frame", lambda dynamo: recorder.guard(lambda: run_as_python(dynamo)))
    after.when("transformers.generation.utils", lambda module: _hook_generate(module, patches))


def _hook_backward(patches: Patches) -> None:
    """Patch ``torch.autograd.backward``, which ``Tensor.backward`` calls."""
    original, recorder, compiling = patches.torch.autograd.backward, patches.recorder, patches.compiling
    inside = patches.in_backward

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
            recorder.guard(ended)
        return result

    def ended() -> None:
        updated, inside.updated = inside.updated or bool(patches.by_engine), False
        patches.by_engine.clear()
        if not recorder.threads.hears("backwards") or recorder.finder.rule == "mark" or is_capturing(patches.torch):
            return
        if recorder.thread is None:
            recorder.thread = threading.get_ident()
        if updated:
            patches.count_holdings()
        recorder.take(recorder.finder.backward(updated_inside=updated, in_update=patches.updates.value > 0))

    patches.torch.autograd.backward = backward


def _hook_optimizers(patches: Patches, late: list[Any]) -> None:
    """Wrap each optimiser class's ``step`` from outside, so that boundaries lie outside torch's own region of it.

    Args:
        patches: What the patches share.
        late: Optimisers that are there already.
    """
    optimizer_class, recorder = patches.torch.optim.Optimizer, patches.recorder
    patch = optimizer_class._patch_step_function

    @functools.wraps(patch)
    def _patch_step_function(self: Any) -> None:
        patch(self)
        recorder.guard(lambda: wrap(self))

    def wrap(optimizer: Any) -> None:
        if patches.roles.built(optimizer):
            recorder.journal.seen["optimizers"].append(weakref.ref(optimizer))
            del recorder.journal.seen["optimizers"][:-MOST_OPTIMIZERS]
            if recorder.is_ours():
                recorder.take(recorder.finder.optimizer_built())
        if getattr(type(optimizer).step, "uncork", None) is None:
            type(optimizer).step = hooked_step(patches, type(optimizer).step)

    optimizer_class._patch_step_function = _patch_step_function
    for one in late:
        recorder.guard(functools.partial(wrap, one))


def hooked_step(patches: Patches, original: Callable[..., Any]) -> Callable[..., Any]:
    """Return an optimiser class's ``step`` that tells of each update; a function, since torch.compile looks into those.

    Args:
        patches: What the patches share.
        original: The class's own ``step``.
    """
    told: Patches | None = patches  # None in another process: cloudpickle writes a class of the main file out in full
    compiling = patches.compiling

    @functools.wraps(original)
    def step(optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        if compiling() or told is None or told.recorder.broken:
            return original(optimizer, *args, **kwargs)
        updates = told.updates
        updates.value += 1
        try:
            return original(optimizer, *args, **kwargs)
        finally:
            updates.value -= 1
            if updates.value == 0:
                told.recorder.guard(lambda: told.updated(optimizer))

    step.hooked = True  # type: ignore[attr-defined]  # torch's own mark: it wraps no step twice
    step.uncork = patches  # type: ignore[attr-defined]
    return step


def _hook_scaler(patches: Patches) -> None:
    """Count a gradient scaler's attempts: a step it skips for infinite gradients is a step of the loop."""
    scaler_class, recorder, compiling = patches.torch.amp.GradScaler, patches.recorder, patches.compiling
    original, updates = scaler_class.step, patches.updates

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
                recorder.guard(lambda: patches.updated(optimizer))

    scaler_class.step = step


def _hook_modules(patches: Patches) -> None:
    """Patch ``nn.Module.__call__``: module regions while a trace is recorded, and forwards for the inference rule."""
    module_class = patches.torch.nn.Module
    original, compiling = module_class.__call__, patches.compiling
    regions = patches.recorder.regions
    outermost = Outermost(patches, original)

    def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N807
        if compiling():
            return original(self, *args, **kwargs)
        if regions.looking:
            return outermost.call(self, args, kwargs)
        if regions.on:
            call = outermost.in_region if threading.get_ident() == regions.thread else outermost.call
            return call(self, args, kwargs)
        return original(self, *args, **kwargs)

    module_class.__call__ = __call__


class Outermost:
    """Calls a module and tells the recorder if no other module's call is around it.

    Args:
        patches: What the patches share.
        original: torch's own call.
    """

    def __init__(self, patches: Patches, original: Callable[..., Any]) -> None:
        self._recorder, self._original, self._depth = patches.recorder, original, Depth()
        self._region, self._regions = patches.torch._C._profiler._RecordFunctionFast, patches.recorder.regions
        self._rooms: set[int] = set()

    def call(self, module: Any, args: Any, kwargs: Any) -> Any:
        """Return what the module returns; its entry may be where a step, and a window with it, ends or begins.

        A method with a name: Python 3.12 runs what is called by ``__call__`` deeper in C, where few levels are allowed.
        """
        if self._depth.value == 0:
            self._recorder.guard(lambda: self._entered(module))
        elif self._depth.value == NESTED and (limit := sys.getrecursionlimit()) not in self._rooms:
            # A call takes four of what Python allows; ours add one to four. A limit of ours may come back: programs
            # that set one for a while restore what they found.
            room = min(2 * limit, MOST_CALLS)
            self._rooms.add(room)
            sys.setrecursionlimit(room)
        self._depth.value += 1
        try:
            if self._regions.on and threading.get_ident() == self._regions.thread:
                return self.in_region(module, args, kwargs)
            return self._original(module, *args, **kwargs)
        finally:
            self._depth.value -= 1

    def in_region(self, module: Any, args: Any, kwargs: Any) -> Any:
        """Return what the module returns, called inside a region of its name."""
        name = self._name(module)
        if name is None:
            return self._original(module, *args, **kwargs)
        region, inside = self._region(name), self._regions.inside
        inside.add(region)
        try:
            with region:
                return self._original(module, *args, **kwargs)
        finally:
            inside.discard(region)

    def _name(self, module: Any) -> str | None:
        """Return the name of a module's region, or None after a fault of ours."""
        try:
            return self._regions.name(module)
        except Exception as error:
            self._recorder.break_down()
            if is_theirs(error):
                raise
            return None

    def _entered(self, module: Any) -> None:
        recorder = self._recorder
        if not recorder.is_on_thread() and getattr(module, "_is_replica", False):
            return  # DataParallel's threads do a part of the recorded one's step
        if in_engine(recorder.torch) or not recorder.threads.hears("forwards"):
            return  # amid backward a part is computed anew, and autograd would lose a trace that begins there
        recorder.saw_model(module)
        if recorder.finder.wants_forwards and recorder.finder.rule != "mark" and not is_capturing(recorder.torch):
            recorder.take(recorder.finder.forward())


def _hook_profilers(recorder: Recorder) -> None:
    """Notice profilers of the program's own by torch's one door, which ours takes in work of ours."""
    from torch.autograd import profiler as low
    from torch.profiler import profiler as high

    leave = low._disable_profiler
    inside: list[str] = []

    def make_way() -> None:
        if not (recorder.busy or inside):
            inside.append("theirs")
            recorder.guard(recorder.observer.user_profiler_starts)

    def enters(enter: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(enter)
        def entered(*args: Any, **kwargs: Any) -> Any:
            make_way()
            return enter(*args, **kwargs)

        return entered

    @functools.wraps(leave)
    def left() -> Any:
        make_way()  # one that is ended twice would end ours
        try:
            return leave()
        finally:
            if inside and not recorder.busy:
                inside.clear()
                recorder.guard(recorder.observer.user_profiler_ends)

    low._prepare_profiler, low._enable_profiler = enters(low._prepare_profiler), enters(low._enable_profiler)
    low._disable_profiler = left
    _hook_schedules(recorder, high.profile)


def _hook_schedules(recorder: Recorder, kind: Any) -> None:
    """Let a profiler with a schedule count from its start to its stop, whether it records or not."""
    start, stop = kind.start, kind.stop

    @functools.wraps(start)
    def begun(self: Any, *args: Any, **kwargs: Any) -> Any:
        recorder.guard(recorder.observer.user_profiler_starts)
        self._uncork_begun = True
        return start(self, *args, **kwargs)

    @functools.wraps(stop)
    def ended(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return stop(self, *args, **kwargs)
        finally:
            if getattr(self, "_uncork_begun", False):
                self._uncork_begun = False
                recorder.guard(recorder.observer.user_profiler_ends)

    kind.start, kind.stop = begun, ended


def _hook_generate(module: Any, patches: Patches) -> None:
    """Patch Hugging Face's ``generate``: one call is one step of an inference loop."""
    mixin, recorder, compiling = module.GenerationMixin, patches.recorder, patches.compiling
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
