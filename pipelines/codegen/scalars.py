"""Computations of numbers: the regions of reductions, scatters and sorts on elements, or on vectors of them."""

from __future__ import annotations

from collections.abc import Sequence

from hloforge.pipelines.codegen.elements.memory import Element
from hloforge.pipelines.codegen.emit import Emitter, apply, parts
from hloforge.pipelines.codegen.graph import Array, Block, Op
from hloforge.pipelines.codegen.refusal import RefusedError

# A sum or product of floats may be made in any order, as LLVM's vectors need it.
_REASSOCIATED = {"add": "fadd reassoc contract", "multiply": "fmul reassoc contract"}
_NAMES = ("reshape", "broadcast_in_dim")


class Computation:
    """A block of numbers with elements for its arguments.

    Args:
        arguments: elements, or vectors of them, by the block's arguments; others are not asked for.
    """

    def __init__(self, emitter: Emitter, block: Block, arguments: dict[Array, Element]) -> None:
        self._emitter, self._block = emitter, block
        self._known = dict(arguments)
        self._is_single = len(block.ops) == 1 and block.results == block.ops[0].results

    def element(self, array: Array) -> Element:
        """A number of the block, or one from outside. Raises RefusedError for loops and arrays."""
        if array not in self._known:
            self._known[array] = self._made(array)
        return self._known[array]

    def _made(self, array: Array) -> Element:
        op = array.op
        if array.block is not self._block or op is None:
            outside: Element = self._emitter.element(array, ())
            return outside
        if op.inner or array.shape:
            raise RefusedError(f"{op.mlir.name} in a computation of numbers")
        if op.name == "constant":
            return self._emitter.splat(op)
        given = [self.element(operand) for operand in op.operands]
        if op.name in _NAMES:
            return given[0]
        if self._is_single and op.name in _REASSOCIATED and _is_partwise(op):
            flags = _REASSOCIATED[op.name]
            function = self._emitter.function
            pairs = zip(parts(given[0]), parts(given[1]), strict=True)
            made = [function.binary(flags, left, right) for left, right in pairs]
            return made[0] if len(made) == 1 else (made[0], made[1])
        return apply(op, given)


def combine(emitter: Emitter, block: Block, *operands: Sequence[Element]) -> list[Element]:
    """The results of a computation of numbers, such as a reduction's. Raises RefusedError as ``Computation``."""
    values = [element for part in operands for element in part]
    computation = Computation(emitter, block, dict(zip(block.arguments, values, strict=True)))
    return [computation.element(result) for result in block.results]


def _is_partwise(op: Op) -> bool:
    element = op.result.element
    return element in ("f32", "f64") or (op.name == "add" and element.startswith("complex"))
