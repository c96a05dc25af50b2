"""Reductions that keep one of two pairs, such as extremes with their places."""

from __future__ import annotations

from hloforge.dialect.mlir import ir
from hloforge.pipelines.codegen.graph import Array, Op

_CHOICES = frozenset({"compare", "select", "and", "or", "not", "maximum", "minimum"})


def is_choice(op: Op) -> bool:
    """Whether a reduction keeps one of two pairs, whichever comes first, as extremes with their places do."""
    return len(op.results) == 2 and all(inner.name in _CHOICES for inner in op.inner[0].ops)


def place_of(op: Op) -> int | None:
    """Which number of a choice's pairs is their place, in the order in which they are read; None if none is.

    Of pairs that are equal, or of NaN, the first one stays. So two that were found apart from each other are taken in
    the order of their places, not in that of the loops that found them.
    """
    dims = op.integers("dimensions")
    if len(op.results) != 2 or len(dims) != 1:
        return None
    return next((number for number, array in enumerate(op.operands[:2]) if counts_along(array, dims[0])), None)


def counts_along(array: Array, dim: int) -> bool:
    """Whether the elements of an array are the places along a dimension."""
    op = array.op
    if op is None:
        return False
    if op.name == "iota":
        return ir.IntegerAttr(op.attribute("iota_dimension")).value == dim
    if op.name == "broadcast_in_dim":
        places = op.integers("broadcast_dimensions")
        return dim in places and counts_along(op.operands[0], places.index(dim))
    return False
