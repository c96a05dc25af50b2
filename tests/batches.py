"""Programs that are compiled as one and judged each: most of a small one's time goes to starting IREE's compiler."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

import hloforge
from hloforge.dialect import ops
from hloforge.dialect.errors import Error
from hloforge.dialect.program import Program
from tests.expectations import Outcome

C = TypeVar("C")
Array = np.ndarray[Any, Any]
# Seconds for a batch; one that takes longer is halved.
TIMEOUT = 120


@dataclass(frozen=True)
class Ready(Generic[C]):
    """A case with its program, the arguments for that, and what is expected of it."""

    case: C
    program: Program
    arguments: Sequence[Any]
    expected: Sequence[Any]


# What is wrong with the results of a case; nothing if they are right.
Judge = Callable[[Ready[C], list[Array]], str]
Run = Callable[[Program, Sequence[Any]], Sequence[Any]]


def compiled(program: Program, arguments: Sequence[Any]) -> Sequence[Any]:
    """The results on the CPU target."""
    results: Sequence[Any] = program.compile(cache=False, timeout=TIMEOUT)(*arguments)
    return results


def outcomes(
    ready: Sequence[Ready[C]], judge: Judge[C], *, size: int, run: Run = compiled
) -> Iterator[tuple[C, Outcome]]:
    """How far each case comes, ``size`` of them in one program; if that fails, each half for itself."""
    for start in range(0, len(ready), size):
        yield from _of_batch(ready[start : start + size], judge, run)


def _of_batch(ready: Sequence[Ready[C]], judge: Judge[C], run: Run) -> Iterator[tuple[C, Outcome]]:
    try:
        results = iter(run(_joined(ready), [array for each in ready for array in each.arguments]))
    except Error as error:
        if len(ready) > 1:
            yield from _of_batch(ready[: len(ready) // 2], judge, run)
            yield from _of_batch(ready[len(ready) // 2 :], judge, run)
        else:
            yield ready[0].case, Outcome("compile", error.message)
        return
    for each in ready:
        message = judge(each, [np.asarray(next(results)) for _ in each.program.signature.flat_results])
        yield each.case, Outcome("numerics", message) if message else Outcome()


def _joined(ready: Sequence[Ready[C]]) -> Program:
    """One program that calls all; its last result is 0, so that there are always two: one alone is no tuple."""
    with hloforge.Builder("batch") as builder:
        results: list[Any] = []
        number = 0
        for each in ready:
            given = []
            for parameter in each.program.signature.parameters:
                given.append(builder.parameter(number, parameter.shape, f"p{number}"))
                number += 1
            result = ops.call(each.program, *given)
            results += list(result) if result.shape.is_tuple else [result]
        return builder.build((*results, ops.constant(0, "s32")))
