"""One reflector of real numbers in memory, and what kernels of steps by reflectors share. Source: LAPACK "larfg"."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hloforge.pipelines.codegen.algorithms.arrays import Elements
from hloforge.pipelines.codegen.algorithms.matrices import folded, steps
from hloforge.pipelines.codegen.algorithms.vectors import total
from hloforge.pipelines.codegen.elements import memory as element_memory
from hloforge.pipelines.codegen.elements.kinds import single
from hloforge.pipelines.codegen.lang.functions import Array, Function
from hloforge.pipelines.codegen.lang.values import Value, lanes_of
from hloforge.pipelines.codegen.nest_loops import Share
from hloforge.pipelines.library_calls.reflectors import NEGLIGIBLE

# Writes what is shared out to as many workgroups as a number in a register says: of a share, or of all for None.
Handed = Callable[[Callable[[Share | None], None], Value], None]
# The step at work, and how many workgroups have a share of it: numbers in memory, which workgroups read.
STEP, ACTIVE, STATE = 0, 1, 8


def begin_step(state: Array, step: Value, n: int, shares: int, alone: int) -> Value:
    """Note a step for the workgroups; how many have a share of it: one of the last steps, for so many rows alone."""
    left = (step * -1) + (n - 1)
    active = left.compare("sge", alone).where(step.function.index(shares), 1)
    state.put(step, STEP)
    state.put(active, ACTIVE)
    return active


def make_reflector(function: Function, x: Elements, place: Value, end: int, lanes: int) -> tuple[Value, Value]:
    """beta and tau of the reflector that makes beta e_place of a vector, scaled to magnitudes of about 1 at most.

    Args:
        x: the vector from ``place`` to ``end``, a multiple of the lanes. It is replaced by that of the reflector, with
            1 at ``place`` and zeros before it, from the multiple of the lanes on.
    """
    alpha = x.number(place)
    zero, one = (single(element_memory.constant(function, x.element, number)) for number in (0, 1))
    begin = place & -lanes
    with steps(function, begin, place + 1) as before:
        x.put(zero, before)

    def add(at: Value, state: list[Value]) -> list[Value]:
        value = single(x.at(at, lanes))
        return [state[0] + value * value]

    (squares,) = folded(function, begin, end, [function.spread(zero, lanes)], add, lanes)
    rest = total(squares)
    is_done = rest <= NEGLIGIBLE[x.element]
    norm = (rest + alpha * alpha).call("sqrt")
    beta = is_done.where(alpha, (alpha < 0.0).where(norm, -norm))
    difference = alpha - beta
    tau = is_done.where(zero, -(difference * (1.0 / is_done.where(one, beta))))
    factor = function.spread(is_done.where(zero, 1.0 / is_done.where(one, difference)), lanes)
    with steps(function, begin, end, lanes) as at:
        x.put(single(x.at(at, lanes)) * factor, at)
    x.put(one, place)
    return beta, tau


def store_line(function: Function, x: Elements, begin: Value, target: Elements, n: int) -> None:
    """Write zeros up to ``begin``, and a vector of n numbers from there on."""
    zero = element_memory.constant(function, x.element, 0)
    with steps(function, 0, begin) as place:
        target.put(zero, place)
    with steps(function, begin, n) as place:
        target.put(x.at(place), place)


@contextmanager
def own_blocks(
    function: Function, share: Share | None, state: Array, begin: Value, end: int, rows: int
) -> Iterator[Value]:
    """A loop over a workgroup's blocks of rows: each has every so many, the same ones in all steps.

    Args:
        begin, end: multiples of ``rows``.
    """
    if share is None:
        with steps(function, begin, end, rows) as block:
            yield block
        return
    active = state.at(ACTIVE)
    first = begin.udiv(rows)
    # The workgroup's first block: its number's remainder by the count is the workgroup's.
    own = first + (share.number + active - first.urem(active)).urem(active)
    count = ((own * -1) + end // rows + active - 1).maximum(0).udiv(active)
    with steps(function, 0, count) as turn:
        yield (own + turn * active) * rows


def summed(products: Elements, place: Value, lanes: int, pitch: int, shares: int, active: Value) -> Value:
    """The sum of what active workgroups have at a place, each in a part of its own."""
    value = single(products.at(place, lanes))
    function = value.function
    for share in range(1, shares):
        more = single(products.at(place + share * pitch, lanes))
        is_there = function.spread(active.compare("sgt", share), lanes_of(value.kind))
        value = value + is_there.where(more, more.like(0.0))
    return value
