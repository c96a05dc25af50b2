"""Elementwise operations on a product's sums, computed where the sums are, before they are stored.

What follows a product is short: a bias, a scale, bounds, another array that is added. A loop of its own would read all
sums again, often from a cache further away. An epilogue is that loop, at the places in the order in which the product
makes its sums: vectors of them along one dimension of the result, columns of a matrix or pixels of a row. Each array is
read along it at elements that follow each other, or at one for the whole vector. A result with a border, as the next
convolution takes it, is stored in the middle of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from hloforge.dialect.mlir import stablehlo
from hloforge.pipelines.codegen import index as numbers
from hloforge.pipelines.codegen.access import Accesses
from hloforge.pipelines.codegen.elements.kinds import is_complex, register, single
from hloforge.pipelines.codegen.elements.memory import Element
from hloforge.pipelines.codegen.elements.narrow import rounded
from hloforge.pipelines.codegen.emit import Memory
from hloforge.pipelines.codegen.evaluate import Place
from hloforge.pipelines.codegen.graph import Array, Op
from hloforge.pipelines.codegen.index import Index, Symbol
from hloforge.pipelines.codegen.lang.functions import Function
from hloforge.pipelines.codegen.lang.values import Value, lanes_of
from hloforge.pipelines.codegen.narrow_factors import PRODUCTS
from hloforge.pipelines.codegen.products.convolution import THIN
from hloforge.pipelines.codegen.products.loops import each
from hloforge.pipelines.codegen.splats import splat_of
from hloforge.pipelines.codegen.vector_places import VectorAccesses, VectorEmitter

if TYPE_CHECKING:
    from hloforge.pipelines.codegen.blocks import Generator

InMemory = Callable[[Array], bool]

# What the elementwise operations of a sum may cost, in sums.
_DEAR = 48
_BYTES = frozenset({"i8", "ui8"})
# Columns up to which a product may exchange its factors, and hand on its sums one by one.
_FEW_COLUMNS = 4


def takes(op: Op) -> bool:
    """Whether a product may store what is computed of its sums, which it has in vectors along one dimension."""
    if op.name not in PRODUCTS or is_complex(op.result.element) or op.result.elements <= 1:
        return False
    if op.name == "dot_general":
        sizes = _matrix_sizes(op)
        return op.panel is None and all(sizes) and (sizes[2] > _FEW_COLUMNS or sizes[1] == 1)
    dims, last = _dimensions(op), op.result.rank - 1
    if dims is None:
        return False
    if dims.output_feature_dimension == last:
        # Of few features vectors go along pixels (``planes.py``).
        return op.result.shape[last] not in THIN
    has_zeros = "lhs_dilation" in op.mlir.attributes and max(op.integers("lhs_dilation"), default=1) > 1
    # The results of an image with zeros between its pixels lie apart.
    return op.result.shape[last] > 1 and not has_zeros


def _dimensions(op: Op) -> stablehlo.ConvDimensionNumbers | None:
    """The dimension numbers of a convolution whose result has pixels in order, and features after or before these."""
    dims = stablehlo.ConvDimensionNumbers(op.attribute("dimension_numbers"))
    spatial = list(dims.output_spatial_dimensions)
    order = [dims.output_batch_dimension, *spatial, dims.output_feature_dimension]
    planes = [dims.output_batch_dimension, dims.output_feature_dimension, *spatial]
    return dims if spatial and list(range(op.result.rank)) in (order, planes) else None


def _matrix_sizes(op: Op) -> tuple[int, int, int]:
    """How many matrices, rows and columns a product has."""
    lhs, rhs = op.operands
    dims = stablehlo.DotDimensionNumbers(op.attribute("dot_dimension_numbers"))
    count = prod(lhs.shape[d] for d in dims.lhs_batching_dimensions)
    gone = (*dims.rhs_batching_dimensions, *dims.rhs_contracting_dimensions)
    columns = prod(size for d, size in enumerate(rhs.shape) if d not in gone)
    return count, op.result.elements // max(count * columns, 1), columns


@dataclass(frozen=True)
class _Sums:
    """A sum's place as the product tells it.

    Attributes:
        place: in the result.
        along: the counter of the dimension that vectors go along; None for one of size 1.
    """

    place: Place
    along: Symbol | None


def _sums_of(op: Op, told: Sequence[Value | None] | None = None) -> _Sums:
    """Args: told: what the product tells a place in; None to look at places without code."""
    shape = op.result.shape
    if op.name == "dot_general":
        sizes = _matrix_sizes(op)
        counters = _counters(sizes, told)
        return _Sums(numbers.reshaped(counters, sizes, shape), _symbol(counters[-1]))
    dims = _dimensions(op)
    assert dims is not None
    order = [dims.output_batch_dimension, *dims.output_spatial_dimensions, dims.output_feature_dimension]
    by_dimension = dict(zip(order, _counters([shape[d] for d in order], told), strict=True))
    place = tuple(by_dimension[d] for d in range(len(shape)))
    return _Sums(place, _symbol(place[-1]))


def _counters(sizes: Sequence[int], told: Sequence[Value | None] | None) -> Place:
    values = told or [None] * len(sizes)
    return tuple(numbers.counter(size, value) for size, value in zip(sizes, values, strict=True))


def _symbol(counter: Index) -> Symbol | None:
    return counter.terms[0][0] if counter.terms else None


def fits(op: Op, maps: Sequence[Array], in_memory: InMemory) -> bool:
    """Whether arrays that a loop stores can be computed with the sums of a product."""
    sums, own = op.result, set(maps)
    order = _order(sums, maps, in_memory)
    if order is None:
        return False
    at = _sums_of(op)
    place = order.place(at.place)
    found = VectorAccesses(lambda array: in_memory(array) and array not in own, along=at.along)
    for array in maps:
        found.made(order.computed(array), place)
        # A border's own place is not the vector's.
        if not order.bordered:
            found.check(numbers.linear(place, array.shape))
    return found.fits and not found.conditions and not found.is_irregular and found.work <= _DEAR


def keeps_order(op: Op, maps: Sequence[Array], in_memory: InMemory) -> bool:
    """Whether arrays that are computed of a product's sums have their places."""
    order = _order(op.result, maps, in_memory)
    return order is not None and order.dims is None and not order.bordered


