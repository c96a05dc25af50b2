"""Element types to MLIR's and back without text: a builder does this for every operation, and parsing costs more."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from hloforge.dialect.element_types import TABLE, ElementType, Kind, element_type
from hloforge.dialect.mlir import ir


def _class(row: ElementType) -> Any:
    """MLIR has a class of its own for every float type: ``F32Type``, ``Float8E4M3FNType``."""
    return getattr(ir, f"Float{row.mlir[1:]}Type" if row.bits <= 8 else f"{row.mlir.upper()}Type")


# The tables of MLIR's classes are made at the first look, because what only runs vmfbs never looks.
@cache
def _by_class() -> dict[type[ir.Type], ElementType]:
    return {_class(row): row for row in TABLE if row.is_float}


@cache
def _by_part() -> dict[type[ir.Type], ElementType]:
    return {ir.F32Type: element_type("c64"), ir.F64Type: element_type("c128")}


_BY_WIDTH = {(row.kind is Kind.UNSIGNED, row.bits): row for row in TABLE if row.is_integer or row.kind is Kind.PRED}


def _maker(row: ElementType) -> Callable[[], Any]:
    if row.is_complex:
        part = ir.F32Type if row.bits == 64 else ir.F64Type
        return lambda: ir.ComplexType.get(part.get())
    if row.is_float:
        get: Callable[[], Any] = _class(row).get
        return get
    make = ir.IntegerType.get_unsigned if row.kind is Kind.UNSIGNED else ir.IntegerType.get_signless
    return lambda: make(row.bits)


@cache
def _makers() -> dict[str, Callable[[], Any]]:
    return {row.name: _maker(row) for row in TABLE}


def type_of(element: ElementType) -> Any:
    """The MLIR type of an element type, in the current context."""
    return _makers()[element.name]()


def element_of(type_: ir.Type) -> ElementType:
    """The element type of an MLIR type. Raises ValueError for one that XLA lacks."""
    row = _by_class().get(type(type_))
    if row is None and isinstance(type_, ir.ComplexType):
        row = _by_part().get(type(type_.element_type))
    if row is None and isinstance(type_, ir.IntegerType) and not type_.is_signed:
        row = _BY_WIDTH.get((type_.is_unsigned, type_.width))
    return row if row is not None else element_type(type_)
