"""Sorts: the keys of a comparator, or the comparator itself, as ``algorithms/sort.py`` takes them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hloforge.dialect.mlir import ir
from hloforge.pipelines.analysis.sort_keys import sort_keys
from hloforge.pipelines.codegen import sharing
from hloforge.pipelines.codegen.algorithms.merge_sort import Less
from hloforge.pipelines.codegen.algorithms.sort import Sort
from hloforge.pipelines.codegen.algorithms.sort_keys import Key, Keys, bits_of_key
from hloforge.pipelines.codegen.choices import counts_along
from hloforge.pipelines.codegen.elements import memory as elements
from hloforge.pipelines.codegen.elements.memory import Element
from hloforge.pipelines.codegen.emit import Emitter
from hloforge.pipelines.codegen.graph import Array, Block, Op
from hloforge.pipelines.codegen.lang.values import Value
from hloforge.pipelines.codegen.nest_loops import Share
from hloforge.pipelines.codegen.scalars import Computation, combine

if TYPE_CHECKING:
    from hloforge.pipelines.codegen.blocks import Generator

# What an element costs for each time that the elements kept are halved, in sums: 1,000 of 1,000 take 6 ns each, 5 of
# 1,000 some 2 ns, on a Xeon.
_TURN = 8
# Integers that no place exceeds.
_COUNTS = frozenset({"i32", "i64", "ui32", "ui64"})


def write_sort(generator: Generator, op: Op, share: Share | None) -> None:
    """The code of a ``stablehlo.sort``, whose results may be shorter than its operands (``shorten``)."""
    emitter = Emitter(generator.writer.function, generator.memory)
    outer, n, inner, kept = _rows(op)
    plan = Sort(
        outer,
        n,
        inner,
        tuple(operand.element for operand in op.operands),
        _order(emitter, op),
        kept if kept < n else None,
    )
    plan.write(
        generator.writer.function,
        [generator.elements(operand) for operand in op.operands],
        [generator.elements(result) for result in op.results],
        sharing.scratch(generator, plan.scratch, share),
        sharing.rows_of(share, plan.rows),
    )


def sort_workgroups(generator: Generator, op: Op) -> int:
    """How many workgroups the rows of a sort are shared out to."""
    outer, n, inner, kept = _rows(op)
    turns = max(1.0, math.log2(max(kept, 1)))
    return sharing.share_count(int(_TURN * outer * n * inner * turns), outer * inner)


def _rows(op: Op) -> tuple[int, int, int, int]:
    """The sizes before, along and after the dimension that is sorted, and how many first elements are kept."""
    along, shape = _dimension(op), op.operands[0].shape
    return math.prod(shape[:along]), shape[along], math.prod(shape[along + 1 :]), op.results[0].shape[along]


def shorten(block: Block) -> None:
    """Let sorts of which only the first elements are read make no others."""
    for op in block.ops:
        for inner in op.inner:
            shorten(inner)
        if op.name != "sort":
            continue
        along = _dimension(op)
        most = max((_read(array, along) for array in op.results), default=0)
        for array in op.results:
            array.shape = (*array.shape[:along], most, *array.shape[along + 1 :])


def _dimension(op: Op) -> int:
    """Along which dimension is sorted: by default the last one, which -1 names as well."""
    number = -1
    if "dimension" in op.mlir.attributes:
        number = ir.IntegerAttr(op.attribute("dimension")).value
    return number % len(op.operands[0].shape)


def _read(array: Array, along: int) -> int:
    """How many first elements are read along a dimension."""
    if array.is_result or not all(reader.name == "slice" for reader in array.readers):
        return array.shape[along]
    read = (reader.integers("limit_indices")[along] for reader in array.readers)
    return max(read, default=min(array.shape[along], 1))


def _order(emitter: Emitter, op: Op) -> Keys | Less:
    (block,) = op.inner
    found = sort_keys(op.mlir.regions[0])
    if found is None:

        def less(left: Sequence[Element], right: Sequence[Element]) -> Value:
            given = [element for pair in zip(left, right, strict=True) for element in pair]
            (flag,) = combine(emitter, block, given)
            assert isinstance(flag, Value)
            return flag

        return less
    last = _argument(found[-1].value)
    # Equal records keep their order, which is all that a number of each place adds.
    if len(found) > 1 and last is not None and not found[-1].descending and _numbers_places(op, last):
        found = found[:-1]
    numbers = [_argument(key.value) for key in found]
    types = [operand.element for operand in op.operands]
    if all(number is not None for number in numbers):
        return Keys.of(
            types, [Key(number or 0, key.descending, key.total) for number, key in zip(numbers, found, strict=True)]
        )
    arrays = [_array(block, key.value) for key in found]

    def compute(record: Sequence[Element]) -> list[Value]:
        computation = Computation(emitter, block, dict(zip(block.arguments[::2], record, strict=True)))
        values = []
        for array, key in zip(arrays, found, strict=True):
            value = computation.element(array)
            assert isinstance(value, Value)
            values.append(bits_of_key(value, array.element, Key(0, key.descending, key.total)))
        return values

    return Keys(tuple(max(8, elements.size(array.element) * 8) for array in arrays), compute)


def _numbers_places(op: Op, number: int) -> bool:
    """Whether an operand counts the places along which is sorted, in a type that holds them."""
    operand = op.operands[number]
    return operand.element in _COUNTS and counts_along(operand, _dimension(op))


def _argument(value: Any) -> int | None:
    """Which operand a value of a comparator is; None if it is computed."""
    return int(value.arg_number) // 2 if isinstance(value.owner, ir.Block) else None


def _array(block: Block, value: Any) -> Array:
    """A value of a comparator, which belongs to the first record."""
    number = _argument(value)
    if number is not None:
        return block.arguments[2 * number]
    return next(op.results[0] for op in block.ops if op.mlir.results[0] == value)
