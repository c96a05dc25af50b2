"""Elements known only at a call, on which a program's form depends beyond the sizes of its inputs."""

from __future__ import annotations

from typing import Any

from hloforge.dialect.dense_values import constant_of
from hloforge.dialect.errors import UnsupportedError
from hloforge.dialect.mlir import ir
from hloforge.dialect.operations import is_made_by
from hloforge.dialect.values import Value
from hloforge.importers.tensors import Array, Tensor


class Needs(Exception):  # noqa: N818 - no error: it is answered with another turn
    """The import cannot go on without the elements of some inputs.

    Attributes:
        inputs: their numbers among the program's parameters.
    """

    def __init__(self, inputs: frozenset[int]) -> None:
        super().__init__(f"the elements of inputs {sorted(inputs)} decide sizes")
        self.inputs = inputs


def known_value(tensor: Tensor) -> Array:
    """The elements of a tensor that the form of the program depends on.

    Raises:
        Needs: they are computed of inputs; with these known, they are as well.
        UnsupportedError: they are computed inside of a loop or branch.
    """
    if not isinstance(tensor, Value):
        return tensor
    if is_made_by(tensor.ir, "stablehlo.constant"):
        return constant_of(tensor.ir.owner)
    found: set[int] = set()
    seen: set[Any] = set()
    pending = [tensor.ir]
    while pending:
        value = pending.pop()
        if isinstance(value.owner, ir.Block):
            if value.owner.owner.operation.name != "func.func":
                raise UnsupportedError("sizes depend on what a loop computes, and a program's sizes are fixed")
            found.add(value.arg_number)
            continue
        op = value.owner.operation
        if op not in seen:
            seen.add(op)
            pending += op.operands
            pending += [operand for region in op.regions for operand in _outer(region)]
    if not found:
        raise UnsupportedError("sizes depend on what is computed, and it is none of the computations that are folded")
    raise Needs(frozenset(found))


def _outer(region: ir.Region) -> list[Any]:
    """The operands of operations in a region that come from outside of it."""
    found = []
    for block in region.blocks:
        inside = {result for op in block.operations for result in op.operation.results} | set(block.arguments)
        for op in block.operations:
            found += [operand for operand in op.operation.operands if operand not in inside]
            found += [operand for inner in op.operation.regions for operand in _outer(inner) if operand not in inside]
    return found
