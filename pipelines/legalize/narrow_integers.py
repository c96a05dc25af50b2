"""``legalize-narrow-integers``: integers of 2 and 4 bits, kept in bytes.

Before::

    %c = stablehlo.constant dense<[1, -2, 7]> : tensor<3xi4>
    %r = stablehlo.add %x, %c : tensor<3xi4>

After::

    %c = stablehlo.constant dense<[1, -2, 7]> : tensor<3xi8>
    %s = stablehlo.add %x, %c : tensor<3xi8>
    %r = (%s << 4) >> 4

A byte always holds the value of its narrow integer; what can leave the range is wrapped. IREE 3.13 packs such integers
and then refuses odd element counts and constants. Source: StableHLO spec "Types", "bitcast_convert".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from hloforge.dialect import ops
from hloforge.dialect.constants import constant, full
from hloforge.dialect.element_types import ElementType, Kind
from hloforge.dialect.emission import emit
from hloforge.dialect.mlir import in_context, ir
from hloforge.dialect.values import Value
from hloforge.pipelines.decompose.scatter_combiner import integer_range
from hloforge.pipelines.framework.passes import Pass, register
from hloforge.pipelines.framework.patterns import replace
from hloforge.pipelines.legalize.retyping import Retyped, correct_operands, correct_result, retype

# Operations whose result in bytes may leave the narrow range; the wrapped result is the narrow one.
_ARITHMETIC = ("abs", "add", "divide", "multiply", "negate", "not", "power", "shift_left", "subtract")
_WRAPPING = frozenset({*_ARITHMETIC, "convolution", "dot", "dot_general", "dynamic_iota", "iota", "rng"})


def _storage(row: ElementType) -> str | None:
    if not row.is_integer or row.bits >= 8:
        return None
    return "s8" if row.kind is Kind.SIGNED else "u8"


def wrapped(value: Value, row: ElementType) -> Value:
    """The byte that holds the low bits of ``value`` as a narrow integer."""
    if row.kind is Kind.UNSIGNED:
        return value & ((1 << row.bits) - 1)
    shift = 8 - row.bits
    return (value << shift) >> shift


def code(value: Value, row: ElementType) -> Value:
    """The bits of a narrow integer in a u8."""
    return ops.bitcast_convert_type(value, "u8") & ((1 << row.bits) - 1) if row.kind is Kind.SIGNED else value


def _of_code(bits: Value, row: ElementType) -> Value:
    return wrapped(ops.bitcast_convert_type(bits, "s8"), row) if row.kind is Kind.SIGNED else bits


def _wrap(entry: Retyped) -> None:
    row = entry.results[0]
    if row is not None and _storage(row):
        correct_result(entry.op, lambda value: wrapped(value, row))


def _convert(entry: Retyped) -> None:
    """A conversion into the narrow type: integers wrap, floats saturate."""
    source, target = entry.operands[0], entry.results[0]
    if target is None or source is None or not _storage(target) or source.kind is Kind.PRED:
        return
    if source.is_integer:
        correct_result(entry.op, lambda value: wrapped(value, target))
        return
    low, high = integer_range(target)
    correct_result(
        entry.op,
        lambda value: emit(
            "stablehlo.clamp",
            [constant(low, value.element_type), value, constant(high, value.element_type)],
            value.type,
        ),
    )


def _count_bits(entry: Retyped) -> None:
    """popcnt, count_leading_zeros: on the bits alone."""
    row = entry.operands[0]
    assert row is not None
    correct_operands(entry.op, [0], lambda value: _same_type(code(value, row), value))
    missing = 8 - row.bits if entry.name == "count_leading_zeros" else 0
    correct_result(entry.op, lambda value: wrapped(value - missing, row))


def _shift_right_logical(entry: Retyped) -> None:
    row = entry.operands[0]
    assert row is not None
    correct_operands(entry.op, [0], lambda value: _same_type(code(value, row), value))
    correct_result(entry.op, lambda value: wrapped(value, row))


def _shift_right_arithmetic(entry: Retyped) -> None:
    """The sign of an unsigned integer is its highest bit."""
    row = entry.operands[0]
    assert row is not None
    if row.kind is Kind.SIGNED:
        return
    shift = 8 - row.bits

    def signed(value: Value) -> Value:
        return emit("stablehlo.shift_right_arithmetic", [value << shift, full(value, shift)], value.type)

    correct_operands(entry.op, [0], signed)
    correct_result(entry.op, lambda value: wrapped(value, row))


def _same_type(bits: Value, like: Value) -> Value:
    return ops.bitcast_convert_type(bits, like.element_type) if bits.type != like.type else bits


def _bitcast(entry: Retyped) -> None:
    """bitcast_convert: bits move between narrow and wide elements, the first one lowest."""
    source, target = entry.operands[0], entry.results[0]
    assert source is not None and target is not None
    value = Value(entry.op.operands[0])
    with entry.op.location, ir.InsertionPoint(entry.op):
        if source.bits == target.bits:
            result = _of_code(code(value, source), target)
        elif source.bits < target.bits:
            result = _joined(code(value, source), source.bits, target)
        else:
            result = _split(value, source, target)
    replace(entry.op, [result])


def _joined(parts: Value, bits: int, target: ElementType) -> Value:
    """``[..., n]`` of codes to ``[...]`` of wider elements."""
    wide = f"u{max(target.bits, 8)}"
    *dims, count = parts.dims
    word = None
    for number in range(count):
        starts, limits = [0] * len(dims) + [number], [*dims, number + 1]
        part = ops.convert_element_type(ops.reshape(ops.slice(parts, starts, limits), dims), wide) << (number * bits)
        word = part if word is None else word | part
    assert word is not None
    if target.bits < 8:
        return _of_code(word, target)
    return ops.bitcast_convert_type(word, target) if target.name != wide else word


def _split(value: Value, source: ElementType, target: ElementType) -> Value:
    """``[...]`` of elements to ``[..., n]`` of narrower ones."""
    wide = f"u{max(source.bits, 8)}"
    bits = code(value, source) if source.bits < 8 else value
    if bits.element_type.name != wide:
        bits = ops.bitcast_convert_type(bits, wide)
    mask = (1 << target.bits) - 1
    count = source.bits // target.bits
    parts = [
        ops.reshape(ops.convert_element_type((bits >> (number * target.bits)) & mask, "u8"), [*value.dims, 1])
        for number in range(count)
    ]
    return _of_code(ops.concat_in_dim(parts, value.rank), target)


_CORRECTIONS: dict[str, Callable[[Retyped], None]] = {
    "bitcast_convert": _bitcast,
    "convert": _convert,
    "count_leading_zeros": _count_bits,
    "popcnt": _count_bits,
    "shift_right_arithmetic": _shift_right_arithmetic,
    "shift_right_logical": _shift_right_logical,
}


@register
@dataclass(frozen=True)
class LegalizeNarrowIntegers(Pass):
    """Store integers of 2 and 4 bits in bytes, in the whole module."""

    name: ClassVar[str] = "legalize-narrow-integers"

    def run(self, module: ir.Module) -> None:
        with in_context(module):
            for entry in retype(module, _storage):
                if entry.name in _WRAPPING:
                    _wrap(entry)
                elif entry.name in _CORRECTIONS:
                    _CORRECTIONS[entry.name](entry)
