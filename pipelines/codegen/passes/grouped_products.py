"""``legalize-grouped-products``: products that multiply each row by all groups' matrices and mask all but its own.

Before, of eight experts and 128 rows, as JAX expands ``ragged_dot``::

    %b = stablehlo.broadcast_in_dim %x, dims = [1, 2] : (tensor<128x512xf32>) -> tensor<8x128x512xf32>
    %s = stablehlo.select %mine, %b, %zeros : tensor<8x128x512xi1>, tensor<8x128x512xf32>
    %r = stablehlo.dot_general %s, %w, contracting_dims = [0, 2] x [0, 1]
      : (tensor<8x128x512xf32>, tensor<8x512x1024xf32>) -> tensor<128x1024xf32>

After: ``%m`` is ``%mine`` without the dimension along which it is the same::

    %r = stablehlo.custom_call @hloforge.grouped_product(%x, %w, %m) {backend_config = {transposed = false}}
      : (tensor<128x512xf32>, tensor<8x512x1024xf32>, tensor<8x128xi1>) -> tensor<128x1024xf32>

Each row is multiplied by the matrices of the groups that it belongs to alone, an eighth of the work where it belongs to
one. Matrices are read where they lie: ``transposed`` says that their terms follow each other, and constants are turned
when the program is compiled. An infinite number in another group's matrix makes no NaN of 0. Source: JAX,
``jax.lax.ragged_dot``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from hloforge.dialect import ops
from hloforge.dialect.dense_values import constant_of
from hloforge.dialect.marks import GROUPED_PRODUCT
from hloforge.dialect.mlir import SSAValue, ir, stablehlo
from hloforge.dialect.operations import defining_op, integer, integers
from hloforge.dialect.traits import keeps_shape
from hloforge.dialect.values import Value
from hloforge.pipelines.analysis.forms import is_static, multiplies_nothing
from hloforge.pipelines.codegen.passes.image_operations import is_made_known, reordered
from hloforge.pipelines.codegen.passes.other_shapes import elementwise, is_splat, repeated
from hloforge.pipelines.framework.facts import NORMALIZED, Facts
from hloforge.pipelines.framework.passes import PatternPass, register
from hloforge.pipelines.framework.patterns import NoMatch, Pattern, Replacement, pattern
from hloforge.pipelines.library_calls.own_calls import own_call

# Columns come in vectors of so many at most, which fill all of them.
_LANES = 16
# Types of terms, and in which their products are added.
_SUMS = {"f32": "f32", "f64": "f64", "bf16": "f32", "f16": "f32"}
# Operations that a mask is computed by at most.
_MOST = 64


@dataclass
class _Without:
    """Values without a dimension along which their elements are equal.

    Attributes:
        left: operations that may still be looked at.
    """

    dimension: int
    left: int = _MOST
    found: dict[SSAValue, Value] = field(default_factory=dict)

    def has(self, value: SSAValue) -> bool:
        """Whether the elements are equal along the dimension, as far as a few operations tell."""
        op, self.left = defining_op(value), self.left - 1
        if op is None or self.left < 0:
            return False
        if op.name == "stablehlo.constant":
            return is_splat(op)
        if op.name == "stablehlo.iota":
            return integer(op, "iota_dimension") != self.dimension
        if op.name == "stablehlo.broadcast_in_dim":
            dims, sizes = integers(op, "broadcast_dimensions"), Value(op.operands[0]).dims
            return self.dimension not in dims or sizes[dims.index(self.dimension)] == 1
        rank = Value(value).rank
        return keeps_shape(op) and all(Value(one).rank == rank and self.has(one) for one in op.operands)

    def of(self, value: SSAValue) -> Value:
        """The value without it, at the current insertion point."""
        if value not in self.found:
            self.found[value] = self._made(value)
        return self.found[value]

    def _made(self, value: SSAValue) -> Value:
        op, whole = defining_op(value), Value(value)
        assert op is not None
        kept = [d for d in range(whole.rank) if d != self.dimension]
        dims = [whole.dims[d] for d in kept]
        if op.name == "stablehlo.iota":
            return ops.iota(whole.element_type, dims, kept.index(integer(op, "iota_dimension")))
        if op.name == "stablehlo.broadcast_in_dim":
            operand, places = Value(op.operands[0]), integers(op, "broadcast_dimensions")
            if self.dimension in places:
                operand = ops.reshape(
                    operand, [size for size, d in zip(operand.dims, places, strict=True) if d in kept]
                )
            return ops.broadcast_in_dim(operand, dims, [kept.index(d) for d in places if d in kept])
        if op.name == "stablehlo.constant":
            return repeated(whole, dims)
        return elementwise(op, [self.of(one) for one in op.operands], dims)


@pattern("stablehlo.dot_general")
def masked_product(op: ir.Operation) -> Replacement:
    """A product of masked rows with the matrices of all groups -> that of rows with the matrices of their groups."""
    lhs, rhs, result = Value(op.operands[0]), Value(op.operands[1]), Value(op.results[0])
    chosen = defining_op(lhs.ir, "stablehlo.select")
    if chosen is None or not is_static(op) or multiplies_nothing(op) or (lhs.rank, rhs.rank) != (3, 3):
        return NoMatch("no masked rows by a matrix of each group")
    numbers = stablehlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
    left, right = list(numbers.lhs_contracting_dimensions), list(numbers.rhs_contracting_dimensions)
    if list(numbers.lhs_batching_dimensions) or len(left) != 2:
        return NoMatch("not summed over groups and terms")
    sums = _SUMS.get(lhs.element_type.name)
    if (
        sums is None
        or {_SUMS.get(one.element_type.name) for one in (rhs, result)} != {sums}
        or "algorithm" in op.attributes
    ):
        return NoMatch("no floats, or sums of another type than the factors' own")
    if result.dims[1] % _LANES:
        return NoMatch("columns that fill no vectors")
    mask, rows, other = chosen.operands
    if not _is_zero(other) or Value(mask).rank != 3:
        return NoMatch("what is not chosen is not 0")
    for group in (0, 1):
        term = left[1 - group]
        without_terms, without_groups = _Without(term), _Without(left[group])
        # Groups are the first dimension of the matrices, since what is summed may come in any order.
        if right[group] == 0 and without_terms.has(mask) and without_groups.has(rows):
            break
    else:
        return NoMatch("the mask differs along terms, or rows along groups")
    members, given = without_terms.of(mask), without_groups.of(rows)
    # Of each, the dimensions in the order of [group, row] and [row, term].
    free = next(d for d in range(3) if d not in left)
    if left[group] > free:
        members = ops.transpose(members, [1, 0])
    if free > term:
        given = ops.transpose(given, [1, 0])
    matrices, is_transposed = _matrices(rhs, right[1 - group] == 2)
    made = own_call(
        GROUPED_PRODUCT,
        [ops.convert_element_type(given, sums), matrices, members],
        [f"{sums}[{result.dims[0]},{result.dims[1]}]"],
        transposed=is_transposed,
    )
    return ops.convert_element_type(made[0], result.element_type)


def _is_zero(value: SSAValue) -> bool:
    """Whether all elements are a constant 0."""
    op = defining_op(value)
    while op is not None and op.name == "stablehlo.broadcast_in_dim":
        op = defining_op(op.operands[0])
    if op is None or op.name != "stablehlo.constant" or not is_splat(op):
        return False
    return not constant_of(op).any()


def _matrices(rhs: Value, is_transposed: bool) -> tuple[Value, bool]:
    """The matrices as they lie in memory, and whether their terms are the last dimension there."""
    made = defining_op(rhs.ir, "stablehlo.transpose")
    while made is not None and integers(made, "permutation") == [0, 2, 1]:
        rhs, is_transposed = Value(made.operands[0]), not is_transposed
        made = defining_op(rhs.ir, "stablehlo.transpose")
    if is_transposed and is_made_known(rhs):
        return reordered(rhs, [0, 2, 1]), False
    return rhs, is_transposed


@register
@dataclass(frozen=True)
class LegalizeGroupedProducts(PatternPass):
    """Rows are multiplied by the matrices of their groups alone."""

    name: ClassVar[str] = "legalize-grouped-products"
    requires: ClassVar[Facts] = NORMALIZED
    patterns: ClassVar[tuple[Pattern, ...]] = masked_product
