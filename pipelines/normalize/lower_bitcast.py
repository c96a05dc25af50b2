"""``lower-bitcast``: XLA's bitcast, which reinterprets the bytes of an array, as transposes and reshapes.

Before::

    %r = mhlo.bitcast %x {source_layout = dense<[0, 1]>, result_layout = dense<[1, 0]>}
        : (tensor<4x8xf32>) -> tensor<8x4xf32>

After: the operand in the order of its bytes, reshaped, and brought into the order that the result's layout asks for::

    %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32>

An element type of another width joins or splits neighbouring elements, as memory would. Tiles of a layout are not part
of the operation; XLA makes bitcasts only where they do not matter. Source: XLA "Bitcast" (HLO only), "Shapes and
Layout".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

from hloforge.dialect import ops
from hloforge.dialect.element_types import ElementType, Kind, element_type
from hloforge.dialect.emission import emit
from hloforge.dialect.errors import UnsupportedError
from hloforge.dialect.mlir import ir
from hloforge.dialect.operations import integers
from hloforge.dialect.shapes import Shape
from hloforge.dialect.values import Value
from hloforge.pipelines.framework.facts import Fact, Facts
from hloforge.pipelines.framework.passes import PatternPass, register
from hloforge.pipelines.framework.patterns import Pattern, Replacement, pattern

_BYTE = element_type("u8")


@pattern("mhlo.bitcast")
def bitcast_by_layout(op: ir.Operation) -> Replacement:
    """bitcast(x) -> transpose, bitcast_convert, reshape, transpose; static shapes of equally many bits."""
    operand, result = Value(op.operands[0]), Value(op.results[0])
    if not (operand.shape.is_static and result.shape.is_static):
        raise UnsupportedError("a bitcast of dynamic size has no StableHLO form")
    _check_bits(operand, result)
    source, target = _major_to_minor(op, "source_layout", operand), _major_to_minor(op, "result_layout", result)
    memory = _reinterpret(ops.transpose(operand, source), result.element_type, [result.dims[d] for d in target])
    return ops.transpose(memory, [target.index(d) for d in range(len(target))])


def _check_bits(operand: Value, result: Value) -> None:
    source, target = operand.element_type, result.element_type
    if prod(operand.dims) * _storage_bits(source) != prod(result.dims) * _storage_bits(target):
        raise UnsupportedError(f"a bitcast from {operand.shape} to {result.shape}, which have different sizes")
    if source.bits != target.bits and (source.is_sub_byte or target.is_sub_byte):
        raise UnsupportedError(
            f"a bitcast from {source} to {target}: how narrow elements are packed is not part of the program"
        )


def _storage_bits(row: ElementType) -> int:
    return 8 if row.kind is Kind.PRED else row.bits


def _major_to_minor(op: ir.Operation, name: str, value: Value) -> list[int]:
    layout = integers(op, name)
    return list(reversed(layout)) if layout else list(range(value.rank))


def _reinterpret(value: Value, row: ElementType, dims: Sequence[int]) -> Value:
    """The row-major elements of ``value`` read as elements ``row`` of a row-major array ``dims``."""
    plain = not ({value.element_type.kind, row.kind} & {Kind.PRED, Kind.COMPLEX})
    if value.element_type == row:
        return ops.reshape(value, dims)
    if plain and value.element_type.bits == row.bits:
        return ops.reshape(ops.bitcast_convert_type(value, row), dims)
    return _to_compound(_recast(_from_compound(value), _word(row)), row, dims)


def _word(row: ElementType) -> ElementType:
    """The type of which an element is made: a complex one of two floats, a pred of a byte."""
    if row.kind is Kind.PRED:
        return _BYTE
    return element_type("f32" if row.bits == 64 else "f64") if row.is_complex else row


def _from_compound(value: Value) -> Value:
    flat = ops.reshape(value, [prod(value.dims)])
    if value.element_type.kind is Kind.PRED:
        return ops.convert_element_type(flat, _BYTE)
    if value.element_type.is_complex:
        pairs = [ops.reshape(part, [part.dims[0], 1]) for part in (ops.real(flat), ops.imag(flat))]
        return ops.reshape(ops.concat_in_dim(pairs, 1), [2 * flat.dims[0]])
    return flat


def _to_compound(flat: Value, row: ElementType, dims: Sequence[int]) -> Value:
    if row.kind is Kind.PRED:
        return ops.reshape(flat.ne(0), dims)
    if row.is_complex:
        pairs = ops.reshape(flat, [flat.dims[0] // 2, 2])
        count = pairs.dims[0]
        parts = [ops.reshape(ops.slice(pairs, [0, i], [count, i + 1]), dims) for i in range(2)]
        return ops.complex(parts[0], parts[1])
    return ops.reshape(flat, dims)


def _recast(flat: Value, row: ElementType) -> Value:
    """A one-dimensional array with its bits read as another real element type."""
    if flat.element_type == row:
        return flat
    count = flat.dims[0] * flat.element_type.bits // row.bits
    ratio = max(row.bits, flat.element_type.bits) // min(row.bits, flat.element_type.bits)
    if row.bits > flat.element_type.bits:
        return _bits(ops.reshape(flat, [count, ratio]), row, [count])
    if row.bits < flat.element_type.bits:
        return ops.reshape(_bits(flat, row, [flat.dims[0], ratio]), [count])
    return ops.bitcast_convert_type(flat, row)


def _bits(value: Value, row: ElementType, dims: Sequence[int]) -> Value:
    return emit("stablehlo.bitcast_convert", [value], Shape.array(row, *dims).mlir_type())


@register
@dataclass(frozen=True)
class LowerBitcast(PatternPass):
    """Lower every bitcast.

    Raises (on run):
        UnsupportedError: sizes differ, or sub-byte elements change their width.
    """

    name: ClassVar[str] = "lower-bitcast"
    removes: ClassVar[frozenset[str]] = frozenset({"mhlo.bitcast"})
    requires: ClassVar[Facts] = frozenset({Fact.NO_TUPLES, Fact.ONE_FUNCTION})
    patterns: ClassVar[tuple[Pattern, ...]] = bitcast_by_layout
