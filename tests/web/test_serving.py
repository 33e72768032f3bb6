"""A page with a server behind it: who may ask, what is answered, and that zooming in brings what was left out."""

import gzip
import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

import pytest

from uncork import serving
from uncork.measure.views.packed import unpack
from uncork.render import Options
from uncork.testing import sketch

MS = 1_000_000
JOB = """
device NVIDIA A100-SXM4-80GB
steps 6 x 10ms
  main 1ms..1.01ms x40 every 200us aten::add -> stream 7 1.1ms..1.2ms elementwise_kernel
"""


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> serving.Served:
    """Return a served job whose page has room for few of its events."""
    monkeypatch.setattr("uncork.measure.views.timeline_view.MOST_EVENTS", 400)
    return serving.Served(sketch(JOB), Options())


@pytest.fixture
def running(served: serving.Served) -> Iterator[str]:
    """Return the address of the job's server."""
    with serving.server(served) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield serving.address(server, served)
        server.shutdown()


@pytest.mark.parametrize(
    ("host", "path", "status"),
    [
        ("127.0.0.1:80", "/{token}/", HTTPStatus.OK),
        ("localhost:80", "/{token}/", HTTPStatus.OK),
        ("evil.example:80", "/{token}/", HTTPStatus.FORBIDDEN),
        ("", "/{token}/", HTTPStatus.FORBIDDEN),
        ("127.0.0.1:80", "/", HTTPStatus.NOT_FOUND),
        ("127.0.0.1:80", "/guess/", HTTPStatus.NOT_FOUND),
        ("127.0.0.1:80", "/{token}/../etc/passwd", HTTPStatus.NOT_FOUND),
        ("127.0.0.1:80", "/{token}/stretch?rank=0&from=0&to=5000000", HTTPStatus.OK),
        ("127.0.0.1:80", "/{token}/stretch?rank=7&from=0&to=5000000", HTTPStatus.BAD_REQUEST),
        ("127.0.0.1:80", "/{token}/stretch?rank=0&from=9&to=5", HTTPStatus.BAD_REQUEST),
        ("127.0.0.1:80", "/{token}/stretch?rank=0&from=a&to=5", HTTPStatus.BAD_REQUEST),
        ("127.0.0.1:80", "/{token}/stretch?rank=0&from=0&to=" + "9" * 40, HTTPStatus.BAD_REQUEST),
        ("127.0.0.1:80", "/{token}/stretch", HTTPStatus.BAD_REQUEST),
    ],
)
def test_only_who_has_the_address_is_answered(served: serving.Served, host: str, path: str, status: HTTPStatus) -> None:
    """Host and token are checked; what is no stretch is refused."""
    assert served.answer(host, path.replace("{token}", served.token)).status == status


def test_a_stretch_holds_all_events_in_it(served: serving.Served) -> None:
    """From 12 to 13 ms: operators start every 0.2 ms from 11 ms on, so 5 overlap it, with a launch and a kernel each.

    Kernels are 0.1 ms long, from 0.1 ms after their operator: those of the operators at 11.8 to 12.8 ms touch it.
    """
    answer = served.answer("127.0.0.1:1", f"/{served.token}/stretch?rank=0&from=12000000&to=13000000")
    meta, columns = unpack(answer.body)
    names = [meta["names"][number] for number in columns["name"].tolist()]  # type: ignore[index]
    assert names.count("aten::add") == 5
    assert names.count("elementwise_kernel") == 5
    assert meta["whole_ns"] == [12 * MS, 13 * MS]


def test_the_server_listens_on_this_machine_only(running: str) -> None:
    """The address is the loopback's; the page says that nothing else may be asked."""
    assert running.startswith("http://127.0.0.1:")
    with urllib.request.urlopen(running) as answer:  # noqa: S310 - our own address
        page = answer.read().decode()
    assert "connect-src 'self'" in page
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(running[:-2] + "/")  # noqa: S310


@pytest.mark.web
def test_zooming_in_brings_what_was_left_out(running: str, new_page: Any) -> None:
    """At first three steps are whole; zoomed into another one, its events come from the server, none elsewhere."""
    page = new_page()
    page.tab.goto(running)
    page.tab.wait_for_selector("canvas.lanes")
    whole = page.timeline("t.trace.meta.whole_ns")
    assert whole == [0, 0]
    page.timeline("t.show(12e6, 13e6)")
    page.tab.wait_for_timeout(1500)
    assert page.timeline("t.trace.meta.whole_ns") == [11 * MS, 14 * MS]
    assert page.timeline("[t.from, t.to]") == [12 * MS, 13 * MS]
    assert page.errors == []
    assert len(page.requests) == 2
    assert all(request.startswith("http://127.0.0.1:") for request in page.requests)


def test_blocks_are_gzip_of_a_header_and_columns(served: serving.Served) -> None:
    """What the server sends is what the page embeds: a header's length, the header, the columns."""
    answer = served.answer("127.0.0.1:1", f"/{served.token}/stretch?rank=0&from=0&to=1000000")
    raw = gzip.decompress(answer.body)
    header = json.loads(raw[4 : 4 + int.from_bytes(raw[:4], "little")])
    assert {"meta", "columns"} == set(header)
