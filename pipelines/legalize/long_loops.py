"""``legalize-long-loops``: long sums become sums of partial sums, and wide windows grow by doubling.

Before::

    %s = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0] : tensor<1000000xf32>

After, with what does not divide evenly as a last partial sum::

    %r = stablehlo.reshape %x : tensor<1000x1000xf32>
    %p = stablehlo.reduce(%r init: %zero) applies stablehlo.add across dimensions = [1]
    %s = stablehlo.reduce(%p init: %zero) applies stablehlo.add across dimensions = [0]

An invocation of a shader takes the elements of one result one after the other where IREE finds no other way. That
leaves a GPU idle, and Mesa's lavapipe ends an invocation after 65,535 iterations of its loops, without a word. Windows
of 2^k elements are two of 2^(k-1), so that running sums take a few passes over the array.
Source: XLA "Reduce", "ReduceWindow", "DotGeneral".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isqrt, prod
from typing import Any, ClassVar

from hloforge.dialect import ops
from hloforge.dialect.constants import constant
from hloforge.dialect.mlir import AnyOp, in_context, ir, stablehlo
from hloforge.dialect.operations import integers, operations
from hloforge.dialect.regions import inline_region, is_elementwise, vectorize_region
from hloforge.dialect.values import Value
from hloforge.pipelines.framework.passes import Pass, register
from hloforge.pipelines.framework.patterns import replace

# Elements that are reduced to one: IREE may keep them in memory that a workgroup shares, of two operands at once, where
# Vulkan promises 16 KiB.
_MOST = 1024
# Products that one invocation may sum; partial sums of large matrices would take much memory.
_MOST_PRODUCTS = 8192
# Of windows fewer, for each of them is read again.
_WIDEST = 256
# Beyond it lavapipe gives wrong results.
_LIMIT = 65535

# Initial values of partial sums, where the whole sum's own may count once only.
_IDENTITIES = {"stablehlo.add": 0, "stablehlo.multiply": 1, "stablehlo.xor": 0}
_SIZES = ("window_dimensions", "window_strides", "base_dilations", "window_dilations")


def reduces_many(op: ir.Operation) -> bool:
    """Whether a ``reduce`` of static shape takes more elements for a result than one invocation should."""
    return bool(op.operands[0].type.has_static_shape) and _reduced(op) > _MOST


def sums_many_products(op: AnyOp) -> bool:
    """The same of a ``dot_general``."""
    static = all(operand.type.has_static_shape for operand in op.operands)
    return static and prod(_contracted(op)[1]) > _MOST_PRODUCTS


def has_wide_windows(op: AnyOp) -> bool:
    """The same of a ``reduce_window``."""
    static = bool(op.operands[0].type.has_static_shape)
    return static and prod(integers(op, "window_dimensions")) > _WIDEST and is_elementwise(op.regions[0])


def convolves_many(op: AnyOp) -> bool:
    """Whether a ``convolution`` sums more products for a result than lavapipe can."""
    kernel = [int(size) for size in op.operands[1].type.shape]
    return op.operands[1].type.has_static_shape and prod(kernel) // max(1, _features(op, kernel)) > _LIMIT


def _features(op: AnyOp, kernel: list[int]) -> int:
    """The size of a kernel's dimension of output features."""
    numbers = stablehlo.ConvDimensionNumbers(op.attributes["dimension_numbers"])
    return kernel[int(numbers.kernel_output_feature_dimension)]


@register
@dataclass(frozen=True)
class LegalizeLongLoops(Pass):
    """Split reductions, products and windows of many elements into parts."""

    name: ClassVar[str] = "legalize-long-loops"

    def run(self, module: ir.Module) -> None:
        with in_context(module):
            for op in operations(module, {"stablehlo.reduce_window"}):
                if has_wide_windows(op):
                    with ir.InsertionPoint(op), op.location:
                        replace(op, _by_doubling(op))
            for op in operations(module, {"stablehlo.dot_general"}):
                if sums_many_products(op):
                    with ir.InsertionPoint(op), op.location:
                        replace(op, [_products_in_parts(op)])
            for op in operations(module, {"stablehlo.reduce"}):
                if reduces_many(op):
                    with ir.InsertionPoint(op), op.location:
                        replace(op, _in_parts(op))


