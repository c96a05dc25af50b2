"""Functions of floats that LLVM calls where a processor has no instruction: x86-64 without SSE4.1, F16C or FMA.

Kernels flush subnormal numbers to zero, as XLA's client does, so that these need not know of subnormal operands.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

# By LLVM's names: integers of as many bits, all but the sign, the sign, and from where on all numbers are integers.
_FORMS = {
    "float": ("i32", 0x7FFFFFFF, -0x80000000, 2.0**23),
    "double": ("i64", 0x7FFFFFFFFFFFFFFF, -0x8000000000000000, 2.0**52),
}
_SUFFIXES = {"float": "f", "double": ""}


def _rounded(kind: str, what: str, name: str) -> str:
    """An integer near a number; the sign stays, of zero as well."""
    bits, size, sign, whole = _FORMS[kind]
    steps = {
        "roundeven": f"  %found = select i1 %is.part, {kind} %near, {kind} %x",
        "floor": _moved(kind, "ogt", "fsub", "%near", "%x"),
        "ceil": _moved(kind, "olt", "fadd", "%near", "%x"),
        "trunc": _moved(kind, "ogt", "fsub", "%near.size", "%size"),
        "round": f"""{_moved(kind, "ogt", "fsub", "%near.size", "%size").replace("%found", "%down")}
  %part = fsub {kind} %size, %down
  %is.half = fcmp oge {kind} %part, 0.5
  %more = fadd {kind} %down, 1.0
  %up = select i1 %is.half, {kind} %more, {kind} %down
  %found = select i1 %is.part, {kind} %up, {kind} %x""",
    }
    return f"""
define {kind} @{name}({kind} %x) #0 {{
  %bits = bitcast {kind} %x to {bits}
  %size.bits = and {bits} %bits, {size}
  %size = bitcast {bits} %size.bits to {kind}
  %sign = and {bits} %bits, {sign}
  %sum = fadd {kind} %size, {whole:.1f}
  %near.size = fsub {kind} %sum, {whole:.1f}
  %near.bits = bitcast {kind} %near.size to {bits}
  %near.signed = or {bits} %near.bits, %sign
  %near = bitcast {bits} %near.signed to {kind}
  %is.part = fcmp olt {kind} %size, {whole:.1f}
{steps[what]}
  %found.bits = bitcast {kind} %found to {bits}
  %signed = or {bits} %found.bits, %sign
  %result = bitcast {bits} %signed to {kind}
  ret {kind} %result
}}"""


def _moved(kind: str, relation: str, step: str, near: str, x: str) -> str:
    """The nearest integer, or its neighbour if it lies on the wrong side."""
    return f"""  %is.beyond = fcmp {relation} {kind} {near}, {x}
  %next = {step} {kind} {near}, 1.0
  %beside = select i1 %is.beyond, {kind} %next, {kind} {near}
  %found = select i1 %is.part, {kind} %beside, {kind} %x"""


def _widened(name: str) -> str:
    """A half as a float."""
    return f"""
