"""Loop-invariant code motion: what a loop computes of nothing that it changes is computed once, before it.

Views stay in the loop, where they cost nothing; they go along with what is computed of them.
"""

from __future__ import annotations

from hloforge.pipelines.codegen.evaluate import MOVES
from hloforge.pipelines.codegen.graph import Array, Block, Op

# Loops that end only for some values must not run before they are asked for, nor must what may fail.
_STAYING = frozenset({"while", "custom_call", "host_call"})


def hoist(body: Block, parent: Block) -> None:
    """Move operations of a loop's block to the end of the block that the loop stands in."""
    invariant: list[Op] = []
    known: set[Array] = set()
    for op in body.ops:
        stays = op.name in _STAYING or op.has_effects
        if stays or not all(_is_outside(array, body, known) for array in (*op.operands, *op.captured)):
            continue
        invariant.append(op)
        known.update(op.results)
    needed: set[Op] = set()
    for op in reversed(invariant):
        is_work = op.name not in MOVES or op.name == "gather"
        if is_work or any(reader in needed for array in op.results for reader in array.readers):
            needed.add(op)
    for op in invariant:
        if op not in needed:
            continue
        if op.name in MOVES:
            _split(op, needed, body)
        else:
            body.ops.remove(op)
        op.block = parent
        for array in op.results:
            array.block = parent
        parent.ops.append(op)


def _is_outside(array: Array, body: Block, known: set[Array]) -> bool:
    return array in known or not array.block.inside(body)


def _split(op: Op, needed: set[Op], body: Block) -> None:
    """Leave a view of its own to those readers that stay in the loop."""
    (result,) = op.results
    staying = [reader for reader in result.readers if reader not in needed]
    if not staying and not result.is_result:
        body.ops.remove(op)
        return
    copy = Op(op.name, op.operands, op.mlir, body)
    own = Array(result.element, result.shape, copy, body, staying, result.is_result)
    copy.results = (own,)
    body.ops[body.ops.index(op)] = copy
    for operand in copy.operands:
        operand.readers.append(copy)
    result.readers = [reader for reader in result.readers if reader in needed]
    result.is_result = False
    for reader in staying:
        _replace(reader, result, own)
    body.results = tuple(own if array is result else array for array in body.results)


def _replace(reader: Op, old: Array, new: Array) -> None:
    reader.operands = tuple(new if array is old else array for array in reader.operands)
    if old not in reader.captured:
        return
    reader.captured = tuple(new if array is old else array for array in reader.captured)
    for block in reader.inner:
        _replace_inside(block, old, new)


def _replace_inside(block: Block, old: Array, new: Array) -> None:
    for op in block.ops:
        _replace(op, old, new)
    block.results = tuple(new if array is old else array for array in block.results)
