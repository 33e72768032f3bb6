"""StepFinder: where a step of the program ends, from what its hooks report, without a mark in the program."""

from enum import Enum

from uncork.capture.cycle import Cycle

LOADER_PATIENCE = 8
"""Closed update cycles without a fetch after which the loader no longer counts as driving the loop."""
TRAINING_LEAST = 4
"""Steps between two built optimisers that make the second one the begin of another training (a fold, a trial, a phase);
where one is built for every step or two, building it is part of the step."""
BACKWARD_PATIENCE = 16
"""Backward passes without an update after which the program's updates count as its own (no torch.optim)."""

PACED = ("optimizer", "optimizer_in_backward", "backward")
"""Rules by which updates alone end a step."""


class Action(Enum):
    """What a signal means for the step that is running."""

    NOTHING = 0
    CLOSE = 1
    """The step ends here and the next begins."""
    MOVE = 2
    """What ran since the last boundary was no step (validation, set-up): the step begins here."""
    RESTART = 3
    """The steps found so far were not the loop (a check before training): begin again."""
    PART = 4
    """The loop ends here, and another like it will begin: no window may reach into it."""


class StepFinder:
    """Turns fetches, forwards, backwards and updates of one thread into step boundaries.

    Rules in order: a DataLoader's fetch after an update; the update that closes a cycle of optimisers; updates inside
    backward; the end of backward where the program updates by hand; for inference a fetch, ``generate()`` or the
    outermost forward.
    """

    def __init__(self) -> None:
        self.rule = "none"
        self.seen = 0
        self.optimizers = 0
        self.cycle = Cycle()
        self.burst = 1
        self.started = False
        self._updates = self._backwards = 0
        self._trains = self._updated = self._begins = self._guessed = False
        self._seen_when_built = 0
        self._fetched = self._generated = False
        self._cycles_without_fetch = self._streak = self._in_burst = 0
        self._batches = self._ahead = 1

    @property
    def wants_forwards(self) -> bool:
        """Return whether outermost forward calls may still be boundaries."""
        return self._begins or not (self._trains or self._fetched or self._generated)

    @property
    def trains(self) -> bool:
        """Return whether the thread has trained, so that forwards alone are no steps."""
        return self._trains

    def begin_anew(self, optimizers: int) -> None:
        """Begin anew on another thread.

        Args:
            optimizers: How many there are.
        """
        self.__init__()  # type: ignore[misc]  # the hooks hold this object
        self.optimizers, self.started = optimizers, True

    @property
    def may_train(self) -> bool:
        """Return whether the steps so far may be no steps: forwards of a program that has an optimiser, unused yet."""
        return self.optimizers > 0 and not self._trains

    @property
    def step_is_open(self) -> bool:
        """Return whether the running step has had an update, so that the end of the program closes it."""
        return self._updates > 0 and self.rule == "loader"

    def fetch(self) -> Action:
        """Return what the entry of a DataLoader's ``__next__`` means."""
        self._fetched = True
        if self.rule in PACED:
            return self._fetch_beside_updates()
        self._cycles_without_fetch = 0
        if self._updates:
            return self._close("loader")
        if not self._trains:
            return self._inference() if not self._generated else Action.NOTHING
        return self._move() if not self._backwards and self._fetches_too_many() else Action.NOTHING

    def _fetches_too_many(self) -> bool:
        """Return whether a fetch before any backward is not of the step: not one of all batches that it gathers over.

        Transformers' Trainer fetches the batches of an update at once, then goes through them.
        """
        self._ahead += 1
        return self._ahead > self._batches

    def _fetch_beside_updates(self) -> Action:
        """Give the loop back to the loader once fetches and updates alternate again."""
        if self._cycles_without_fetch:
            self._streak = self._streak + 1 if self._cycles_without_fetch < LOADER_PATIENCE else 0
        self._cycles_without_fetch = 0
        if self._streak >= 2:
            self.rule, self._streak = "loader", 0
            self.gather(1, 0)
            return self._move()
        return Action.NOTHING

    def update(self, key: int, kind: str = "optimizer", *, begins: bool = False) -> Action:
        """Return what the exit of an optimiser's step (or a scaler's attempt) means; `begins` as in `Cycle.add`."""
        if self._guessed and kind != "backward":
            return self._take_back(key, kind)
        restart = Action.NOTHING if self._trains else self._train()
        self._updated, self._begins = True, False
        self._updates += 1
        closes = self.cycle.add(key, begins=begins)
        if restart is Action.RESTART:
            return restart
        if self.cycle.withdrawn and self.rule == kind:
            self.seen -= min(self.cycle.withdrawn, self.seen) - 1
            self.gather(1, 0)
            self._updates = self._backwards = 0
            return Action.RESTART
        if not closes:
            return Action.NOTHING
        self._cycles_without_fetch += 1
        if self._fetched and self.rule not in PACED:
            if self._cycles_without_fetch < LOADER_PATIENCE:
                return Action.NOTHING
            self.seen += LOADER_PATIENCE - 1
        return self._close_burst(kind)

    def _take_back(self, key: int, kind: str) -> Action:
        """Begin anew: the backward passes that were taken for steps are parts of the first, which ends here."""
        self._guessed, self._updated = False, True
        self._reset()
        self._backwards = self._cycles_without_fetch = 0
        self._updates = int(self._fetched)
        self.seen = 1 - self._updates
        self.rule = "none" if self._fetched else kind
        self.cycle.add(key)
        return Action.RESTART

    def gather(self, burst: int, over: int) -> None:
        """Make one step of several closed cycles from now on (`uncork.capture.bursts`).

        Args:
            burst: How many.
            over: How many of the running step are over.
        """
        self.burst, self._in_burst = burst, over

    def _close_burst(self, kind: str) -> Action:
        """Return whether a closed cycle closes the step."""
        self._in_burst += 1
        if self._in_burst < self.burst:
            return Action.NOTHING
        self._in_burst = 0
        return self._close(kind)

    def backward(self, *, updated_inside: bool, in_update: bool = False) -> Action:
        """Return what the exit of the outermost backward means; one in an optimiser's closure is part of its update."""
        restart = Action.NOTHING if self._trains else self._train()
        self._begins = False
        if in_update:
            return restart
        self._backwards += 1
        if updated_inside:
            return self.update(-1, "optimizer_in_backward")
        by_hand = not self._updated and (not self.optimizers or self._backwards > BACKWARD_PATIENCE)
        if by_hand or self.rule == "backward":
            self._guessed = self._guessed or self.optimizers > 0
            action = self.update(-2, "backward")
            self._updated = False
            return action
        return restart

    def optimizer_built(self) -> Action:
        """Note an optimiser: from now on its updates pace the loop, not bare backward passes."""
        self.optimizers += 1
        if self.rule == "backward":
            self._reset()
            return Action.RESTART
        since, self._seen_when_built = self.seen - self._seen_when_built, self.seen
        if since < TRAINING_LEAST or self.rule not in (*PACED, "loader"):
            return Action.NOTHING
        self.seen += self.step_is_open
        self._updates = self._backwards = 0
        self._begins = self.rule in PACED
        return Action.PART

    def forward(self) -> Action:
        """Return what the entry of the outermost module call means; until a training's first backward it begins it."""
        if self._begins:
            return self._move()
        return self._inference() if self.wants_forwards else Action.NOTHING

    def generate(self) -> Action:
        """Return what the entry of a model's ``generate()`` means."""
        if self._trains:
            return Action.NOTHING
        first, self._generated = not self._generated, True
        if first and self.seen:
            self._reset()
            return Action.RESTART
        return self._inference()

    def mark(self) -> Action:
        """Return what ``uncork.step()`` means: from now on only marks are boundaries."""
        if self.rule != "mark":
            self._reset()
            self.rule = "mark"
            return Action.RESTART
        return self._close("mark")

    def _train(self) -> Action:
        """Note that the program trains: steps found by the inference rule were a check before training."""
        self._trains = True
        if self.seen and self.rule == "inference":
            self._reset()
            return Action.RESTART
        return Action.NOTHING

    def _inference(self) -> Action:
        return self._close("inference") if self.started else self._move()

    def _close(self, rule: str) -> Action:
        self.rule = rule
        self.seen += 1
        self.started = True
        self._batches, self._ahead = max(1, self._backwards // max(1, self._updates)), 1
        self._updates = self._backwards = 0
        return Action.CLOSE

    def _move(self) -> Action:
        self.started = True
        return Action.MOVE

    def _reset(self) -> None:
        self.seen, self.rule, self.started = 0, "none", True
        self._seen_when_built, self._begins = 0, False
        self.cycle = Cycle()
        self.gather(1, 0)
