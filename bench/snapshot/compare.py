"""Read one large snapshot with pickle.load and with uncork, each in a fresh process: time and memory."""

import argparse
import pickletools
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

FRAMES = 400
DEPTH = 30
KEYS = ("action", "addr", "size", "stream", "time_us", "frames", "name", "filename", "line", "alloc", "free_requested",
        "free_completed", "segments", "device_traces", "device", "address", "total_size", "blocks")  # fmt: skip

READ = {
    "nothing": "",
    "pickle.load": "import pickle; found = pickle.load(open(PATH, 'rb')); count = len(found['device_traces'][0])",
    "uncork": "import pathlib; from uncork import readers; "
    "found = readers.read(pathlib.Path(PATH))[0].snapshot; count = len(found.trace)",
}
MEASURE = """
import resource, sys, time
PATH, count = sys.argv[1], 0
start = time.process_time()
{read}
print(time.process_time() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, count)
"""


def text(word: str) -> bytes:
    """Return the instruction that pushes a short text."""
    raw = word.encode()
    return b"\x8c" + bytes([len(raw)]) + raw


def get(place: int) -> bytes:
    """Return the instruction that pushes what was remembered at a place."""
    return b"h" + bytes([place]) if place < 256 else b"j" + struct.pack("<I", place)


def number(value: int) -> bytes:
    """Return the instruction that pushes a large whole number."""
    raw = value.to_bytes(8, "little", signed=True)
    return b"\x8a\x08" + raw


def write(path: Path, megabytes: int) -> None:
    """Write a snapshot of about a size, piece by piece: making it must not need more memory than reading it.

    Every dict and list is remembered, as C's pickler does it, though none of them is asked for again.
    """
    key = {word: get(place) for place, word in enumerate(KEYS)}
    stacks = [b"]\x94(" + b"".join(get(len(KEYS) + (first + 7 * depth) % FRAMES) for depth in range(DEPTH)) + b"e"
              for first in range(FRAMES)]  # fmt: skip
    with path.open("wb") as file:
        file.write(b"\x80\x04")
        for word in KEYS:
            file.write(text(word) + b"\x940")
        for frame in range(FRAMES):
            place = text(f"layer_{frame}") + key["filename"] + text(f"/home/user/model/part_{frame % 40}.py")
            file.write(b"}\x94(" + key["name"] + place + key["line"] + b"M" + struct.pack("<H", frame) + b"u0")
        file.write(b"}\x94(" + key["segments"] + b"]\x94" + key["device_traces"] + b"]\x94(]\x94(")
        actions = 0
        while file.tell() < megabytes * 1_000_000:
            address, size = (1 << 40) + actions * 512, 512 * (1 + actions % 1000)
            for word in ("alloc", "free_requested", "free_completed"):
                file.write(
                    b"}\x94(" + key["action"] + key[word] + key["addr"] + number(address) + key["size"] + number(size)
                    + key["stream"] + b"K\0" + key["time_us"] + number(1_700_000_000_000_000 + actions)
                    + key["frames"] + stacks[actions % FRAMES] + b"u"
                )  # fmt: skip
                actions += 1
        file.write(b"eeu.")


def main() -> None:
    """Write the file, read it in each way, print the table."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--megabytes", type=int, default=500)
    megabytes = options.parse_args().megabytes
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "snapshot.pickle"
        start = time.perf_counter()
        write(path, megabytes)
        size = path.stat().st_size
        print(f"{size / 1e6:.0f} MB written in {time.perf_counter() - start:.0f} s")
        if megabytes <= 1:
            pickletools.dis(path.read_bytes()[:2000])
        print(f"{'':12} {'actions':>10} {'CPU s':>8} {'MB/s':>7} {'memory / file':>14}")
        base = 0.0
        for name, read in READ.items():
            command = [sys.executable, "-c", MEASURE.format(read=read), str(path)]
            seconds, memory, count = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
            if name == "nothing":
                base = float(memory)
                continue
            ratio = (float(memory) - base) / size
            print(
                f"{name:12} {int(count):>10,} {float(seconds):>8.1f} {size / 1e6 / float(seconds):>7.1f} {ratio:>14.2f}"
            )


if __name__ == "__main__":
    main()
