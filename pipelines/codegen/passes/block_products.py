"""``legalize-block-products``: products of bytes in blocks with a scale each, summed over the blocks, as one product.

Before, of weights of 4 bits in blocks of 32 and of rows that were quantized alike::

    %low = convert(and(%bytes, 15)) : (tensor<2048x64x16xui8>) -> tensor<2048x64x16xi32>
    %d0 = stablehlo.dot_general convert(%even), %low, batching_dims = [1] x [1], contracting_dims = [2] x [2]
      : (tensor<8x64x16xi32>, tensor<2048x64x16xi32>) -> tensor<64x8x2048xi32>
    %d1 = …                                                 // of the odd terms and of %bytes >> 4
    %f = convert(%d0 + %d1 + (broadcast %starts)) * (broadcast %left) * (broadcast %right)
    %r = stablehlo.reduce(%f init: 0) applies stablehlo.add across dimensions = [0] -> tensor<8x2048xf32>

After, with scales and starts for each lane of a vector::

    %r = stablehlo.custom_call @hloforge.block_product(%even, %odd, %lanes, %starts, %bytes, %right)
      {backend_config = {codes = [0, 15, 0, 4, 15, 0], is_unsigned = true}} -> tensor<8x2048xf32>

Neither sums of blocks nor codes are in memory: a byte is read once for some rows. What is not the same along a column,
as a scale of a row, and what is not along a row are told apart by ``equal_elements.py``. Source: ONNX Runtime,
"MatMulNBits" with an accuracy level of 4.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import ClassVar

from hloforge.dialect import ops
from hloforge.dialect.constants import constant, full
from hloforge.dialect.dense_values import constant_of
from hloforge.dialect.marks import BLOCK_PRODUCT
from hloforge.dialect.mlir import SSAValue, ir, stablehlo
from hloforge.dialect.operations import defining_op, integers
from hloforge.dialect.values import Value
from hloforge.pipelines.analysis.forms import combiner, is_static, multiplies_nothing
from hloforge.pipelines.codegen.passes.equal_elements import Without
from hloforge.pipelines.codegen.passes.image_operations import reordered
from hloforge.pipelines.codegen.passes.other_shapes import is_splat
from hloforge.pipelines.codegen.products.block_product import GROUP, WHOLE
from hloforge.pipelines.framework.facts import NORMALIZED, Facts
from hloforge.pipelines.framework.passes import PatternPass, register
from hloforge.pipelines.framework.patterns import NoMatch, Pattern, Replacement, pattern
from hloforge.pipelines.library_calls.own_calls import own_call

_CONVERT = "stablehlo.convert"
_BYTES = ("s8", "u8")
# Bytes of short blocks, which a vector has several of.
_SHORT = (4, 8, 16, 32)
# Where the dimensions of a product's result begin: blocks, rows, columns.
_BLOCKS, _ROWS, _COLUMNS = 0, 1, 2


@dataclass(frozen=True)
class _Side:
    """A factor of a product of bytes.

    Attributes:
        value: bytes, ``[m, blocks, size]``.
        shift, mask: where codes are in them.
    """

    value: Value
    shift: int = 0
    mask: int = 255


@dataclass
class _Found:
    """What a sum over blocks is made of.

    Attributes:
        products: of bytes, with rows and columns as they are.
        starts: what is added to these or subtracted, along rows, with its sign.
        left, right: scales along rows, and along columns.
    """

    products: list[tuple[_Side, _Side]] = field(default_factory=list)
    starts: list[tuple[SSAValue, int]] = field(default_factory=list)
    left: list[SSAValue] = field(default_factory=list)
    right: list[SSAValue] = field(default_factory=list)


@pattern("stablehlo.reduce")
def sum_over_blocks(op: ir.Operation) -> Replacement:
    """A sum over blocks of scaled products of bytes -> one product."""
    if len(op.results) != 1 or not is_static(op) or combiner(op) != "stablehlo.add":
        return NoMatch("no sum of known size")
    if Value(op.results[0]).element_type.name != "f32" or not _is_zero(op.operands[1]):
        return NoMatch("no plain sum of f32")
    if Value(op.operands[0]).rank != 3 or list(integers(op, "dimensions")) != [_BLOCKS]:
        return NoMatch("no sum over the first of three dimensions")
    found = _found(op.operands[0])
    if found is None:
        return NoMatch("no products of bytes in blocks with scales")
    return _made(found)


def _found(terms: SSAValue) -> _Found | None:
    """The parts of terms ``[blocks, rows, columns]``; None if they are others."""
    found, sums = _Found(), []
    for factor in _leaves(terms, "stablehlo.multiply"):
        made = defining_op(factor, _CONVERT)
        if made is not None and Value(made.operands[0]).element_type.name == "s32":
            sums.append(made.operands[0])
        elif Without().has(factor, [_COLUMNS]):
            found.left.append(factor)
        elif Without().has(factor, [_ROWS]):
            found.right.append(factor)
        else:
            return None
    if len(sums) != 1:
        return None
    for term, sign in _terms(sums[0]):
        product = defining_op(term, "stablehlo.dot_general") if sign > 0 else None
        if product is None:
            if not Without().has(term, [_COLUMNS]):
                return None
            found.starts.append((term, sign))
            continue
        sides = _sides(product)
        if sides is None:
            return None
        found.products.append(sides)
    return found if found.products and found.left and found.right and _fits(found) else None


def _leaves(value: SSAValue, name: str) -> Iterator[SSAValue]:
    """What a value is computed of by operations of one name that nobody else reads."""
    op = defining_op(value, name)
    if op is None or sum(1 for _ in value.uses) > 1:
        yield value
        return
    for operand in op.operands:
        yield from _leaves(operand, name)


def _terms(value: SSAValue, sign: int = 1) -> Iterator[tuple[SSAValue, int]]:
    """What a value is the sum of, with signs."""
    op = defining_op(value)
    if op is None or op.name not in ("stablehlo.add", "stablehlo.subtract") or sum(1 for _ in value.uses) > 1:
        yield value, sign
        return
    yield from _terms(op.operands[0], sign)
    yield from _terms(op.operands[1], -sign if op.name == "stablehlo.subtract" else sign)


def _sides(op: ir.Operation) -> tuple[_Side, _Side] | None:
    """The factors of a product of bytes in blocks with one dimension of rows and one of columns; None for another."""
    if multiplies_nothing(op) or "algorithm" in op.attributes or Value(op.results[0]).rank != 3:
        return None
    numbers = stablehlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
    sides = []
    for operand, batch, depth in (
        (op.operands[0], numbers.lhs_batching_dimensions, numbers.lhs_contracting_dimensions),
        (op.operands[1], numbers.rhs_batching_dimensions, numbers.rhs_contracting_dimensions),
    ):
        if len(batch) != 1 or len(depth) != 1:
            return None
        (free,) = {0, 1, 2} - {batch[0], depth[0]}
        side = _side(operand, [free, batch[0], depth[0]])
        if side is None:
            return None
        sides.append(side)
    return sides[0], sides[1]


def _side(operand: SSAValue, order: Sequence[int]) -> _Side | None:
    """A factor as bytes, in the order of the kernel."""
    value, shift, mask = operand, 0, 255
    while (op := defining_op(value)) is not None and op.operands:
        inner = Value(op.operands[0]).element_type.name
        number = _number(op.operands[1]) if len(op.operands) == 2 else None
        if op.name == _CONVERT and inner in _BYTES and Value(value).element_type.bits > 8 and value == operand:
            pass
        elif inner == "u8" and number is not None and op.name == "stablehlo.and":
            mask &= number >> shift
        elif inner == "u8" and number is not None and op.name == "stablehlo.shift_right_logical" and shift + number < 8:
            shift += number
            mask &= 255 >> shift
        else:
            break
        value = op.operands[0]
    if Value(value).element_type.name not in _BYTES:
        return None
    return _Side(reordered(Value(value), order), shift, mask)


def _fits(found: _Found) -> bool:
    """Whether the kernel takes products: of rows of bytes with codes of the same bytes."""
    sides = [columns for _, columns in found.products]
    size = sides[0].value.dims[2]
    return (
        all(rows.mask == 255 and rows.shift == 0 for rows, _ in found.products)
        and len({rows.value.element_type.name for rows, _ in found.products}) == 1
        and all(side.value.ir == sides[0].value.ir for side in sides)
        and (size in _SHORT or size % WHOLE == 0)
    )


def _made(found: _Found) -> Value:
    """The product, at the current insertion point."""
    rows, columns = [one.value for one, _ in found.products], found.products[0][1].value
    (m, blocks, size), n, lanes = rows[0].dims, columns.dims[0], columns.dims[2] // GROUP
    is_signed = rows[0].element_type.name == "s8"
    # An instruction takes bytes with a sign and bytes without one.
    is_flipped = is_signed == (columns.element_type.name == "s8")
    added = [(reordered(Without().of(one, [_COLUMNS]), [1, 0]), sign) for one, sign in found.starts]
    starts = [one if sign > 0 else ops.neg(one) for one, sign in added]
    if is_flipped:
        wide = [ops.reduce(ops.convert_element_type(one, "s32"), 0, lambda a, b: a + b, [2]) for one in rows]
        starts += [one * full(one, -128 if is_signed else 128) for one in wide]
    left = _product([Without().of(one, [_COLUMNS]) for one in found.left], [blocks, m])
    right = _product([Without().of(one, [_ROWS]) for one in found.right], [blocks, n])
    spread = ops.broadcast_in_dim(reordered(left, [1, 0]), [m, blocks, lanes], [0, 1])
    operands = [_whole(one, size) for one in (*rows, spread)]
    if starts:
        first = ops.reshape(reduce(ops.add, starts), [m, blocks, 1])
        operands.append(_whole(ops.pad(first, 0, [(0, 0), (0, 0), (0, lanes - 1)]), size))
    codes = [number for _, side in found.products for number in (side.shift, side.mask, int(is_flipped))]
    return own_call(
        BLOCK_PRODUCT,
        [*operands, columns, reordered(right, [1, 0])],
        [f"f32[{m},{n}]"],
        codes=codes,
        is_unsigned=is_signed,
    )[0]


def _product(scales: Sequence[Value], dims: Sequence[int]) -> Value:
    return reduce(ops.mul, scales) if scales else ops.broadcast_in_dim(constant(1.0), dims, [])


def _whole(value: Value, size: int) -> Value:
    """``[m, blocks, n]`` as rows that fill vectors, where a block of ``size`` bytes has n elements."""
    m, blocks, n = value.dims
    rows = ops.reshape(value, [m, blocks * n])
    more = -blocks * size % WHOLE * n // size
    return ops.pad(rows, 0, [(0, 0), (0, more)]) if more else rows


def _number(value: SSAValue) -> int | None:
    """The number that all elements are; None where that is not known."""
    op = defining_op(value)
    while op is not None and op.name == "stablehlo.broadcast_in_dim":
        op = defining_op(op.operands[0])
    if op is None or op.name != "stablehlo.constant" or not is_splat(op):
        return None
    return int(constant_of(op).flat[0])


def _is_zero(value: SSAValue) -> bool:
    op = defining_op(value)
    return op is not None and op.name == "stablehlo.constant" and not constant_of(op).any()


@register
@dataclass(frozen=True)
class LegalizeBlockProducts(PatternPass):
    """Products of bytes in blocks are summed by one kernel."""

    name: ClassVar[str] = "legalize-block-products"
    requires: ClassVar[Facts] = NORMALIZED
    patterns: ClassVar[tuple[Pattern, ...]] = sum_over_blocks
