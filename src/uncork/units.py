"""How a number is spelt for people; the only place besides the readers where units are converted."""

from collections.abc import Callable, Mapping

NS_PER_US, NS_PER_MS, NS_PER_S = 1_000, 1_000_000, 1_000_000_000


def format_ns(value_ns: float) -> str:
    """Return a duration in the unit people would use, with three digits: ``12.3 ms``."""
    size = abs(value_ns)
    for limit, unit in ((NS_PER_S, "s"), (NS_PER_MS, "ms"), (NS_PER_US, "µs")):
        if size >= limit * 0.9995:
            return f"{_three(value_ns / limit)} {unit}"
    return f"{value_ns:.0f} ns"


def format_bytes(value_bytes: float) -> str:
    """Return a size in binary units, with three digits: ``1.50 GiB``."""
    value, units = float(value_bytes), ("B", "KiB", "MiB", "GiB", "TiB")
    for unit in units[:-1]:
        if abs(value) < 1024:
            return f"{value:.0f} B" if unit == "B" else f"{_three(value)} {unit}"
        value /= 1024
    return f"{_three(value)} {units[-1]}"


def format_bytes_range(low_bytes: float, high_bytes: float, between: str = "…") -> str:
    """Return a range of sizes, a unit that both share once: ``3.61…3.79 GiB``; one size where both read alike."""
    low, high = format_bytes(low_bytes), format_bytes(high_bytes)
    if low == high:
        return high
    value, unit = low.split(" ")
    return f"{value if not low_bytes or unit == high.split(' ')[1] else low}{between}{high}"


def format_share(share: float) -> str:
    """Return a share of 0–1 as a percentage: ``31 %``; below one in a hundred with one digit, what is not 0 never 0."""
    percent = share * 100
    if 0 < percent < 0.05:
        return "<0.1 %"
    if 0 < abs(percent) < 0.95:
        return f"{percent:.1f} %"
    return f"{percent:.0f} %"


def format_flop(value_flop: float) -> str:
    """Return an amount of floating-point work: ``51.6 GFLOP``."""
    return f"{_scaled(value_flop)}FLOP"


def format_count(value: float) -> str:
    """Return a count with thousands set apart, or a small fraction with two digits."""
    return f"{value:,.0f}" if value == int(value) else f"{value:,.2f}"


def format_quantity(name: str, value: object) -> str:
    """Return a value spelt by the unit that its name ends in (``_ns _bytes _share _flop``)."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    for suffix, spell in _BY_SUFFIX.items():
        if name.endswith(suffix):
            return spell(value)
    return format_count(value)


def format_quantities(values: Mapping[str, object]) -> dict[str, str]:
    """Return each value of a message's parameters as text, by the unit in its name."""
    return {name: format_quantity(name, value) for name, value in values.items()}


def _three(value: float) -> str:
    """Return three significant digits without an exponent."""
    digits = 2 if abs(value) < 9.995 else 1 if abs(value) < 99.95 else 0
    return f"{value:,.{digits}f}"


def _scaled(value: float) -> str:
    for limit, prefix in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= limit:
            return f"{_three(value / limit)} {prefix}"
    return f"{value:.0f} "


def _bandwidth(value: float) -> str:
    return f"{_three(value / 1e9)} GB/s"


def _throughput(value: float) -> str:
    return f"{_scaled(value)}FLOP/s"


_BY_SUFFIX: dict[str, Callable[[float], str]] = {
    "_ns": format_ns,
    "_bytes": format_bytes,
    "_share": format_share,
    "share": format_share,
    "flop": format_flop,
    "_bytes_per_step": format_bytes,
    "bytes_per_s": _bandwidth,
    "flop_per_s": _throughput,
}
