"""The forms of the tests of operations: a row of values, and a malformed use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from hloforge.runtime.session.feeds import Feeds


@dataclass(frozen=True)
class Varying:
    """An input in the row's element type, special values included.

    Attributes:
        dims: its sizes.
        special: whether it holds signed zeros, infinities, NaN, subnormals and extremes of integers; without them the
            values are moderate, as an operation needs that is judged by accuracy.
    """

    dims: tuple[int, ...]
    special: bool = True


def varying(*dims: int) -> Varying:
    return Varying(dims)


def moderate(*dims: int) -> Varying:
    return Varying(dims, special=False)


# An input is made for the row's element type, or is the same array for all of them.
Input: TypeAlias = Varying | np.ndarray[Any, Any]


@dataclass(frozen=True)
class Row:
    """Values of one operation, which two reference engines and the CPU target compute for every element type.

    Attributes:
        heading: the operation's.
        build: from the inputs, as Values, to the result, with ``hloforge.ops``. A keyword parameter ``element``, if it
            has one, receives the row's ElementType.
        inputs: what the inputs are.
        variant: tells rows of one operation apart.
        on: names of the element types to run, default: all that the operation takes as its first operand.
        expected: the result's values where a source states them, for moderate rows with fixed inputs.
        hlo: the opcode that the HLO has to hold, default: the operation's own.
        judge: the engine whose values are right, the other being asked where it has no answer.
        oracle: from the inputs to the result in numpy, for what no reference engine computes.
        feed: puts what the program takes from its host.
        drain: takes what it gives its host; ``oracle`` then returns the pair of the result and this.
        reason: why the row restricts ``on`` or the values, or changes its judge, if it does.
    """

    heading: str
    build: Callable[..., Any]
    inputs: tuple[Input, ...] = ()
    variant: str = ""
    on: frozenset[str] | None = None
    expected: Any = None
    hlo: str = ""
    judge: str = "interpreter"
    oracle: Callable[..., Any] | None = None
    feed: Callable[[Feeds], None] | None = None
    drain: Callable[[Feeds], Any] | None = None
    reason: str = ""

    @property
    def id(self) -> str:
        return f"{self.heading}-{self.variant.replace(' ', '_')}" if self.variant else self.heading


@dataclass(frozen=True)
class Malformed:
    """A use against a rule of XLA's shape inference.

    Attributes:
        heading: the operation's.
        use: applies it; its argument makes a parameter of a shape: ``lambda p: ops.add(p("f32[2]"), p("f32[3]"))``.
        message: a part of the error's message.
    """

    heading: str
    use: Callable[[Callable[[str], Any]], Any]
    message: str
