"""Regions of operations: copying a computation to where its arguments are known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

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
        copy = op.clone()
        _remap(copy, copies)
        copies.update(zip(op.results, copy.results, strict=True))
    return [Value(copies.get(operand, operand)) for operand in terminator.operands]


def _remap(op: Any, copies: dict[Any, Any]) -> None:
    """Replace operands by their copies, in nested regions as well."""
    for number, operand in enumerate(op.operands):
        if operand in copies:
            op.operands[number] = copies[operand]
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                _remap(inner.operation, copies)
