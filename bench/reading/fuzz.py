"""Feeds damaged traces to both scanners, the compiled one under AddressSanitizer, and compares what comes out.

    python bench/reading/fuzz.py --minutes 60          # builds, then mutates the seeds below; stops at the first fault
    python bench/reading/fuzz.py --minutes 5 --seed 3  # the same mutations again with --seed

A fault is: a crash, a report of the sanitizer, an exception other than UncorkError, more events than the text has
braces, or columns in which the portable scanner, the compiled one and the compiled one in two threads differ where the
standard library finds the text valid. The input that did it is written to fault.json in the folder --work. Beside what
the tests need it takes gcc and Cython: pip install Cython.
"""

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path
from typing import cast

ROOT = Path(__file__).parent.parent.parent

SEEDS = (
    (
        b'{"schemaVersion": 1, "traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": "7", '
        b'"ts": 1712195495519806.264, "dur": 1.5, "args": {"Input Dims": [[2, 3], []], "x": -0.125e-3, "n": null}},'
        b'{"ph":"s","id":5,"pid":1,"tid":"7","ts":1e3,"cat":"ac2g","name":"ac2g"}], "baseTimeNanoseconds": 17}'
    ),
    (
        b'[{"name":"a\\u0062\\n\\"c\\"\\\\","ph":"i","s":"t","ts":"-0.5","pid":null,"tid":4,"args":{}},\n {"ph":"X",'
        b'"ts":9007199254740993.0005,"dur":0.00049999,"args":{"big":123456789012345678901,"f":1.7976931348623157e308}}]'
    ),
    (
        b'{"traceEvents": {"traceEvents": [\n  {\n    "ph": "X", "name": "\xd0\xba\xff", "ts": 1, "dur": 2,\n    '
        b'"args": {\n      "a": {"b": [true, false, {"c": "}, {"}]}, "d": "" \n    }\n  },\n  {"ph": "E", "ts": 3}\n ]}}'  # noqa: E501 - a found case, as it was
    ),
)
WORDS = (
    *(
        b'"',
        b"\\",
        b"{",
        b"}",
        b"[",
        b"]",
        b",",
        b":",
        b"\0",
        b"\n",
        b"\xff",
        b"\\u00",
        b"\\ud800",
        b"NaN",
        b"-",
        b"1e",
    ),
    *(b"0", b"9" * 40, b'"ts":', b'"args":{', b'{"ph":"X",', b"null", b"tru", b" " * 9, b"[" * 80, b'"External id": 1'),
)


def mutated(dice: random.Random) -> bytes:
    """Return a seed with some bytes changed, put in, taken out, repeated or swapped, sometimes long."""
    text = bytearray(dice.choice(SEEDS))
    if dice.random() < 0.3:  # many events, so that pieces lie between them and literals are foretold
        events = text[text.index(b"[") + 1 : text.rindex(b"]")]
        text = bytearray(b"[" + b",\n".join([events] * dice.randrange(2, 9)) + b"]")
    for _ in range(dice.choice((0, 1, 1, 2, 3, 8))):
        place = dice.randrange(len(text) + 1)
        action = dice.randrange(6)
        if action == 0:
            text[place:place] = dice.choice(WORDS)
        elif action == 1:
            del text[place : place + dice.choice((1, 1, 2, 5, 40))]
        elif action == 2 and place < len(text):
            text[place] = dice.randrange(256)
        elif action == 3:
            length = dice.randrange(1, 120)
            text[place:place] = text[dice.randrange(len(text) + 1) :][:length]
        elif action == 4:
            text[place : place + 3] = dice.choice(WORDS)
        elif action == 5:
            del text[place:]
        if not text:
            break
    return bytes(text)


class Pieces:
    """A source that hands a text out in pieces."""

    damage: frozenset[str] = frozenset()
    path = Path("fuzz")

    def __init__(self, text: bytes, size: int) -> None:
        self.pieces = [text[place : place + size] for place in range(0, len(text), size)]

    def read(self, wanted_bytes: int) -> bytes:
        """Return the next piece."""
        del wanted_bytes
        return self.pieces.pop(0) if self.pieces else b""


