"""``legalize-quantized``: quantized arrays as the integers that they are stored as, computed with in floats.

Before::

    %r = stablehlo.add %x, %y : tensor<4x!quant.uniform<i8:f32, 0.5:-20>>

After::

    %a = (convert(%x) - -20) * 0.5, %b alike                                            : tensor<4xf32>
    %r = convert(round_nearest_even(min(max((%a + %b) / 0.5 + -20.0, -128.0), 127.0)))  : tensor<4xi8>

Operations that only move elements move the integers. XLA has no such types.
Source: StableHLO spec "Quantized types", "uniform_quantize", "uniform_dequantize", and "dequantize_op_quantize".
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from hloforge.dialect import ops
from hloforge.dialect.constants import full, spread
from hloforge.dialect.element_types import mlir_type
from hloforge.dialect.emission import emit
from hloforge.dialect.mlir import AnyOp, in_context, ir
from hloforge.dialect.operations import blocks, operations, types_of
from hloforge.dialect.quantized import Quantized, is_quantized, quantized, storage_of
from hloforge.dialect.values import Value
from hloforge.pipelines.framework.facts import Fact, Facts
from hloforge.pipelines.framework.passes import Pass, register
from hloforge.pipelines.framework.patterns import replace
from hloforge.pipelines.legalize.narrow_floats import MOVING
from hloforge.pipelines.legalize.retyping import correct_operands, correct_result


def dequantized(stored: Value, type_: Quantized) -> Value:
    """The floats that integers represent."""
    wide = ops.convert_element_type(stored, "s64" if type_.storage.bits > 16 else "s32")
    difference = wide - _spread(type_, type_.zeros, wide)
    floats = ops.convert_element_type(difference, type_.expressed)
    return floats * _spread(type_, type_.scales, floats)


def requantized(floats: Value, type_: Quantized) -> Value:
    """The nearest integers for floats of the expressed type, ties to even."""
    scaled = floats / _spread(type_, type_.scales, floats) + _spread(type_, type_.zeros, floats)
    inside = ops.min(ops.max(scaled, full(scaled, type_.low)), full(scaled, type_.high))
    return ops.convert_element_type(ops.round_nearest_even(inside), type_.storage)


def _spread(type_: Quantized, numbers: Any, like: Value) -> Value:
    """Scales or zeros in the shape and element type of ``like``."""
    vector = type_.spread(numbers, like.element_type, like)
    if type_.axis is None:
        return spread(vector, like) if like.rank else vector
    return spread(ops.reshape(vector, [numbers.size]), like, [type_.axis])


@dataclass(frozen=True)
class _Concerned:
    """An operation with quantized operands or results, and what their types had been."""

    op: Any
    operands: tuple[Quantized | None, ...]
    results: tuple[Quantized | None, ...]


def _retype(module: ir.Module) -> list[_Concerned]:
    """Give every quantized value its storage type; returns the operations to correct."""
    if not any(map(is_quantized, types_of(module))):
        return []
    known: dict[Any, Quantized] = {}

    def row(type_: ir.RankedTensorType) -> Quantized | None:
        if not is_quantized(type_):
            return None
        element = type_.element_type
        if element not in known:
            known[element] = quantized(element)
        return known[element]

    found = []
    everything = operations(module)
    for op in everything:
        operands, results = (tuple(row(value.type) for value in values) for values in (op.operands, op.results))
        if any(operands) or any(results):
            found.append(_Concerned(op, operands, results))
    for op in everything:
        for block in blocks(op):
            _take_storage(block.arguments)
        _take_storage(op.results)
        if op.name == "func.func":
            type_ = ir.FunctionType(ir.TypeAttr(op.attributes["function_type"]).value)
            types = ([storage_of(t) if is_quantized(t) else t for t in side] for side in (type_.inputs, type_.results))
            op.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(*types))
    return found


def _take_storage(values: Iterable[Any]) -> None:
    for value in values:
        if is_quantized(value.type):
            value.set_type(storage_of(value.type))


def _correct(entry: _Concerned) -> None:
    op = entry.op
    if op.name == "stablehlo.constant":
        _recode(op)
    elif op.name == "stablehlo.bitcast_convert":
        if op.operands[0].type == op.results[0].type:
            replace(op, [Value(op.operands[0])])
    elif op.name in ("stablehlo.uniform_quantize", "stablehlo.uniform_dequantize"):
        _convert(entry)
    elif op.name.startswith(("stablehlo.", "chlo.")) and op.name not in _BY_STORAGE and not _compares_storage(entry):
        _compute_in_floats(entry)


# Where elements only move, or a region of their own computes with them.
_BY_STORAGE = MOVING


def _compares_storage(entry: _Concerned) -> bool:
    """Whether integers order like the numbers that they represent, so that sorts by them have keys."""
    if entry.op.name != "stablehlo.compare":
        return False
    lhs, rhs = entry.operands
    if lhs is None or lhs is not rhs or not (lhs.scales > 0).all():
        return False
    if "compare_type" in entry.op.attributes:
        del entry.op.attributes["compare_type"]
    return True


def _recode(op: AnyOp) -> None:
    """The attribute of a constant has signless integers, whatever the storage type is."""
    attribute, result = op.attributes["value"], op.results[0].type
    if attribute.type == result:
        return
    with op.location, ir.InsertionPoint(op):
        bits = emit("stablehlo.constant", [], attribute.type, value=attribute)
        replace(op, [ops.bitcast_convert_type(bits, Value(op.results[0]).element_type)])


def _convert(entry: _Concerned) -> None:
    value = Value(entry.op.operands[0])
    with entry.op.location, ir.InsertionPoint(entry.op):
        source, target = entry.operands[0], entry.results[0]
        floats = dequantized(value, source) if source else value
        result = floats
        if target:
            result = requantized(ops.convert_element_type(floats, target.expressed), target)
        replace(entry.op, [ops.convert_element_type(result, Value(entry.op.results[0]).element_type)])


def _compute_in_floats(entry: _Concerned) -> None:
    op = entry.op
    for position, source in enumerate(entry.operands):
        if source:
            correct_operands(op, [position], lambda value, source=source: dequantized(value, source))  # type: ignore[misc]
    for number, target in enumerate(entry.results):
        if target:
            shape = op.results[number].type.shape
            op.results[number].set_type(ir.RankedTensorType.get(shape, mlir_type(target.expressed)))
            correct_result(op, lambda value, target=target: requantized(value, target), number)  # type: ignore[misc]


@register
@dataclass(frozen=True)
class LegalizeQuantized(Pass):
    """Store quantized arrays as integers and compute with them in their expressed type, in the whole module.

    Raises (on run):
        ValueError: a quantized type other than uniform per tensor or per axis.
    """

    name: ClassVar[str] = "legalize-quantized"
    establishes: ClassVar[Facts] = frozenset({Fact.NO_QUANTIZED})

    def run(self, module: ir.Module) -> None:
        with in_context(module):
            for entry in _retype(module):
                _correct(entry)
