"""Plans: programs as calls of numpy, ready in milliseconds.

What compiles in a quarter of a second and runs once in microseconds is not worth compiling. A plan answers such calls,
but only with the bits that compiled code gives: it takes operations that move elements, those of integers, and those
of f32 and f64 that IEEE 754 rounds to one result. Products and sums of floats are not in one plan, because compiled
code may contract them to fused multiply-adds; sums of floats over a dimension have no fixed order, and are in none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, TypeAlias

import numpy as np

from hloforge.dialect.element_types import ElementType
from hloforge.dialect.mlir import ir
from hloforge.dialect.mlir_elements import element_of

Array: TypeAlias = np.ndarray[Any, Any]
# A step of a plan: reads and writes the values of a run, by their numbers.
Step: TypeAlias = Callable[[list[Any]], None]
# From the operands of an operation to its result.
Kernel: TypeAlias = Callable[..., Any]
Rule: TypeAlias = Callable[["Planner", ir.Operation], Kernel]
FlowRule: TypeAlias = Callable[["Planner", ir.Operation, list[int]], "Flow"]

_TYPES = "pred s8 s16 s32 s64 u8 u16 u32 u64 f16 bf16 f32 f64 c64 c128"
TYPES = frozenset(_TYPES.split())
# numpy rounds these as processors do; arithmetic on shorter floats is rounded in compiled code where XLA rounds it.
EXACT_FLOATS = frozenset({"f32", "f64"})

# An operation costs numpy about as long as some hundred elements; a plan of this cost takes a few milliseconds, and
# one of as many elements as a compilation is short.
_OPERATION = 500
MOST = 20_000_000
# The place of what a run may still spend among its values.
_LEFT = 0


class UnplannedError(Exception):
    """A program has an operation whose compiled result numpy does not have to the bit."""


class SpentError(Exception):
    """A run takes longer than a compilation: a loop has more iterations than its text tells."""


@dataclass(frozen=True)
class Body:
    """The steps of a block.

    Attributes:
        arguments, results: the numbers of the values that it takes and returns.
        cost: of one run, its loops as if they had one iteration.
    """

    arguments: tuple[int, ...]
    steps: tuple[Step, ...]
    results: tuple[int, ...]
    cost: int

    def run(self, values: list[Any]) -> None:
        values[_LEFT] -= self.cost
        if values[_LEFT] < 0:
            raise SpentError
        for step in self.steps:
            step(values)


@dataclass(frozen=True)
class Flow:
    """An operation that runs bodies, which count what they cost.

    Attributes:
        run: from the values of a run to the numbers of those that are its results.
    """

    run: Callable[[list[Any]], Sequence[int]]

    def into(self, outputs: Sequence[int]) -> Step:
        """The step that leaves the results at these numbers."""

        def step(values: list[Any]) -> None:
            move(values, self.run(values), outputs)

        return step


def move(values: list[Any], sources: Sequence[int], targets: Sequence[int]) -> None:
    """Bring some values of a run to other numbers, all at once."""
    moved = [values[number] for number in sources]
    for number, value in zip(targets, moved, strict=True):
        values[number] = value


@dataclass(frozen=True)
class Plan:
    """A program that numpy runs. Runs are independent of each other: any number of threads may call it at once."""

    body: Body
    size: int

    def __call__(self, arguments: Sequence[Array]) -> list[Array]:
        """The results for arguments of the program's types and sizes; results may lie in arguments.

        Raises:
            SpentError: it takes too long.
        """
        values: list[Any] = [None] * self.size
        values[_LEFT] = MOST
        for number, argument in zip(self.body.arguments, arguments, strict=True):
            values[number] = argument
        with np.errstate(all="ignore"):
            self.body.run(values)
        return [np.asarray(values[number]) for number in self.body.results]


class Planner:
    """Makes bodies of blocks.

    Attributes:
        size: how many values a run has.
        multiplies, adds: whether floats are multiplied, and added.
    """

    def __init__(
        self, functions: Mapping[str, ir.Operation], rules: Mapping[str, Rule], flows: Mapping[str, FlowRule]
    ) -> None:
        self.size = 1
        self.multiplies = self.adds = False
        self._rules, self._flows = rules, flows
        self._numbers: dict[Any, int] = {}
        self._functions = functions
        self._within: list[str] = []

    def body(self, block: ir.Block) -> Body:
        """The steps of a block and of all in it."""
        arguments = tuple(self._new(argument) for argument in block.arguments)
        steps: list[Step] = []
        cost = 0
        *others, last = [op.operation for op in block.operations]
        for op in others:
            step, its_cost = self._step(op)
            steps.append(step)
            cost += its_cost
        return Body(arguments, tuple(steps), tuple(self.number(value) for value in last.operands), cost)

    def function(self, name: str) -> Body:
        """The steps of a function of the module, with values of their own for each call in the text."""
        found = self._functions.get(name)
        if found is None or name in self._within:
            raise UnplannedError(name)
        self._within.append(name)
        body = self.body(found.regions[0].blocks[0])
        self._within.pop()
        return body

    def number(self, value: Any) -> int:
        """Where a value is during a run."""
        return self._numbers[value]

    def place(self) -> int:
        """A number for what is no value of the program."""
        self.size += 1
        return self.size - 1

    def _new(self, value: Any) -> int:
        element_and_dims(value.type)
        self._numbers[value] = self.place()
        return self._numbers[value]

    def _step(self, op: ir.Operation) -> tuple[Step, int]:
        """What runs an operation, and what it costs."""
        inputs = [self.number(operand) for operand in op.operands]
        if (flow_rule := self._flows.get(op.name)) is not None:
            flow = flow_rule(self, op, inputs)
            outputs = [self._new(result) for result in op.results]
            return flow.into(outputs), _OPERATION + sum(map(_elements, op.operands))
        rule = self._rules.get(op.name)
        if rule is None:
            raise UnplannedError(op.name)
        kernel = rule(self, op)
        outputs = [self._new(result) for result in op.results]
        return _called(kernel, inputs, outputs), _OPERATION + sum(map(_elements, op.results))


def _called(kernel: Kernel, inputs: Sequence[int], outputs: Sequence[int]) -> Step:
    if len(outputs) != 1:

        def several(values: list[Any]) -> None:
            for number, result in zip(outputs, kernel(*[values[i] for i in inputs]), strict=True):
                values[number] = result

        return several
    (output,) = outputs
    if len(inputs) == 1:
        (only,) = inputs

        def unary(values: list[Any]) -> None:
            values[output] = kernel(values[only])

        return unary
    if len(inputs) == 2:
        first, second = inputs

        def binary(values: list[Any]) -> None:
            values[output] = kernel(values[first], values[second])

        return binary

    def single(values: list[Any]) -> None:
        values[output] = kernel(*[values[i] for i in inputs])

    return single


def element_and_dims(type_: ir.Type) -> tuple[ElementType, tuple[int, ...]]:
    """The element type and the sizes of an array's type.

    Raises:
        UnplannedError: it is no array of static sizes, or of elements that numpy does not have.
    """
    if not isinstance(type_, ir.RankedTensorType) or not type_.has_static_shape:
        raise UnplannedError(str(type_))
    try:
        element = element_of(type_.element_type)
    except ValueError:
        raise UnplannedError(str(type_)) from None
    if element.name not in TYPES:
        raise UnplannedError(str(type_))
    return element, tuple(type_.shape)


def element(value: Any) -> ElementType:
    """The element type of a value (of ``ir``)."""
    return element_and_dims(value.type)[0]


def dims(value: Any) -> tuple[int, ...]:
    """The sizes of a value (of ``ir``)."""
    return element_and_dims(value.type)[1]


def _elements(value: Any) -> int:
    return prod(dims(value))


def integers(op: ir.Operation, name: str) -> tuple[int, ...]:
    """An attribute of integers."""
    return tuple(int(number) for number in op.attributes[name])  # type: ignore[attr-defined]
