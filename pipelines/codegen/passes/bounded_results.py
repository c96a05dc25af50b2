"""``legalize-bounded-results``: results of dynamic size as padded arrays with their sizes beside them.

Before::

    func.func @main(%x: tensor<8x3xf32>, %n: tensor<i32>) -> tensor<?x3xf32> {
      %r = stablehlo.set_dimension_size %x, %n, dim = 0 : (tensor<8x3xf32>, tensor<i32>) -> tensor<?x3xf32>
      return %r }

After, with ``hloforge.bounded_results = [array<i64: -2, 3>]``: result 0 has as many rows as result 1 says::

    func.func @main(%x: tensor<8x3xf32>, %n: tensor<i32>) -> (tensor<8x3xf32>, tensor<i32>) {
      %most = stablehlo.minimum %n, %c8 : tensor<i32>
      %size = stablehlo.maximum %most, %c0 : tensor<i32>
      return %x, %size }

The entry function of the vmfb makes views of the sizes that are there. What is returned lies at the beginning of its
buffer; where another dimension than the outermost is dynamic, its rows are moved there. Elementwise operations and
transpositions of arrays of dynamic size become those of the padded arrays before, and reductions read neutral numbers
where there are no elements. All else keeps its dynamic size, and IREE's compiler makes the program. Source: XLA
"SetDimensionSize".
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from hloforge.dialect import ops
from hloforge.dialect.abi import buffer_layout, crosses, major_to_minor
from hloforge.dialect.constants import constant
from hloforge.dialect.emission import emit, i64
from hloforge.dialect.idioms import take
from hloforge.dialect.marks import BOUNDED_RESULTS, LABELS, RESULT_NAMES
from hloforge.dialect.mlir import SSAValue, in_context, ir
from hloforge.dialect.operations import defining_op, integer, integers, operations
from hloforge.dialect.program import Signature, entry_function
from hloforge.dialect.shapes import Shape
from hloforge.dialect.traits import ELEMENTWISE, keeps_shape
from hloforge.dialect.values import Value
from hloforge.pipelines.framework.passes import Pass, register
from hloforge.pipelines.framework.patterns import REWRITTEN, NoMatch, Replacement, apply_patterns, pattern
from hloforge.pipelines.padding.reductions import neutral_of

_SET, _TRANSPOSE = "stablehlo.set_dimension_size", "stablehlo.transpose"
_SCALAR = Shape.parse("s32[]")
# Rows that are moved one after the other; of more, each place finds its element.
_MOST_ROWS = 32


@dataclass(frozen=True)
class _Padded:
    """An array of static size, and the sizes of its dimensions that are dynamic."""

    array: Value
    sizes: Mapping[int, Value] = field(default_factory=dict)

    def cut(self) -> Value:
        """The array of dynamic sizes."""
        found = self.array
        for number, (dimension, size) in enumerate(self.sizes.items()):
            dims = [-1 if d in list(self.sizes)[: number + 1] else extent for d, extent in enumerate(self.array.dims)]
            found = emit(_SET, [found, size], Shape(found.element_type, tuple(dims)), dimension=i64(dimension))
        return found


@pattern(*sorted(ELEMENTWISE))
def padded_elements(op: ir.Operation) -> Replacement:
    """f(set_dimension_size(x, n), set_dimension_size(y, n)) -> set_dimension_size(f(x, y), n)."""
    if len(op.results) != 1 or not keeps_shape(op) or not _is_dynamic(op.results[0]):
        return NoMatch("of static size, or of another shape than its operands")
    operands = [_padded(operand) for operand in op.operands]
    arrays = [one for one in operands if one is not None]
    first = next((one for one in arrays if one.sizes), None)
    if len(arrays) < len(operands) or first is None or not all(_is_alike(one, first) for one in arrays):
        return NoMatch("its operands have other sizes")
    shape = Shape.of_type(op.results[0].type)
    result = emit(op.name, [one.array for one in arrays], Shape(shape.element, first.array.dims), **_attributes(op))
    return _Padded(result, first.sizes).cut()


@pattern(_TRANSPOSE)
def padded_transpose(op: ir.Operation) -> Replacement:
    """transpose(set_dimension_size(x, n)) -> set_dimension_size(transpose(x), n)."""
    operand, order = _padded(op.operands[0]), integers(op, "permutation")
    if operand is None or not operand.sizes:
        return NoMatch("of static size, or of an unknown one")
    sizes = {order.index(dimension): size for dimension, size in operand.sizes.items()}
    return _Padded(ops.transpose(operand.array, order), sizes).cut()


@pattern("stablehlo.get_dimension_size")
def known_size(op: ir.Operation) -> Replacement:
    """get_dimension_size(set_dimension_size(x, n)) -> n, not more than there are elements."""
    operand = _padded(op.operands[0])
    if operand is None or not operand.sizes:
        return NoMatch("of static size, or of an unknown one")
    size = _size(operand, integer(op, "dimension"))
    return constant(size, "s32") if isinstance(size, int) else size


@pattern("stablehlo.reduce")
def padded_reduction(op: ir.Operation) -> Replacement:
    """reduce(set_dimension_size(x, n)) -> reduce(x), of what changes no result where there are no elements."""
    count = len(op.results)
    arrays = [one for operand in op.operands[:count] if (one := _padded(operand)) is not None]
    reduced = integers(op, "dimensions")
    if len(arrays) < count or not arrays[0].sizes or not all(_is_alike(one, arrays[0]) for one in arrays):
        return NoMatch("of static size, or of sizes that are not known or differ")
    if not set(arrays[0].sizes) <= set(reduced):
        return NoMatch("a dimension of dynamic size stays")
    inside = _inside(arrays[0])
    for number, fill in enumerate(neutral_of(op, list(op.operands)[count:])):
        array = arrays[number].array
        filled = ops.broadcast_in_dim(_scalar(fill, array), list(array.dims), [])
        op.operands[number] = ops.select(inside, array, filled).ir
    return REWRITTEN


@register
@dataclass(frozen=True)
class LegalizeBoundedResults(Pass):
    """Return padded arrays with their sizes, if all results of dynamic size are such."""

    name: ClassVar[str] = "legalize-bounded-results"

    def run(self, module: ir.Module) -> None:
        with in_context(module):
            entry = entry_function(module).operation
            block = entry.regions[0].blocks[0]
            if not list(operations(module, frozenset({_SET}))) or any(map(_is_dynamic, block.arguments)):
                return
            apply_patterns(module, (*padded_elements, *padded_transpose, *padded_reduction, *known_size))
            end = list(block.operations)[-1].operation
            if any(map(_is_dynamic, end.operands)):
                _return_padded(module, entry, end)


def _return_padded(module: ir.Module, entry: ir.Operation, end: ir.Operation) -> None:
    signature = Signature.of(module)
    shapes = list(signature.flat_results)
    arrays = [_padded(value) for value in end.operands]
    known = [one for one in arrays if one is not None]
    # Results that lie in arguments, or as XLA tiles them, have no such sizes.
    if len(known) < len(arrays) or len(shapes) != len(arrays) or signature.aliases:
        return
    if any(one.sizes and buffer_layout(shape) is not None for one, shape in zip(known, shapes, strict=True)):
        return
    returned, said, sizes, declared = list[Value](), list[Shape](), list[Value](), list[list[int]]()
    borders = sum(map(crosses, shapes))
    with ir.InsertionPoint(end), end.location:
        for one, shape in zip(known, shapes, strict=True):
            if not one.sizes:
                returned.append(one.array)
                said.append(shape)
                if crosses(shape):
                    declared.append([shape.dimensions[d] for d in major_to_minor(shape)])
                continue
            order = major_to_minor(shape)
            numbers = [_size(one, d) for d in order]
            declared.append([])
            for number in numbers:
                declared[-1].append(number if isinstance(number, int) else -1 - borders - len(sizes))
                sizes += [] if isinstance(number, int) else [number]
            array = _at_the_beginning(ops.transpose(one.array, list(order)), numbers)
            returned.append(array)
            said.append(Shape(shape.element, array.dims))
        ir.Operation.create("func.return", operands=[value.ir for value in (*returned, *sizes)])
    end.erase()
    types = ir.FunctionType(ir.TypeAttr(entry.attributes["function_type"]).value).inputs
    results = [value.ir.type for value in (*returned, *sizes)]
    entry.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(types, results))
    if "res_attrs" in entry.attributes:
        del entry.attributes["res_attrs"]
    for name in (RESULT_NAMES, LABELS):
        if name in module.operation.attributes:
            del module.operation.attributes[name]
    Signature(signature.parameters, Shape.tuple_of(*said, *[_SCALAR] * len(sizes))).attach(module)
    marks = [ir.DenseI64ArrayAttr.get(dims) for dims in declared]
    module.operation.attributes[BOUNDED_RESULTS] = ir.ArrayAttr.get(marks)


def _size(one: _Padded, dimension: int) -> Value | int:
    """Of a dimension; not more than there are elements."""
    extent = one.array.dims[dimension]
    if dimension not in one.sizes:
        return extent
    size = one.sizes[dimension]
    bound = min(extent, np.iinfo(size.element_type.dtype).max)
    least, most = (constant(number, size.element_type) for number in (0, bound))
    return ops.convert_element_type(ops.max(ops.min(size, most), least), "s32")


def _scalar(fill: Any, array: Value) -> Value:
    """A number of an array's type."""
    if isinstance(fill, Value):
        return fill
    return constant(np.asarray(fill).astype(array.element_type.dtype), array.element_type)


