"""Where the elements of a value come from, across what IREE does not compute in a dispatch of its own."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from hloforge.dialect.mlir import SSAValue, ir
from hloforge.dialect.operations import integers

# Operations that IREE puts into the dispatch of what reads them, without any arithmetic.
_REARRANGING: Final = frozenset(
    f"stablehlo.{name}" for name in ("bitcast_convert", "broadcast_in_dim", "reshape", "reverse", "transpose")
)
# Operations that IREE makes paddings of.
PADDING: Final = ("stablehlo.pad", "stablehlo.reduce_window", "stablehlo.convolution")
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
    return cuts(op) or steps_between(op)


def steps_between(op: ir.Operation) -> bool:
    """Whether a padding, also of windows or of an image, writes with steps."""
    dilations = (*integers(op, "base_dilations"), *integers(op, "lhs_dilation"))
    return max(integers(op, "interior_padding"), default=0) > 0 or max(dilations, default=1) > 1


def padded_operands(op: ir.Operation) -> list[int]:
    """The numbers of the operands that IREE pads: of a padding, and of windows with edges or dilated bases."""
    if op.name == "stablehlo.pad":
        return [0]
    edges = np.array(op.attributes["padding"]) if "padding" in op.attributes else np.zeros(0)
    if not edges.any() and not steps_between(op):
        return []
    return list(range(len(op.results)))


def padded_in_steps(op: ir.Operation) -> list[int]:
    """Those of them that were scattered into, or padded before, where one of the two paddings slices or has steps."""
    return [number for number in padded_operands(op) if _is_in_steps(op, origin(op.operands[number]))]


def _is_in_steps(op: ir.Operation, source: ir.Operation | None) -> bool:
    if source is None or source.name not in ("stablehlo.scatter", "stablehlo.pad"):
        return False
    return source.name == "stablehlo.scatter" or is_sliced_by_padding(source) or is_sliced_by_padding(op)
