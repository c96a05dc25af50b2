"""How terms are multiplied and added: one by one, or several at once by instructions that processors have for it.

Terms of narrow types are taken in groups of two or four, which lie next to each other as one integer of 32 bits. Both
factors are laid out in groups (``packing.py``), with zeros where the last group has fewer terms.
"""

from __future__ import annotations

from dataclasses import dataclass

from hloforge.pipelines.codegen.lang.values import (
    BFLOAT,
    FLOAT,
    I8,
    I16,
    I32,
    Value,
    bits_of,
    is_float,
    lanes_of,
    vector_of,
)
from hloforge.pipelines.codegen.products.shuffles import exchanged_parts, with_signs
from hloforge.pipelines.framework.machine import Machine

VNNI, BF16, AVX2, AMX_BF16 = "avx512vnni", "avx512bf16", "avx2", "amx-bf16"
_FLIP = 0x80808080


@dataclass(frozen=True)
class Arithmetic:
    """Products and sums of one kind.

    Attributes:
        sums: the type of sums.
        element: the type of a factor's element where groups are laid out; the sums' for terms one by one.
        group: terms that are multiplied at once.
        instruction: an intrinsic for a group; empty for terms one by one.
        flips: whether the left factor's bytes get another sign, so that one factor has signs and the other has none.
            128 times the sums of the right factor's terms make up for it.
        unsigned_right: whether the right factor's bytes have no sign.
        block: units of terms that an instruction takes at once; the copies of both factors have whole blocks.
    """

    sums: str
    element: str
    group: int = 1
    instruction: str = ""
    flips: bool = False
    unsigned_right: bool = False
    block: int = 1

    @property
    def unit(self) -> str:
        """The type of a group in memory."""
        return I32 if self.group > 1 else self.element

    @property
    def unit_bytes(self) -> int:
        """Of a group in memory."""
        return bits_of(self.unit) // 8

    def left(self, number: Value, lanes: int, *, signed: bool) -> Value:
        """A number of the left factor, as it was read, as a vector."""
        function = number.function
        if self.group == 1:
            number = number.as_(self.sums, signed=signed)
        if self.flips:
            # Before it is repeated: LLVM 22 does not end with a vector of which a part is flipped, as it makes of this.
            number = number ^ (_FLIP - (1 << 32))
        return self._narrow(function.spread(number, lanes) if lanes > 1 else number)

    def right(self, vector: Value, *, signed: bool) -> Value:
        """A vector of the right factor, as it was read, as it is multiplied."""
        return vector.as_(self.sums, signed=signed) if self.group == 1 else self._narrow(vector)

    def numbers_at(self, address: Value, kind: str, align: int, lanes: int, *, signed: bool) -> tuple[Value, ...]:
        """What a term of a row is in memory, as vectors that are multiplied each by one of ``vectors_of``."""
        return (self.left(address.function.load(address, kind, align), lanes, signed=signed),)

    def vectors_of(self, vector: Value, *, signed: bool) -> tuple[Value, ...]:
        """A vector of the right factor, as it was read, as those that are multiplied."""
        return (self.right(vector, signed=signed),)

    @property
    def weight(self) -> int:
        """Numbers that a unit adds to a sum."""
        return self.group

    def _narrow(self, vector: Value) -> Value:
        if self.group == 1:
            return vector
        kind = vector_of(self.element, self.group * lanes_of(vector.kind))
        return vector.function.emit(f"bitcast {vector} to {kind}", kind)

    def multiply_add(self, left: Value, right: Value, total: Value) -> Value:
        """``left * right + total``; floats one by one are fused where the processor can."""
        function = total.function
        if not self.instruction:
            if is_float(total.kind):
                return function.intrinsic("fmuladd", total.kind, left, right, total)
            return left * right + total
        if self.unsigned_right:
            left, right = right, left
        size = lanes_of(total.kind) * 32
        if self.instruction == "pmaddwd":
            name = {512: "avx512.pmaddw.d.512", 256: "avx2.pmadd.wd", 128: "sse2.pmadd.wd"}[size]
            return total + function.emit(f"call {total.kind} @llvm.x86.{name}({left}, {right})", total.kind)
        call = f"call {total.kind} @llvm.x86.{self.instruction}.{size}({total}, {left}, {right})"
        return function.emit(call, total.kind)

    def sums_of_terms(self, vector: Value, totals: Value) -> Value:
        """The sums of the right factor's terms, a group further."""
        ones = totals.function.constant(0x01010101, vector_of(I32, lanes_of(totals.kind)))
        return self.multiply_add(self._narrow(ones), self._narrow(vector), totals)

    def made_up(self, totals: Value) -> Value:
        """What sums begin with where bytes of the left factor are flipped, by the right factor's sums of terms."""
        return totals << 7 if self.unsigned_right else -(totals << 7)


@dataclass(frozen=True)
class PairArithmetic(Arithmetic):
    """Of complex numbers: a term is a pair of the left factor, and vectors hold pairs (``complex_products.py``)."""

    @property
    def weight(self) -> int:
        return 2

    def numbers_at(self, address: Value, kind: str, align: int, lanes: int, *, signed: bool) -> tuple[Value, ...]:
        function = address.function
        places = (function.offset(address, kind, part) for part in range(2))
        return tuple(self.left(function.load(place, kind, align), lanes, signed=signed) for place in places)

    def vectors_of(self, vector: Value, *, signed: bool) -> tuple[Value, ...]:
        function = vector.function
        return vector, with_signs(function, exchanged_parts(function, vector), first=True)


def one_by_one(sums: str) -> Arithmetic:
    return Arithmetic(sums, sums)


def groups_of(
    left: str,
    left_signed: bool,
    right: str,
    right_signed: bool,
    sums: str,
    lanes: int,
    machine: Machine,
    has: frozenset[str],
) -> Arithmetic | None:
    """Instructions for these element types, or None.

    Args:
        lanes: of the vectors of sums.
        has: the extensions of the processor, by LLVM's names.
    """
    if lanes not in (4, 8, 16) or lanes * 4 > machine.vector_bytes:
        return None
    # Of processors with registers for tiles, pairs by vectors are slower than f32 one by one.
    if sums == FLOAT and left == right == BFLOAT and BF16 in has and AMX_BF16 not in has:
        return Arithmetic(sums, BFLOAT, 2, "avx512bf16.dpbf16ps")
    if sums != I32 or bits_of(left) > 16 or bits_of(right) > 16:
        return None
    if left == right == I8 and VNNI in has:
        same = left_signed == right_signed
        # The instruction takes the factor without signs first; a flipped left factor changes its part.
        unsigned_right = not right_signed
        return Arithmetic(sums, I8, 4, "avx512.vpdpbusd", same, unsigned_right)
    fits = all(signed or bits_of(kind) == 8 for kind, signed in ((left, left_signed), (right, right_signed)))
    if not fits:
        return None
    if VNNI in has:
        return Arithmetic(sums, I16, 2, "avx512.vpdpwssd")
    return Arithmetic(sums, I16, 2, "pmaddwd") if AVX2 in has else None
