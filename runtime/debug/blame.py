"""Find the guilty pass or IREE's compiler, by partial compilation and by interpretation between passes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from hloforge.dialect.errors import Error
from hloforge.dialect.mlir import in_context, ir, parse_module
from hloforge.dialect.program import Program, entry_function
from hloforge.runtime.debug.oracle import DIFFERS, Candidate, Oracle, OutOfBudgetError, Symptom
from hloforge.runtime.debug.stages import CODE_GENERATION, Recipe
from hloforge.runtime.debug.target_process import TargetError
from hloforge.runtime.reference.compare import Report, compare

OURS = "hloforge"
IREE = "IREE"
UNKNOWN = "unknown"


@dataclass(frozen=True)
class Blame:
    """Who is to blame.

    Attributes:
        who: ``hloforge``, ``IREE`` or ``unknown``.
        stage: the pass that makes the difference, or ``code generation``; empty if none does.
        reason: how it was found out, in sentences.
    """

    who: str
    stage: str
    reason: str


@dataclass(frozen=True)
class _Stage:
    """What a pass leaves.

    Attributes:
        upto: how many passes have run, it included.
        says: what an engine says of it: True if it computes what the program does; None if no engine can say.
    """

    name: str
    upto: int
    says: bool | None


def blame(oracle: Oracle, candidate: Candidate, symptom: Symptom) -> Blame:
    """Find out who is to blame for what goes wrong with a small program."""
    try:
        if symptom.step.startswith("pass "):
            return _of_pass(oracle, candidate, symptom)
        if oracle.recipe.plain:
            return Blame(
                IREE, "", "No pass of hloforge runs with --plain but those that make StableHLO of the program."
            )
        if oracle.recipe.may_generate:
            by_iree = oracle.symptom(candidate, replace(oracle.recipe, by_iree=True))
            if not symptom.is_like(by_iree):
                return Blame(OURS, CODE_GENERATION, f"Our own code is wrong; {_with_iree(by_iree)}.")
        return _of_difference(oracle, candidate, symptom)
    except OutOfBudgetError:
        return Blame(UNKNOWN, "", "The time was over: --budget=SECONDS gives more.")
    except (TargetError, Error) as error:
        return Blame(UNKNOWN, "", f"The passes could not be replayed: {error.message}.")


def _of_pass(oracle: Oracle, candidate: Candidate, symptom: Symptom) -> Blame:
    name = symptom.step.removeprefix("pass ")
    if symptom.kind == "refused":
        return Blame(
            OURS, name, "The target does not compile this operation, and the message says so; no result is wrong."
        )
    return Blame(OURS, name, f"The pass itself fails, before IREE's compiler runs{_plainly(oracle, candidate)}.")


def _plainly(oracle: Oracle, candidate: Candidate) -> str:
    alone = oracle.symptom(candidate, replace(oracle.recipe, plain=True))
    return f"; without hloforge's passes IREE's compiler fails as well: {alone}" if alone else ""


def _of_difference(oracle: Oracle, candidate: Candidate, symptom: Symptom) -> Blame:
    """Of a wrong result, and of a failure of IREE's compiler or of the compiled program."""
    alone = oracle.symptom(candidate, replace(oracle.recipe, plain=True))
    stages = list(_stages(oracle, candidate, interpret=symptom.kind == DIFFERS))
    changed = next((stage for stage in stages if stage.says is False), None)
    if changed is not None:
        return Blame(
            OURS,
            changed.name,
            f"{_before(stages, changed)} after it the program computes something else{_iree_says(alone)}.",
        )
    if symptom.is_like(alone):
        return Blame(
            IREE, "", "IREE's compiler alone, without hloforge's passes, goes wrong in the same way on StableHLO."
        )
    first, before = _first_failing(oracle, candidate, symptom, stages)
    if first is None:
        return Blame(IREE, "", "No pass makes the difference: it is in the flags that IREE's compiler optimizes with.")
    if first.says:
        reason = (
            "an engine says that the program computes the same after it, and IREE's compiler goes wrong from there on"
        )
        return Blame(IREE, first.name, f"The pass exposes it: {reason}{_iree_says(alone)}.")
    reason = f"IREE's compiler does well {before}, and goes wrong after this pass, whose code no engine can interpret"
    return Blame(UNKNOWN, first.name, f"{reason}: the pass, or IREE's treatment of what it writes{_iree_says(alone)}.")


def _iree_says(alone: Symptom | None) -> str:
    if alone is None:
        return "; IREE's compiler alone, without hloforge's passes, is right"
    return f"; IREE's compiler alone, without hloforge's passes, goes wrong too: {str(alone).splitlines()[0]}"


def _with_iree(found: Symptom | None) -> str:
    if found is None:
        return "with HLOFORGE_CODEGEN=iree, where IREE's compiler makes the code, the program is right"
    return f"with HLOFORGE_CODEGEN=iree it goes wrong in another way: {str(found).splitlines()[0]}"


def _before(stages: list[_Stage], changed: _Stage) -> str:
    right = [stage.name for stage in stages[: stages.index(changed)] if stage.says]
    return f"Up to the pass {right[-1]} engines say the same as of the program;" if right else "It is the first pass;"


def _stages(oracle: Oracle, candidate: Candidate, *, interpret: bool) -> Iterator[_Stage]:
    """What each pass that changes the program leaves; engines are asked as long as they can follow."""
    expected = _expected(oracle, candidate) if interpret else None
    for stage in oracle.process.stages(candidate.program, oracle.recipe):
        says = _says(oracle, candidate, stage.module, expected) if expected is not None else None
        yield _Stage(stage.name, stage.upto, says)


def _expected(oracle: Oracle, candidate: Candidate) -> list[tuple[str, object]]:
    """What each engine says of the program itself."""
    found = []
    for engine in reversed(oracle.engines):
        try:
            found.append((engine.name, engine.prepare(candidate.program)(*(candidate.arguments or ()))))
        except Error:
            continue
    return found


def _says(oracle: Oracle, candidate: Candidate, data: bytes, expected: list[tuple[str, object]]) -> bool | None:
    """Whether an engine says of a module what it says of the program; None if its border changed, or none can say."""
    module = parse_module(data)
    if _border(module) != _border(candidate.program.module) or not _is_portable(module):
        return None
    staged = Program(module, candidate.program.signature, candidate.program.name, candidate.program.source)
    engines = {engine.name: engine for engine in oracle.engines}
    reports: list[Report] = []
    for name, results in expected:
        try:
            found = engines[name].prepare(staged)(*(candidate.arguments or ()))
        except Error:
            continue
        reports.append(compare(found, results, tolerance=oracle.tolerance))
    return any(report.agrees for report in reports) if reports else None


def _border(module: ir.Module) -> str:
    with in_context(module):
        return str(ir.TypeAttr(entry_function(module).operation.attributes["function_type"]).value)


def _is_portable(module: ir.Module) -> bool:
    """Whether it holds StableHLO alone."""
    from hloforge.dialect.operations import operations

    return all(op.name.partition(".")[0] in ("stablehlo", "chlo", "func", "builtin") for op in operations(module))


def _first_failing(
    oracle: Oracle, candidate: Candidate, symptom: Symptom, stages: list[_Stage]
) -> tuple[_Stage | None, str]:
    """The first pass after which IREE's compiler fails so, and what was right before it."""
    right = "on the program itself"
    for stage in stages:
        recipe: Recipe = replace(oracle.recipe, upto=stage.upto, quick=True)
        found = oracle.symptom(candidate, recipe)
        if symptom.is_like(found):
            return stage, right
        if found is None:
            right = f"after {stage.name}"
    return None, right
