"""Writes a large trace as Kineto writes one, with as many distinct names and shapes as real training has.

    python generate.py 500 trace.json            # MB of JSON, one field a line, as torch exports
    python generate.py 500 trace.json --compact  # one line, as json.dump writes

The counts are those of a real H100 training trace: per launched kernel two Python frames, three operators with shapes,
one runtime call, two flow ends, and memory records; some 370 bytes and 4 arguments per event. One in fifty names
and shapes is new in every step, so the tables of distinct texts grow with the file as they do in real ones.
"""

import argparse
import random
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

BASE_NS = 1_759_300_074_000_000_000
PID, DEVICE, STREAM = 21587, 0, 7
OPERATORS = (
    "mm",
    "addmm",
    "bmm",
    "add",
    "mul",
    "native_layer_norm",
    "_softmax",
    "gelu",
    "view",
    "transpose",
    "copy_",
    "cat",
)
TYPES = ("c10::BFloat16", "float", "long int", "Scalar", "ScalarList", "")

HEADER = """{
  "schemaVersion": 1,
  "deviceProperties": [
    {
      "id": 0, "name": "NVIDIA H100 80GB HBM3", "totalGlobalMem": 85018279936,
      "computeMajor": 9, "computeMinor": 0, "maxThreadsPerBlock": 1024, "numSms": 132
    }
  ],
  "cuda_runtime_version": 12040,
  "record_shapes": 1,
  "profile_memory": 1,
  "with_stack": 1,
  "displayTimeUnit": "ms",
  "baseTimeNanoseconds": 1759300074000000000,
  "traceEvents": [
"""


