"""SpanWriter: stages of the DataLoader as lines of spans.jsonl, from every process of a rank into one file."""

import json
import os
import time
from pathlib import Path
from typing import Protocol

SPANS_MOST = 20_000
"""Spans a process writes at most; then it falls silent (a loader of tiny batches makes millions)."""
FLUSH_EVERY_NS = 500_000_000
FLUSH_SPANS = 128


class HasHome(Protocol):
    """What a writer needs to know: where this rank's files lie."""

    def home(self) -> Path:
        """Return the folder of the rank."""


class SpanWriter:
    """Collects spans and appends them in whole lines; an append of one write is never torn by another process.

    Args:
        owner: Knows the folder.
        worker: DataLoader worker, -1 for the main process.
    """

    def __init__(self, owner: HasHome, worker: int = -1) -> None:
        self.on = True
        self._owner, self._worker = owner, worker
        self._lines: list[str] = []
        self._written = 0
        self._flushed_ns = time.perf_counter_ns()
        self._epoch_ns = time.time_ns() - time.perf_counter_ns()

    def add(self, stage: str, begun_ns: int, ended_ns: int, value: int = 0) -> None:
        """Note one span; times are of `time.perf_counter_ns`, which all processes of a host share."""
        if not self.on:
            return
        self._lines.append(
            f'{{"stage":{json.dumps(stage)},"worker":{self._worker},"start_ns":{begun_ns + self._epoch_ns},'
            f'"dur_ns":{ended_ns - begun_ns},"value":{value}}}\n'
        )
        if len(self._lines) >= FLUSH_SPANS or ended_ns - self._flushed_ns > FLUSH_EVERY_NS:
            self.flush()

    def flush(self) -> None:
        """Append what was collected."""
        lines, self._lines = self._lines, []
        self._flushed_ns = time.perf_counter_ns()
        if not lines:
            return
        self._written += len(lines)
        if self._written > SPANS_MOST:
            self.on = False
        file = os.open(self._owner.home() / "spans.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            os.write(file, "".join(lines).encode())
        finally:
            os.close(file)

    def end(self) -> None:
        """Write the rest and fall silent."""
        self.flush()
        self.on = False
