"""Analyse a kernel's integers as functions of the thread's index.

A number is what every thread holds for itself, as far as it is known: one value for each thread, plus multiples of
numbers that are the same in the whole launch, plus unknown multiples of a modulus (of a loop's step, say).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hloforge.runtime.codegen_fixes.kernel_text import Block, Kernel, Operation

__all__ = ["Number", "Pointer", "Values", "may_meet", "size_of"]

_Vector = np.ndarray[Any, np.dtype[np.int64]]
_WHOLE = re.compile(rb"\((-?\d+|true|false)(?: : (?:i\d+|index))?\)")
_THREAD = re.compile(rb"nvvm\.read\.ptx\.sreg\.tid\.([xyz])")
_ELEMENT = re.compile(rb"-> (?:!llvm\.ptr(?:<\d>)?|vector<[^>]*>>), (.*)$")
_INDICES = re.compile(rb"\[([^\]]*)\]")
_VECTOR = re.compile(rb"vector<(\d+)x(\S+)>")
_ARRAY = re.compile(rb"(?:!llvm\.)?array<(\d+) x (.*)>")
_SCALAR = re.compile(rb"!?[a-z]*?(\d+)")
_PACKED = rb"!llvm.array<0 x i8>"
_CASTS = (b"llvm.sext", b"llvm.zext", b"llvm.trunc")
_POINTER_CASTS = (b"llvm.addrspacecast", b"llvm.bitcast")
_QUOTIENTS, _REMAINDERS = (b"llvm.udiv", b"llvm.sdiv", b"llvm.lshr"), (b"llvm.urem", b"llvm.srem", b"llvm.and")
_LAUNCHED = (b"nvvm.read.ptx.sreg.ctaid", b"nvvm.read.ptx.sreg.nctaid", b"nvvm.read.ptx.sreg.ntid")
_IMPURE = (b"llvm.load", b"llvm.call", b"llvm.atomicrmw", b"llvm.cmpxchg", b"llvm.intr.masked", b"llvm.inline_asm")
_WORDS = {b"true": 1, b"false": 0}
_LIMIT = 1 << 40
_ARITHMETIC: Mapping[bytes, Callable[[_Vector, _Vector], _Vector]] = {
    b"llvm.udiv": lambda a, b: a // b, b"llvm.sdiv": lambda a, b: a // b,
    b"llvm.urem": lambda a, b: a % b, b"llvm.srem": lambda a, b: a % b,
    b"llvm.and": np.bitwise_and, b"llvm.or": np.bitwise_or, b"llvm.xor": np.bitwise_xor,
    b"llvm.lshr": np.right_shift, b"llvm.ashr": np.right_shift,
    b"llvm.intr.umin": np.minimum, b"llvm.intr.smin": np.minimum,
    b"llvm.intr.umax": np.maximum, b"llvm.intr.smax": np.maximum,
}  # fmt: skip
_COMPARISONS: Mapping[bytes, Callable[[_Vector, _Vector], Any]] = {
    b"eq": np.equal, b"ne": np.not_equal, b"slt": np.less, b"ult": np.less, b"sle": np.less_equal,
    b"ule": np.less_equal, b"sgt": np.greater, b"ugt": np.greater, b"sge": np.greater_equal, b"uge": np.greater_equal,
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Number:
    """``own[thread] + sum(factor * symbol) + modulus * anything``; of modulus 1 nothing is known, of 0 all."""

    own: _Vector
    symbols: tuple[tuple[bytes, int], ...] = ()
    modulus: int = 0

    @property
    def is_exact(self) -> bool:
        return not self.symbols and self.modulus == 0

    @property
    def is_shared(self) -> bool:
        """Whether it is the same in all threads, at any time."""
        return self.modulus == 0 and bool((self.own == self.own[0]).all())

    def plus(self, other: Number, sign: int = 1) -> Number:
        factors = dict(self.symbols)
        for name, factor in other.symbols:
            factors[name] = factors.get(name, 0) + sign * factor
        return _number(self.own + sign * other.own, factors, math.gcd(self.modulus, other.modulus))

    def times(self, factor: int) -> Number:
        return _number(
            self.own * factor, {name: own * factor for name, own in self.symbols}, self.modulus * abs(factor)
        )

    def or_else(self, other: Number) -> Number:
        """What is known of a number that is one of two."""
        difference = self.plus(other, -1)
        factors = (factor for _, factor in difference.symbols)
        common = math.gcd(difference.modulus, *factors, int(np.gcd.reduce(difference.own)))
        return _number(self.own, dict(self.symbols), common) if common else self

    def same(self, other: Number) -> bool:
        equal = self.symbols == other.symbols and self.modulus == other.modulus
        return equal and bool((self.own == other.own).all())


@dataclass(frozen=True, eq=False)
class Pointer:
    """An address: bytes from the begin of an object."""

    object: bytes
    place: Number

    def or_else(self, other: Pointer) -> Pointer:
        return Pointer(self.object if self.object == other.object else b"", self.place.or_else(other.place))

    def same(self, other: Pointer) -> bool:
        return self.object == other.object and self.place.same(other.place)


def _number(own: _Vector, factors: Mapping[bytes, int], modulus: int) -> Number:
    if modulus:
        own = own % modulus
    if modulus == 1 or modulus > _LIMIT or np.abs(own).max() > _LIMIT:
        return Number(np.zeros_like(own), (), 1)
    kept = ((name, factor % modulus if modulus else factor) for name, factor in sorted(factors.items()))
    return Number(own, tuple((name, factor) for name, factor in kept if factor), modulus)


def may_meet(one: Number, other: Number, sizes: tuple[int, int]) -> bool:
    """Whether bytes at the position of one thread may be bytes at the other place of another thread."""
    difference = one.plus(other, -1)
    modulus = math.gcd(difference.modulus, *(factor for _, factor in difference.symbols))
    begins, targets = one.own, other.own
    if modulus:
        if modulus < sum(sizes):
            return True
        begins, targets = begins % modulus, targets % modulus
        begins = np.concatenate([begins - modulus, begins, begins + modulus])
    order = np.argsort(begins, kind="stable")
    ordered = begins[order]
    first = np.searchsorted(ordered, targets - sizes[0], side="right")
    behind = np.searchsorted(ordered, targets + sizes[1], side="left")
    count = behind - first
    if (count > 1).any():
        return True
    found = order[np.minimum(first, len(order) - 1)] % len(targets)
    return bool(((count == 1) & (found != np.arange(len(targets)))).any())


def size_of(type_: bytes) -> int:
    """The bytes of a type; 0 if it is none of those that are known."""
    type_ = type_.strip()
    if vector := _VECTOR.fullmatch(type_):
        return int(vector[1]) * size_of(vector[2])
    if array := _ARRAY.fullmatch(type_):
        return int(array[1]) * size_of(array[2])
    if type_.startswith(b"!llvm.struct<(") and len(set(type_[14:-2].split(b", "))) == 1:
        parts = type_[14:-2].split(b", ")
        return len(parts) * size_of(parts[0])
    scalar = _SCALAR.fullmatch(type_)
    return -(-int(scalar[1]) // 8) if scalar else 0


class Values:
    """What is known of a kernel's values."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        sizes = kernel.sizes
        count = math.prod(sizes)
        ids = np.arange(count)
        rows = ids // sizes[0]
        self._ids = {b"x": ids % sizes[0], b"y": rows % sizes[1], b"z": rows // sizes[1]}
        self._zero = Number(np.zeros(count, np.int64))
        self.unknown = Number(self._zero.own, (), 1)
        self._known: dict[bytes, Number | Pointer] = {}
        for name, attributes in kernel.arguments.items():
            known = Pointer(name if b"llvm.noalias" in attributes else b"", self._zero)
            self._known[name] = known if b"llvm." in attributes and b"align" in attributes else self._symbol(name)
        changed = True
        while changed:
            changed = sum(self._read(block) for block in kernel.blocks) > 0

    def number(self, name: bytes) -> Number:
        known = self._known.get(name)
        return known if isinstance(known, Number) else self.unknown

    def pointer(self, name: bytes) -> Pointer | None:
        known = self._known.get(name)
        return known if isinstance(known, Pointer) else None

    def _symbol(self, name: bytes) -> Number:
        return Number(self._zero.own, ((name, 1),))

    def _read(self, block: Block) -> bool:
        for operation in block.operations:
            # Operands that are not known yet are those of loops, which come later.
            if operation.result and all(name in self._known for name in operation.operands):
                self._known[operation.result] = self._result(operation)
        changed = False
        for to in block.successors():
            target = next(one for one in self._kernel.blocks if one.label == to.label)
            for argument, given in zip(target.arguments, to.given, strict=True):
                changed |= self._join(argument, self._known.get(given))
        return changed

    def _join(self, argument: bytes, given: Number | Pointer | None) -> bool:
        known = self._known.get(argument)
        if given is None:
            return False
        if known is None:
            self._known[argument] = given
            return True
        if isinstance(known, Number) and isinstance(given, Number):
            joined = known.or_else(given)
            self._known[argument] = joined
            return not known.same(joined)
        if isinstance(known, Pointer) and isinstance(given, Pointer):
            address = known.or_else(given)
            self._known[argument] = address
            return not known.same(address)
        self._known[argument] = self.unknown
        return isinstance(known, Pointer) or known.modulus != 1

    def _result(self, operation: Operation) -> Number | Pointer:
        name, operands = operation.name, operation.operands
        if name == b"llvm.getelementptr":
            return self._address(operation)
        if name in (b"llvm.mlir.addressof", b"llvm.alloca"):
            symbol = operation.body.split()[1] if name == b"llvm.mlir.addressof" else b"own " + operation.result
            return Pointer(symbol, self._zero)
        if name in _POINTER_CASTS and (pointer := self.pointer(operands[0])):
            return pointer
        if name == b"llvm.select" and all(self.pointer(one) for one in operands[1:]):
            one, other = self._known[operands[1]], self._known[operands[2]]
            assert isinstance(one, Pointer)
            assert isinstance(other, Pointer)
            return one.or_else(other)
        if b"ptr" in operation.body.rpartition(b":")[2].rpartition(b"->")[2]:
            return Pointer(b"", self.unknown)
        return self._arithmetic(operation)

    def _address(self, operation: Operation) -> Pointer:
        base = self.pointer(operation.operands[0])
        element = _ELEMENT.search(operation.body)
        indices = _INDICES.search(operation.body)
        if base is None or element is None or indices is None:
            return Pointer(base.object if base else b"", self.unknown)
        type_, place = element[1], base.place
        packed = type_ == _PACKED
        for depth, index in enumerate(indices[1].split(b", ")):
            if depth:
                array = _ARRAY.fullmatch(type_)
                if array is None:
                    return Pointer(base.object, self.unknown)
                type_ = array[2]
            number = Number(self._zero.own + int(index)) if b"%" not in index else self.number(index)
            size = size_of(type_)
            if not size and not (packed and number.is_exact and not number.own.any()):
                return Pointer(base.object, self.unknown)
            place = place.plus(number.times(size)) if size else place
        if packed and place.is_exact and place.is_shared:
            # IREE packs arrays of shared memory after each other into one.
            return Pointer(base.object + b" %d" % place.own[0], self._zero)
        return Pointer(base.object, place)

    def _arithmetic(self, operation: Operation) -> Number:
        name = operation.name
        if name == b"llvm.mlir.constant":
            return self._constant(operation.body)
        if thread := _THREAD.match(operation.body):
            return Number(self._ids[thread[1]])
        if name.startswith(_LAUNCHED):
            return self._symbol(name)
        given = [self.number(one) for one in operation.operands]
        found = self._linear(operation, given)
        if found is None and len(given) == 2 and all(one.is_exact for one in given):
            found = _computed(operation, given[0].own, given[1].own)
        if found is None and given and all(one.is_shared for one in given) and _is_pure(name):
            found = self._symbol(operation.result)
        if found is None and name == b"llvm.select":
            found = given[1].or_else(given[2])
        return found or self.unknown

    def _constant(self, body: bytes) -> Number:
        whole = _WHOLE.search(body)
        if whole is None or abs(value := _WORDS[whole[1]] if whole[1] in _WORDS else int(whole[1])) > _LIMIT:
            return self.unknown
        return Number(self._zero.own + value)

    def _linear(self, operation: Operation, given: list[Number]) -> Number | None:
        name = operation.name
        if name in _CASTS:
            return given[0]
        if name in (b"llvm.add", b"llvm.sub"):
            return given[0].plus(given[1], 1 if name == b"llvm.add" else -1)
        if name == b"llvm.or" and b"disjoint" in operation.body:
            return given[0].plus(given[1])
        if name in _QUOTIENTS + _REMAINDERS and given[1].is_exact and given[1].is_shared:
            return _divided(name, given[0], int(given[1].own[0]))
        if name not in (b"llvm.mul", b"llvm.shl"):
            return None
        for one, other in (given, given[::-1]):
            if other.is_exact and other.is_shared and (name == b"llvm.mul" or other is given[1]):
                factor = int(other.own[0])
                if name == b"llvm.shl":
                    factor = 1 << factor if 0 <= factor < 40 else _LIMIT
                return one.times(factor) if factor else self._zero
        return None


def _is_pure(name: bytes) -> bool:
    """Whether an operation gives the same for the same operands, at any time."""
    return name.startswith(b"llvm.") and not name.startswith(_IMPURE)


def _divided(name: bytes, number: Number, by: int) -> Number | None:
    """A quotient or remainder of a number of which all that is unknown divides evenly."""
    if name == b"llvm.lshr":
        by = 1 << by if 0 <= by < 40 else 0
    elif name == b"llvm.and":
        by = 0 if by & (by + 1) else by + 1
    unknown = [number.modulus, *(factor for _, factor in number.symbols)]
    if by <= 0 or (number.own < 0).any() or any(one % by for one in unknown):
        return None
    if name in _REMAINDERS:
        return _number(number.own % by, {}, 0)
    return _number(number.own // by, {one: factor // by for one, factor in number.symbols}, number.modulus // by)


def _computed(operation: Operation, a: _Vector, b: _Vector) -> Number | None:
    if operation.name == b"llvm.icmp":
        compare = _COMPARISONS.get(operation.body.split(b'"')[1])
        return Number(compare(a, b).astype(np.int64)) if compare and (a >= 0).all() and (b >= 0).all() else None
    compute = _ARITHMETIC.get(operation.name)
    if compute is None or (a < 0).any() or (b < (b"div" in operation.name or b"rem" in operation.name)).any():
        return None
    return _number(compute(a, np.minimum(b, 62) if b"shr" in operation.name else b), {}, 0)
