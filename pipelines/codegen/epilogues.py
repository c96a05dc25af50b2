"""Elementwise operations on a product's sums, computed where the sums are, before they are stored.

What follows a product of integers is short: a bias, one multiplication, rounding, bounds. A loop of its own would read
sums of four times the bytes that it writes, often from a cache further away. Elements are vectors along the last
dimension here, so that all that is read is read of the same place, or of the same column alone. A result with a border,
as the next convolution takes it, is stored in the middle of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING

from hloforge.dialect.mlir import stablehlo
from hloforge.pipelines.codegen.access import cost_of
from hloforge.pipelines.codegen.elements import memory as elements
from hloforge.pipelines.codegen.elements.memory import Element
from hloforge.pipelines.codegen.elements.table import supports
from hloforge.pipelines.codegen.emit import Emitter, Memory, apply, splat_of
from hloforge.pipelines.codegen.evaluate import MOVES
from hloforge.pipelines.codegen.graph import Array, Op
from hloforge.pipelines.codegen.index import ZERO
from hloforge.pipelines.codegen.lang.functions import Function
from hloforge.pipelines.codegen.lang.values import Value, lanes_of
from hloforge.pipelines.codegen.narrow_factors import PRODUCTS
from hloforge.pipelines.codegen.products.convolution import THIN
from hloforge.pipelines.codegen.products.loops import each

if TYPE_CHECKING:
    from hloforge.pipelines.codegen.blocks import Generator

InMemory = Callable[[Array], bool]

# What an element may cost, in sums, and through how many operations it may be computed.
_DEAR, _DEEP = 48, 60
# Of one element, those that cost as much as a transcendental function.
_FUNCTION = 16
_BYTES = frozenset({"i8", "ui8"})


def has_columns_last(op: Op) -> bool:
    """Whether sums of integers lie in memory as a product has them: rows, then columns."""
    if op.name not in PRODUCTS or op.result.element != "i32" or op.result.elements <= 1:
        return False
    if op.name == "dot_general":
        lhs, rhs = op.operands
        numbers = stablehlo.DotDimensionNumbers(op.attribute("dot_dimension_numbers"))
        gone = (*numbers.rhs_batching_dimensions, *numbers.rhs_contracting_dimensions)
        columns = prod(size for d, size in enumerate(rhs.shape) if d not in gone)
        return bool(lhs.elements) and columns == op.result.shape[-1]
    dims = stablehlo.ConvDimensionNumbers(op.attribute("dimension_numbers"))
    order = [dims.output_batch_dimension, *dims.output_spatial_dimensions, dims.output_feature_dimension]
    # Of few features vectors go along pixels (``planes.py``).
    return order == list(range(len(order))) and len(order) > 2 and op.result.shape[-1] not in THIN


def fits(sums: Array, maps: Sequence[Array], in_memory: InMemory) -> bool:
    """Whether arrays that a loop stores can be computed with the sums."""
    own, seen = set(maps), dict[Array, int]()

    def is_read(array: Array) -> bool:
        return in_memory(array) and array not in own

    for array in maps:
        inner = _inside(array, sums)
        if not _fits(array if inner is None else inner, sums, is_read, seen, _DEEP):
            return False
    return sum(seen.values()) <= _DEAR


def _inside(array: Array, sums: Array) -> Array | None:
    """What an array has inside of a border of one known byte, which leaves columns next to each other."""
    op = array.op
    if op is None or op.name != "pad" or array.element not in _BYTES or op.operands[0].shape != sums.shape:
        return None
    low, high = op.integers("edge_padding_low"), op.integers("edge_padding_high")
    is_outside = min(*low, *high) >= 0 and not any(op.integers("interior_padding"))
    value = op.operands[1].op
    is_known = value is not None and value.name == "constant"
    return op.operands[0] if is_outside and low[-1] == high[-1] == 0 and is_known and sums.rank > 2 else None


def _fits(array: Array, sums: Array, in_memory: InMemory, seen: dict[Array, int], left: int) -> bool:
    if array is sums or array in seen:
        return True
    columns = sums.shape[-1]
    if array.elements not in (1, columns, sums.elements) or not left:
        return False
    if array.element.startswith("complex") or array.element == "i1":
        return array.elements == 1
    if array.elements == 1:
        return not _depends(array, sums, in_memory)
    seen[array] = 0
    if in_memory(array):
        return array.elements == sums.elements or _is_line(array)
    op = array.op
    if op is None or len(op.results) != 1:
        return False
    if op.name == "constant":
        return op.is_splat
    if op.name in ("reshape", "broadcast_in_dim"):
        (operand,) = op.operands
        if operand.elements == array.elements:
            is_fine = op.name == "reshape" or _keeps_order(op)
        else:
            is_fine = operand.elements == 1 or (operand.elements == columns and _goes_along_columns(op, columns))
        return is_fine and _fits(operand, sums, in_memory, seen, left - 1)
    if op.name in MOVES or not supports(op.name, [one.element for one in op.operands], array.element):
        return False
    cost = cost_of(op)
    seen[array] = cost
    if cost >= _FUNCTION or not all(one.elements in (1, array.elements) for one in op.operands):
        return False
    return all(_fits(operand, sums, in_memory, seen, left - 1) for operand in op.operands)


def _depends(array: Array, sums: Array, in_memory: InMemory) -> bool:
    waiting, seen = [array], {array}
    while waiting:
        top = waiting.pop()
        if top is sums:
            return True
        if top.op is not None and not in_memory(top):
            more = {*top.op.operands, *top.op.captured} - seen
            seen |= more
            waiting += more
    return False


def _is_line(array: Array) -> bool:
    return max(array.shape) == array.elements


def _keeps_order(op: Op) -> bool:
    """Whether a broadcast adds dimensions of size 1 alone."""
    dims = op.integers("broadcast_dimensions")
    return all(one < other for one, other in pairwise(dims))


def _goes_along_columns(op: Op, columns: int) -> bool:
    (operand,) = op.operands
    dims = op.integers("broadcast_dimensions")
    along = [d for d, size in zip(dims, operand.shape, strict=True) if size != 1]
    return along == [op.result.rank - 1] and op.result.shape[-1] == columns


class EpilogueWriter:
    """Writes what is computed of sums.

    Args:
        maps: arrays, of which those in memory are stored.
        sizes: of what the product tells a place in, which has the sums in their order.
    """

    def __init__(self, generator: Generator, sums: Array, maps: Sequence[Array], sizes: Sequence[int]) -> None:
        self._generator, self._sums, self._maps, self._sizes = generator, sums, maps, sizes
        self._own = set(maps)
        self._function: Function = generator.writer.function
        self._known: dict[Array, Value] = {}
        self._lanes = 0
        self._number = self._column = self._function.index(0)

    def write_borders(self) -> None:
        """What surrounds results."""
        for array in self._maps:
            op, memory = array.op, self._generator.memory(array)
            if op is not None and memory is not None and _inside(array, self._sums) is not None:
                self._border(op, memory)

    def _border(self, op: Op, memory: Memory) -> None:
        function, shape, inner = self._function, op.result.shape, op.operands[0].shape
        low = op.integers("edge_padding_low")
        value = op.operands[1].op
        assert value is not None
        byte = int(splat_of(value)) & 0xFF
        for d, (size, all_of) in enumerate(zip(inner, shape, strict=True)):
            block = prod(shape[d + 1 :])
            for first, count in ((0, low[d]), (low[d] + size, all_of - size - low[d])):
                if not count:
                    continue
                # Places inside of the dimensions before this one, and all of those after it.
                with each(function, 0, prod(inner[:d])) as number:
                    start = function.index(0)
                    places, rest = [], number
                    for before in reversed(inner[:d]):
                        places.append(rest.urem(before))
                        rest = rest.udiv(before)
                    for place, edge, whole in zip(reversed(places), low[:d], shape[:d], strict=True):
                        start = start * whole + place + edge
                    at = function.offset(memory.pointer, "i8", (start * all_of + first) * block)
                    size_of = function.index(count * block)
                    function.do(f"call void @llvm.memset.p0.i64(ptr {at.text}, i8 {byte}, {size_of}, i1 false)")

    def store(self, sums: Value, places: Sequence[Value]) -> None:
        """Store results of sums, a number or a vector along columns, at a place of the product's result."""
        function = self._function
        self._known = {self._sums: sums}
        self._lanes = lanes_of(sums.kind)
        self._number = _linear(function, places, self._sizes)
        self._column = places[-1]
        for array in self._maps:
            op = array.op
            assert op is not None
            is_bordered = _inside(array, self._sums) is not None
            found = self._element(op.operands[0] if is_bordered else array)
            memory = self._generator.memory(array)
            if memory is None:
                continue
            number = self._number
            if is_bordered:
                moved = [one + edge for one, edge in zip(places, op.integers("edge_padding_low"), strict=True)]
                number = _linear(function, moved, array.shape)
            memory.store(found, number)

    def _element(self, array: Array) -> Value:
        found = self._known.get(array)
        if found is None:
            found = self._known[array] = self._made(array)
        return found

    def _made(self, array: Array) -> Value:
        generator, function = self._generator, self._function
        if array.elements == 1:
            emitter = Emitter(function, generator.memory)
            return self._spread(emitter.element(array, (ZERO,) * array.rank))
        memory = generator.memory(array)
        if memory is not None and array not in self._own:
            number = self._number if array.elements == self._sums.elements else self._column
            return _single(memory.load(number, self._lanes))
        op = array.op
        assert op is not None
        if op.name == "constant":
            return self._spread(elements.constant(function, array.element, splat_of(op)))
        if op.name in ("reshape", "broadcast_in_dim"):
            return self._element(op.operands[0])
        return _single(apply(op, [self._element(operand) for operand in op.operands]))

    def _spread(self, element: Element) -> Value:
        value = _single(element)
        return self._function.spread(value, self._lanes) if self._lanes else value


def _single(element: Element) -> Value:
    assert isinstance(element, Value)
    return element


def _linear(function: Function, places: Sequence[Value], sizes: Sequence[int]) -> Value:
    found = function.index(0)
    for place, size in zip(places, sizes, strict=True):
        found = found * size + place
    return found
