"""Control flow: loops and branches."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hloforge.dialect.mlir import ir
from hloforge.dialect.ops.reduction import fill_region
from hloforge.dialect.values import Value, constant, emit


def while_loop(
    init: Sequence[Value], condition: Callable[..., Value], body: Callable[..., Sequence[Value]]
) -> list[Value]:
    """Repeat ``body`` while ``condition`` holds (XLA "While").

    Args:
        init: the values before the first turn.
        condition: from the current values to a scalar pred.
        body: from the current values to the next ones, of the same types.

    Returns:
        The values when the condition fails.
    """
    types = [value.type for value in init]
    op = ir.Operation.create("stablehlo.while", results=types, operands=[value.ir for value in init], regions=2)
    fill_region(op.regions[0], types, condition)
    fill_region(op.regions[1], types, body)
    return [Value(result) for result in op.results]


def for_loop(count: int, init: Sequence[Value], body: Callable[..., Sequence[Value]]) -> list[Value]:
    """``count`` turns of ``body(number, *values)``, where ``number`` is an s32 scalar from 0."""

    def turn(number: Value, *values: Value) -> list[Value]:
        return [number + 1, *body(number, *values)]

    start = constant(0, "s32")
    _, *results = while_loop([start, *init], lambda number, *_: number < count, turn)
    return results


def barrier(operand: Value) -> Value:
    """The value, through which no compiler moves or merges anything (XLA "OptimizationBarrier")."""
    return emit("stablehlo.optimization_barrier", [operand], operand.type)
