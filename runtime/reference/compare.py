"""Comparison of results with expected ones, and a report that a person can act on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from hloforge.dialect.element_types import ElementType, element_type
from hloforge.runtime.data.literals import format_element, type_text
from hloforge.runtime.reference.tolerances import EXACT, SCALE_SHARE, Tolerance, tolerance_of

Array = np.ndarray[Any, Any]

_TOP_BINADES = 4

# How many of the mismatches a report shows.
SHOWN = 5


@dataclass(frozen=True)
class Mismatch:
    """One element that differs; ``got`` and ``want`` are texts of the numbers."""

    index: tuple[int, ...]
    got: str
    want: str


@dataclass(frozen=True)
class ResultComparison:
    """One array of the results against the expected one.

    Attributes:
        name: ``result``, or ``result{1,0}`` for a leaf of a tuple (XLA's index notation), or the caller's name.
        type: element type and sizes of the expected array.
        tolerance: what was asked for.
        problem: why the arrays could not be compared (sizes, element type, nesting); empty if they could.
        mismatches: the first elements that differ.
        mismatch_count, count: of elements.
        max_absolute, max_relative, max_ulp: over the elements that are finite on both sides; 0 if there are none.
        nan_got, nan_want, inf_got, inf_want: counts of elements.
        accepted: why the result agrees in spite of its mismatches (``judgement``); empty if they count.
    """

    name: str
    type: str
    tolerance: Tolerance
    problem: str = ""
    mismatches: tuple[Mismatch, ...] = ()
    mismatch_count: int = 0
    count: int = 0
    max_absolute: float = 0.0
    max_relative: float = 0.0
    max_ulp: float = 0.0
    nan_got: int = 0
    nan_want: int = 0
    inf_got: int = 0
    inf_want: int = 0
    accepted: str = ""

    @property
    def agrees(self) -> bool:
        return not self.problem and (not self.mismatch_count or bool(self.accepted))

    @property
    def mismatch_fraction(self) -> float:
        return self.mismatch_count / self.count if self.count else 0.0

    def text(self) -> str:
        """One line for an agreement, a paragraph for a mismatch."""
        head = f"{self.name} {self.type}"
        if self.problem:
            return f"{head}: {self.problem}"
        errors = f"max abs {self.max_absolute:.3g}, max rel {self.max_relative:.3g}, max ulp {self.max_ulp:.0f}"
        if self.accepted:
            return f"{head}: agrees ({self.accepted}; {errors})"
        if self.agrees:
            return f"{head}: agrees ({self.tolerance}; {errors})"
        share = f"{self.mismatch_count} of {self.count} elements differ ({100 * self.mismatch_fraction:.3g} %)"
        lines = [f"{head}: {share}", f"  {errors}; allowed: {self.tolerance}"]
        if self.nan_got or self.nan_want or self.inf_got or self.inf_want:
            lines.append(
                f"  NaN: got {self.nan_got}, want {self.nan_want}; inf: got {self.inf_got}, want {self.inf_want}"
            )
        lines += [f"  at {list(m.index)}: got {m.got}, want {m.want}" for m in self.mismatches]
        if self.mismatch_count > len(self.mismatches):
            lines.append(f"  … and {self.mismatch_count - len(self.mismatches)} more")
        return "\n".join(lines)


@dataclass(frozen=True)
class Report:
    """The comparisons of all results, in order."""

    results: tuple[ResultComparison, ...]

    @property
    def agrees(self) -> bool:
        return all(result.agrees for result in self.results)

    def text(self) -> str:
        """Plain text: one line a result that agrees, a paragraph for each that does not."""
        return "\n".join(result.text() for result in self.results) or "no results to compare"

    def __bool__(self) -> bool:
        return self.agrees


def compare(
    actual: Any, expected: Any, *, names: Sequence[str] | None = None, tolerance: Tolerance | float | None = None
) -> Report:
    """Compare results with expected ones, array by array.

    Args:
        actual, expected: an array, or tuples of them to any depth (a list counts as a tuple); None for a token.
        names: of the leaves, in order, for the report.
        tolerance: for every float and complex result instead of the table of ``tolerances``; a number is the relative
            part. Integers and booleans stay exact.
    """
    if isinstance(tolerance, int | float):
        tolerance = Tolerance(float(tolerance))
    got, want = dict(_leaves(actual, ())), dict(_leaves(expected, ()))
    if got.keys() != want.keys():
        problem = f"the results are nested as {_nesting(actual)}, want {_nesting(expected)}"
        return Report((ResultComparison("result", _nesting(expected), EXACT, problem),))
    labels = names if names is not None else [_label(path) for path in want]
    if len(labels) != len(want):
        raise ValueError(f"{len(labels)} names for {len(want)} results")
    return Report(
        tuple(
            compare_arrays(got[path], value, name=label, tolerance=tolerance)
            for label, (path, value) in zip(labels, want.items(), strict=True)
        )
    )


def _leaves(value: Any, path: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], Any]]:
    if isinstance(value, tuple | list):
        for number, member in enumerate(value):
            yield from _leaves(member, (*path, number))
    elif value is not None:
        yield path, value


def _label(path: tuple[int, ...]) -> str:
    return "result" + ("{" + ",".join(map(str, path)) + "}" if path else "")


def _nesting(value: Any) -> str:
    if isinstance(value, tuple | list):
        return "(" + ", ".join(map(_nesting, value)) + ")"
    return "token" if value is None else type_text(value)


def compare_arrays(
    actual: Any, expected: Any, *, name: str = "result", tolerance: Tolerance | None = None
) -> ResultComparison:
    """Compare two arrays; arguments as of ``compare``."""
    got, want = np.asarray(actual), np.asarray(expected)
    row = element_type(want.dtype)
    inexact = row.is_float or row.is_complex
    allowed = tolerance if tolerance is not None and inexact else tolerance_of(row)
    if got.dtype != want.dtype or got.shape != want.shape:
        problem = f"got {type_text(got)}, want {type_text(want)}"
        return ResultComparison(name, type_text(want), allowed, problem)
    if inexact:
        return _compare_floats(got, want, row, name, allowed)
    return _compare_exactly(got, want, row, name)


def _compare_exactly(got: Array, want: Array, row: ElementType, name: str) -> ResultComparison:
    wide = np.uint64 if row.bits == 64 and row.name == "u64" else np.int64
    a, b = got.astype(wide), want.astype(wide)
    bad = a != b
    distance = np.maximum(a, b)[bad].astype(np.float64) - np.minimum(a, b)[bad].astype(np.float64)
    with np.errstate(divide="ignore"):
        relative = distance / np.abs(b[bad].astype(np.float64))
    return ResultComparison(
        name,
        type_text(want),
        EXACT,
        mismatches=_first_mismatches(bad, got, want, row),
        mismatch_count=int(bad.sum()),
        count=bad.size,
        max_absolute=_largest(distance),
        max_relative=_largest(relative),
        max_ulp=_largest(distance),
    )


def _compare_floats(got: Array, want: Array, row: ElementType, name: str, allowed: Tolerance) -> ResultComparison:
    wide = np.complex128 if row.is_complex else np.float64
    # A narrow NaN widens to a NaN, and a signalling one need not be reported.
    with np.errstate(all="ignore"):
        a, b = got.astype(wide), want.astype(wide)
        finite = np.isfinite(a) & np.isfinite(b)
        distance = np.abs(a - b)
        relative = distance / np.abs(b)
    bad = _differing_floats(got, want, row, allowed)
    nonzero = finite & (b != 0)
    return ResultComparison(
        name,
        type_text(want),
        allowed,
        mismatches=_first_mismatches(bad, got, want, row),
        mismatch_count=int(bad.sum()),
        count=bad.size,
        max_absolute=_largest(distance[finite]),
        max_relative=_largest(relative[nonzero]),
        max_ulp=_largest(ulps(got, want, row)),
        nan_got=int(np.isnan(a).sum()),
        nan_want=int(np.isnan(b).sum()),
        inf_got=int(np.isinf(a).sum()),
        inf_want=int(np.isinf(b).sum()),
    )


def _same(a: Array, b: Array) -> Array:
    """Equal numbers, and NaN with NaN; in complex numbers part by part."""
    if np.iscomplexobj(a):
        same: Array = _same(a.real, b.real) & _same(a.imag, b.imag)
        # A complex number with a NaN part is as undefined as one with two.
        return same | (np.isnan(a) & np.isnan(b))
    return np.asarray((a == b) | (np.isnan(a) & np.isnan(b)))


def _slack(want: Array, row: ElementType, allowed: Tolerance) -> Array:
    size = np.abs(want)
    # Numbers next to overflow are special values and no scale of the others.
    ceiling = float(ml_dtypes.finfo(row.dtype).max) * 2.0**-_TOP_BINADES
    scale = np.max(size[size <= ceiling], initial=0.0)
    return np.asarray(allowed.relative * size + allowed.relative * SCALE_SHARE * scale + allowed.absolute)


def differing(actual: Any, expected: Any, tolerance: Tolerance | None = None) -> Array:
    """Where two arrays of one type and size differ by more than ``compare_arrays`` allows."""
    got, want = np.asarray(actual), np.asarray(expected)
    row = element_type(want.dtype)
    if row.is_float or row.is_complex:
        return _differing_floats(got, want, row, tolerance or tolerance_of(row))
    return np.asarray(got != want)


def _differing_floats(got: Array, want: Array, row: ElementType, allowed: Tolerance) -> Array:
    wide = np.complex128 if row.is_complex else np.float64
    with np.errstate(all="ignore"):
        a, b = got.astype(wide), want.astype(wide)
        finite = np.isfinite(a) & np.isfinite(b)
        return np.asarray(~(_same(a, b) | (finite & (np.abs(a - b) <= _slack(b, row, allowed)))))


def ulps(got: Array, want: Array, row: ElementType) -> Array:
    """Distances in units of the last place, for the elements (or parts) that are finite on both sides."""
    if row.is_complex:
        part = element_type("f32" if row.bits == 64 else "f64")
        real, imaginary = (
            ulps(np.ascontiguousarray(a), np.ascontiguousarray(b), part)
            for a, b in ((got.real, want.real), (got.imag, want.imag))
        )
        return np.concatenate([real, imaginary])
    finite = np.isfinite(got.astype(np.float64)) & np.isfinite(want.astype(np.float64))
    (a, a_negative), (b, b_negative) = _ordinal(got[finite], row), _ordinal(want[finite], row)
    # Integers keep a distance of 1 between large f64 codes; across zero the sum may leave int64, and is huge anyway.
    across = a.astype(np.float64) + b.astype(np.float64)
    return np.where(a_negative == b_negative, np.abs(a - b).astype(np.float64), across)


def _ordinal(array: Array, row: ElementType) -> tuple[Array, Array]:
    """How many representable values lie between 0 and each element, and whether it is negative."""
    codes = np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}")
    if row.name == "f8e8m0fnu":  # no sign bit
        return codes.astype(np.int64), np.zeros(codes.shape, np.bool_)
    sign = codes.dtype.type(1 << (row.bits - 1))
    return (codes & ~sign).astype(np.int64), np.asarray((codes & sign) != 0)


def _first_mismatches(bad: Array, got: Array, want: Array, row: ElementType) -> tuple[Mismatch, ...]:
    places = [np.unravel_index(flat, bad.shape) for flat in np.flatnonzero(bad)[:SHOWN]]
    indices = [tuple(int(i) for i in place) for place in places]
    return tuple(Mismatch(i, format_element(got[i], row), format_element(want[i], row)) for i in indices)


def _largest(values: Array) -> float:
    return float(np.max(values, initial=0.0))
