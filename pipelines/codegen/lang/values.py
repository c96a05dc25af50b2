"""A language for kernels: numbers, vectors and pointers with Python's operators, written as LLVM IR.

    with function.loop(0, size) as i:
        x = a.at(i, FLOAT)
        b.put(x * x + 1.0, i)

A ``Value`` is an SSA value or a constant of an LLVM type; operators emit instructions at the end of the function that
is being written (``functions.py``). Operands of another Python type become constants of the Value's type, and a single
number meets a vector by being repeated. Products and sums of floats may be contracted to fused ones, except those of
``literally``. Integers wrap around; whether they have signs is said by the operation, as in LLVM.
"""

from __future__ import annotations

import re
import struct
from functools import cache
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from hloforge.pipelines.codegen.lang.functions import Function

I1, I8, I16, I32, I64 = "i1", "i8", "i16", "i32", "i64"
HALF, BFLOAT, FLOAT, DOUBLE, POINTER = "half", "bfloat", "float", "double", "ptr"
_FLOATS = frozenset({HALF, BFLOAT, FLOAT, DOUBLE})
_VECTOR = re.compile(r"<(\d+) x (\w+)>")
_BITS = {I1: 1, HALF: 16, BFLOAT: 16, FLOAT: 32, DOUBLE: 64, POINTER: 64}
_FLAGS = {"add": "fadd contract", "sub": "fsub contract", "mul": "fmul contract", "div": "fdiv"}

Number: TypeAlias = "Value | int | float"


@cache
def lanes_of(kind: str) -> int:
    """Elements of a vector type; 0 for any other."""
    found = _VECTOR.fullmatch(kind)
    return int(found[1]) if found else 0


@cache
def element_of(kind: str) -> str:
    """The element type of a vector type; the type itself for any other."""
    found = _VECTOR.fullmatch(kind)
    return found[2] if found else kind


def vector_of(kind: str, lanes: int) -> str:
    """A type of several elements of the same kind; the kind itself for 0."""
    return f"<{lanes} x {kind}>" if lanes else kind


@cache
def bits_of(kind: str) -> int:
    """Bits of an element of a type."""
    element = element_of(kind)
    return _BITS[element] if element in _BITS else int(element[1:])


@cache
def is_float(kind: str) -> bool:
    return element_of(kind) in _FLOATS


def integer_of(kind: str) -> str:
    """The integer type of the same width and lanes."""
    return vector_of(f"i{bits_of(kind)}", lanes_of(kind))


def literal(number: float, kind: str) -> str:
    """A constant of a type of one element as LLVM spells it."""
    if not is_float(kind):
        return str(bool(number)).lower() if kind == I1 else str(int(number))
    if kind == DOUBLE:
        return f"0x{struct.unpack('<Q', struct.pack('<d', number))[0]:016X}"
    if kind == FLOAT:
        # LLVM writes a float by the bits of the double that equals it.
        rounded = struct.unpack("<f", struct.pack("<f", number))[0] if abs(number) < 3.5e38 else number
        return f"0x{struct.unpack('<Q', struct.pack('<d', rounded))[0]:016X}"
    if kind == HALF:
        return f"0xH{struct.unpack('<H', struct.pack('<e', number))[0]:04X}"
    return f"0xR{struct.unpack('<I', struct.pack('<f', number))[0] >> 16:04X}"


