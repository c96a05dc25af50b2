"""``legalize-grouped-products``: products of all groups' matrices with all rows, of which a mask leaves each its own.

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
when the program is compiled. An infinite number in another group's matrix makes no NaN of 0.

Before, the gradient of these matrices, where one factor or both are masked::

    %g = stablehlo.dot_general %s, %dy, contracting_dims = [1] x [0]
      : (tensor<8x128x512xf32>, tensor<128x1024xf32>) -> tensor<8x512x1024xf32>

After: what both have of a row is multiplied for the groups that it belongs to alone::

    %g = stablehlo.custom_call @hloforge.grouped_contraction(%x, %dy, %m)
      : (tensor<128x512xf32>, tensor<128x1024xf32>, tensor<8x128xi1>) -> tensor<8x512x1024xf32>

Both have batches before their other dimensions if the product does, as ``vmap`` makes them. Source: JAX,
``jax.lax.ragged_dot_general``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from hloforge.dialect import ops
from hloforge.dialect.dense_values import constant_of
from hloforge.dialect.marks import GROUPED_CONTRACTION, GROUPED_PRODUCT
from hloforge.dialect.mlir import SSAValue, ir, stablehlo
from hloforge.dialect.operations import defining_op, integers
from hloforge.dialect.values import Value
from hloforge.pipelines.analysis.forms import is_static, multiplies_nothing
from hloforge.pipelines.codegen.passes.equal_elements import Without
from hloforge.pipelines.codegen.passes.image_operations import is_made_known, reordered
from hloforge.pipelines.codegen.passes.other_shapes import is_splat
from hloforge.pipelines.framework.facts import NORMALIZED, Facts
from hloforge.pipelines.framework.passes import PatternPass, register
from hloforge.pipelines.framework.patterns import NoMatch, Pattern, Replacement, pattern
from hloforge.pipelines.library_calls.own_calls import own_call

# Columns come in vectors of so many at most, which fill all of them.
_LANES = 16
# By how many times the work has to be less than that of all groups where zeros fill up vectors.
_LEAST_GAIN = 2
# Types of terms, and in which their products are added.
_SUMS = {"f32": "f32", "f64": "f64", "bf16": "f32", "f16": "f32"}
_CONVERT = "stablehlo.convert"


@dataclass(frozen=True)
class _Factor:
    """A factor of a product, with what is known about its dimensions.

    Attributes:
        value: the factor, or what it is a transpose of.
        batch, terms, free: its dimensions, those of batches and terms in the order of the other factor's.
    """

    value: Value
    batch: tuple[int, ...]
    terms: tuple[int, ...]
    free: tuple[int, ...]

    @staticmethod
    def of(operand: SSAValue, batch: Sequence[int], terms: Sequence[int]) -> _Factor:
        value, order = Value(operand), [*range(Value(operand).rank)]
        while (made := defining_op(value.ir, "stablehlo.transpose")) is not None:
            before = integers(made, "permutation")
            value, order = Value(made.operands[0]), [before[d] for d in order]
        free = (d for d in order if d not in {order[one] for one in (*batch, *terms)})
        return _Factor(value, tuple(order[d] for d in batch), tuple(order[d] for d in terms), tuple(free))

    def sizes(self, dims: Iterable[int]) -> list[int]:
        return [self.value.dims[d] for d in dims]

    def arranged(self, *parts: Sequence[int], batch: Sequence[int]) -> Value:
        """The value with its batch first, and then one dimension for each of these parts."""
        value = reordered(self.value, [*batch, *(d for part in parts for d in part)])
        return ops.reshape(value, [*self.sizes(batch), *(math.prod(self.sizes(part)) for part in parts)])

    def without(self, dimension: int) -> _Factor:
        """The factor without a dimension along which its elements are equal."""

        def left(dims: Sequence[int]) -> tuple[int, ...]:
            return tuple(d - (d > dimension) for d in dims if d != dimension)

        value = Without().of(self.value.ir, [dimension])
        return _Factor(value, left(self.batch), left(self.terms), left(self.free))


@dataclass(frozen=True)
class _Masked:
    """A factor of which a mask leaves some elements.

    Attributes:
        factor: as it is without the mask.
    """

    factor: _Factor
    mask: SSAValue

    @staticmethod
    def of(factor: _Factor) -> _Masked | None:
        chosen = defining_op(factor.value.ir, "stablehlo.select")
        if chosen is None or Value(chosen.operands[0]).rank != factor.value.rank or not _is_zero(chosen.operands[2]):
            return None
        return _Masked(replace(factor, value=Value(chosen.operands[1])), chosen.operands[0])

    def is_of_groups(self, group: int, inner: Iterable[int]) -> bool:
        """Whether the mask says which rows belong to a group.

        Args:
            group: the dimension of groups, along which the factor is the same and the mask is not.
            inner: the dimensions of a row's elements, of which all are in the group or none.
        """
        return (
            Without().has(self.factor.value.ir, [group])
            and Without().has(self.mask, inner)
            and (self.factor.value.dims[group] == 1 or not Without().has(self.mask, [group]))
        )

    def members(self, group: int, rows: Sequence[int], batch: Sequence[int]) -> Value:
        """Which rows belong to which group: ``[*batch, groups, rows]``."""
        kept = sorted((*batch, group, *rows))
        mask = Without().of(self.mask, (d for d in range(self.factor.value.rank) if d not in kept))
        dims = self.factor.sizes((*batch, group))
        mask = reordered(mask, [kept.index(d) for d in (*batch, group, *rows)])
        return ops.reshape(mask, [*dims, math.prod(self.factor.sizes(rows))])


@pattern("stablehlo.dot_general")
def masked_product(op: ir.Operation) -> Replacement:
    """A product of rows that a mask leaves with all groups' matrices, or over them -> that of each group's own rows."""
    if not is_static(op) or multiplies_nothing(op) or "algorithm" in op.attributes:
        return NoMatch("sizes or an algorithm that the kernels do not have")
    sums = {_SUMS.get(Value(one).element_type.name, "") for one in (*op.operands, op.results[0])}
    if len(sums) > 1 or not all(sums):
        return NoMatch("no floats, or sums of another type than the factors' own")
    numbers = stablehlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
    factors = [
        _Factor.of(op.operands[0], numbers.lhs_batching_dimensions, numbers.lhs_contracting_dimensions),
        _Factor.of(op.operands[1], numbers.rhs_batching_dimensions, numbers.rhs_contracting_dimensions),
    ]
    result = Value(op.results[0])
    kind = _stored_as(result)
    for side in (0, 1):
        own = _Masked.of(factors[side])
        if own is None:
            continue
        made = _by_matrices(own, factors[1 - side], kind, side)
        if made is None:
            made = _over_rows(own, factors[1 - side], kind, side)
        if made is not None:
            return ops.convert_element_type(ops.reshape(made, result.dims), result.element_type)
    return NoMatch("no mask that says which rows belong to which group")


def _stored_as(result: Value) -> str:
    """The type that results have in memory: a narrower one if they are converted to it wherever they are read."""
    readers = [use.owner.operation for use in result.ir.uses]
    kinds = {Value(one.results[0]).element_type.name for one in readers if one.name == _CONVERT}
    if len(kinds) == 1 and all(one.name == _CONVERT for one in readers):
        (kind,) = kinds
        if _SUMS.get(kind) == result.element_type.name:
            return kind
    return result.element_type.name


def _by_matrices(own: _Masked, other: _Factor, kind: str, side: int) -> Value | None:
    """Rows by the matrices of the groups that they belong to; None for another product.

    Args:
        kind: of the result.
        side: which operand is masked.
    """
    rows, matrices = own.factor, other
    columns = math.prod(matrices.sizes(matrices.free))
    filled = -(-columns // _LANES) * _LANES
    places = [n for n, group in enumerate(rows.terms) if own.is_of_groups(group, (d for d in rows.terms if d != group))]
    if len(rows.terms) == 1 or not rows.free or not places:
        return None
    place, group = places[0], rows.terms[places[0]]
    if columns % _LANES and filled * _LEAST_GAIN > columns * rows.value.dims[group]:
        return None
    # Terms in the order of the matrices, since what is summed may come in any.
    order = sorted((n for n in range(len(rows.terms)) if n != place), key=lambda n: matrices.terms[n])
    given = replace(rows, terms=tuple(rows.terms[n] for n in (place, *order))).without(group)
    members = own.members(group, rows.free, rows.batch)
    stored, is_transposed = _stored(matrices, matrices.terms[place], [matrices.terms[n] for n in order])
    if columns % _LANES:
        edges = [(0, 0)] * stored.rank
        edges[-2 if is_transposed else -1] = 0, filled - columns
        stored = ops.pad(stored, 0, edges)
    left = given.arranged(given.free, given.terms, batch=given.batch)
    dims = [*members.dims[:-2], members.dims[-1]]
    shape = _shape(kind, [*dims, filled])
    made = own_call(GROUPED_PRODUCT, [left, stored, members], [shape], transposed=is_transposed)[0]
    if columns % _LANES:
        made = ops.slice(made, [0] * made.rank, [*dims, columns])
    if side == 0:
        return made
    return ops.transpose(made, [*range(made.rank - 2), made.rank - 1, made.rank - 2])


def _over_rows(own: _Masked, other: _Factor, kind: str, side: int) -> Value | None:
    """Sums of products over each group's rows, which are the terms; None for another product. Arguments as above."""
    factor = own.factor
    for group in (*factor.batch, *factor.free):
        inner = [d for d in factor.free if d != group]
        if not inner or not other.free or not own.is_of_groups(group, inner):
            continue
        if group in factor.free:
            return _contraction(own, group, other, kind, side)
        theirs = other.batch[factor.batch.index(group)]
        also = _Masked.of(other)
        if also is not None and also.is_of_groups(theirs, other.free):
            return _contraction(own, group, other, kind, side, also=also)
        if Without().has(other.value.ir, [theirs]):
            return _contraction(own, group, other, kind, side)
    return None


