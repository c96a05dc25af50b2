"""Sorts: the keys of a comparator, or the comparator itself, as ``algorithms/sort.py`` takes them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from hloforge.dialect.mlir import ir
from hloforge.pipelines.analysis.sort_keys import sort_keys
from hloforge.pipelines.codegen import sharing
from hloforge.pipelines.codegen.algorithms.arrays import Elements
from hloforge.pipelines.codegen.algorithms.merge_sort import Less
from hloforge.pipelines.codegen.algorithms.sort import Reader, Sort
from hloforge.pipelines.codegen.algorithms.sort_keys import Key, Keys, bits_of_key
from hloforge.pipelines.codegen.choices import counts_along
from hloforge.pipelines.codegen.elements import memory as elements
from hloforge.pipelines.codegen.elements.memory import Element
from hloforge.pipelines.codegen.emit import Emitter, place_of
from hloforge.pipelines.codegen.graph import Array, Block, Op
from hloforge.pipelines.codegen.index import delinear
from hloforge.pipelines.codegen.lang.values import Number, Value
from hloforge.pipelines.codegen.nest_loops import Share
from hloforge.pipelines.codegen.scalars import Computation, combine
from hloforge.pipelines.codegen.steps import is_free

if TYPE_CHECKING:
    from hloforge.pipelines.codegen.blocks import Generator

# What a nanosecond of a sort counts, in sums: three times as much as of loops, because rows are sorted in memory of
# each worker's own, and two of them gain from some 15 µs on: 5 of 500 in 64 columns took 24 µs and now take 15.
_SUMS = 40
# Integers that no place exceeds.
_COUNTS = frozenset({"i32", "i64", "ui32", "ui64"})


def write_sort(generator: Generator, op: Op, share: Share | None) -> None:
    """The code of a ``stablehlo.sort``, whose results may be shorter than its operands (``shorten``)."""
    emitter = Emitter(generator.writer.function, generator.memory)
    plan = _plan(op, lambda: emitter)

    def source(operand: Array) -> Elements | Reader:
        if operand not in op.streamed or generator.in_memory(operand):
            return generator.elements(operand)
        before, after = operand.shape[: (along := _dimension(op))], operand.shape[along + 1 :]

        def computed(numbers: Sequence[Number]) -> Element:
            outer, place, inner = place_of(numbers, (plan.outer, plan.n, plan.inner))
            with emitter.scope():
                element: Element = emitter.element(operand, (*delinear(outer, before), place, *delinear(inner, after)))
                return element

        return computed

    plan.write(
        generator.writer.function,
        [source(operand) for operand in op.operands],
        [generator.elements(result) for result in op.results],
        sharing.scratch(generator, plan.scratch, share),
        sharing.rows_of(share, plan.rows),
    )


def _no_emitter() -> Emitter:
    raise AssertionError("no code of a sort is written to know what it costs")


def sort_workgroups(generator: Generator, op: Op) -> int:
    """How many workgroups the rows of a sort are shared out to."""
    plan = _plan(op, _no_emitter)
    return sharing.share_count(_SUMS * plan.rows * plan.cost, plan.rows)


def _plan(op: Op, emitter: Callable[[], Emitter]) -> Sort:
    """The sort of all rows, as long as its results are."""
    along, shape = _dimension(op), op.operands[0].shape
    kept, n = op.results[0].shape[along], shape[along]
    return Sort(
        math.prod(shape[:along]),
        n,
        math.prod(shape[along + 1 :]),
        tuple(operand.element for operand in op.operands),
        _order(emitter, op),
        kept if kept < n else None,
    )


def shorten(block: Block) -> None:
    """Let sorts of which only the first elements are read make no others, and compute what they read once."""
    for op in block.ops:
        for inner in op.inner:
            shorten(inner)
        if op.name != "sort":
            continue
        along = _dimension(op)
        most = max((_read(array, along) for array in op.results), default=0)
        for array in op.results:
            array.shape = (*array.shape[:along], most, *array.shape[along + 1 :])
        if all(array.elements for array in (*op.operands, *op.results)):
            reads_once = _plan(op, _no_emitter).reads_once
            op.streamed = tuple(one for one in op.operands if reads_once or is_free(one))


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


def _order(emitter: Callable[[], Emitter], op: Op) -> Keys | Less:
    (block,) = op.inner
    found = sort_keys(op.mlir.regions[0])
    if found is None:

        def less(left: Sequence[Element], right: Sequence[Element]) -> Value:
            given = [element for pair in zip(left, right, strict=True) for element in pair]
            (flag,) = combine(emitter(), block, given)
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
        computation = Computation(emitter(), block, dict(zip(block.arguments[::2], record, strict=True)))
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
