"""Random valid programs: a seed is a program with its arguments."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

import hloforge
from hloforge.dialect import ops
from hloforge.dialect.program import Program
from hloforge.dialect.values import Value
from tests.fuzz import computing, control, elementwise, shaping  # noqa: F401 - they register steps
from tests.fuzz.maker import Maker
from tests.fuzz.step import grow

# Of so many seeds one is run alone, with layouts, nested tuples and donation at its border.
_ALONE_EVERY = 8


@dataclass(frozen=True)
class Case:
    """A program and its arguments, made of a seed."""

    seed: int
    program: Program
    arguments: tuple[Any, ...]

    @property
    def is_alone(self) -> bool:
        return self.seed % _ALONE_EVERY == 0


def case_of(seed: int) -> Case:
    """The program of a seed."""
    program, arguments = make(Random(seed), f"fuzz_{seed}", has_borders=seed % _ALONE_EVERY == 0)
    return Case(seed, program, arguments)


def make(random: Random, name: str, *, has_borders: bool) -> tuple[Program, tuple[Any, ...]]:
    """A program and its arguments.

    Args:
        random: where all choices come from; hypothesis has one that shrinks (``strategies.randoms``).
        has_borders: with layouts of parameters and results, nested tuples and donation.
    """
    with hloforge.Builder(name) as builder:
        maker = Maker.of(random, builder, has_borders=has_borders)
        grow(maker, random.choice((2, 3, 4, 6, 8, 10, 14)))
        results = _results(maker)
        if not maker.arguments:
            maker.parameter("f32", ())
        if not has_borders:
            return builder.build(tuple(results)), tuple(maker.arguments)
        return builder.build(_bordered(maker, builder, results)), tuple(maker.arguments)


def _results(maker: Maker) -> list[Value]:
    """What nobody has used, and a few others; everything else can fuse."""
    loose = [value for number, (value, _) in enumerate(maker.pool) if number not in maker.used]
    chosen = loose[-6:] + [value for value, _ in maker.pool if maker.chance(0.08)]
    return chosen[:8] or [maker.pool[-1][0] if maker.pool else ops.constant(0, "s32")]


def _bordered(maker: Maker, builder: hloforge.Builder, results: list[Value]) -> Any:
    """The results in tuples, some of them in the place of a donated parameter."""
    inner = maker.random.randint(0, len(results))
    free = [(number, value) for number, value in enumerate(maker.parameters) if not value.shape.is_tuple]
    for place, result in enumerate(results):
        index = [0, place] if place < inner else [place - inner + 1]
        fitting = [entry for entry in free if entry[1].shape.without_layout() == result.shape.without_layout()]
        if fitting and maker.chance(0.5):
            free.remove(fitting[0])
            builder.alias(index, fitting[0][0])
    return (tuple(results[:inner]), *results[inner:])
