"""What ``dispatch-fft`` does to a row from its operand to its result: steps, each from one memory to another.

A transform is its stages where its length has small prime factors alone, else a convolution with a chirp (Bluestein)::

    chirp · x, zeros  ->  stages  ->  times the chirp's spectrum  ->  stages, inverse  ->  times the chirp

An inverse transform is a forward one of numbers whose real and imaginary parts are exchanged, which exchanges those of
the results. 2n real numbers x are n complex ones z[j] = x[2j] + i x[2j + 1], whose spectrum Z has that of x in it::

    X[k] = (Z[k] + conj Z[n - k]) / 2 - i w(k / 2n) (Z[k] - conj Z[n - k]) / 2
    Z[k] = (X[k] + conj X[n - k]) / 2 + i w(-k / 2n) (X[k] - conj X[n - k]) / 2

Source: Van Loan, "Computational Frameworks for the FFT", 1992, 4.2 and 4.3.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hloforge.dialect.mlir import arith
from hloforge.pipelines.decompose import fft_plan
from hloforge.pipelines.decompose.fft_plan import Transform
from hloforge.pipelines.framework.builders import index
from hloforge.pipelines.kernels.fft import fft_stages
from hloforge.pipelines.kernels.fft.butterflies import Points, add, negate, subtract
from hloforge.pipelines.kernels.fft.fft_kernel import (
    Factors,
    Finish,
    Memory,
    each_vector,
    reverse,
    run_stage,
    turn_columns,
    turn_rows,
)
from hloforge.pipelines.kernels.fft.fft_stages import Stage, Table
from hloforge.pipelines.kernels.lang import loops as code

# From a source, a target and the table to the target.
Run = Callable[[Memory, Memory, Any], Memory]


@dataclass(frozen=True)
class Step:
    """A pass over the points of a row.

    Attributes:
        run: reads the source and fills the target.
        points: how many the target holds.
    """

    run: Run
    points: int


def steps(kind: str, length: int, table: Table, *, along: bool, turned: bool = False) -> list[Step]:
    """The steps of one axis; adds what they read to the table.

    Args:
        kind: of the transform. Of a real one, the length is even, and rows are transformed.
        length: of the transform.
        along: whether vectors are points of a row, and not a point of several columns.
        turned: whether the operand and the result are rows all the same.
    """
    if turned:
        enter = Step(lambda source, target, _: turn_rows(length, source, target), length)
        leave = Step(lambda source, target, _: turn_columns(length, source, target), length)
        return [enter, *steps(kind, length, table, along=False), leave]
    if kind == "RFFT":
        half = length // 2
        return [*_complex(half, 1.0, table, along=True), _combine(half, table)]
    if kind == "IRFFT":
        half = length // 2
        return [_spread(half, table), *_complex(half, 1.0, table, along=True)]
    return _complex(length, 1 / length if kind == "IFFT" else 1.0, table, along=along)


def _complex(length: int, scale: float, table: Table, *, along: bool) -> list[Step]:
    if fft_stages.radices(length) is None:
        return _by_chirp(length, scale, table, along=along)
    found = fft_stages.stages(length, table, along=along)
    return _of_stages(found, length, None if scale == 1 else _scaled_by(scale))


def _of_stages(found: Sequence[Stage], length: int, finish: Finish | None = None) -> list[Step]:
    """Stages, of which the last one ends with something more."""

    def step(stage: Stage) -> Step:
        last = finish if stage is found[-1] else None
        return Step(lambda source, target, table: run_stage(stage, source, target, table, last), length)

    return [step(stage) for stage in found]


def _scaled_by(scale: float) -> Finish:
    def finish(points: Points, point: Any, memory: Memory, count: int) -> Points:
        return points.scale(memory.splat(scale, count))

    return finish


def _by_chirp(length: int, scale: float, table: Table, *, along: bool) -> list[Step]:
    padded = fft_stages.convolution_length(2 * length - 1)
    cosines, sines = fft_plan.chirp(length, length, -1)
    before, after = table.add(cosines, sines), table.add(cosines * scale, sines * scale)
    whole = Transform(length, -1, np.longdouble(1), length, length)
    spectrum = table.add(*fft_plan.chirp_filter(whole, padded))
    found = fft_stages.stages(padded, table, along=along)

    def enter(source: Memory, target: Memory, numbers: Any) -> Memory:
        return _cleared(_multiplied(source, target, Factors(numbers, before, length)), length, padded)

    def leave(source: Memory, target: Memory, numbers: Any) -> Memory:
        return _multiplied(source, target, Factors(numbers, after, length), swapped=True)

    def filtered(numbers: Any) -> Finish:
        def finish(points: Points, point: Any, memory: Memory, count: int) -> Points:
            return (points * Factors(numbers, spectrum, padded).at(point, memory, count)).swapped

        return finish

    *first, last = found
    middle = Step(lambda source, target, table: run_stage(last, source, target, table, filtered(table)), padded)
    forward = [*_of_stages(first, padded), middle]
    return [Step(enter, padded), *forward, *_of_stages(found, padded), Step(leave, length)]


def _multiplied(source: Memory, target: Memory, factors: Factors, *, swapped: bool = False) -> Memory:
    """Each point of the source, or what its swapped one is, times its factor."""

    def vector(point: Any, column: Any, count: int, target: Memory) -> Memory:
        points = source.read(point, column, count)
        points = points.swapped if swapped else points
        return target.write(points * factors.at(point, source, count), point, column)

    return each_vector(factors.count, source, target, vector)


def _cleared(target: Memory, start: int, stop: int) -> Memory:
    """Zeros for some points."""

    def vector(point: Any, column: Any, count: int, target: Memory) -> Memory:
        nothing = target.splat(0, count)
        return target.write(Points(nothing, nothing), point, column)

    return each_vector(stop, target, target, vector, start=start)


def _combine(half: int, table: Table) -> Step:
    """Z to the n + 1 points X, for n = ``half``."""
    cosines, sines = fft_plan.roots(np.arange(half), 2 * half, -1)
    start = table.add(sines / 2, -cosines / 2)

    def run(source: Memory, target: Memory, numbers: Any) -> Memory:
        def vector(point: Any, _: Any, count: int, target: Memory) -> Memory:
            even, odd = _even_and_odd(source, point, half, count)
            turned = odd * Factors(numbers, start, half).at(point, source, count)
            return target.write(even.scale(target.splat(0.5, count)) + turned, point, None)

        target = each_vector(half, source, target, vector, start=1)
        first, nothing = source.read(index(0), None, 1), target.splat(0, 1)
        target = target.write(Points(add(first.real, first.imaginary), nothing), index(0), None)
        return target.write(Points(subtract(first.real, first.imaginary), nothing), index(half), None)

    return Step(run, half + 1)


def _spread(half: int, table: Table) -> Step:
    """X to Z / 2n, swapped, for n = ``half``; the imaginary parts of X[0] and X[n] count for nothing."""
    cosines, sines = (part / (2 * half) for part in fft_plan.roots(np.arange(half), 2 * half, 1))
    start = table.add(-sines, cosines)

    def run(source: Memory, target: Memory, numbers: Any) -> Memory:
        def vector(point: Any, _: Any, count: int, target: Memory) -> Memory:
            even, odd = _even_and_odd(source, point, half, count)
            turned = odd * Factors(numbers, start, half).at(point, source, count)
            return target.write((even.scale(target.splat(1 / (2 * half), count)) + turned).swapped, point, None)

        target = each_vector(half, source, target, vector, start=1)
        first, last = (source.read(index(at), None, 1).real for at in (0, half))
        found = Points(add(first, last), subtract(first, last)).scale(target.splat(1 / (2 * half), 1))
        return target.write(found.swapped, index(0), None)

    return Step(run, half)


def _even_and_odd(source: Memory, point: Any, half: int, count: int) -> tuple[Points, Points]:
    """x[k] + conj x[n - k] and x[k] - conj x[n - k] of a vector of k."""
    one = source.read(point, None, count)
    other = reverse(source.read(code.combine(arith.subi, index(half - count + 1), point), None, count))
    conjugate = Points(other.real, negate(other.imaginary))
    return one + conjugate, one - conjugate