def is_bordered(op: Op, maps: Sequence[Array], in_memory: InMemory) -> bool:
    """Whether an epilogue stores its result with a border around it."""
    order = _order(op.result, maps, in_memory)
    return order is None or order.bordered


def read_with_sums(op: Op, maps: Sequence[Array], in_memory: InMemory) -> tuple[Place, list[tuple[Array, Index]]]:
    """The place of a sum in a product's result, and what its epilogue reads there: arrays and elements' numbers."""
    order, own, at = _order(op.result, maps, in_memory), set(maps), _sums_of(op)
    assert order is not None
    found = Accesses(lambda array: array is op.result or (in_memory(array) and array not in own))
    for array in maps:
        found.made(order.computed(array), order.place(at.place))
    return at.place, [(array, number) for array, number in found.loads if array is not op.result]


@dataclass(frozen=True)
class _Order:
    """How the places of a loop are those of a product's result.

    Attributes:
        shape: of the loop.
        dims: its dimensions of more than one element, from the slowest to the fastest in the product's result; None
            for the same dimensions.
        bordered: whether what it stores has a border around the result.
    """

    sums: Array
    shape: tuple[int, ...]
    dims: tuple[int, ...] | None
    bordered: bool = False

    def place(self, place: Place) -> Place:
        """The loop's place of a sum."""
        if self.dims is None:
            return place
        number = numbers.linear(place, self.sums.shape)
        found = [numbers.ZERO] * len(self.shape)
        for d, index in zip(self.dims, numbers.delinear(number, tuple(self.shape[d] for d in self.dims)), strict=True):
            found[d] = index
        return tuple(found)

    def computed(self, array: Array) -> Array:
        """What is computed for an array that is stored."""
        assert array.op is not None
        return array.op.operands[0] if self.bordered else array


