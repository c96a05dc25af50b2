"""Counted loops: one that is known to run once is not written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from hloforge.pipelines.codegen.lang.functions import NO_VECTORS, Function, Loop
from hloforge.pipelines.codegen.lang.values import Number, Value

# LLVM's own unrolling would only make a kernel larger: what is worth it is written out.
NO_UNROLL = "unroll.disable"
# Of loops that gain nothing by LLVM's vectors.
SCALAR = f"{NO_UNROLL},{NO_VECTORS}"


@contextmanager
def each(function: Function, start: Number, stop: Number, step: int = 1, *, hints: str = NO_UNROLL) -> Iterator[Value]:
    """A counted loop without carried values."""
    first, last = function.index(start), function.index(stop)
    if first.is_constant and last.is_constant and int(first.text) + step >= int(last.text) > int(first.text):
        yield first
        return
    with function.loop(first, last, step, hints=hints) as number:
        yield number


@contextmanager
def carrying(
    function: Function, start: Number, stop: Number, carried: Sequence[Value], step: int = 1
) -> Iterator[tuple[Loop[tuple[Value, list[Value]]], Value, list[Value]]]:
    """A counted loop with its object, its number and its carried values."""
    loop = function.loop(start, stop, step, carried=carried, hints=NO_UNROLL)
    with loop as (number, values):
        yield loop, number, values


def piece_of(function: Function, total: int, workgroup: Value | None, pieces: int) -> tuple[Value, Value]:
    """The first unit of a workgroup's piece and the one after its last; all units where they are not shared out."""
    if workgroup is None or pieces == 1:
        return function.index(0), function.index(total)
    return (workgroup * total).udiv(pieces), ((workgroup + 1) * total).udiv(pieces)