class Names:
    """Texts drawn as real ones are: mostly known ones, some new in every step.

    Args:
        seed: Of the random numbers, so that a file can be written again.
    """

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.frames = [self._frame() for _ in range(2000)]
        self.kernels = [self._kernel() for _ in range(300)]
        self.shapes = [self._shapes() for _ in range(600)]

    def grow(self) -> None:
        """Replace a share of the texts by new ones."""
        for texts, new in ((self.frames, self._frame), (self.kernels, self._kernel), (self.shapes, self._shapes)):
            for _ in range(len(texts) // 50):
                texts[self.random.randrange(len(texts))] = new()

    def _frame(self) -> str:
        number = self.random.randrange
        package = self.random.choice(("torch/nn/modules", "transformers/models", "src/model", "torch/autograd"))
        return f"/usr/lib/python3.12/site-packages/{package}/part_{number(900)}.py({number(3000)}): call_{number(400)}"

    def _kernel(self) -> str:
        number = self.random.randrange
        return (
            f"void at::native::vectorized_elementwise_kernel<{1 << number(4)}, at::native::BinaryFunctor<c10::Half, "
            f"c10::BFloat16, c10::BFloat16, at::native::binary_internal::MulFunctor_{number(90000)}<float> >, "
            f"std::array<char*, {number(6)}ul> >(int, at::native::BinaryFunctor<c10::BFloat16>, std::array<char*, 3ul>)"
        )

    def _shapes(self) -> tuple[str, str, str, str, list[str]]:
        number = self.random.randrange
        shapes = [[number(1, 65) * 64 for _ in range(number(1, 4))] for _ in range(number(1, 5))] + [[], []]
        strides = [[number(1, 4097) for _ in shape] for shape in shapes]
        types = '["' + '", "'.join(self.random.choice(TYPES) for _ in shapes) + '"]'
        values = '["' + '", "'.join(str(number(4)) if not shape else "" for shape in shapes) + '"]'
        return str(shapes), str(strides), types, values, self.random.choices(OPERATORS, k=3)


Fields = list[tuple[str, str]]
"""The keys of an event or its args with their values as JSON text."""


def step(names: Names, number: int, start: int) -> Iterator[tuple[Fields, Fields]]:
    """Yield the events of one step as (fields, args): 1500 launches."""
    clock = start
    for launch in range(1500):
        ident = number * 1500 + launch
        random_float = names.random.random
        shapes, strides, types, values, operators = names.random.choice(names.shapes)
        clock += 20_000 + int(random_float() * 30_000)
        for depth in range(2):
            yield (
                _lasting(names.random.choice(names.frames), "python_function", clock + depth, 19_000 - depth),
                [
                    ("Python id", str(ident * 2 + depth)),
                    ("Python parent id", str(ident * 2 - 1)),
                    ("Ev Idx", str(ident * 8)),
                ],
            )
        for depth in range(3):
            operator = f"aten::{operators[depth]}"
            args = [
                ("External id", str(ident * 3 + depth)), ("Record function id", "0"), ("Concrete Inputs", values),
                ("Input type", types), ("Input Strides", strides), ("Input Dims", shapes),
                ("Ev Idx", str(ident * 8 + depth)),
            ]  # fmt: skip
            if depth == 0:
                args[1:1] = [("Sequence number", str(ident)), ("Fwd thread id", "0")]
            yield _lasting(operator, "cpu_op", clock + 100 * depth + 10, 15_000 - 300 * depth), args
        if launch % 2:
            yield _memory(clock + 5_000), [
                ("Total Reserved", str(2 << 30)), ("Total Allocated", str(ident * 512)), ("Bytes", str(512 + launch)),
                ("Addr", str(139_000_000_000_000 + ident * 512)), ("Device Id", "0"), ("Device Type", "1"),
                ("Ev Idx", str(ident * 8 + 4)),
            ]  # fmt: skip
        correlation = str(ident + 1000)
        yield _lasting("cudaLaunchKernel", "cuda_runtime", clock + 8_000, 4_321), [
            ("External id", str(ident * 3 + 2)), ("cbid", "211"), ("correlation", correlation),
        ]  # fmt: skip
        yield _flow("s", correlation, PID, PID, clock + 8_000), []
        length = 3_000 + int(random_float() * 40_000)
        yield _lasting(names.random.choice(names.kernels), "kernel", clock + 50_000, length, (DEVICE, STREAM)), [
            ("External id", str(ident * 3 + 2)), ("queued", "0"), ("device", "0"), ("context", "1"), ("stream", "7"),
            ("correlation", correlation), ("registers per thread", "32"), ("shared memory", "0"),
            ("blocks per SM", f"{random_float() * 60:.6f}"), ("warps per SM", f"{random_float() * 240:.6f}"),
            ("grid", f"[{names.random.randrange(1, 9000)}, 1, 1]"), ("block", "[128, 1, 1]"),
            ("est. achieved occupancy %", str(names.random.randrange(101))),
        ]  # fmt: skip
        yield _flow("f", correlation, DEVICE, STREAM, clock + 50_000), []
    yield _lasting(f"ProfilerStep#{number}", "user_annotation", start, clock - start), [("External id", "1")]


def _us(ns: int) -> str:
    return f"{ns // 1000}.{ns % 1000:03d}"


def _lasting(name: str, cat: str, ts: int, dur: int, track: tuple[int, int] = (PID, PID)) -> Fields:
    fields = [("ph", '"X"'), ("cat", f'"{cat}"'), ("name", f'"{name}"'), *_ids(track)]
    return [*fields, ("ts", _us(ts)), ("dur", _us(dur))]


def _ids(track: tuple[int, int]) -> Fields:
    return [("pid", str(track[0])), ("tid", str(track[1]))]


def _memory(ts: int) -> Fields:
    return [
        ("ph", '"i"'), ("cat", '"cpu_instant_event"'), ("s", '"t"'), ("name", '"[memory]"'), ("pid", str(PID)),
        ("tid", str(PID)), ("ts", _us(ts)),
    ]  # fmt: skip


def _flow(phase: str, ident: str, pid: int, tid: int, ts: int) -> Fields:
    fields = [("ph", f'"{phase}"'), ("id", ident), ("pid", str(pid)), ("tid", str(tid)), ("ts", _us(ts))]
    return [*fields, ("cat", '"ac2g"'), ("name", '"ac2g"'), *([("bp", '"e"')] if phase == "f" else [])]


def _pretty(fields: Fields, args: Fields) -> str:
    """Return an event in the layout of Kineto."""
    text = "  {\n    " + ",\n    ".join(f'"{key}": {value}' for key, value in fields)
    if args:
        text += ',\n    "args": {\n      ' + ", ".join(f'"{key}": {value}' for key, value in args) + "\n    }"
    return text + "\n  }"


def _compact(fields: Fields, args: Fields) -> str:
    """Return an event in the layout of json.dump."""
    text = "{" + ", ".join(f'"{key}": {value}' for key, value in fields)
    if args:
        text += ', "args": {' + ", ".join(f'"{key}": {value}' for key, value in args) + "}"
    return text + "}"


def write(file: TextIO, size_bytes: int, *, compact: bool = False) -> int:
    """Write a trace of about a size; return the number of its events."""
    names = Names(20240)
    events = number = written = 0
    layout, between = (_compact, ", ") if compact else (_pretty, ",\n")
    written += file.write(" ".join(HEADER.split()) if compact else HEADER)
    first = True
    while written < size_bytes:
        texts = [layout(fields, args) for fields, args in step(names, number, 10**15 + number * 10**9)]
        written += file.write(("" if first else between) + between.join(texts))
        events += len(texts)
        number += 1
        first = False
        names.grow()
    file.write(f'{"" if compact else chr(10)}], "traceName": "big.json"}}')
    return events


def main() -> None:
    """Write the file that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("megabytes", type=int)
    parser.add_argument("path", type=Path)
    parser.add_argument("--compact", action="store_true")
    wanted = parser.parse_args()
    with wanted.path.open("w", encoding="utf-8") as file:
        print(write(file, wanted.megabytes * 10**6, compact=wanted.compact), "events")


if __name__ == "__main__":
    main()
