"""What each target compiles: op x element type -> native, decomposed by a pass, or rejected for a reason.

The tables are data. The first row that fits an operation decides; an operation without a row is rejected. Decomposing
passes are in a target's pipeline because a row names them: a newer IREE shrinks the list by deleting rows.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from hloforge.dialect.element_types import element_type
from hloforge.dialect.errors import OptionError
from hloforge.dialect.marks import BELOW
from hloforge.dialect.mlir import AnyOp, ir
from hloforge.pipelines.capability import cpu_table, cuda_table, vulkan_table
from hloforge.pipelines.capability.verdicts import Capability, Verdict

__all__ = ["TABLES", "Capability", "Verdict", "capability", "decomposing_passes", "table"]

TABLES: dict[str, tuple[Capability, ...]] = {"cpu": cpu_table.ROWS, "vulkan": vulkan_table.ROWS}
# Of targets whose programs were compiled and never run: no page says that their results were compared.
_COMPILED = {"cuda": cuda_table.ROWS}

# Dialects below StableHLO, which IREE takes as they are.
_BELOW = BELOW | {"builtin", "func"}
_NATIVE = Capability("", Verdict.NATIVE)


def table(target: str) -> tuple[Capability, ...]:
    """The rows of a target kind. Raises OptionError for a target without a table."""
    rows = TABLES.get(target) or _COMPILED.get(target)
    if rows is None:
        raise OptionError(
            f"no capability table for target {target!r}", hint=f"targets: {', '.join((*TABLES, *_COMPILED))}"
        )
    return rows


@cache
def _rows_by_op(target: str) -> dict[str, tuple[tuple[int, Capability], ...]]:
    rows: dict[str, list[tuple[int, Capability]]] = {}
    for number, row in enumerate(table(target)):
        rows.setdefault(row.op, []).append((number, row))
    return {op: tuple(entries) for op, entries in rows.items()}


def capability(op: AnyOp, target: str) -> Capability:
    """The row that decides on an operation (an ``ir.Operation``) for a target kind."""
    if op.name.partition(".")[0] in _BELOW:
        return _NATIVE
    rows = _rows_by_op(target)
    names = _names(op)
    candidates = sorted((entry for name in names for entry in rows.get(name, ())), key=lambda entry: entry[0])
    elements = _elements(op)
    return next((row for _, row in candidates if row.fits(op, elements)), None) or _unknown(op.name)


def _unknown(name: str) -> Capability:
    dialect = name.partition(".")[0]
    reason = f"it is no operation of StableHLO but of dialect '{dialect}'" if dialect != "stablehlo" else "no lowering"
    return Capability(name, Verdict.REJECT, reason=reason, hint="lower it to StableHLO before hloforge reads it")


def _names(op: Any) -> tuple[str, ...]:
    """The names that a row may use for the operation."""
    dialect = op.name.partition(".")[0]
    names = (op.name, f"{dialect}.*", "*")
    if op.name == "stablehlo.custom_call":
        return (f"{op.name}@{op.attributes['call_target_name'].value}", *names)
    return names


def _elements(op: AnyOp) -> frozenset[str]:
    types = [value.type for value in (*op.operands, *op.results)]
    return frozenset(_element_name(type_) for type_ in types if isinstance(type_, ir.RankedTensorType))


@cache
def _name_of_text(text: str) -> str:
    try:
        return element_type(text).name
    except ValueError:
        return text


def _element_name(type_: ir.RankedTensorType) -> str:
    """XLA's name of a tensor's element type; ``quantized`` for any of StableHLO's quantized types."""
    text = str(type_.element_type)
    return "quantized" if text.startswith("!quant") else _name_of_text(text)


@cache
def decomposing_passes(target: str) -> frozenset[str]:
    """The names of the passes that some row of the target's table asks for."""
    return frozenset(row.by for row in table(target) if row.verdict is Verdict.DECOMPOSE)
