"""``legalize-product-forms``: products as ``codegen/contractions.py`` takes them.

Before::

    %r = stablehlo.dot_general %x, %y, contracting_dims = [0, 2] x [2, 0]
      : (tensor<3x4x5xf32>, tensor<5x6x3xf32>) -> tensor<4x6xf32>

After: dimensions that are summed, and those that are not, follow each other in memory::

    %t = stablehlo.transpose %x, dims = [1, 0, 2] : (tensor<3x4x5xf32>) -> tensor<4x3x5xf32>
    %u = stablehlo.transpose %y, dims = [1, 2, 0] : (tensor<5x6x3xf32>) -> tensor<6x3x5xf32>
    %r = stablehlo.dot_general %t, %u, contracting_dims = [1, 2] x [1, 2]

An operand that is transposed is read before its transposition where it has that form there, and a product that is only
read transposed has its factors exchanged.
The transposed array is computed as one, where the operand is no argument. Convolutions of complex numbers are four of
their parts, and so are products of few terms; others have code (``products/complex_products.py``). Those of booleans
are products of bytes, compared with 0. Source: StableHLO spec "dot_general", "convolution".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from hloforge.dialect import ops
from hloforge.dialect.constants import full
from hloforge.dialect.emission import emit
from hloforge.dialect.mlir import ir, stablehlo
from hloforge.dialect.operations import defining_op, integers
from hloforge.dialect.values import Value
from hloforge.pipelines.analysis.forms import is_static, multiplies_nothing
from hloforge.pipelines.codegen.factor_strides import follow_each_other
from hloforge.pipelines.codegen.passes.convolutions_as_products import as_product
from hloforge.pipelines.codegen.passes.few_pixels import of_few_pixels
from hloforge.pipelines.codegen.passes.few_terms import has_few_terms, of_few_terms
from hloforge.pipelines.codegen.passes.moved_dimensions import before_transposition, order_of
from hloforge.pipelines.codegen.passes.patches import in_patches
from hloforge.pipelines.codegen.passes.repeated_factors import of_repeated_factors
from hloforge.pipelines.codegen.passes.strided_points import without_steps
from hloforge.pipelines.codegen.passes.unread_positions import without_unread_positions
from hloforge.pipelines.codegen.passes.weight_gradients import features_last
from hloforge.pipelines.framework.facts import NORMALIZED, Fact, Facts
from hloforge.pipelines.framework.passes import PatternPass, register
from hloforge.pipelines.framework.patterns import NoMatch, Pattern, Replacement, pattern
from hloforge.pipelines.workarounds.empty_products import as_zeros


@pattern("stablehlo.dot_general", "stablehlo.convolution")
def by_parts(op: ir.Operation) -> Replacement:
    """(a + bi)(c + di) = ac - bd + (ad + bc)i."""
    result = Value(op.results[0])
    if not result.element_type.is_complex or not is_static(op) or multiplies_nothing(op):
        return NoMatch("not complex, or of unknown or no size")
    if op.name == "stablehlo.dot_general" and _has_code(op):
        return NoMatch("a product that has code")
    operands = [Value(operand) for operand in op.operands]
    a, b, c, d = (part(operand) for operand in operands for part in (ops.real, ops.imag))
    # Which may be wider than those of the factors.
    number = ir.ComplexType(op.results[0].type.element_type).element_type
    type_ = ir.RankedTensorType.get(result.dims, number)

    def product(x: Value, y: Value) -> Value:
        return emit(op.name, [x, y], type_, **_attributes(op))

    return ops.complex(product(a, c) - product(b, d), product(a, d) + product(b, c))


def _has_code(op: ir.Operation) -> bool:
    """Whether a product of complex numbers is multiplied as it lies in memory (``products/complex_products.py``)."""
    types = {Value(value).element_type.name for value in (*op.operands, *op.results)}
    if len(types) > 1 or "algorithm" in op.attributes or has_few_terms(op):
        return False
    numbers = stablehlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
    lhs = numbers.lhs_batching_dimensions, numbers.lhs_contracting_dimensions
    rhs = numbers.rhs_batching_dimensions, numbers.rhs_contracting_dimensions
    return all(_has_neighbours(Value(value), *dims) for value, dims in zip(op.operands, (lhs, rhs), strict=True))


def _has_neighbours(value: Value, batch: Sequence[int], depth: Sequence[int]) -> bool:
    """Whether rows or columns of a factor's matrices lie next to each other; true of one that is transposed first."""
    if not _fits(value, batch, depth):
        return True
    last = next((d for d in reversed(range(value.rank)) if value.dims[d] != 1), 0)
    return last not in batch


