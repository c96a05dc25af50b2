"""Where the elements of a value come from, across what IREE does not compute in a dispatch of its own."""

from __future__ import annotations

from typing import Any, Final

from hloforge.dialect.mlir import SSAValue, ir
from hloforge.dialect.operations import integers

# Operations that IREE puts into the dispatch of what reads them, without any arithmetic.
_REARRANGING: Final = frozenset(
    f"stablehlo.{name}" for name in ("bitcast_convert", "broadcast_in_dim", "reshape", "reverse", "transpose")
)
# The operand of ``complex`` that each of these is.
_PARTS: Final = {"stablehlo.real": 0, "stablehlo.imag": 1}


def origin(value: SSAValue) -> ir.Operation | None:
    """The operation whose elements a value holds, maybe in another order; None for an argument.

    A part of a complex number that was made of parts is that part: IREE folds the two.
    """
    while not isinstance(value.owner, ir.Block):
        op = value.owner.operation
        if op.name in _REARRANGING:
            value = op.operands[0]
            continue
        made = origin(op.operands[0]) if op.name in _PARTS else None
        if made is None or made.name != "stablehlo.complex":
            return op
        value = made.operands[_PARTS[op.name]]
    return None


def cuts(op: ir.Operation) -> bool:
    """Whether a padding cuts something off: it is negative somewhere."""
    return min((*integers(op, "edge_padding_low"), *integers(op, "edge_padding_high")), default=0) < 0


def is_sliced_by_padding(op: Any | None) -> bool:
    """Whether an operation is a padding that cuts something off, or that writes with steps."""
    if op is None or op.name != "stablehlo.pad":
        return False
    return cuts(op) or max(integers(op, "interior_padding"), default=0) > 0


def pads_in_steps(op: ir.Operation) -> bool:
    """Whether a padding reads what was scattered into or padded, where one of two paddings slices or has steps."""
    source = origin(op.operands[0])
    if source is None or source.name not in ("stablehlo.scatter", "stablehlo.pad"):
        return False
    return source.name == "stablehlo.scatter" or is_sliced_by_padding(source) or is_sliced_by_padding(op)
