"""Format numbers for people."""

from __future__ import annotations

from typing import Any

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
_PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n"))


def number(value: Any) -> str:
    """A number in four digits; integers whole; a dash for None."""
    if value is None:
        return "–"
    return str(value) if isinstance(value, int) else f"{value:.4g}"


def bytes_text(size: int | float | None) -> str:
    """A number of bytes with its unit; nothing for None."""
    if size is None:
        return ""
    value = float(size)
    for unit in _UNITS:
        if value < 1024 or unit == _UNITS[-1]:
            break
        value /= 1024
    return f"{size} B" if unit == "B" else f"{value:.1f} {unit}"


def si_text(value: float | None, unit: str = "") -> str:
    """A number with a prefix of a thousand: ``1.2 G``, ``3.4 ms``; a dash for None."""
    if value is None:
        return "–"
    factor, prefix = next((row for row in _PREFIXES if abs(value) >= row[0]), (1.0, ""))
    return f"{value / factor:.3g} {prefix}{unit}".rstrip()