@pattern("stablehlo.dot_general", "stablehlo.convolution")
def of_booleans(op: ir.Operation) -> Replacement:
    """Whether any product of two booleans is true: their number is not 0."""
    result = Value(op.results[0])
    if result.element_type.name != "pred" or not is_static(op) or multiplies_nothing(op):
        return NoMatch("not boolean, or of unknown or no size")
    operands = [ops.convert_element_type(Value(operand), "u8") for operand in op.operands]
    type_ = ir.RankedTensorType.get(result.dims, ir.IntegerType.get_unsigned(32))
    count = emit(op.name, operands, type_, **_attributes(op))
    return ops.ne(count, full(count, 0))


@pattern("stablehlo.dot_general")
def of_transposed(op: ir.Operation) -> Replacement:
    """Read what is transposed where it lies, as the weights of PyTorch's linear layers and what is computed of them.

    Products read either order of a factor's dimensions in about the same time, and a copy is one more pass over it.
    """
    if not is_static(op) or multiplies_nothing(op):
        return NoMatch("of unknown or no size")
    numbers = stablehlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
    lhs = Value(op.operands[0]), numbers.lhs_batching_dimensions, numbers.lhs_contracting_dimensions
    rhs = Value(op.operands[1]), numbers.rhs_batching_dimensions, numbers.rhs_contracting_dimensions
    sides = [_through_transpose(*one) for one in (lhs, rhs)]
    if not any(is_changed for *_, is_changed in sides):
        return NoMatch("nothing is transposed, or not into a product's form")
    (left, left_batch, left_depth, _), (right, right_batch, right_depth, _) = sides
    attributes = _attributes(op)
    attributes["dot_dimension_numbers"] = stablehlo.DotDimensionNumbers.get(
        left_batch, right_batch, left_depth, right_depth
    )
    return emit(op.name, [left, right], op.results[0].type, **attributes)


def _through_transpose(
    value: Value, batch: Sequence[int], depth: Sequence[int]
) -> tuple[Value, list[int], list[int], bool]:
    """The operand before a transposition, or computed before it, its dimensions, and whether that is another one."""
    same = value, list(batch), list(depth), False
    order = order_of(value)
    if order is None:
        return same
    dims = [value.dims[order.index(d)] for d in range(value.rank)]
    moved_batch, moved_depth = [order[d] for d in batch], [order[d] for d in depth]
    free = [order[d] for d in _free(value, batch, depth)]
    # The result has the dimensions that are left in their order.
    if free != sorted(free) or not (follow_each_other(dims, moved_depth) and follow_each_other(dims, free)):
        return same
    source = before_transposition(value, order)
    if source is None or not _has_neighbours(source, moved_batch, moved_depth):
        return same
    return source, moved_batch, moved_depth, True


@pattern("stablehlo.transpose")
def as_transposed(op: ir.Operation) -> Replacement:
    """A product that is only read transposed, with its factors exchanged: ``(x y)^T`` is ``y^T x^T``."""
    product = defining_op(op.operands[0], "stablehlo.dot_general")
    if product is None or not is_static(product) or multiplies_nothing(product) or "algorithm" in product.attributes:
        return NoMatch("no product, of unknown or no size, or with types for its factors")
    if len(list(product.results[0].uses)) > 1:
        return NoMatch("somebody reads the product itself")
    numbers = stablehlo.DotDimensionNumbers(product.attributes["dot_dimension_numbers"])
    left, right = map(Value, product.operands)
    batch = len(numbers.lhs_batching_dimensions)
    rows = len(_free(left, numbers.lhs_batching_dimensions, numbers.lhs_contracting_dimensions))
    rank = len(Value(op.results[0]).dims)
    if list(integers(op, "permutation")) != [*range(batch), *range(batch + rows, rank), *range(batch, batch + rows)]:
        return NoMatch("the dimensions of both factors are mixed")
    attributes = _attributes(product)
    attributes["dot_dimension_numbers"] = stablehlo.DotDimensionNumbers.get(
        numbers.rhs_batching_dimensions,
        numbers.lhs_batching_dimensions,
        numbers.rhs_contracting_dimensions,
        numbers.lhs_contracting_dimensions,
    )
    if "precision_config" in attributes:
        attributes["precision_config"] = ir.ArrayAttr.get(list(attributes["precision_config"])[::-1])
    return emit(product.name, [right, left], op.results[0].type, **attributes)