def _inside(one: _Padded) -> Value:
    """Whether there is an element at each place of the padded array."""
    found: Value | None = None
    for d in one.sizes:
        size = _size(one, d)
        assert isinstance(size, Value)
        places = ops.iota("s32", list(one.array.dims), d)
        inside = ops.lt(places, ops.broadcast_in_dim(size, list(one.array.dims), []))
        found = inside if found is None else ops.and_(found, inside)
    assert found is not None
    return found


def _at_the_beginning(array: Value, sizes: Sequence[Value | int]) -> Value:
    """A buffer that begins with the elements that are inside of sizes, one after the other."""
    dynamic = [d for d, size in enumerate(sizes) if not isinstance(size, int)]
    if (len(dynamic) == 1 and math.prod(array.dims[: dynamic[0]]) == 1) or not math.prod(array.dims):
        return array
    count = math.prod(array.dims)
    if len(dynamic) == 1 and math.prod(array.dims[: dynamic[0]]) <= _MOST_ROWS:
        return _rows_at_the_beginning(array, sizes, dynamic[0])

    def spread(number: Value) -> Value:
        return ops.broadcast_in_dim(number, [count], [])

    rest, places, stride = ops.iota("s32", [count], 0), spread(constant(0, "s32")), 1
    for extent, size in zip(reversed(array.dims), reversed(sizes), strict=True):
        # Without elements no place is read.
        number = spread(constant(size, "s32") if isinstance(size, int) else ops.max(size, constant(1, "s32")))
        places, rest, stride = places + ops.rem(rest, number) * stride, ops.div(rest, number), stride * extent
    return take(ops.reshape(array, [count]), ops.min(places, spread(constant(count - 1, "s32"))), 0)