def _reduced(op: ir.Operation) -> int:
    """Elements for one result of a ``reduce``."""
    return prod(int(op.operands[0].type.shape[d]) for d in integers(op, "dimensions"))


def _in_parts(op: ir.Operation) -> list[Value]:
    """A ``reduce`` by partial results."""
    count = len(op.results)
    arrays = [Value(operand) for operand in op.operands[:count]]
    inits = [Value(operand) for operand in op.operands[count:]]
    dimensions = sorted(integers(op, "dimensions"))
    partial = _partial_inits(op, inits)
    while len(dimensions) > 1 and prod(arrays[0].dims[d] for d in dimensions) > _MOST:
        # The last dimension, whose elements lie side by side, by itself.
        *dimensions, last = dimensions
        arrays = _shortened(op, arrays, partial, last)
        arrays = _reduce(op, arrays, partial, [last])
    if len(dimensions) == 1:
        arrays = _shortened(op, arrays, partial, dimensions[0])
    return _reduce(op, arrays, inits, dimensions)


def _shortened(op: ir.Operation, arrays: list[Value], inits: Sequence[Value], dimension: int) -> list[Value]:
    """Arrays of partial results along a dimension, so many as one invocation may take."""
    while (size := arrays[0].dims[dimension]) > _MOST:
        part = min(_MOST, isqrt(size - 1) + 1)
        whole = size // part * part
        blocks = [_split(_cut(array, dimension, 0, whole), dimension, part) for array in arrays]
        found = _reduce(op, blocks, inits, [dimension + 1])
        if whole < size:
            rest = _reduce(op, [_cut(a, dimension, whole, size) for a in arrays], inits, [dimension])
            ends = [ops.reshape(r, [*r.dims[:dimension], 1, *r.dims[dimension:]]) for r in rest]
            found = [ops.concat_in_dim([f, end], dimension) for f, end in zip(found, ends, strict=True)]
        arrays = found
    return arrays


def _partial_inits(op: ir.Operation, inits: list[Value]) -> list[Value]:
    """The initial values of partial results."""
    first, *others = op.regions[0].blocks[0].operations
    if len(others) != 1 or first.operation.name not in _IDENTITIES:
        return inits
    identity = constant(_IDENTITIES[first.operation.name], inits[0].element_type.name)
    return [identity]


def _reduce(
    op: ir.Operation, arrays: Sequence[Value], inits: Sequence[Value], dimensions: Sequence[int]
) -> list[Value]:
    """The computation of a ``reduce`` on other arrays."""
    dims = [size for d, size in enumerate(arrays[0].dims) if d not in dimensions]
    made = ir.Operation.create(
        "stablehlo.reduce",
        results=[ir.RankedTensorType.get(dims, init.ir.type.element_type) for init in inits],
        operands=[value.ir for value in (*arrays, *inits)],
        attributes={"dimensions": ir.DenseI64ArrayAttr.get(list(dimensions))},
        regions=1,
    )
    source = op.regions[0]
    block = ir.Block.create_at_start(made.regions[0], [argument.type for argument in source.blocks[0].arguments])
    with ir.InsertionPoint(block):
        results = inline_region(source, [Value(argument) for argument in block.arguments])
        ir.Operation.create("stablehlo.return", operands=[result.ir for result in results])
    return [Value(result) for result in made.results]


def _cut(array: Value, dimension: int, start: int, end: int) -> Value:
    if (start, end) == (0, array.dims[dimension]):
        return array
    starts, limits = [0] * array.rank, list(array.dims)
    starts[dimension], limits[dimension] = start, end
    return ops.slice(array, starts, limits)


