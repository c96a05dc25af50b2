"""Keys of sorts: unsigned integers in the order of the records.

Source: StableHLO spec "compare" (FLOAT and TOTALORDER), IEEE 754 totalOrder.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from hloforge.pipelines.codegen.algorithms.arrays import Element
from hloforge.pipelines.codegen.elements.comparisons import ordered_bits
from hloforge.pipelines.codegen.elements.kinds import PRED, UNSIGNED, class_of, register, single, width
from hloforge.pipelines.codegen.elements.narrow import bfloat_of_bits
from hloforge.pipelines.codegen.lang.values import FLOAT, I1, I8, I16, I32, I64, Value, bits_of, is_float


@dataclass(frozen=True)
class Key:
    """An operand by which records are ordered.

    Attributes:
        operand: its number.
        descending: whether the greatest is first.
        total_order: whether floats are in total order; else both zeros are equal, and NaN is greater than all others.
    """

    operand: int
    descending: bool = False
    total_order: bool = True


@dataclass(frozen=True)
class Keys:
    """Numbers by which records are ordered, the first counts most.

    Attributes:
        widths: their bits.
        compute: from a record to the numbers, integers of at least these widths without signs.
        restore: which operand a single number can be turned back into, and how; None if it loses something.
    """

    widths: tuple[int, ...]
    compute: Callable[[Sequence[Element]], Sequence[Value]]
    restore: tuple[int, Callable[[Value], Element]] | None = None

    @classmethod
    def of(cls, elements: Sequence[str], keys: Sequence[Key]) -> Keys:
        """The keys of records of some element types."""

        def compute(record: Sequence[Element]) -> list[Value]:
            return [bits_of_key(single(record[key.operand]), elements[key.operand], key) for key in keys]

        widths = tuple(_key_width(elements[key.operand]) for key in keys)
        only = keys[0]
        element = elements[only.operand]
        if len(keys) > 1 or (is_float(register(element)) and not only.total_order):
            return cls(widths, compute)
        return cls(widths, compute, (only.operand, lambda bits: _restored(bits, element, only.descending)))

    def packed(self) -> Keys:
        """Keys that fit a word of 64 bits as one."""
        if len(self.widths) == 1 or sum(self.widths) > 64:
            return self
        total = sum(self.widths)
        kind = f"i{next(size for size in (8, 16, 32, 64) if size >= total)}"

        def compute(record: Sequence[Element]) -> list[Value]:
            first, *others = self.compute(record)
            word = _resized(first, kind)
            for number, bits in zip(others, self.widths[1:], strict=True):
                word = (word << bits) | _resized(number, kind)
            return [word]

        return replace(self, widths=(total,), compute=compute, restore=None)


def bits_of_key(value: Value, element: str, key: Key) -> Value:
    """An unsigned integer in the order of a key's values."""
    bits = _ordered(value, element, key.total_order)
    return ~bits if key.descending else bits


def _ordered(value: Value, element: str, total_order: bool) -> Value:
    if class_of(element) == PRED:
        return value.as_(I8, signed=False)
    if class_of(element) == UNSIGNED:
        return value
    if not is_float(value.kind):
        return value ^ -(1 << (bits_of(value.kind) - 1))
    if not total_order:
        value = value.equals(0.0).where(0.0, value)
        value = value.is_nan().where(float("nan"), value)
    if element == "f16":
        value = value.as_("half")
    bits = ordered_bits(value, element)
    return bits ^ -(1 << (bits_of(bits.kind) - 1))


def _key_width(element: str) -> int:
    return max(8, width(element))


def _restored(bits: Value, element: str, descending: bool) -> Value:
    """The element of a key's number."""
    bits = ~bits if descending else bits
    if class_of(element) == PRED:
        return bits.as_(I1)
    if class_of(element) == UNSIGNED:
        return bits
    size = bits_of(bits.kind)
    bits = bits ^ -(1 << (size - 1))
    kind = register(element)
    if not is_float(kind):
        return bits
    word = bits ^ bits.shifted_right(size - 1, signed=True).shifted_right(1)
    if element == "bf16":
        return bfloat_of_bits(word)
    if element == "f16":
        return word.function.cast("bitcast", word, "half").as_(FLOAT)
    return word.function.cast("bitcast", word, kind)


def _resized(bits: Value, kind: str) -> Value:
    return bits.as_(kind, signed=False)


def word_of(width: int) -> str:
    """The least integer type that holds so many bits."""
    return next(kind for kind, bits in ((I8, 8), (I16, 16), (I32, 32), (I64, 64)) if bits >= width)