def fault_of(text: bytes, size: int) -> str:
    """Return what is wrong with how a text is read, empty if nothing."""
    sys.path.insert(0, str(ROOT))
    from tests.unit.test_readers_scanners import rows_of
    from uncork.readers.scan import CompiledScanner

    from uncork.errors import UncorkError
    from uncork.readers import document
    from uncork.readers.document import Text, scan
    from uncork.readers.parallel import Shared
    from uncork.readers.portable import PortableScanner

    document._CHUNK_BYTES = size  # noqa: SLF001 — pieces as small as can be
    results: list[object] = []
    for kind in (PortableScanner, CompiledScanner, Shared):
        source = cast("Text", Pieces(text, size))
        scanner = PortableScanner() if kind is PortableScanner else CompiledScanner()
        try:
            scanned = scan(source, scanner, Shared(source, scanner).read_on if kind is Shared else None)
        except UncorkError:
            results.append("refused")
        else:
            if len(scanned) > text.count(b"{"):
                return "more events than braces"
            results.append(rows_of(scanned))
    try:
        json.loads(text, parse_constant=int)
    except (ValueError, RecursionError):
        return ""
    return "" if results[0] == results[1] == results[2] else "the ways of reading differ on a valid text"


def exception_or_fault(text: bytes, size: int) -> str:
    """Return what is wrong with how a text is read, exceptions too."""
    try:
        return fault_of(text, size)
    except Exception as error:  # noqa: BLE001 — any exception is a finding
        return repr(error)


def fuzz(minutes: float, seed: int, work: Path) -> int:
    """Run until the time is over or a fault is found; return the exit code."""
    stop = time.monotonic() + minutes * 60
    dice = random.Random(seed)
    count = 0
    while time.monotonic() < stop:
        text, size = mutated(dice), dice.choice((1 << 30, 1, 7, 64, 500, 900))
        (work / "last.json").write_bytes(text)
        fault = exception_or_fault(text, size)
        if fault:
            (work / "fault.json").write_bytes(text)
            print(f"after {count} texts: {fault} (pieces of {size}); see {work / 'fault.json'}")
            return 1
        count += 1
    print(f"{count} texts in {minutes:g} minutes, seed {seed}: no fault")
    return 0


def build(work: Path) -> dict[str, str]:
    """Build the package with AddressSanitizer into a folder; return the environment to run it in."""
    package = work / "src"
    if package.exists():
        shutil.rmtree(package)
    shutil.copytree(
        ROOT / "src" / "uncork", package / "uncork", ignore=shutil.ignore_patterns("*.so", "*.c", "__pycache__")
    )
    scan = package / "uncork" / "readers" / "scan"
    subprocess.run([sys.executable, "-m", "cython", "-3", f"{scan}.pyx"], check=True, cwd=package)
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    flags = ["-shared", "-fPIC", "-O1", "-g", "-fsanitize=address,undefined", f"-I{sysconfig.get_path('include')}"]
    subprocess.run(["gcc", *flags, f"{scan}.c", "-o", f"{scan}{suffix}"], check=True)
    asan = subprocess.run(
        ["gcc", "-print-file-name=libasan.so"], check=True, capture_output=True, text=True
    ).stdout.strip()
    options = {"ASAN_OPTIONS": "detect_leaks=0", "PYTHONMALLOC": "malloc", "UBSAN_OPTIONS": "halt_on_error=1"}
    return os.environ | {"LD_PRELOAD": asan, "PYTHONPATH": str(package), "UNCORK_FUZZING": "1"} | options


def main() -> int:
    """Build, then fuzz in a process that has the sanitizer loaded."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "uncork-fuzz")
    wanted = parser.parse_args()
    wanted.work.mkdir(parents=True, exist_ok=True)
    if "UNCORK_FUZZING" in os.environ:
        return fuzz(wanted.minutes, wanted.seed, wanted.work)
    return subprocess.run([sys.executable, __file__, *sys.argv[1:]], env=build(wanted.work), check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