class Value:
    """An SSA value or a constant.

    Attributes:
        function: that is being written.
        kind: LLVM's spelling of its type.
        text: how LLVM's text names it.
    """

    __slots__ = ("function", "kind", "text")

    def __init__(self, function: Function, kind: str, text: str) -> None:
        self.function, self.kind, self.text = function, kind, text

    def __repr__(self) -> str:
        return f"{self.kind} {self.text}"

    @property
    def is_constant(self) -> bool:
        """Whether the text is a constant's."""
        return not self.text.startswith(("%", "@"))

    def like(self, other: Number) -> Value:
        """The other as a value of this type: a constant of a Python number, a vector of a single one."""
        if not isinstance(other, Value):
            return self.function.constant(other, self.kind)
        lanes = lanes_of(self.kind)
        return self.function.spread(other, lanes) if lanes and not lanes_of(other.kind) else other

    def _pair(self, other: Number) -> tuple[Value, Value]:
        if isinstance(other, Value) and lanes_of(other.kind) and not lanes_of(self.kind):
            return other.like(self), other
        return self, self.like(other)

    def _do(self, name: str, other: Number) -> Value:
        left, right = self._pair(other)
        what = _FLAGS[name] if is_float(left.kind) else name
        return self.function.binary(what, left, right)

    def literally(self, name: str, other: Number) -> Value:
        """``add``, ``sub`` or ``mul`` of floats that is rounded, and never contracted with another operation."""
        return self.function.binary(f"f{name}", *self._pair(other))

    def __add__(self, other: Number) -> Value:
        return self._do("add", other)

    def __radd__(self, other: Number) -> Value:
        return self.like(other) + self

    def __sub__(self, other: Number) -> Value:
        return self._do("sub", other)

    def __rsub__(self, other: Number) -> Value:
        return self.like(other) - self

    def __mul__(self, other: Number) -> Value:
        return self._do("mul", other)

    def __rmul__(self, other: Number) -> Value:
        return self.like(other) * self

    def __truediv__(self, other: Number) -> Value:
        """A quotient of floats; integers have ``sdiv`` and ``udiv``."""
        return self._do("div", other)

    def __rtruediv__(self, other: Number) -> Value:
        return self.like(other) / self

    def __neg__(self) -> Value:
        if is_float(self.kind):
            return self.function.emit(f"fneg {self.kind} {self.text}", self.kind)
        return self.like(0) - self

    def __and__(self, other: Number) -> Value:
        return self.function.binary("and", *self._pair(other))

    def __or__(self, other: Number) -> Value:
        return self.function.binary("or", *self._pair(other))

    def __xor__(self, other: Number) -> Value:
        return self.function.binary("xor", *self._pair(other))

    def __invert__(self) -> Value:
        return self ^ (1 if element_of(self.kind) == I1 else -1)

    def __lshift__(self, other: Number) -> Value:
        return self.function.binary("shl", *self._pair(other))

    def shifted_right(self, other: Number, *, signed: bool = False) -> Value:
        """Bits moved to lower places; copies of the sign follow them if it is signed, else zeros."""
        return self.function.binary("ashr" if signed else "lshr", *self._pair(other))

    def sdiv(self, other: Number) -> Value:
        return self.function.binary("sdiv", *self._pair(other))

    def udiv(self, other: Number) -> Value:
        return self.function.binary("udiv", *self._pair(other))

    def srem(self, other: Number) -> Value:
        return self.function.binary("srem", *self._pair(other))

    def urem(self, other: Number) -> Value:
        return self.function.binary("urem", *self._pair(other))

    def compare(self, predicate: str, other: Number) -> Value:
        """Flags by LLVM's predicate (``slt``, ``ult``, ``eq``; of floats ``olt``, ``une``, ``uno`` …)."""
        left, right = self._pair(other)
        what = "fcmp" if is_float(left.kind) else "icmp"
        result = vector_of(I1, lanes_of(left.kind))
        return self.function.emit(f"{what} {predicate} {left.kind} {left.text}, {right.text}", result)

    def __lt__(self, other: Number) -> Value:
        """Of floats or of integers with signs."""
        return self.compare("olt" if is_float(self.kind) else "slt", other)

    def __le__(self, other: Number) -> Value:
        return self.compare("ole" if is_float(self.kind) else "sle", other)

    def __gt__(self, other: Number) -> Value:
        return self.compare("ogt" if is_float(self.kind) else "sgt", other)

    def __ge__(self, other: Number) -> Value:
        return self.compare("oge" if is_float(self.kind) else "sge", other)

    def equals(self, other: Number) -> Value:
        return self.compare("oeq" if is_float(self.kind) else "eq", other)

    def differs(self, other: Number) -> Value:
        """Of floats also where one is NaN."""
        return self.compare("une" if is_float(self.kind) else "ne", other)

    def is_nan(self) -> Value:
        return self.compare("uno", self)

    def where(self, yes: Number, no: Number) -> Value:
        """``yes`` where this flag holds, else ``no``; one of both is a Value."""
        if isinstance(yes, Value):
            yes, no = yes._pair(no)
        elif isinstance(no, Value):
            yes = no.like(yes)
        else:
            raise TypeError("a selection of two Python numbers has no type")
        lanes = lanes_of(self.kind)
        if lanes and not lanes_of(yes.kind):
            yes, no = self.function.spread(yes, lanes), self.function.spread(no, lanes)
        return self.function.emit(
            f"select {self.kind} {self.text}, {yes.kind} {yes.text}, {no.kind} {no.text}", yes.kind
        )

    def all(self) -> Value:
        """Whether every lane of these flags holds."""
        lanes = lanes_of(self.kind)
        if not lanes:
            return self
        return self.function.emit(f"call i1 @llvm.vector.reduce.and.v{lanes}i1({self})", I1)

    def call(self, name: str, *others: Number) -> Value:
        """An intrinsic of LLVM whose operands all have this type, such as ``sqrt``, ``fma``, ``umin``, ``ctpop``."""
        return self.function.intrinsic(name, self.kind, self, *map(self.like, others))

    def minimum(self, other: Number, *, signed: bool = True) -> Value:
        """The smaller one; of floats NaN if one is NaN, and -0 before +0."""
        name = "minimum" if is_float(self.kind) else "smin" if signed else "umin"
        left, right = self._pair(other)
        return left.call(name, right)

    def maximum(self, other: Number, *, signed: bool = True) -> Value:
        """The larger one; of floats NaN if one is NaN, and +0 after -0."""
        name = "maximum" if is_float(self.kind) else "smax" if signed else "umax"
        left, right = self._pair(other)
        return left.call(name, right)

    def bits(self) -> Value:
        """The bits of a float as an integer."""
        return self.function.cast("bitcast", self, element_of(integer_of(self.kind)))

    def as_(self, kind: str, *, signed: bool = True) -> Value:
        """A number of another element type: integers extended or cut off, floats rounded, integers as floats.

        From floats to integers see ``elements/conversions.py``, because LLVM leaves much of it undefined.
        """
        old, new = element_of(self.kind), element_of(kind)
        if old == new:
            return self
        if is_float(old) and is_float(new):
            return self.function.cast("fpext" if bits_of(new) > bits_of(old) else "fptrunc", self, new)
        if is_float(new):
            return self.function.cast("sitofp" if signed and old != I1 else "uitofp", self, new)
        if bits_of(new) < bits_of(old):
            return self.function.cast("trunc", self, new)
        return self.function.cast("sext" if signed and old != I1 else "zext", self, new)
