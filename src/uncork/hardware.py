"""Peaks: what a device can do at most, found by the name its driver gives it; an unknown name gets no figures."""

import re
import sys
from collections.abc import Mapping
from dataclasses import field
from functools import cache
from pathlib import Path

from uncork.recording import Device
from uncork.records import dataclass

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_TERA, _GIGA = 1e12, 1e9
# Words that name a vendor or a brand but never tell two models apart.
_FOLDED = re.compile(r"\b(nvidia|amd|ati|tesla|instinct|geforce|quadro|graphics|generation)\b|\((r|tm)\)|[®™]")
_UNKNOWABLE = re.compile(r"\blaptop\b|\bmax-?q\b|\bmobile\b|\bmig\b")
TENSOR_CORES_SINCE = (7, 0)
TF32_SINCE = (8, 0)
BF16_SINCE = (8, 0)


@dataclass(frozen=True)
class Peaks:
    """What one device can do at most, by the vendor's figures, and what was measured.

    Args:
        name: The device, as in ``hardware.toml``.
        vendor: ``nvidia`` or ``amd``.
        compute_capability: (major, minor) for NVIDIA devices.
        peak_flop_per_s: Vendor's dense figure by precision: ``fp64 fp32 fp32_matrix tf32 fp16 bf16 fp8``.
        measured_flop_per_s: Largest matrix product somebody measured, by precision.
        peak_bytes_per_s: Vendor's memory bandwidth.
        link_bytes_per_s: Device to device, one direction, or None.
        source: Where the figures are from.
    """

    name: str
    vendor: str
    compute_capability: tuple[int, int] | None
    peak_flop_per_s: Mapping[str, float]
    peak_bytes_per_s: float
    measured_flop_per_s: Mapping[str, float] = field(default_factory=dict)
    link_bytes_per_s: float | None = None
    source: str = ""

    def matrix_flop_per_s(self, precision: str) -> float | None:
        """Return the vendor's figure for matrix products in a precision, None where the device has none."""
        if precision == "fp32" and "fp32_matrix" in self.peak_flop_per_s:
            return self.peak_flop_per_s["fp32_matrix"]
        return self.peak_flop_per_s.get(precision)


def peaks(name: str) -> Peaks | None:
    """Return the peaks of a device by its driver's name, None where the name does not settle which device it is."""
    folded = fold(name)
    if not folded or _UNKNOWABLE.search(folded):
        return None
    known = (_block(place) for place in range(len(_blocks())))
    return next((found for patterns, found in known if any(pattern.search(folded) for pattern in patterns)), None)


def peaks_of(devices: tuple[Device, ...]) -> Peaks | None:
    """Return the peaks of the devices of a recording when all that are known are the same model."""
    found = {known.name: known for device in devices if (known := peaks(device.name))}
    named = [device for device in devices if device.name]
    return next(iter(found.values())) if len(found) == 1 and all(peaks(device.name) for device in named) else None


def capability(devices: tuple[Device, ...]) -> tuple[int, int] | None:
    """Return the lowest compute capability among NVIDIA devices, None where none is known."""
    known = [device.compute_capability or (found.compute_capability if (found := peaks(device.name)) else None)
             for device in devices]  # fmt: skip
    told = [one for one in known if one]
    return min(told) if told and not is_amd(devices) else None


def is_amd(devices: tuple[Device, ...]) -> bool:
    """Return whether a device is AMD's; drivers fill in a compute capability for those too."""
    return any(re.search(r"\bamd\b|\bradeon\b|\bmi\d{3}", device.name.lower()) for device in devices)


def fold(name: str) -> str:
    """Return a driver's name without vendor words and marks, in lower case, with single spaces."""
    return " ".join(re.sub(r"[-_/]", " ", _FOLDED.sub(" ", name.lower())).split())


@cache
def _blocks() -> list[str]:
    """Return the table's text, one part per device: none is read before it is asked for."""
    return Path(__file__).with_name("hardware.toml").read_text("utf-8").split("\n[[device]]\n")[1:]


@cache
def _block(place: int) -> tuple[tuple[re.Pattern[str], ...], Peaks]:
    entry = tomllib.loads(_blocks()[place])
    return tuple(re.compile(pattern) for pattern in entry["match"]), _entry(entry)


def _entry(entry: Mapping[str, object]) -> Peaks:
    def scaled(key: str, by: float) -> float | None:
        value = entry.get(key)
        return float(value) * by if isinstance(value, (int, float)) else None

    def by_precision(key: str) -> dict[str, float]:
        values = entry.get(key, {})
        return {name: float(value) * _TERA for name, value in values.items()} if isinstance(values, dict) else {}

    name, major_minor = str(entry["name"]), entry.get("cc")
    return Peaks(
        name=name,
        vendor=name.split(maxsplit=1)[0].lower(),
        compute_capability=(major_minor[0], major_minor[1]) if isinstance(major_minor, list) else None,
        peak_flop_per_s=by_precision("tflops"),
        peak_bytes_per_s=scaled("memory", _GIGA) or 0.0,
        measured_flop_per_s=by_precision("measured"),
        link_bytes_per_s=scaled("link", _GIGA),
        source=str(entry["source"]),
    )
