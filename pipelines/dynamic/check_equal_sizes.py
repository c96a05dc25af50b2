"""``check-equal-sizes``: arguments that must have equal sizes, and whose types do not say so.

Before::

    func.func @main(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> { %r = stablehlo.add %x, %y ... }

After::

    %same = arith.cmpi eq, (tensor.dim %x, 0), (tensor.dim %y, 0)
    cf.assert %same, "shape assertion: dimension 0 of x and dimension 0 of y differ"

Without, a call with arrays of different sizes would read beyond the smaller one. A size that a host function chose is
checked where its array meets another one. Source: StableHLO spec "add", (C1).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from hloforge.dialect.abi import SHAPE_ASSERTION, crosses
from hloforge.dialect.host_calls import HostCall
from hloforge.dialect.marks import HOST_CALL
from hloforge.dialect.mlir import in_context, ir, stablehlo
from hloforge.dialect.operations import operations, string_attribute, types_of
from hloforge.dialect.program import Signature, entry_function
from hloforge.pipelines.dynamic.size_symbols import POINTWISE, Known, size_of
from hloforge.pipelines.framework import generics as at
from hloforge.pipelines.framework.builders import create
from hloforge.pipelines.framework.passes import Pass, register

# Of these each operand has sizes of its own, though results have those of operands.
_INDEPENDENT = frozenset({"stablehlo.dynamic_update_slice", "stablehlo.optimization_barrier"})
_OF_ONE_SIZE = POINTWISE - _INDEPENDENT
# A dimension of an argument: the argument's number, the dimension.
Place = tuple[int, int]


@register
@dataclass(frozen=True)
class CheckEqualSizes(Pass):
    """Check in each call that the operands of elementwise operations and dots have equal dynamic sizes."""

    name: ClassVar[str] = "check-equal-sizes"

    def run(self, module: ir.Module) -> None:
        if not any(map(_is_dynamic, types_of(module))):
            return
        names = [leaf.name for leaf in Signature.of(module).flat_parameters if crosses(leaf.shape)]
        with in_context(module):
            entry = entry_function(module).operation
            block = entry.regions[0].blocks[0]
            known: Known = {}
            found = {pair for op in operations(entry) for pair in _meeting(op, block, known)}
            with ir.InsertionPoint.at_block_begin(block), entry.location:
                for left, right in sorted(found):
                    _assert_equal(block, left, right, names)
            # Assertions change no size.
            for op in operations(entry):
                _check_returned(op, known)


def _is_dynamic(type_: ir.Type) -> bool:
    return isinstance(type_, ir.RankedTensorType) and not type_.has_static_shape


def _check_returned(op: ir.Operation, known: Known) -> None:
    """Assert what an operation takes for equal where a host function chose one of the sizes."""
    for (left, d), (right, e) in _equal(op):
        if not (left.type.is_dynamic_dim(d) or right.type.is_dynamic_dim(e)):
            continue
        symbols = size_of(left, d, known), size_of(right, e, known)
        calls = [call for symbol in symbols if (call := _host_call(symbol)) is not None]
        if calls and symbols[0] != symbols[1]:
            target = HostCall.from_json(string_attribute(calls[0], HOST_CALL)).target
            with ir.InsertionPoint(op), op.location:
                sizes = [at.size_at(at.signless(value), number) for value, number in ((left, d), (right, e))]
                message = f"{SHAPE_ASSERTION}host function @{target} returned an array of a size that does not fit"
                create("cf.assert", [at.compare("eq", *sizes)], [], msg=ir.StringAttr.get(message))


def _host_call(symbol: Any) -> Any:
    """The call of a host function that returned an array of this size; None if it comes from elsewhere."""
    owner = symbol[1].owner if isinstance(symbol, tuple) and symbol[0] == "size" else None
    if owner is None or isinstance(owner, ir.Block) or HOST_CALL not in owner.operation.attributes:
        return None
    return owner.operation


def _meeting(op: ir.Operation, block: ir.Block, known: Known) -> Iterator[tuple[Place, Place]]:
    """The dimensions of different arguments that an operation takes for equal."""
    for (left, d), (right, e) in _equal(op):
        if not (left.type.is_dynamic_dim(d) and right.type.is_dynamic_dim(e)):
            continue
        one, other = (_place(size_of(value, number, known), block) for value, number in ((left, d), (right, e)))
        if one is not None and other is not None and one != other:
            yield min(one, other), max(one, other)


def _equal(op: Any) -> Iterator[tuple[tuple[Any, int], tuple[Any, int]]]:
    if op.name in _OF_ONE_SIZE:
        rank = op.results[0].type.rank
        first, *others = [operand for operand in op.operands if operand.type.rank == rank] or [None]
        yield from (((first, d), (other, d)) for other in others for d in range(rank))
    elif op.name == "stablehlo.dot_general":
        numbers = stablehlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
        left = [*numbers.lhs_batching_dimensions, *numbers.lhs_contracting_dimensions]
        right = [*numbers.rhs_batching_dimensions, *numbers.rhs_contracting_dimensions]
        yield from (((op.operands[0], d), (op.operands[1], e)) for d, e in zip(left, right, strict=True))


def _place(symbol: Any, block: Any) -> Place | None:
    """The argument's dimension that a size is, if it is one."""
    if not isinstance(symbol, tuple) or symbol[0] != "size" or symbol[1].owner != block:
        return None
    return symbol[1].arg_number, symbol[2]


def _assert_equal(block: ir.Block, left: Place, right: Place, names: Sequence[str]) -> None:
    sizes = [at.size_at(at.signless(block.arguments[number]), d) for number, d in (left, right)]
    what = " and ".join(f"dimension {d} of {names[number]}" for number, d in (left, right))
    message = ir.StringAttr.get(f"{SHAPE_ASSERTION}{what} differ")
    create("cf.assert", [at.compare("eq", *sizes)], [], msg=message)
