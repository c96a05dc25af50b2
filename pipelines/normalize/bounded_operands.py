"""Arrays without bound beside arrays of bounded size, where an operation asks for dimensions of one size.

HLO reads as much of the one as there is of the other. ``drop-bounds`` cuts it to that size, because shape inference and
IREE would take a static size for that of both.
Source: XLA, DynamicDimensionInference and DynamicPadder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from hloforge.dialect.mlir import ir, stablehlo
from hloforge.dialect.operations import integer, integers
from hloforge.dialect.traits import ELEMENTWISE

# Numbers of operands and of their dimensions.
Group: TypeAlias = "list[tuple[int, int]]"


def equal_dimensions(op: ir.Operation) -> Iterator[Group]:
    """The dimensions of an operation's operands that have one size, group by group."""
    if op.name in ELEMENTWISE:
        yield from _of_all(op, range(len(op.operands)), op.results[0].type.rank)
    elif op.name in _RULES:
        yield from _RULES[op.name](op)


def _of_all(op: ir.Operation, operands: Sequence[int], rank: int) -> Iterator[Group]:
    same = [number for number in operands if op.operands[number].type.rank == rank]
    yield from ([(number, d) for number in same] for d in range(rank))


def _rows(op: ir.Operation) -> Iterator[Group]:
    """Of ``sort``: all arrays."""
    yield from _of_all(op, range(len(op.operands)), op.operands[0].type.rank)


def _kept(op: ir.Operation) -> Iterator[Group]:
    """Of reductions: what stays. Along what is reduced XLA takes all of an array without bound."""
    groups = _of_all(op, range(len(op.operands) // 2), op.operands[0].type.rank)
    reduced = integers(op, "dimensions")
    yield from (group for d, group in enumerate(groups) if d not in reduced)


def _joined(op: ir.Operation) -> Iterator[Group]:
    along = integer(op, "dimension")
    groups = _of_all(op, range(len(op.operands)), op.results[0].type.rank)
    yield from (group for d, group in enumerate(groups) if d != along)


def _factors(op: ir.Operation) -> Iterator[Group]:
    numbers = stablehlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
    left = [*numbers.lhs_batching_dimensions, *numbers.lhs_contracting_dimensions]
    right = [*numbers.rhs_batching_dimensions, *numbers.rhs_contracting_dimensions]
    yield from ([(0, one), (1, other)] for one, other in zip(left, right, strict=True))


def _dot(op: ir.Operation) -> Iterator[Group]:
    yield [(0, op.operands[0].type.rank - 1), (1, 0)]


def _updates(op: ir.Operation) -> Iterator[Group]:
    """The dimensions of indices and of updates over which a scatter goes, where indices say how far."""
    numbers = stablehlo.ScatterDimensionNumbers(op.attributes["scatter_dimension_numbers"])
    count = len(op.operands) // 2
    indices = op.operands[count].type.rank
    over = [d for d in range(indices) if d != numbers.index_vector_dim]
    for place, d in enumerate(over):
        if not op.operands[count].type.is_dynamic_dim(d):
            continue
        group = [(count, d)]
        for number in range(count + 1, len(op.operands)):
            rank = op.operands[number].type.rank
            group.append((number, [one for one in range(rank) if one not in numbers.update_window_dims][place]))
        yield group


_RULES: dict[str, Callable[[ir.Operation], Iterator[Group]]] = {
    "stablehlo.concatenate": _joined,
    "stablehlo.dot": _dot,
    "stablehlo.dot_general": _factors,
    "stablehlo.reduce": _kept,
    "stablehlo.scatter": _updates,
    "stablehlo.sort": _rows,
}
NAMES = (*sorted(ELEMENTWISE), *_RULES)