def _split(array: Value, dimension: int, part: int) -> Value:
    """A dimension as two, the second of size ``part``."""
    dims = array.dims
    return ops.reshape(array, [*dims[:dimension], dims[dimension] // part, part, *dims[dimension + 1 :]])


def _contracted(op: AnyOp) -> tuple[Any, list[int]]:
    """The dimension numbers of a ``dot_general``, and the sizes that it sums along."""
    numbers = stablehlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
    shape = op.operands[0].type.shape
    return numbers, [int(shape[d]) for d in numbers.lhs_contracting_dimensions]


def _products_in_parts(op: AnyOp) -> Value:
    """A ``dot_general`` as a sum of such of parts of the longest dimension that it sums along."""
    numbers, sizes = _contracted(op)
    longest = max(range(len(sizes)), key=sizes.__getitem__)
    others = prod(sizes) // sizes[longest]
    part = max(1, min(_MOST_PRODUCTS // others, isqrt(sizes[longest] - 1) + 1))
    count = -(-sizes[longest] // part)
    sides = []
    for operand, contracting, batching in (
        (op.operands[0], numbers.lhs_contracting_dimensions, numbers.lhs_batching_dimensions),
        (op.operands[1], numbers.rhs_contracting_dimensions, numbers.rhs_batching_dimensions),
    ):
        axis = list(contracting)[longest]
        array = Value(operand)
        padding = [(0, count * part - sizes[longest] if d == axis else 0) for d in range(array.rank)]
        if count * part > sizes[longest]:
            array = ops.pad(array, 0, padding)
        whole = _split(array, axis, part)
        after = [d + (d > axis) for d in batching]
        sides.append((whole, [*after, axis], [d + (d >= axis) for d in contracting]))
    (left, left_batch, left_sum), (right, right_batch, right_sum) = sides
    element = Value(op.results[0]).element_type
    parts = ops.DotDimensionNumbers(left_sum, right_sum, left_batch, right_batch)
    products = ops.dot_general(left, right, parts, preferred_element_type=element.name)
    return ops.reduce(products, 0, ops.add, [len(left_batch) - 1])


def _by_doubling(op: AnyOp) -> list[Value]:
    """A ``reduce_window``, one dimension after the other."""
    count = len(op.results)
    rank = len(op.operands[0].type.shape)
    windows, strides, spreads, reaches = (integers(op, name) or [1] * rank for name in _SIZES)
    padding = integers(op, "padding") or [0] * (2 * rank)
    config = [(padding[2 * d], padding[2 * d + 1], spreads[d] - 1) for d in range(rank)]
    arrays = [
        ops.pad(Value(array), Value(init), config)
        for array, init in zip(op.operands[:count], op.operands[count:], strict=True)
    ]
    for d, (width, reach) in enumerate(zip(windows, reaches, strict=True)):
        arrays = _windows(op, arrays, d, width, reach)
    limits = [int(size) for size in arrays[0].dims]
    return [ops.slice(array, [0] * rank, limits, strides) for array in arrays]


def _windows(op: AnyOp, arrays: list[Value], dimension: int, width: int, reach: int) -> list[Value]:
    """What windows along one dimension combine to, for each position where one begins."""
    places = arrays[0].dims[dimension] - (width - 1) * reach
    found: list[Value] | None = None
    done, step = 0, 1
    while True:
        if width & step:
            piece = [_cut(array, dimension, done * reach, done * reach + places) for array in arrays]
            found = piece if found is None else vectorize_region(op.regions[0], [*found, *piece])
            done += step
        step *= 2
        if step > width:
            assert found is not None
            return found
        shift = step // 2 * reach
        size = arrays[0].dims[dimension]
        arrays = vectorize_region(
            op.regions[0],
            [
                *(_cut(array, dimension, 0, size - shift) for array in arrays),
                *(_cut(array, dimension, shift, size) for array in arrays),
            ],
        )