def _contraction(own: _Masked, group: int, other: _Factor, kind: str, side: int, also: _Masked | None = None) -> Value:
    """Sums over rows, where ``also`` is the mask of the other factor."""
    factor, batch = own.factor, [d for d in own.factor.batch if d != group]
    members, given = own.members(group, factor.terms, batch), [factor.without(group), other]
    # Where the result has groups.
    place = len(batch) + (side and len(other.free)) + [*factor.free, group].index(group)
    if group in factor.batch:
        place = factor.batch.index(group)
        theirs = other.batch[place]
        if also is not None:
            other, rest = also.factor, [d for d in other.batch if d != theirs]
            members = ops.and_(members, also.members(theirs, other.terms, rest))
        given[1] = other.without(theirs)
    lhs, rhs = given if side == 0 else reversed(given)
    operands = [one.arranged(one.terms, one.free, batch=one.batch) for one in (lhs, rhs)]
    dims = members.dims[:-1]
    made = own_call(
        GROUPED_CONTRACTION, [*operands, members], [_shape(kind, (*dims, *(one.dims[-1] for one in operands)))]
    )[0]
    made = ops.reshape(made, [*dims, *lhs.sizes(lhs.free), *rhs.sizes(rhs.free)])
    order = [d for d in range(made.rank) if d != len(batch)]
    return ops.transpose(made, [*order[:place], len(batch), *order[place:]])


