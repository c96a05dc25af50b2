"""How exact a result can be: by the narrowest floats in which something that it is made of is computed.

A sum of f32 that is converted to f64 at the end is a number of f32, and an engine that comes nearer to its float64
truth than a step of f32 is lucky.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ml_dtypes

from hloforge.dialect.element_types import ElementType, element_type
from hloforge.dialect.mlir import ir
from hloforge.dialect.operations import blocks, operations, string_attribute, symbols
from hloforge.dialect.program import Program, entry_function
from hloforge.dialect.quantized import is_quantized
from hloforge.dialect.traits import Kind, of_kind

# What rounds nothing, whatever its type.
_KEEPING = """
abs bitcast_convert ceil clamp complex floor imag maximum minimum negate real round_nearest_afz round_nearest_even
select sign sort
"""
_EXACT = of_kind(Kind.MOVES, Kind.UPDATES, Kind.MAKES, Kind.ASKS, Kind.CONTROL, Kind.TUPLES, Kind.TOKENS) | frozenset(
    f"stablehlo.{name}" for name in _KEEPING.split()
)


def machine_epsilons(program: Program) -> list[float]:
    """For each result the machine epsilon (from 1 to the next number) of the narrowest floats that it is computed in; 0
    if it is computed in none. Whatever a region or a called function does counts for all results of its operation."""
    *_, terminator = entry_function(program.module).regions[0].blocks[0].operations
    results = [value for value in terminator.operation.operands if isinstance(value.type, ir.ShapedType)]
    return [max(map(_epsilon, operations_behind(value, program.module)), default=0.0) for value in results]


def operations_behind(value: Any, module: ir.Module) -> Iterator[ir.Operation]:
    """The operations that a value depends on, with those of their regions and of the functions that they call."""
    functions = {string_attribute(op, "sym_name"): op for op in operations(module, ["func.func"])}
    seen: set[ir.Operation] = set()
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one.owner, ir.Block) or one.owner.operation in seen:
            continue
        op = one.owner.operation
        seen.add(op)
        waiting += op.operands
        for inner in _inside(op, functions, set()):
            waiting += inner.operands
            yield inner


def _inside(op: Any, functions: dict[str, Any], called: set[str]) -> Iterator[Any]:
    """An operation, and those of its regions and of the functions that they call."""
    yield op
    nested = [one for block in blocks(op) for view in block.operations for one in (view.operation, *operations(view))]
    for one in (op, *nested):
        if one is not op:
            yield one
        for name in symbols(one) & functions.keys() - called:
            called.add(name)
            yield from _inside(functions[name], functions, called)


def _epsilon(op: Any) -> float:
    """Of an operation that rounds; 0 of others."""
    if op.name in _EXACT or not op.name.startswith(("stablehlo.", "chlo.")):
        return 0.0
    rows = [row for result in op.results if (row := _float(result.type)) is not None]
    if op.name == "stablehlo.convert" and rows:
        source = _float(op.operands[0].type)
        if source is not None and _bits(source) <= _bits(rows[0]):
            return 0.0
    return max((float(ml_dtypes.finfo(row.dtype).eps) for row in rows), default=0.0)


def _float(type_: Any) -> ElementType | None:
    if not isinstance(type_, ir.RankedTensorType) or is_quantized(type_):
        return None
    row = element_type(type_.element_type)
    return row if row.is_float or row.is_complex else None


def _bits(row: ElementType) -> int:
    return row.bits // 2 if row.is_complex else row.bits
