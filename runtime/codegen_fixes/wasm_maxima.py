"""Replace C's ``fmax`` and ``fmin`` in WebAssembly's programs, between two runs of IREE's compiler.

IREE compares numbers by LLVM's ``maxnum``, which gives the other number for NaN, where no NaN counts, as in softmax.
Most processors have an instruction for it; LLVM makes a call for WebAssembly, and IREE links no library.
Source: LLVM Language Reference, "llvm.maxnum", "llvm.maximum".
"""

from __future__ import annotations

import re

__all__ = ["with_own_maxima"]

_CALL = re.compile(
    rb"^( *)%(\w+) = llvm\.intr\.(max|min)num\((%[\w$.-]+), (%[\w$.-]+)\)(?: \{[^}]*\})? : \(([^,]+), [^)]+\) -> .*$",
    re.MULTILINE,
)
_ELEMENT = re.compile(rb"b?f\d+")


def with_own_maxima(code: bytes) -> bytes:
    """The text of IREE's module in LLVM's dialect, with selections instead of ``maxnum`` and ``minnum``."""
    return _CALL.sub(lambda found: b"\n".join(found[1] + line for line in _selections(found)), code)


def _selections(call: re.Match[bytes]) -> tuple[bytes, ...]:
    """One number where the other is NaN, otherwise the one that ``maximum`` gives."""
    _, name, which, a, b, type_ = call.groups()
    flags = _ELEMENT.sub(b"i1", type_)
    return (
        b'%%first_%b = llvm.fcmp "uno" %b, %b : %b' % (name, a, a, type_),
        b'%%second_%b = llvm.fcmp "uno" %b, %b : %b' % (name, b, b, type_),
        b"%%both_%b = llvm.intr.%bimum(%b, %b) : (%b, %b) -> %b" % (name, which, a, b, type_, type_, type_),
        b"%%one_%b = llvm.select %%second_%b, %b, %%both_%b : %b, %b" % (name, name, a, name, flags, type_),
        b"%%%b = llvm.select %%first_%b, %b, %%one_%b : %b, %b" % (name, name, b, name, flags, type_),
    )
