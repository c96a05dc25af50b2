"""Elementwise operations: arithmetic beyond the operators of ``Value``, conversions, selection, complex parts."""

from __future__ import annotations

from typing import Any

from hloforge.dialect.element_types import ElementType, element_type, mlir_type
from hloforge.dialect.mlir import ir
from hloforge.dialect.values import Operand, Value, emit, full

_PARTS = {"c64": "f32", "c128": "f64"}
_WHOLES = {part: whole for whole, part in _PARTS.items()}


def typed_like(value: Value, dtype: Any) -> Any:
    """The MLIR tensor type with the shape of ``value`` and the element type ``dtype``."""
    return ir.RankedTensorType.get(value.type.shape, mlir_type(dtype))


def _unary(name: str, operand: Value) -> Value:
    return emit(f"stablehlo.{name}", [operand], operand.type)


def _binary(name: str, lhs: Value, rhs: Operand) -> Value:
    right = rhs if isinstance(rhs, Value) else full(lhs, rhs)
    return emit(f"stablehlo.{name}", [lhs, right], lhs.type)


def absolute(operand: Value) -> Value:
    """Magnitude of an integer, float or complex array (XLA "Abs"); real for a complex operand."""
    row = operand.element_type
    return emit("stablehlo.abs", [operand], typed_like(operand, _PARTS[row.name]) if row.is_complex else operand.type)


def square_root(operand: Value) -> Value:
    """Square root of a float or complex array (XLA "Sqrt")."""
    return _unary("sqrt", operand)


def exponential(operand: Value) -> Value:
    """e to the power of the operand, float or complex (XLA "Exp")."""
    return _unary("exponential", operand)


def exponential_minus_one(operand: Value) -> Value:
    """e to the power of the operand, less one, without cancellation near 0 (XLA "Expm1")."""
    return _unary("exponential_minus_one", operand)


def logarithm(operand: Value) -> Value:
    """Natural logarithm of a float or complex array (XLA "Log")."""
    return _unary("log", operand)


def logarithm_plus_one(operand: Value) -> Value:
    """Natural logarithm of one plus the operand, without cancellation near 0 (XLA "Log1p")."""
    return _unary("log_plus_one", operand)


def sine(operand: Value) -> Value:
    """Sine of a float or complex array (XLA "Sin")."""
    return _unary("sine", operand)


def cosine(operand: Value) -> Value:
    """Cosine of a float or complex array (XLA "Cos")."""
    return _unary("cosine", operand)


def tangent(operand: Value) -> Value:
    """Tangent of a float or complex array (XLA "Tan")."""
    return _unary("tan", operand)


def hyperbolic_tangent(operand: Value) -> Value:
    """Hyperbolic tangent of a float or complex array (XLA "Tanh")."""
    return _unary("tanh", operand)


def cube_root(operand: Value) -> Value:
    """Cube root of a float array, negative for a negative operand (XLA "Cbrt")."""
    return _unary("cbrt", operand)


def arc_tangent_2(y: Value, x: Operand) -> Value:
    """Angle of the point (x, y), in [-pi, pi] (XLA "Atan2")."""
    return _binary("atan2", y, x)


def floor(operand: Value) -> Value:
    """Largest integral value not above each float (XLA "Floor")."""
    return _unary("floor", operand)


def round_to_even(operand: Value) -> Value:
    """Nearest integral float, ties to the even one (XLA "RoundNearestEven")."""
    return _unary("round_nearest_even", operand)


def maximum(lhs: Value, rhs: Operand) -> Value:
    """The larger of each pair; NaN if either is NaN (XLA "Max")."""
    return _binary("maximum", lhs, rhs)


def minimum(lhs: Value, rhs: Operand) -> Value:
    """The smaller of each pair; NaN if either is NaN (XLA "Min")."""
    return _binary("minimum", lhs, rhs)


def is_finite(operand: Value) -> Value:
    """Whether each float is neither infinite nor NaN, as PRED (XLA "IsFinite")."""
    return emit("stablehlo.is_finite", [operand], typed_like(operand, "pred"))


def select(pred: Value, on_true: Operand, on_false: Operand) -> Value:
    """``on_true`` where ``pred`` holds, else ``on_false`` (XLA "Select"); one of the two may be a Python scalar.

    Raises:
        TypeError: neither is a Value.
    """
    like = on_true if isinstance(on_true, Value) else on_false
    if not isinstance(like, Value):
        raise TypeError("one alternative must be a Value")
    chosen = on_true if isinstance(on_true, Value) else full(like, on_true)
    other = on_false if isinstance(on_false, Value) else full(like, on_false)
    return emit("stablehlo.select", [pred, chosen, other], like.type)


def convert(operand: Value, dtype: Any) -> Value:
    """The same numbers in another element type (XLA "ConvertElementType")."""
    row: ElementType = element_type(dtype)
    return operand if operand.element_type == row else emit("stablehlo.convert", [operand], typed_like(operand, row))


def bitcast_convert(operand: Value, dtype: Any) -> Value:
    """The same bits in another element type of the same width (XLA "BitcastConvertType")."""
    return emit("stablehlo.bitcast_convert", [operand], typed_like(operand, dtype))


def real(operand: Value) -> Value:
    """Real part of a complex array (XLA "Real")."""
    return emit("stablehlo.real", [operand], typed_like(operand, _PARTS[operand.element_type.name]))


def imaginary(operand: Value) -> Value:
    """Imaginary part of a complex array (XLA "Imag")."""
    return emit("stablehlo.imag", [operand], typed_like(operand, _PARTS[operand.element_type.name]))


def complex_number(real_part: Value, imaginary_part: Value) -> Value:
    """A complex array from two arrays of f32 or f64 (XLA "Complex")."""
    result = typed_like(real_part, _WHOLES[real_part.element_type.name])
    return emit("stablehlo.complex", [real_part, imaginary_part], result)