def _rows_at_the_beginning(array: Value, sizes: Sequence[Value | int], dim: int) -> Value:
    """The same of a few rows: each is written whole behind the one before it, and what is too much is written over."""
    count, rows = math.prod(array.dims), math.prod(array.dims[:dim])
    room, size = count // rows, sizes[dim]
    assert not isinstance(size, int)
    length = size * (room // array.dims[dim])
    joint = defining_op(array.ir, "stablehlo.concatenate")
    if joint is not None and len(joint.operands) == rows and integer(joint, "dimension") < dim:
        # Rows that are computed one by one are computed where they are written.
        lines = [ops.reshape(Value(row), [room]) for row in joint.operands]
    else:
        flat = ops.reshape(array, [count])
        lines = [ops.slice(flat, [row * room], [(row + 1) * room]) for row in range(rows)]
    found = ops.pad(lines[0], _scalar(0, array), [(0, count - room, 0)])
    for row, line in enumerate(lines[1:], 1):
        found = ops.dynamic_update_slice(found, line, [length * row])
    return found


def _padded(value: SSAValue) -> _Padded | None:
    """An array before it is cut to its sizes; None if it is not known."""
    sizes: dict[int, Value] = {}
    while _is_dynamic(value):
        op = defining_op(value, _SET)
        if op is None:
            return None
        # XLA keeps the buffer where a size is set again.
        sizes.setdefault(integer(op, "dimension"), Value(op.operands[1]))
        value = op.operands[0]
    return _Padded(Value(value), sizes)


def _is_alike(one: _Padded, other: _Padded) -> bool:
    """Whether an operand is a scalar, or has the sizes of another."""
    if not one.array.dims:
        return True
    sizes = {d: size.ir for d, size in one.sizes.items()}
    return one.array.dims == other.array.dims and sizes == {d: size.ir for d, size in other.sizes.items()}


def _is_dynamic(value: SSAValue) -> bool:
    return isinstance(value.type, ir.RankedTensorType) and not value.type.has_static_shape


def _attributes(op: ir.Operation) -> dict[str, Any]:
    return {name: op.attributes[name] for name in op.attributes}
