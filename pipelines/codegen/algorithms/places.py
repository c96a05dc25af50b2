"""Where elements lie: arithmetic of places that are partly known, and nested loops over them.

A place is a Python number as long as it is known, which costs no instruction, and a Value of 64 bits from there on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import accumulate
from operator import mul
from typing import Any

from hloforge.pipelines.codegen.lang.functions import Function
from hloforge.pipelines.codegen.lang.values import I64, Number, Value

# Loops of so many iterations are not unrolled.
_SHORT = 16


def plus(*numbers: Number) -> Number:
    """A sum; what is known of it is added last."""
    known = sum(int(number) for number in numbers if not isinstance(number, Value))
    unknown = [number for number in numbers if isinstance(number, Value)]
    if not unknown:
        return known
    total = unknown[0]
    for number in unknown[1:]:
        total = total + number
    return total + known if known else total


def minus(number: Number, other: Number) -> Number:
    """A difference."""
    if isinstance(other, Value):
        return number - other
    return plus(number, -int(other))


def times(number: Number, factor: Number) -> Number:
    """A product."""
    if not isinstance(number, Value):
        number, factor = factor, number
    if isinstance(factor, Value) or not isinstance(number, Value):
        return number * factor
    return number * int(factor) if factor not in (0, 1) else number if factor else 0


def divided(number: Number, divisor: int) -> tuple[Number, Number]:
    """Quotient and remainder of a number that is not negative."""
    if not isinstance(number, Value):
        return divmod(int(number), divisor)
    if divisor == 1:
        return number, 0
    quotient = number.udiv(divisor)
    return quotient, number - quotient * divisor


def strides_of(shape: Sequence[int]) -> tuple[int, ...]:
    """Elements from one index to the next along each dimension of a dense array."""
    return tuple(reversed([1, *accumulate(reversed(shape[1:]), mul)])) if shape else ()


def flat(indices: Sequence[Number], strides: Sequence[int]) -> Number:
    """The place of an element in memory."""
    return plus(*(times(index, stride) for index, stride in zip(indices, strides, strict=True)))


def value(function: Function, number: Number) -> Value:
    """A number as one of 64 bits."""
    return function.index(number)


@contextmanager
def nest(function: Function, sizes: Sequence[int]) -> Iterator[list[Number]]:
    """Loops inside each other, all of known sizes that are not zero; the index of a size of 1 is the number 0."""
    with ExitStack() as stack:
        indices: list[Number] = []
        for size in sizes:
            indices.append(0 if size == 1 else stack.enter_context(each(function, 0, size)))
        yield indices


def merged(sizes: Sequence[int], *strides: Sequence[int]) -> tuple[list[int], list[list[int]]]:
    """Fewer dimensions that visit the same elements of several arrays in the same order.

    Two dimensions that follow each other are one if each array lies along both without a gap; those of size 1 go.
    """
    kept: list[int] = []
    kept_strides: list[list[int]] = [[] for _ in strides]
    for size, *steps in zip(sizes, *strides, strict=True):
        if size == 1:
            continue
        if kept and all(own[-1] == step * size for own, step in zip(kept_strides, steps, strict=True)):
            kept[-1] *= size
            for own, step in zip(kept_strides, steps, strict=True):
                own[-1] = step
            continue
        kept.append(size)
        for own, step in zip(kept_strides, steps, strict=True):
            own.append(step)
    return kept, kept_strides


def while_(
    function: Function,
    carried: Sequence[Value],
    condition: Callable[[list[Value]], Value],
    body: Callable[[list[Value]], Sequence[Value]],
) -> list[Value]:
    """``while condition(values): values = body(values)``; the values after it."""
    before, (head, run, after) = function.block, (function.label(), function.label(), function.label())
    function.do(f"br label %{head}")
    function.begin(head)
    place = len(function.lines)
    values = [Value(function, first.kind, function.name()) for first in carried]
    flag = condition(values)
    function.do(f"br i1 {flag.text}, label %{run}, label %{after}")
    function.begin(run)
    following = body(values)
    back = function.block
    function.do(f"br label %{head}")
    function.lines[place:place] = [
        f"  {phi.text} = phi {phi.kind} [ {first.text}, %{before} ], [ {then.text}, %{back} ]"
        for phi, first, then in zip(values, carried, following, strict=True)
    ]
    function.begin(after)
    return values


def both(function: Function, first: Value, second: Callable[[], Value]) -> Value:
    """Whether two flags hold, of which the second is asked only where the first one does."""
    (flag,) = function.branch(first, lambda: [second()], lambda: [function.constant(0, "i1")])
    return flag


def index_of(number: Value, *, signed: bool = True) -> Value:
    """An integer of any width as one of 64 bits with a sign; those beyond its range as its greatest."""
    if number.kind != I64:
        return number.as_(I64, signed=signed)
    return number if signed else number.minimum((1 << 63) - 1, signed=False)


@contextmanager
def each(function: Function, start: Number, stop: Number, step: int = 1, *, hints: str = "") -> Iterator[Value]:
    """A counted loop."""
    if not (isinstance(start, Value) or isinstance(stop, Value)) and stop - start <= _SHORT * step:
        # LLVM would unroll it before it looks for vectors, and then find none.
        hints = hints or "unroll.disable"
    loop: Any = function.loop(start, stop, step, hints=hints)
    with loop as place:
        yield place


def fold(
    function: Function,
    start: Number,
    stop: Number,
    carried: Sequence[Value],
    body: Callable[[Value, list[Value]], Sequence[Value]],
    step: int = 1,
    *,
    hints: str = "",
) -> list[Value]:
    """A counted loop with values that its body replaces; the values after it."""
    loop: Any = function.loop(start, stop, step, carried=carried, hints=hints)
    with loop as (place, values):
        loop.next(body(place, values))
    results: list[Value] = loop.results
    return results
