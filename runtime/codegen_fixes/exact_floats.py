"""IEEE 754 arithmetic in Vulkan's programs, by a change between two runs of IREE's compiler.

Without the decoration NoContraction, drivers may rewrite arithmetic as if floats were real numbers: Mesa makes ``a`` of
``(a + b) - b``, by which the decompositions, and careful programs, find rounding errors. IREE 3.13 decorates nothing.
"""

from __future__ import annotations

import re

__all__ = ["decorated"]

_ARITHMETIC = re.compile(rb"^( *%\S+ = spirv\.F(?:Add|Sub|Mul|Div|Rem|Mod) [^:{\n]*) : ", re.MULTILINE)


def decorated(code: bytes) -> bytes:
    """The text of IREE's module with NoContraction at each operation of arithmetic on floats."""
    return _ARITHMETIC.sub(rb"\1 {no_contraction} : ", code)
