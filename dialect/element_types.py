"""Element types: XLA's names, numpy's dtypes and MLIR's types, as one table.

Source: XLA "Shapes and Layout", ``xla_data.proto`` (PrimitiveType), StableHLO spec "Types".
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from hloforge.dialect.mlir import ir

if TYPE_CHECKING:
    from hloforge.dialect.shapes import Shape


class Kind(enum.Enum):
    """What arithmetic an element type has."""

    PRED = "pred"
    SIGNED = "signed"
    UNSIGNED = "unsigned"
    FLOAT = "float"
    COMPLEX = "complex"


@dataclass(frozen=True)
class ElementType:
    """One of XLA's array element types.

    Attributes:
        name: XLA's spelling (``s32``, ``f8e4m3fn``).
        mlir: the spelling in StableHLO (``i32``, ``f8E4M3FN``).
        dtype: the numpy dtype (ml_dtypes for narrow ones; one element a byte for sub-byte types).
        kind: its arithmetic.
        bits: width of one element in bits.
    """

    name: str
    mlir: str
    dtype: np.dtype[Any]
    kind: Kind
    bits: int

    def __str__(self) -> str:
        return self.name

    def __getitem__(self, dimensions: int | tuple[int, ...]) -> Shape:
        """``element_type("f32")[4, 8]`` is the shape ``f32[4,8]``, ``[()]`` a scalar's."""
        from hloforge.dialect.shapes import Shape  # shapes are made of element types

        return Shape.array(self, *(dimensions if isinstance(dimensions, tuple) else (dimensions,)))

    @property
    def is_integer(self) -> bool:
        return self.kind in (Kind.SIGNED, Kind.UNSIGNED)

    @property
    def is_float(self) -> bool:
        return self.kind is Kind.FLOAT

    @property
    def is_complex(self) -> bool:
        return self.kind is Kind.COMPLEX

    @property
    def is_sub_byte(self) -> bool:
        return self.bits < 8 and self.kind is not Kind.PRED


def _row(name: str, mlir: str, dtype: Any, kind: Kind, bits: int) -> ElementType:
    return ElementType(name, mlir, np.dtype(dtype), kind, bits)


TABLE: tuple[ElementType, ...] = (
    _row("pred", "i1", np.bool_, Kind.PRED, 1),
    _row("s2", "i2", ml_dtypes.int2, Kind.SIGNED, 2),
    _row("s4", "i4", ml_dtypes.int4, Kind.SIGNED, 4),
    _row("s8", "i8", np.int8, Kind.SIGNED, 8),
    _row("s16", "i16", np.int16, Kind.SIGNED, 16),
    _row("s32", "i32", np.int32, Kind.SIGNED, 32),
    _row("s64", "i64", np.int64, Kind.SIGNED, 64),
    _row("u2", "ui2", ml_dtypes.uint2, Kind.UNSIGNED, 2),
    _row("u4", "ui4", ml_dtypes.uint4, Kind.UNSIGNED, 4),
    _row("u8", "ui8", np.uint8, Kind.UNSIGNED, 8),
    _row("u16", "ui16", np.uint16, Kind.UNSIGNED, 16),
    _row("u32", "ui32", np.uint32, Kind.UNSIGNED, 32),
    _row("u64", "ui64", np.uint64, Kind.UNSIGNED, 64),
    _row("f4e2m1fn", "f4E2M1FN", ml_dtypes.float4_e2m1fn, Kind.FLOAT, 4),
    _row("f6e2m3fn", "f6E2M3FN", ml_dtypes.float6_e2m3fn, Kind.FLOAT, 6),
    _row("f6e3m2fn", "f6E3M2FN", ml_dtypes.float6_e3m2fn, Kind.FLOAT, 6),
    _row("f8e3m4", "f8E3M4", ml_dtypes.float8_e3m4, Kind.FLOAT, 8),
    _row("f8e4m3", "f8E4M3", ml_dtypes.float8_e4m3, Kind.FLOAT, 8),
    _row("f8e4m3fn", "f8E4M3FN", ml_dtypes.float8_e4m3fn, Kind.FLOAT, 8),
    _row("f8e4m3b11fnuz", "f8E4M3B11FNUZ", ml_dtypes.float8_e4m3b11fnuz, Kind.FLOAT, 8),
    _row("f8e4m3fnuz", "f8E4M3FNUZ", ml_dtypes.float8_e4m3fnuz, Kind.FLOAT, 8),
    _row("f8e5m2", "f8E5M2", ml_dtypes.float8_e5m2, Kind.FLOAT, 8),
    _row("f8e5m2fnuz", "f8E5M2FNUZ", ml_dtypes.float8_e5m2fnuz, Kind.FLOAT, 8),
    _row("f8e8m0fnu", "f8E8M0FNU", ml_dtypes.float8_e8m0fnu, Kind.FLOAT, 8),
    _row("bf16", "bf16", ml_dtypes.bfloat16, Kind.FLOAT, 16),
    _row("f16", "f16", np.float16, Kind.FLOAT, 16),
    _row("f32", "f32", np.float32, Kind.FLOAT, 32),
    _row("f64", "f64", np.float64, Kind.FLOAT, 64),
    _row("c64", "complex<f32>", np.complex64, Kind.COMPLEX, 64),
    _row("c128", "complex<f64>", np.complex128, Kind.COMPLEX, 128),
)

_BY_NAME = {row.name: row for row in TABLE}
_BY_MLIR = {row.mlir: row for row in TABLE}
_BY_DTYPE = {row.dtype: row for row in TABLE}


# Of numpy's numbers of types, which packages register from here on.
_FIRST_OF_OTHERS = 256


def is_of_numpy(dtype: np.dtype[Any]) -> bool:
    """Whether numpy itself defines a dtype, and no other package.

    ``isbuiltin`` asks whether an object is numpy's own for the type, and pickled and copied ones are not.
    """
    return dtype.num < _FIRST_OF_OTHERS


def element_type(source: str | ElementType | np.dtype[Any] | type | Any) -> ElementType:
    """The element type named by XLA's or MLIR's spelling, a numpy dtype or scalar type, or an MLIR type.

    Raises:
        ValueError: the name or dtype is none of XLA's array element types.
    """
    if isinstance(source, ElementType):
        return source
    if isinstance(source, str):
        row = _BY_NAME.get(source) or _BY_MLIR.get(source)
    elif isinstance(source, np.dtype | type):
        row = _BY_DTYPE.get(np.dtype(source))
    else:
        row = _BY_MLIR.get(str(source))
    if row is None:
        raise ValueError(f"{source} is not an XLA element type; known: {', '.join(_BY_NAME)}")
    return row


def mlir_type(source: str | ElementType | np.dtype[Any] | type) -> Any:
    """The MLIR element type, in the current context."""
    return ir.Type.parse(element_type(source).mlir)
