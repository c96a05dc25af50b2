"""Judge a program's results by a reference engine, and by float64 results where they differ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from hloforge.dialect.errors import Error
from hloforge.dialect.program import Program
from hloforge.runtime.reference.compare import Report, ResultComparison, compare
from hloforge.runtime.reference.engines import ReferenceEngine
from hloforge.runtime.reference.precision import machine_epsilons
from hloforge.runtime.reference.tolerances import Tolerance

# Against XLA's own distance from the truth. Twice: XLA leaves out roundings to bf16 and f16 that a program asks for,
# and each of two roundings adds as much as one. The largest of many errors scatters more than their mean.
_MEAN_SLACK = 2.0
_LARGEST_SLACK = 3.0


def judge(
    engine: ReferenceEngine,
    program: Program,
    arguments: Sequence[Any],
    actual: Any,
    *,
    tolerance: Tolerance | float | None = None,
) -> Report:
    """Compare the results of a call with a reference engine's.

    Float results that leave the table of tolerances are measured against the same program computed in f64: they agree
    after all if they are no further from it than the reference engine's own results are, up to a factor of 2 in the
    mean and 3 in the largest error, or than a step (in the largest error two) of the narrowest floats that they are
    computed in. A ``tolerance`` of the caller's is kept to the letter.

    Raises:
        ReferenceEngineError: the engine cannot evaluate the program.
    """
    expected = engine.prepare(program)(*arguments)
    report = compare(actual, expected, tolerance=tolerance)
    if report.agrees or tolerance is not None or any(result.problem for result in report.results):
        return report
    try:
        truth = engine.prepare(program, float64=True, partly=True)(*arguments)
    except Error:
        # Not every program can be widened: then the table has the last word.
        return report
    return second_opinions(report, actual, expected, truth, machine_epsilons(program))


def second_opinions(report: Report, actual: Any, expected: Any, truth: Any, steps: Sequence[float] = ()) -> Report:
    """A report in which results agree that are no further from the float64 truth than the expected ones, up to the
    factors of ``judge``, or than a step of the narrowest floats that they are computed in.

    Args:
        steps: of these floats, one for each result (``machine_epsilons``); not known if there are others.
    """
    if len(steps) != len(report.results):
        steps = [0.0] * len(report.results)
    rows = zip(report.results, _leaves(actual), _leaves(expected), _leaves(truth), steps, strict=True)
    return Report(tuple(_second_opinion(*row) for row in rows))


def _leaves(value: Any) -> Iterator[np.ndarray[Any, Any]]:
    if isinstance(value, tuple | list):
        for member in value:
            yield from _leaves(member)
    elif value is not None:
        yield np.asarray(value)


def _second_opinion(
    result: ResultComparison,
    actual: np.ndarray[Any, Any],
    expected: np.ndarray[Any, Any],
    truth: np.ndarray[Any, Any],
    step: float,
) -> ResultComparison:
    if result.agrees or truth.dtype.kind not in "fc":
        return result
    with np.errstate(all="ignore"):
        ours, theirs = _errors(actual, truth), _errors(expected, truth)
        if not np.array_equal(np.isfinite(ours), np.isfinite(theirs)):
            return result
        finite = np.isfinite(ours)
        (mean, largest), (mean_allowed, largest_allowed) = _sizes(ours[finite]), _sizes(theirs[finite])
        # An engine that is nearer than that has had luck.
        lucky = step * float(np.abs(truth[finite]).max(initial=0.0))
    if not finite.any() or mean > max(_MEAN_SLACK * mean_allowed, lucky):
        return result
    if largest > max(_LARGEST_SLACK * largest_allowed, 2 * lucky):
        return result
    verdict = f"as near to the float64 result as the reference: mean error {mean:.3g} and {mean_allowed:.3g}"
    return replace(result, accepted=verdict)


def _errors(array: np.ndarray[Any, Any], truth: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Distances from the truth; 0 where both are the same infinity or both NaN, else not finite there."""
    wide = array.astype(truth.dtype)
    same = (wide == truth) | (np.isnan(wide) & np.isnan(truth))
    return np.where(same, 0.0, np.abs(wide - truth))


def _sizes(errors: np.ndarray[Any, Any]) -> tuple[float, float]:
    """Root mean square and maximum."""
    if not errors.size:
        return 0.0, 0.0
    return float(np.sqrt(np.mean(errors**2))), float(errors.max())