@pattern("stablehlo.dot_general")
def with_neighbours(op: ir.Operation) -> Replacement:
    """Transpose operands whose dimensions do not follow each other."""
    if not is_static(op) or multiplies_nothing(op):
        return NoMatch("of unknown or no size")
    numbers = stablehlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
    lhs, rhs = map(Value, op.operands)
    batch = tuple(numbers.lhs_batching_dimensions), tuple(numbers.rhs_batching_dimensions)
    pairs = list(zip(numbers.lhs_contracting_dimensions, numbers.rhs_contracting_dimensions, strict=True))
    orders = [pairs, sorted(pairs), sorted(pairs, key=lambda pair: pair[1])]
    # The order of the terms is free.
    best = min(
        orders,
        key=lambda order: _moved(lhs, batch[0], [d for d, _ in order]) + _moved(rhs, batch[1], [d for _, d in order]),
    )
    left, left_batch, left_depth = _transposed(lhs, batch[0], [d for d, _ in best])
    right, right_batch, right_depth = _transposed(rhs, batch[1], [d for _, d in best])
    if left is lhs and right is rhs and best == pairs:
        return NoMatch("they do")
    attributes = _attributes(op)
    attributes["dot_dimension_numbers"] = stablehlo.DotDimensionNumbers.get(
        left_batch, right_batch, left_depth, right_depth
    )
    return emit(op.name, [left, right], op.results[0].type, **attributes)


def _attributes(op: Any) -> dict[str, Any]:
    return {name: op.attributes[name] for name in op.attributes}


def _free(value: Value, batch: Sequence[int], depth: Sequence[int]) -> list[int]:
    return [d for d in range(value.rank) if d not in (*batch, *depth)]


def _fits(value: Value, batch: Sequence[int], depth: Sequence[int]) -> bool:
    free = _free(value, batch, depth)
    return follow_each_other(value.dims, depth) and follow_each_other(value.dims, free)


def _moved(value: Value, batch: Sequence[int], depth: Sequence[int]) -> int:
    """How many elements are transposed for an order of the terms."""
    return 0 if _fits(value, batch, depth) else value.shape.element_count


def _transposed(value: Value, batch: Sequence[int], depth: Sequence[int]) -> tuple[Value, Sequence[int], Sequence[int]]:
    """An operand, and where its dimensions are then."""
    free = _free(value, batch, depth)
    if not _fits(value, batch, depth):
        order = [*batch, *free, *depth]
    elif not _has_neighbours(value, batch, depth):
        order = [*batch, *(d for d in range(value.rank) if d not in batch)]
    else:
        return value, batch, depth
    return ops.transpose(value, order), [order.index(d) for d in batch], [order.index(d) for d in depth]


@register
@dataclass(frozen=True)
class LegalizeProductForms(PatternPass):
    """Rewrite products of complex numbers, booleans, empty arrays and scattered dimensions."""

    name: ClassVar[str] = "legalize-product-forms"
    requires: ClassVar[Facts] = NORMALIZED | frozenset({Fact.NO_CHLO})
    establishes: ClassVar[Facts] = frozenset({Fact.SAFE_PRODUCTS})
    patterns: ClassVar[tuple[Pattern, ...]] = (
        *as_zeros,
        *without_unread_positions,
        *in_patches,
        *without_steps,
        *as_product,
        *features_last,
        *of_few_pixels,
        *by_parts,
        *of_booleans,
        *of_few_terms,
        *of_repeated_factors,
        *as_transposed,
        *of_transposed,
        *with_neighbours,
    )
