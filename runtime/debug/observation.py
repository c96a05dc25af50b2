"""Compare the inner values of a program on a target with those of reference engines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hloforge.dialect.errors import Error, Location
from hloforge.dialect.operations import location_of
from hloforge.dialect.program import Program
from hloforge.dialect.shapes import Shape
from hloforge.pipelines.delta_debugging.outline import Outline, Place, body, computing, operands, outline, places
from hloforge.pipelines.framework.manager import op_text
from hloforge.runtime.debug.consensus import Judge
from hloforge.runtime.debug.oracle import Candidate, Oracle
from hloforge.runtime.session.convention import result_leaves

# One program returns so many bytes of values, and so many values.
_BATCH_BYTES = 256 * 2**20
_BATCH_VALUES = 64
# All that is kept; what is beyond cannot become a parameter.
_KEPT_BYTES = 2 * 2**30

Array = np.ndarray[Any, Any]


class Values:
    """What a program computes on its way, as a reference engine says.

    Args:
        candidate: with arguments.
    """

    def __init__(self, candidate: Candidate, oracle: Oracle) -> None:
        self._oracle = oracle
        self.candidate = candidate
        arguments = candidate.arguments or ()
        self._found: dict[Place, Array] = {(-1, number): array for number, array in enumerate(arguments)}
        for part in batches(candidate.program, limit=_KEPT_BYTES):
            self._found |= self._observed(part)

    def of(self, part: Outline) -> Candidate | None:
        """A part of the program with the arguments that it had inside the whole; None if one is not known."""
        found = [self._found.get(place) for place in part.parameters]
        if any(array is None for array in found):
            return None
        return Candidate(part.program, tuple(array for array in found if array is not None))

    def _observed(self, part: Outline) -> dict[Place, Array]:
        asked = self.of(part)
        if asked is None:
            return {}
        for engine in self._oracle.engines:
            try:
                results = engine.prepare(part.program)(*(asked.arguments or ()))
            except Error:
                continue
            return dict(zip(part.results, _leaves(part.program, results), strict=True))
        return {}


def batches(program: Program, *, limit: int = _KEPT_BYTES) -> Iterator[Outline]:
    """The whole program again and again, each time returning other values of its body."""
    everything = range(len(body(program)))
    chosen: list[Place] = []
    total, size = 0, 0
    ops = body(program)
    for place in places(program):
        shape = Shape.of_type(ops[place[0]].results[place[1]].type)
        count = shape.element_count * (shape.element.dtype.itemsize if shape.element else 0)
        if total + count > limit:
            continue
        if chosen and (size + count > _BATCH_BYTES or len(chosen) == _BATCH_VALUES):
            yield outline(program, everything, results=chosen)
            chosen, size = [], 0
        chosen.append(place)
        total, size = total + count, size + count
    if chosen:
        yield outline(program, everything, results=chosen)


@dataclass(frozen=True)
class Suspect:
    """An operation whose operands are right on the target and whose result is not."""

    number: int
    op: str
    location: Location | None
    told: str


def suspects(values: Values, oracle: Oracle) -> list[Suspect]:
    """The operations that go wrong first, in the order of the program, by the values that the target returns.

    Raises:
        TargetError: a program that returns its inner values cannot be compiled or run.
    """
    program = values.candidate.program
    wrong: dict[Place, str] = {}
    for part in batches(program):
        asked = values.of(part)
        if asked is None:
            continue
        actual = oracle.results(asked)
        judged = Judge(part.program, oracle.engines, oracle.tolerance)(asked.arguments or (), actual)
        for place, verdict in zip(part.results, judged.verdicts, strict=True):
            if not verdict.agrees:
                wrong[place] = verdict.text()
    ops = body(program)
    numbers = {value: number for number, op in enumerate(ops) for value in op.results}
    bad = {number for number, _ in wrong}
    found = []
    for number in sorted(bad):
        used = {numbers.get(value) for value in operands(ops[number])}
        if not used & bad:
            told = next(text for place, text in wrong.items() if place[0] == number)
            found.append(Suspect(number, op_text(ops[number]), location_of(ops[number]), told))
    return found


def cone(program: Program, number: int, depth: int) -> list[int]:
    """An operation and what computes its operands, so many steps back."""
    ops = body(program)
    numbers = {value: place for place, op in enumerate(ops) for value in op.results}
    found, edge = {number}, {number}
    for _ in range(depth):
        edge = {numbers[value] for place in edge for value in operands(ops[place]) if value in numbers} - found
        found |= edge
    return sorted(found & set(computing(program)) | {number})


def _leaves(program: Program, results: Any) -> Sequence[Array]:
    return [np.asarray(leaf) for leaf in result_leaves(program.signature.result, results)]
