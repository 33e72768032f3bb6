"""Serving: a page of this machine only that fetches the stretches of time which one file has no room for."""

import http.server
import secrets
from collections.abc import Sequence
from functools import cached_property
from http import HTTPStatus
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from uncork import readers
from uncork.measure import MissingEvidence, Rank
from uncork.measure.views.timeline_view import TimelineView
from uncork.pipeline import analyze_recordings
from uncork.recording import Recording
from uncork.records import dataclass
from uncork.render import Options
from uncork.render.html import render_served

ADDRESS = "127.0.0.1"
# A hundred days: as far as the page counts nanoseconds exactly.
_LATEST_NS = 2**53
_HOSTS = (ADDRESS, "localhost")
_HTML, _BINARY, _TEXT = "text/html; charset=utf-8", "application/octet-stream", "text/plain; charset=utf-8"


@dataclass(frozen=True)
class Answer:
    """What is sent back.

    Args:
        status: HTTP status.
        kind: Its content type.
        body: Its content.
    """

    status: HTTPStatus
    kind: str
    body: bytes


class Served:
    """The report of some recordings and their events, kept in memory.

    Args:
        recordings: One per rank.
        options: The page's language.
    """

    def __init__(self, recordings: Sequence[Recording], options: Options) -> None:
        self.token = secrets.token_urlsafe(24)
        self._report = analyze_recordings(recordings, views=True)
        self._options = options
        numbers = self._report.run["ranks"]
        claimed = [recording.rank for recording in recordings]
        # As the report numbers them: by the ranks they claim where all claim one of their own, else as given.
        by_claim = dict(zip(claimed, recordings, strict=True)) if set(claimed) == set(numbers) else {}
        ordered = [by_claim.get(number, recording) for number, recording in zip(numbers, recordings, strict=True)]
        self._ranks = {number: Rank(recording, number) for number, recording in zip(numbers, ordered, strict=True)}

    @cached_property
    def page(self) -> bytes:
        """Return the page; it asks for stretches beside itself."""
        return render_served(self._report, self._options).encode("utf-8")

    def answer(self, host: str, target: str) -> Answer:
        """Return the answer to a request.

        A wrong host means that a page elsewhere had its name point here (DNS rebinding); a wrong token, that whoever
        asks was not given the address.

        Args:
            host: The request's ``Host``.
            target: Path and query.
        """
        parts = urlsplit(target)
        if host.rpartition(":")[0] not in _HOSTS:
            return Answer(HTTPStatus.FORBIDDEN, _TEXT, b"wrong host")
        _, token, name = [*parts.path.split("/", 2), "", ""][:3]
        if not secrets.compare_digest(token.encode(), self.token.encode()):
            return Answer(HTTPStatus.NOT_FOUND, _TEXT, b"nothing here")
        if name == "":
            return Answer(HTTPStatus.OK, _HTML, self.page)
        if name == "stretch":
            return self._stretch(parse_qs(parts.query))
        return Answer(HTTPStatus.NOT_FOUND, _TEXT, b"nothing here")

    def _stretch(self, query: dict[str, list[str]]) -> Answer:
        try:
            number, begin, end = (int(query[key][0]) for key in ("rank", "from", "to"))
            rank = self._ranks[number]
            view = TimelineView.stretch(rank, begin, end) if 0 <= begin < end < _LATEST_NS else None
        except (KeyError, ValueError, MissingEvidence):
            view = None
        if view is None:
            return Answer(HTTPStatus.BAD_REQUEST, _TEXT, b"no such stretch")
        return Answer(HTTPStatus.OK, _BINARY, view.block)


def read(path: Path) -> list[Recording]:
    """Return the recordings of all ranks at a path."""
    return [recording for file in readers.expand([path]) for recording in readers.read(file)]


def server(served: Served, port: int = 0) -> http.server.ThreadingHTTPServer:
    """Return a server on this machine's own address, not yet running; its port is chosen where 0 is given."""

    class Handler(http.server.BaseHTTPRequestHandler):
        """Answers GET only."""

        def do_GET(self) -> None:
            """Send the answer."""
            answer = served.answer(self.headers.get("Host", ""), self.path)
            self.send_response(answer.status)
            self.send_header("Content-Type", answer.kind)
            self.send_header("Content-Length", str(len(answer.body)))
            self.send_header("Cache-Control", "no-store")
            self.send_header("X-Content-Type-Options", "nosniff")
            self.send_header("Referrer-Policy", "no-referrer")
            self.end_headers()
            self.wfile.write(answer.body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - http.server's name
            """Keep quiet: the address holds the token."""

    return http.server.ThreadingHTTPServer((ADDRESS, port), Handler)


def address(running: http.server.ThreadingHTTPServer, served: Served) -> str:
    """Return the page's address."""
    return f"http://{ADDRESS}:{running.server_address[1]}/{served.token}/"