def _order(sums: Array, maps: Sequence[Array], in_memory: InMemory) -> _Order | None:
    """The order of a loop that reads each sum once; None for any other."""
    if all(_inside(array, sums) is not None for array in maps):
        return _Order(sums, sums.shape, None, bordered=True)
    shape, own = maps[0].shape, set(maps)
    if prod(shape) != sums.elements:
        return None
    counters = tuple(numbers.counter(size) for size in shape)
    found = Accesses(lambda array: array is sums or (in_memory(array) and array not in own))
    for array in maps:
        found.made(array, counters)
    read = {number for loaded, number in found.loads if loaded is sums}
    if len(read) != 1:
        return None
    (number,) = read
    if shape == sums.shape and number == numbers.linear(counters, shape):
        return _Order(sums, shape, None)
    dims = {_symbol(index): d for d, index in enumerate(counters) if index.terms}
    terms = sorted(number.terms, key=lambda term: -term[1])
    step = 1
    for symbol, factor in reversed(terms):
        if symbol not in dims or factor != step:
            return None
        step *= symbol.most + 1
    is_whole = step == sums.elements and not number.offset
    return _Order(sums, shape, tuple(dims[symbol] for symbol, _ in terms)) if is_whole else None


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


class _SumsEmitter(VectorEmitter):
    """Writes elements of a vector of a product's sums."""

    def __init__(
        self, function: Function, memory: Callable[[Array], Memory | None], sums: Array, value: Value, at: _Sums
    ) -> None:
        super().__init__(function, memory, at.along, lanes_of(value.kind))
        self._sums, self._given = sums, value

    def in_memory(self, array: Array) -> bool:
        return array is self._sums or super().in_memory(array)

    def load(self, array: Array, number: Index) -> Element:
        return self._given if array is self._sums else super().load(array, number)


class EpilogueWriter:
    """Writes what is computed of sums.

    Args:
        maps: arrays, of which those in memory are stored.
    """

    def __init__(self, generator: Generator, op: Op, maps: Sequence[Array]) -> None:
        self._generator, self._op, self._maps = generator, op, maps
        self._function: Function = generator.writer.function
        order = _order(op.result, maps, generator.in_memory)
        assert order is not None
        self._order = order

    @property
    def rounded(self) -> Array | None:
        """The array that is the sums of a product of bf16 as such numbers, if there is nothing else."""
        array, sums = self._maps[0], self._op.result
        kept = self._order.dims is None and not self._order.bordered and len(self._maps) == 1
        is_cast = array.op is not None and array.op.name == "convert" and array.op.operands[0] is sums
        kinds = [one.element for one in (*self._op.operands[:2], array)]
        return array if kept and is_cast and kinds == ["bf16"] * 3 and sums.element == "f32" else None

    def write_borders(self) -> None:
        """What surrounds results."""
        for array in self._maps if self._order.bordered else ():
            op, memory = array.op, self._generator.memory(array)
            if op is not None and memory is not None:
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

    def store(self, sums: Value, told: Sequence[Value]) -> None:
        """Store results of sums, a number or a vector, at the place that the product tells."""
        generator, result, own = self._generator, self._op.result, set(self._maps)
        at = _sums_of(self._op, told)
        value = rounded(sums.as_(register(result.element)), result.element)
        memory = lambda array: generator.memory(array) if array not in own else None  # noqa: E731
        emitter = _SumsEmitter(self._function, memory, result, value, at)
        place = self._order.place(at.place)
        stored: list[tuple[Memory, Value, Index]] = []
        for array in self._maps:
            found = emitter.spread(single(emitter.made(self._order.computed(array), place)))
            target = generator.memory(array)
            if target is None:
                continue
            where = place
            if self._order.bordered:
                assert array.op is not None
                low = array.op.integers("edge_padding_low")
                where = tuple(one + edge for one, edge in zip(place, low, strict=True))
            stored.append((target, found, numbers.linear(where, array.shape)))
        for target, found, number in stored:
            target.store(found, emitter.value(number))
