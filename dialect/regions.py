"""Copying the computations of operations: to where their arguments are known, or from scalars to whole arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hloforge.dialect import traits
from hloforge.dialect.mlir import AnyOp, SSAValue, ir
from hloforge.dialect.operations import blocks, operations
from hloforge.dialect.values import Value


def inline_region(region: Any, arguments: Sequence[Value]) -> list[Value]:
    """Copy the one block of a region to the insertion point, with ``arguments`` for its block arguments.

    Returns:
        What the block's terminator returns, in terms of the copies. The region itself stays as it was.
    """
    block = region.blocks[0]
    copies = dict(zip(block.arguments, (argument.ir for argument in arguments), strict=True))
    *body, terminator = [op.operation for op in block.operations]
    for op in body:
        copies.update(zip(op.results, clone_with(op, copies).results, strict=True))
    return [Value(copies.get(operand, operand)) for operand in terminator.operands]


def clone_with(op: AnyOp, copies: dict[Any, Any]) -> Any:
    """A copy of an operation at the insertion point that reads ``copies`` of values, in nested regions as well."""
    copy = op.clone()
    _remap(copy, copies)
    return copy


def _remap(op: AnyOp, copies: dict[Any, Any]) -> None:
    """Replace operands by their copies, in nested regions as well."""
    for number, operand in enumerate(op.operands):
        if operand in copies:
            op.operands[number] = copies[operand]
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                _remap(inner.operation, copies)


def read_values(op: AnyOp) -> list[Any]:
    """The values from around it that an operation reads, inside its regions as well."""
    inside: set[SSAValue] = {
        argument for inner in (*operations(op), op) for block in blocks(inner) for argument in block.arguments
    }
    inside |= {result for inner in operations(op) for result in inner.results}
    read = [operand for inner in (op, *operations(op)) for operand in inner.operands if operand not in inside]
    return list(dict.fromkeys(read))


# Operations that mean the same element by element as they do on scalars: constants of one number are spread.
ELEMENTWISE = traits.ELEMENTWISE | {"stablehlo.constant"}


def is_elementwise(region: ir.Region) -> bool:
    """Whether a region over scalars can be applied to whole arrays by ``vectorize_region``."""
    *body, _ = region.blocks[0].operations
    return all(op.operation.name in ELEMENTWISE and _same_width(op.operation) for op in body)


def _same_width(op: ir.Operation) -> bool:
    return all(isinstance(v.type, ir.RankedTensorType) and v.type.rank == 0 for v in (*op.operands, *op.results))


def vectorize_region(region: Any, arguments: Sequence[Value], wanted: Sequence[Any] | None = None) -> list[Value]:
    """Apply a computation over scalars to arrays of equal shape, element by element, at the insertion point.

    Args:
        region: one block for which ``is_elementwise`` holds.
        arguments: an array for each of its scalar arguments; all of the same static shape.
        wanted: values in the block; by default those that it returns.

    Returns:
        One array of that shape for each value that is wanted.
    """
    block = region.blocks[0]
    sizes = arguments[0].type.shape
    arrays = dict(zip(block.arguments, (argument.ir for argument in arguments), strict=True))
    *body, terminator = [op.operation for op in block.operations]

    def spread(value: Any) -> Any:
        if value not in arrays:
            type_ = ir.RankedTensorType.get(sizes, value.type.element_type)
            dims: dict[str, ir.Attribute] = {"broadcast_dimensions": ir.DenseI64ArrayAttr.get([])}
            op = ir.Operation.create("stablehlo.broadcast_in_dim", results=[type_], operands=[value], attributes=dims)
            arrays[value] = op.result
        return arrays[value]

    for op in body:
        if op.name == "stablehlo.constant":
            arrays.update({op.result: spread(op.clone().result)})
            continue
        copy = ir.Operation.create(
            op.name,
            results=[ir.RankedTensorType.get(sizes, result.type.element_type) for result in op.results],
            operands=[spread(operand) for operand in op.operands],
            attributes={name: op.attributes[name] for name in op.attributes},
        )
        arrays.update(zip(op.results, copy.results, strict=True))
    return [Value(spread(value)) for value in (terminator.operands if wanted is None else wanted)]
