"""Which programs have a plan."""

from __future__ import annotations

from hloforge.dialect.mlir import ir
from hloforge.dialect.program import Program, entry_function
from hloforge.pipelines.evaluation.arithmetic import ARITHMETIC
from hloforge.pipelines.evaluation.control import FLOWS
from hloforge.pipelines.evaluation.moves import MOVES
from hloforge.pipelines.evaluation.plan import MOST, Plan, Planner, UnplannedError

_RULES = {**ARITHMETIC, **MOVES}


def plan_of(program: Program) -> Plan | None:
    """The plan of a program; None if it has none.

    Args:
        program: as it was read, before any pass.
    """
    if program.template is not None:
        return None
    functions = {
        ir.StringAttr(op.attributes["sym_name"]).value: op.operation
        for op in program.module.body.operations
        if op.operation.name == "func.func"
    }
    planner = Planner(functions, _RULES, FLOWS)
    try:
        body = planner.body(entry_function(program.module).operation.regions[0].blocks[0])
    except UnplannedError:
        return None
    is_exact = not (planner.multiplies and planner.adds)
    return Plan(body, planner.size) if is_exact and body.cost <= MOST else None
