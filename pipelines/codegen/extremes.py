"""Extremes of floats as those of integers: of reductions whose results so far are in registers.

A processor of x86 takes six instructions for a maximum that NaN passes through and that tells zeros apart, and each
needs the one before. As integers in the order of the floats it is one; the others, which make an integer of a float,
depend on nothing that was found before.
"""

from __future__ import annotations

from collections.abc import Sequence

from hloforge.pipelines.codegen.elements.comparisons import float_of_order, order_of_float
from hloforge.pipelines.codegen.elements.kinds import register
from hloforge.pipelines.codegen.graph import Op
from hloforge.pipelines.codegen.lang.values import Value, bits_of, is_float
from hloforge.pipelines.codegen.row_blocks import is_extreme

# Vectors that have extremes of integers of 32 bits, and of 64: AVX2 and AVX-512. Arm has such extremes of floats.
_LEAST, _LEAST_WIDE = 32, 64
# The bits of NaN by their number.
_NAN = {32: 0x7FC0_0000, 64: 0x7FF8 << 48}


class Keys:
    """What the sums so far of reductions are in registers: keys for those extremes that gain by it.

    Args:
        vector_bytes: of the processor's registers.
    """

    def __init__(self, reductions: Sequence[Op] = (), vector_bytes: int = 0) -> None:
        least = {32: _LEAST, 64: _LEAST_WIDE}
        kinds = {op: register(op.results[0].element) for op in reductions if is_extreme(op)}
        self._extremes = {op for op, kind in kinds.items() if is_float(kind) and vector_bytes >= least[bits_of(kind)]}

    def __contains__(self, op: Op) -> bool:
        return op in self._extremes

    def joined(self, op: Op, so_far: Value, term: Value) -> Value:
        """The key of the extreme of what was found and of a float."""
        key = self.key(op, term)
        return so_far.maximum(key) if _is_greatest(op) else so_far.minimum(key)

    @staticmethod
    def key(op: Op, value: Value) -> Value:
        """An integer in the order of floats, of which NaN is the extreme one."""
        bits = order_of_float(value)
        nan = _NAN[bits_of(bits.kind)]
        # Chosen as an integer, because LLVM may take any NaN for any other. One with a sign comes before all numbers.
        return value.is_nan().where(nan if _is_greatest(op) else ~nan, bits)

    @staticmethod
    def value(key: Value) -> Value:
        """The float of a key."""
        return float_of_order(key)


def _is_greatest(op: Op) -> bool:
    return op.inner[0].ops[0].name == "maximum"
