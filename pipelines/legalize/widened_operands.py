"""``legalize-widened-operands``: keep what is computed in a wider type than it was read in out of products and windows.

Before::

    %w = stablehlo.convert %x : (tensor<5x7xbf16>) -> tensor<5x7xf32>
    %a = stablehlo.multiply %w, %w : tensor<5x7xf32>
    %r = stablehlo.dot_general %a, %b, ... : (tensor<5x7xf32>, tensor<7x9xf32>) -> tensor<5x9xf32>

After::

    %a = stablehlo.multiply %w, %w : tensor<5x7xf32>
    %h = stablehlo.optimization_barrier %a : tensor<5x7xf32>
    %r = stablehlo.dot_general %h, %b, ...

IREE 3.13 computes elementwise operations whose result has more bits than what they read in the dispatch of what reads
them, in place of writing the wider array (``isBitExtendOp``). On Vulkan, invocations of a product or of a window then
read what others have not computed yet, unless its sizes fit the workgroup's: all products of bf16 and f16, of flags, of
small integers and of floats of 8 bits that were not arguments came out wrong. A conversion alone is right as the factor
of a product, which reads the narrow array itself. Source: XLA "OptimizationBarrier".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from hloforge.dialect.element_types import Kind
from hloforge.dialect.emission import emit
from hloforge.dialect.mlir import in_context, ir
from hloforge.dialect.operations import operations
from hloforge.dialect.regions import ELEMENTWISE
from hloforge.dialect.values import Value
from hloforge.pipelines.passes import Pass, register

_PRODUCT = "stablehlo.dot_general"
_READERS = (_PRODUCT, "stablehlo.convolution", "stablehlo.reduce_window")
_REARRANGING = frozenset(f"stablehlo.{name}" for name in ("broadcast_in_dim", "reshape", "slice", "transpose"))


@register
@dataclass(frozen=True)
class LegalizeWidenedOperands(Pass):
    """Put barriers between products, convolutions and windows, and operands that are computed from narrower types."""

    name: ClassVar[str] = "legalize-widened-operands"

    def run(self, module: Any) -> None:
        with in_context(module):
            for op in operations(module, _READERS):
                for number, operand in enumerate(op.operands):
                    _hold(op, number, operand)


def _hold(reader: Any, number: int, operand: Any) -> None:
    """Put a barrier behind an operand, or between the factor of a product and its conversion."""
    computing = _computing(operand)
    if not any(map(_widens, computing)):
        return
    last = operand.owner
    if reader.name != _PRODUCT or last.name != "stablehlo.convert" or not _widens(last):
        _hold_back(reader, number)
    elif len(computing) > 1:
        _hold_back(last, 0)


def _computing(value: Any) -> list[Any]:
    """The elementwise operations of which IREE makes one that computes a value."""
    waiting, found, seen = [value], [], set()
    while waiting:
        owner = waiting.pop().owner
        if isinstance(owner, ir.Block) or owner in seen:
            continue
        seen.add(owner)
        if owner.name in ELEMENTWISE:
            found.append(owner)
        if owner.name in ELEMENTWISE | _REARRANGING:
            waiting += owner.operands
    return found


def _widens(op: Any) -> bool:
    """Whether a result has more bits than an operand."""
    bits = _bits(op.results[0])
    return any(_bits(operand) < bits for operand in op.operands)


def _bits(value: Any) -> int:
    element = Value(value).element_type
    return 1 if element.kind is Kind.PRED else element.bits


def _hold_back(reader: Any, number: int) -> None:
    operand = reader.operands[number]
    with ir.InsertionPoint(reader), reader.location:
        reader.operands[number] = emit("stablehlo.optimization_barrier", [Value(operand)], operand.type).ir
