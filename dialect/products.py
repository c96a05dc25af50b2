"""What dots and convolutions share: the element type of a sum of products, and its precision.

Source: XLA's shape inference (HigherPrecisionElementType, MaybeUpcast), ``xla_data.proto`` (PrecisionConfig);
StableHLO specification "dot_general" (DotAlgorithm).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import ml_dtypes

from hloforge.dialect.element_types import ElementType, Kind
from hloforge.dialect.emission import enum
from hloforge.dialect.errors import OperationError
from hloforge.dialect.mlir import ir, stablehlo
from hloforge.dialect.rules import element_of

# One of DEFAULT, HIGH and HIGHEST for both operands, or one for each.
Precision: TypeAlias = str | Sequence[str]

_PRECISIONS = ("DEFAULT", "HIGH", "HIGHEST")
# The algorithms that XLA knows: the operands' precision, the accumulator's type, and products an element.
_ALGORITHMS = {
    "f16_f16_f16": ("f16", "f16", 1),
    "f16_f16_f32": ("f16", "f32", 1),
    "bf16_bf16_bf16": ("bf16", "bf16", 1),
    "bf16_bf16_f32": ("bf16", "f32", 1),
    "bf16_bf16_f32_x3": ("bf16", "f32", 3),
    "bf16_bf16_f32_x6": ("bf16", "f32", 6),
    "tf32_tf32_f32": ("tf32", "f32", 1),
    "tf32_tf32_f32_x3": ("tf32", "f32", 3),
    "f32_f32_f32": ("f32", "f32", 1),
    "f64_f64_f64": ("f64", "f64", 1),
}


@dataclass(frozen=True)
class DotAlgorithm:
    """The least precision in which a dot is computed.

    Attributes:
        lhs_precision, rhs_precision: the element types that the operands are rounded to: ``f32``, or ``tf32``, which
            no array has.
        accumulation: the element type of the sums.
        primitive_operations: products an element; more than one imitate a higher precision by parts of the operands.
        imprecise_accumulation: whether hardware may add with fewer bits; of 8-bit floats only.
    """

    lhs_precision: str
    rhs_precision: str
    accumulation: str
    primitive_operations: int = 1
    imprecise_accumulation: bool = False

    @classmethod
    def named(cls, name: str) -> DotAlgorithm:
        """XLA's algorithm of a name, such as ``bf16_bf16_f32_x3``; its prefix ``dot_`` may be before it.

        Raises:
            OperationError: there is none of that name.
        """
        row = _ALGORITHMS.get(name.lower().removeprefix("dot_"))
        if row is None:
            raise OperationError(f"there is no dot algorithm {name!r}", hint=_hint())
        precision, accumulation, operations = row
        return cls(precision, precision, accumulation, operations)

    def attribute(self) -> Any:
        """``#stablehlo.dot_algorithm<…>``.

        Raises:
            OperationError: XLA knows no such algorithm.
        """
        if not self._is_known():
            raise OperationError(f"{self} is no algorithm that XLA knows", hint=_hint())
        lhs, rhs, accumulation = map(_precision_type, (self.lhs_precision, self.rhs_precision, self.accumulation))
        return stablehlo.DotAlgorithm.get(
            lhs, rhs, accumulation, 1, 1, self.primitive_operations, self.imprecise_accumulation
        )

    def _is_known(self) -> bool:
        eight_bits = all(re.match("f8", name) for name in (self.lhs_precision, self.rhs_precision))
        if eight_bits and (self.accumulation, self.primitive_operations) == ("f32", 1):
            return True
        row = (self.lhs_precision, self.accumulation, self.primitive_operations)
        return self.lhs_precision == self.rhs_precision and not self.imprecise_accumulation and row in _rows()


def _rows() -> set[tuple[str, str, int]]:
    return set(_ALGORITHMS.values())


def _hint() -> str:
    return f"it is one of {', '.join(_ALGORITHMS)}, or of 8-bit floats with f32 sums"


def _precision_type(name: str) -> Any:
    return ir.Type.parse(name if name == "tf32" else element_of(name).mlir)


def precision_config(precision: Precision) -> Any:
    """``[#stablehlo<precision …>, …]``, one for each of two operands; None for the default.

    Raises:
        OperationError: there is no such precision, or not one or two are given.
    """
    pair = [precision] * 2 if isinstance(precision, str) else list(precision)
    names = [name.upper() for name in pair]
    if len(names) != 2 or not set(names) <= set(_PRECISIONS):
        raise OperationError(
            f"precision {precision!r} must be one of {', '.join(_PRECISIONS)}, or one of them for each operand"
        )
    return None if names == ["DEFAULT"] * 2 else ir.ArrayAttr.get([enum("precision", name) for name in names])


def product_element(lhs: ElementType, rhs: ElementType, preferred_element_type: Any = None) -> ElementType:
    """The element type of a sum of products: the preferred one, else the operand's of higher precision.

    Raises:
        OperationError: the preferred type is narrower than integers or preds.
    """
    own = max(lhs, rhs, key=_rank)
    if preferred_element_type is None:
        return own
    preferred = element_of(preferred_element_type)
    if not own.is_float and preferred.bits < own.bits:
        raise OperationError(f"preferred_element_type {preferred} must not be narrower than {own}")
    return preferred


def _rank(element: ElementType) -> tuple[bool, int, int, int, bool]:
    """XLA's order of precision: complex, then a float's range and precision, then width, then signed."""
    exponent, mantissa = -1, -1
    if element.is_float:
        limits = ml_dtypes.finfo(element.dtype)
        exponent, mantissa = int(limits.maxexp), int(limits.nmant)
    return element.is_complex, exponent, mantissa, element.bits, element.kind is Kind.SIGNED