define float @{name}(half %x) #0 {{
  %short = bitcast half %x to i16
  %bits = zext i16 %short to i32
  %sign.low = and i32 %bits, 32768
  %sign = shl i32 %sign.low, 16
  %size = and i32 %bits, 32767
  %moved = shl i32 %size, 13
  %normal = add i32 %moved, 939524096
  %is.special = icmp uge i32 %size, 31744
  %special = or i32 %moved, 2139095040
  %is.nan = icmp ugt i32 %size, 31744
  %quiet = select i1 %is.nan, i32 4194304, i32 0
  %infinite = or i32 %special, %quiet
  %count = uitofp i32 %size to float
  %tiny = fmul float %count, 0x3E70000000000000
  %tiny.bits = bitcast float %tiny to i32
  %is.tiny = icmp ult i32 %size, 1024
  %finite = select i1 %is.tiny, i32 %tiny.bits, i32 %normal
  %chosen = select i1 %is.special, i32 %infinite, i32 %finite
  %signed = or i32 %chosen, %sign
  %result = bitcast i32 %signed to float
  ret float %result
}}"""


# The half that is nearest to a float of these bits; of two the one whose last bit is even.
_HALF = """  %sign.high = lshr i32 %bits, 16
  %sign = and i32 %sign.high, 32768
  %size = and i32 %bits, 2147483647
  %moved = sub i32 %size, 939524096
  %last.high = lshr i32 %moved, 13
  %last = and i32 %last.high, 1
  %raised = add i32 %moved, 4095
  %even = add i32 %raised, %last
  %normal = lshr i32 %even, 13
  %size.float = bitcast i32 %size to float
  %sum = fadd float %size.float, 0.5
  %sum.bits = bitcast float %sum to i32
  %tiny = sub i32 %sum.bits, 1056964608
  %is.tiny = icmp ult i32 %size, 947912704
  %finite = select i1 %is.tiny, i32 %tiny, i32 %normal
  %is.large = icmp uge i32 %size, 1199570944
  %bounded = select i1 %is.large, i32 31744, i32 %finite
  %payload.low = lshr i32 %size, 13
  %payload = and i32 %payload.low, 1023
  %nan = or i32 %payload, 32256
  %is.nan = icmp ugt i32 %size, 2139095040
  %chosen = select i1 %is.nan, i32 %nan, i32 %bounded
  %signed = or i32 %chosen, %sign
  %short = trunc i32 %signed to i16
  %result = bitcast i16 %short to half
  ret half %result
}"""
# Of a double and what is left of it after it was rounded to %x, the bits of a float that is odd where it is inexact, so
# that it is rounded again as the double itself.
TO_ODD = """  %back = fpext float %x to double
  %inexact = fcmp one double %back, %wide
  %wide.bits = bitcast double %wide to i64
  %wide.size = and i64 %wide.bits, 9223372036854775807
  %back.bits = bitcast double %back to i64
  %back.size = and i64 %back.bits, 9223372036854775807
  %too.large = icmp ugt i64 %back.size, %wide.size
  %over = and i1 %too.large, %inexact
  %less = zext i1 %over to i32
  %odd = zext i1 %inexact to i32
  %near = bitcast float %x to i32
  %toward.zero = sub i32 %near, %less
  %bits = or i32 %toward.zero, %odd
"""


def _half_of_float(name: str) -> str:
    return f"\ndefine half @{name}(float %x) #0 {{\n  %bits = bitcast float %x to i32\n{_HALF}"


def _half_of_double(name: str) -> str:
    return f"\ndefine half @{name}(double %wide) #0 {{\n  %x = fptrunc double %wide to float\n{TO_ODD}{_HALF}"


def _fused(name: str) -> str:
    """A product of floats and a number more, rounded once: in f64 the product is exact, and the sum is made odd."""
    return f"""
define float @{name}(float %a, float %b, float %c) #0 {{
  %a.wide = fpext float %a to double
  %b.wide = fpext float %b to double
  %c.wide = fpext float %c to double
  %product = fmul double %a.wide, %b.wide
  %sum = fadd double %product, %c.wide
  %of.c = fsub double %sum, %product
  %of.product = fsub double %sum, %of.c
  %rest.product = fsub double %product, %of.product
  %rest.c = fsub double %c.wide, %of.c
  %rest = fadd double %rest.product, %rest.c
  %bits = bitcast double %sum to i64
  %last = and i64 %bits, 1
  %is.even = icmp eq i64 %last, 0
  %inexact = fcmp one double %rest, 0.0
  %moves = and i1 %is.even, %inexact
  %rest.bits = bitcast double %rest to i64
  %sides = xor i64 %rest.bits, %bits
  %is.inward = icmp slt i64 %sides, 0
  %step = select i1 %is.inward, i64 -1, i64 1
  %beside = add i64 %bits, %step
  %chosen = select i1 %moves, i64 %beside, i64 %bits
  %odd = bitcast i64 %chosen to double
  %result = fptrunc double %odd to float
  ret float %result
}}"""


def _all() -> dict[str, Callable[[str], str]]:
    made: dict[str, Callable[[str], str]] = {
        "__extendhfsf2": _widened,
        "__truncsfhf2": _half_of_float,
        "__truncdfhf2": _half_of_double,
        "fmaf": _fused,
    }
    for kind, suffix in _SUFFIXES.items():
        for what in ("floor", "ceil", "trunc", "round", "roundeven"):
            made[what + suffix] = partial(_rounded, kind, what)
        for same in ("rint", "nearbyint"):
            made[same + suffix] = partial(_rounded, kind, "roundeven")
    return made


# The texts' makers, by the names that LLVM calls.
SOFT_FLOATS: Mapping[str, Callable[[str], str]] = _all()
