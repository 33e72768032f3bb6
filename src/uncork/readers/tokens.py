"""What a single token of a trace's JSON means: a time, a number, a key; exact, however it is written."""

import json

from uncork.events import SURROGATE
from uncork.readers.columns import ABSENT, NOT_A_NUMBER

HUGE_NS = 9_200_000_000_000_000_000
"""The year 2261 in ns since the epoch, and the end of int64: a start beyond it was not written in µs."""
NUMBER_STARTS = {bytes([byte]) for byte in b"-0123456789"}


def nanoseconds(token: bytes) -> int:
    """Return a time written in µs in whole ns, rounded half up beyond the third decimal, never through a float."""
    if not token:
        return ABSENT
    whole, _, part = token.partition(b".")
    if len(part) <= 3:
        try:
            return int(whole + part.ljust(3, b"0"))
        except ValueError:
            pass
    return _rare_nanoseconds(token)


def _rare_nanoseconds(token: bytes) -> int:
    """Return the same of a time with an exponent, more decimals or quotes around it."""
    from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation

    try:
        exact = Decimal(token.strip(b'"').decode("ascii", "replace"))
        if not exact.is_finite() or exact.adjusted() > 24:
            return NOT_A_NUMBER
        return int(Context(prec=80).multiply(exact, Decimal(1000)).to_integral_value(ROUND_HALF_UP))
    except (InvalidOperation, ValueError):
        return NOT_A_NUMBER


def time_of(token: bytes) -> tuple[int, bool, bool]:
    """Return a time in ns, whether its size shows that it was written in ns, and whether it had a fraction."""
    time = nanoseconds(token)
    huge = time not in (ABSENT, NOT_A_NUMBER) and not -HUGE_NS < time < HUGE_NS
    if huge:
        huge = abs(time) < HUGE_NS * 1000
        time = time // 1000 if huge else NOT_A_NUMBER
    return time, huge, time != NOT_A_NUMBER and b"." in token


def number_of(token: bytes) -> float:
    """Return a JSON number: whole where it is written so and fits 64 bits, else the nearest float."""
    return int(token) if kind_of(token) == "ints" else float(token)


def key_text(raw: bytes) -> str:
    """Return a key of an object as text, its escapes undone."""
    text = raw.decode("utf-8", "replace")
    if "\\" in text:
        text = SURROGATE.sub("\ufffd", str(json.loads(f'"{text}"', strict=False)))
    return text


def kind_of(value: bytes) -> str:
    """Return which part of an `ArgColumn` a JSON value belongs to; empty for null."""
    first = value[:1]
    if first == b'"':
        return "texts"
    if first in NUMBER_STARTS:
        if any(mark in value for mark in (b".", b"e", b"E")):
            return "floats"
        return "ints" if len(value) < 19 or (len(value) < 40 and -(2**63) <= int(value) < 2**63) else "floats"
    return "" if value == b"null" else "nested"
