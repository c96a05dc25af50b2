"""Error statistics of results, which distinguish rounding from faults."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from hloforge.dialect.element_types import element_type
from hloforge.runtime.reference.compare import ulps

# Bins of the histogram: 0, 1, 2, up to 4, up to 8 … units in the last place.
_DOUBLINGS = 24


@dataclass(frozen=True)
class Bin:
    """A bar of the histogram: how many elements are so far off."""

    label: str
    count: int


@dataclass(frozen=True)
class ErrorStatistics:
    """Errors of the elements that are finite on both sides; units in the last place are steps for integers.

    Attributes:
        mean_absolute, mean_relative, mean_ulp: over these elements; relative ones over those that are not 0.
        worst: the index of the largest absolute error; None if there is none.
        one_sided: elements that are NaN or infinite on one side alone, or differently so.
        histogram: of the distances in units of the last place; a complex number counts as two.
    """

    count: int
    mean_absolute: float
    mean_relative: float
    mean_ulp: float
    worst: tuple[int, ...] | None
    one_sided: int
    histogram: tuple[Bin, ...]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def error_statistics(actual: Any, expected: Any) -> ErrorStatistics:
    """The statistics of two arrays of one element type and size."""
    got, want = np.asarray(actual), np.asarray(expected)
    row = element_type(want.dtype)
    wide = np.complex128 if row.is_complex else np.float64
    with np.errstate(all="ignore"):
        a, b = got.astype(wide), want.astype(wide)
        finite = np.isfinite(a) & np.isfinite(b)
        distance = np.where(finite, np.abs(a - b), 0.0)
        nonzero = finite & (b != 0)
        relative = distance[nonzero] / np.abs(b[nonzero])
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        steps = ulps(got, want, row) if row.is_float or row.is_complex else distance[finite]
    worst = np.unravel_index(int(np.argmax(distance)), distance.shape) if distance.any() else None
    return ErrorStatistics(
        count=int(want.size),
        mean_absolute=_mean(distance[finite]),
        mean_relative=_mean(relative),
        mean_ulp=_mean(steps),
        worst=None if worst is None else tuple(int(number) for number in worst),
        one_sided=int((~finite & ~same).sum()),
        histogram=_histogram(steps.reshape(-1)),
    )


def _mean(values: np.ndarray[Any, Any]) -> float:
    return float(values.mean()) if values.size else 0.0


def _histogram(steps: np.ndarray[Any, Any]) -> tuple[Bin, ...]:
    """Bins up to the last one that is not empty."""
    if not steps.size:
        return ()
    # The number of doublings from 1 that reach a distance: 0 and 1 keep bins of their own.
    places = np.where(steps <= 0, 0, 1 + np.ceil(np.log2(np.maximum(steps, 1)))).astype(np.int64)
    counts = np.bincount(np.minimum(places, _DOUBLINGS + 1))
    return tuple(Bin(_label(place), int(count)) for place, count in enumerate(counts))


def _label(place: int) -> str:
    if place < 3:
        return str(place)
    low = 2 ** (place - 2) + 1
    if place > _DOUBLINGS:
        return f">{low - 1}"
    high = 2 ** (place - 1)
    return str(high) if low == high else f"{low}–{high}"
