"""TrainingRecording: a recording that a framework's callback begins and ends, and its report."""

import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from uncork.capture.api import Session, record
from uncork.errors import UncorkError
from uncork.locale import default_language
from uncork.notebook import Shown


class TrainingRecording:
    """Records from the first step of a training to its end; nothing of it can end the training.

    Args:
        folder: The run folder; a new one under ``uncork-runs`` by default.
        show: Print the report at the end.
        **options: Fields of `uncork.capture.CaptureOptions`.
    """

    def __init__(self, folder: str | os.PathLike[str] | None = None, *, show: bool = True, **options: Any) -> None:  # noqa: ANN401 - as `uncork.record` takes them
        self.report: Shown | None = None
        self._session: Session | None = None
        self._show = show
        self._make: Callable[[], Session] = lambda: record(folder, **options)
        self._make()  # a misspelt option is told where it stands, not hours later

    def begin(self, share: Callable[[str], str]) -> None:
        """Begin to record, unless ``uncork run`` does already.

        Args:
            share: Returns the first rank's word on every rank.
        """
        if self._session is None:
            self._attempt(lambda: self._begin(share))

    def end(self) -> None:
        """End the recording; on the first rank, keep the report beside it and print it."""
        session, self._session = self._session, None
        if session is not None:
            self._attempt(lambda: self._end(session))

    def _begin(self, share: Callable[[str], str]) -> None:
        session = self._make()
        session.folder = Path(share(str(session.folder)))
        self._session = session.__enter__()

    def _end(self, session: Session) -> None:
        from uncork.pipeline import analyze

        session.__exit__(None, None, None)
        if not session.is_own or not session.leads:
            return
        self.report = Shown(analyze([session.folder], views=True))
        for name in ("report.json", "report.html"):
            self.report.save(session.folder / name)
        if self._show:
            print(self.report)
            print(session.folder / "report.html")

    @staticmethod
    def _attempt(what: Callable[[], None]) -> None:
        try:
            what()
        except Exception as fault:
            if os.environ.get("UNCORK_DEBUG"):
                traceback.print_exc()
            told = fault.told(default_language()) if isinstance(fault, UncorkError) else fault
            sys.stderr.write(f"uncork: {told}\n")