def _shape(kind: str, dims: Iterable[int]) -> str:
    return f"{kind}[{','.join(map(str, dims))}]"


def _is_zero(value: SSAValue) -> bool:
    """Whether all elements are a constant 0."""
    op = defining_op(value)
    while op is not None and op.name in ("stablehlo.broadcast_in_dim", "stablehlo.convert"):
        op = defining_op(op.operands[0])
    if op is None or op.name != "stablehlo.constant" or not is_splat(op):
        return False
    return not constant_of(op).any()


def _stored(matrices: _Factor, group: int, terms: Sequence[int]) -> tuple[Value, bool]:
    """The matrices ``[*batch, groups, terms, columns]``, or as they lie in memory, with terms last there."""
    batch, columns = matrices.batch, matrices.free

    def lie(order: Iterable[int]) -> bool:
        kept = [d for d in order if matrices.value.dims[d] != 1]
        return kept == sorted(kept)

    if (
        not lie((*batch, group, *terms, *columns))
        and lie((*batch, group, *columns, *terms))
        and not is_made_known(matrices.value)
    ):
        return matrices.arranged([group], columns, terms, batch=batch), True
    return matrices.arranged([group], terms, columns, batch=batch), False


@register
@dataclass(frozen=True)
class LegalizeGroupedProducts(PatternPass):
    """Rows are multiplied for the groups that they belong to alone."""

    name: ClassVar[str] = "legalize-grouped-products"
    requires: ClassVar[Facts] = NORMALIZED
    patterns: ClassVar[tuple[Pattern, ...]] = masked_product
