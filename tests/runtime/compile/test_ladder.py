"""The ladder of attempts: which rung answers which failure, and what is recorded of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from hloforge.dialect.errors import CompileError
from hloforge.importers.reader import read
from hloforge.runtime.artifact.attempts import FIRST, Attempts
from hloforge.runtime.artifact.executable import Executable
from hloforge.runtime.artifact.manifest import Manifest
from hloforge.runtime.compile import by_iree, in_place_audit
from hloforge.runtime.compile.compiler import compile_program
from hloforge.runtime.compile.in_place_audit import OverwrittenError
from hloforge.runtime.compile.ladder import (
    IN_A_CHILD,
    REPAIRS,
    Attempt,
    Failure,
    InProcessError,
    Rung,
    Step,
    climb,
    in_order,
    steps,
)
from hloforge.runtime.compile.targets import Target
from hloforge.runtime.upstream.ledger import WORKAROUNDS

ADD = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.add %x, %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}"""
RUNGS = in_order((Rung("fast", flags=("--fast",)), Rung("slow", flags=()), Rung("twice", flags=("--fast",))))

REFUSED = CompileError("IREE's compiler failed: no such thing")


def overwritten(*, in_one_operation: bool = False) -> OverwrittenError:
    error = OverwrittenError("IREE would overwrite at /home/me/p.mlir:2:1 what is read at /home/me/p.mlir:3:1")
    error.in_one_operation = in_one_operation
    return error


OTHER, OWN = overwritten(), overwritten(in_one_operation=True)


def climbed(errors: Sequence[CompileError], *, change: str = "") -> tuple[list[str], Executable]:
    """The names of the attempts that are made if these errors are raised, and what the last one compiles."""
    made: list[str] = []
    pending = list(errors)

    def compile_step(step: Step, attempts: Attempts) -> Executable:
        made.append(step.name)
        assert [name for name, _ in attempts.failed] == made[:-1]
        if pending:
            raise pending.pop(0)
        return Executable(b"vmfb", Manifest("p", step.program.signature, flags=step.flags, attempts=attempts))

    program = read(ADD)
    return made, climb(steps(RUNGS, program, change=change), compile_step)


@pytest.mark.parametrize(
    ("errors", "names"),
    [
        ([], ["as is"]),
        ([REFUSED], ["as is", "slow"]),
        ([OTHER], ["as is", "copies of all"]),
        ([OWN], ["as is", "copies of parts"]),
        ([OWN, OTHER], ["as is", "copies of parts", "copies of parts, copies of all"]),
        ([OWN, REFUSED], ["as is", "copies of parts", "copies of parts, slow"]),
        ([OTHER, OTHER], ["as is", "copies of all", "copies of all, slow"]),
        ([InProcessError("refused")], ["as is", "in a child process"]),
        ([InProcessError("refused"), REFUSED], ["as is", "in a child process", "slow"]),
        (
            [InProcessError("refused"), OWN, InProcessError("refused")],
            ["as is", "in a child process", "copies of parts", "copies of parts, in a child process"],
        ),
        ([REFUSED, OWN], ["as is", "slow", "copies of parts, slow"]),
    ],
)
def test_a_rung_answers_its_failures(errors: list[CompileError], names: list[str]) -> None:
    made, executable = climbed(errors)
    assert made == names
    attempts = executable.manifest.attempts
    assert attempts.compiled == names[-1]
    assert [name for name, _ in attempts.failed] == names[:-1]


def test_what_was_done_before_is_named() -> None:
    assert climbed([REFUSED], change="without fused loops")[0] == ["without fused loops", "without fused loops, slow"]


def test_the_last_error_is_raised_if_no_rung_helps() -> None:
    last = CompileError("IREE's compiler crashed (SIGSEGV)")
    with pytest.raises(CompileError) as caught:
        climbed([REFUSED, last])
    assert caught.value is last


def test_other_errors_end_the_climb() -> None:
    def compile_step(step: Step, _: Attempts) -> Executable:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        climb(steps(RUNGS, read(ADD)), compile_step)


def test_each_attempt_is_told() -> None:
    told: list[Attempt] = []

    def compile_step(step: Step, attempts: Attempts) -> Executable:
        if not attempts.failed:
            raise REFUSED
        return Executable(b"vmfb", Manifest("p", step.program.signature))

    climb(steps(RUNGS, read(ADD)), compile_step, told.append)
    assert [(attempt.name, attempt.failure) for attempt in told] == [("as is", REFUSED.message), ("slow", "")]
    assert all(attempt.seconds >= 0 for attempt in told)


def test_a_reason_is_one_line_without_folders() -> None:
    assert Failure("as is", OWN).reason == "IREE would overwrite at p.mlir:2:1 what is read at p.mlir:3:1"
    long = Failure("as is", CompileError(f"a/b or c/d\n{'second ' * 9}"))
    assert long.reason == "a/b or c/d"
    assert len(Failure("as is", CompileError("x" * 1000)).reason) == 200


@pytest.mark.usefixtures("iree_codegen")
def test_the_rung_and_the_reasons_stand_in_the_vmfb(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a compilation whose first attempt the audit refuses."""
    checks: list[object] = []

    def refuse_once(*_: Any) -> None:
        checks.append(None)
        if len(checks) == 1:
            raise OWN

    monkeypatch.setattr(in_place_audit, "check", refuse_once)
    session = compile_program(read(ADD)).load()
    attempts = session.manifest.attempts
    assert str(attempts) == "second attempt: copies of parts"
    assert attempts.failed == (("as is", "IREE would overwrite at p.mlir:2:1 what is read at p.mlir:3:1"),)
    assert session(np.arange(4, dtype=np.float32)).tolist() == [0, 2, 4, 6]


def test_the_first_attempt_leaves_no_record() -> None:
    manifest = Manifest("p", read(ADD).signature)
    assert manifest.attempts == FIRST
    assert "attempts" not in manifest.to_json()
    assert '"format": 1' in manifest.to_json()
    second = Manifest("p", read(ADD).signature, attempts=Attempts("slow", (("as is", "failed"),)))
    assert Manifest.from_json(second.to_json()) == second
    assert '"format": 2' in second.to_json()


def rungs() -> list[Rung]:
    modules = [read(ADD).module, read(ADD.replace("4xf32", "?xf32")).module]
    targets = [Target.parse(name) for name in ("cpu", "vulkan", "cuda:sm_80")]
    found = [rung for module in modules for target in targets for rung in by_iree._optimizations(module, target)]
    return [*found, *REPAIRS, IN_A_CHILD]


def test_workarounds_of_rungs_are_in_the_ledger() -> None:
    records = {record.name: record for record in WORKAROUNDS}
    named = [rung for rung in rungs() if rung.workaround]
    assert {rung.workaround for rung in named} >= {"hoisted-constants", "copied-results", "overwritten-operands"}
    for rung in named:
        record = records[rung.workaround]
        assert {getattr(by_iree, name) for name in record.flags} <= set(rung.flags or ()), rung.name


def test_names_tell_rungs_apart() -> None:
    for kind in ("cpu", "vulkan", "cuda:sm_80"):
        found = by_iree._optimizations(read(ADD).module, Target.parse(kind))
        assert found[0].name == "as is"
        names = [rung.name for rung in (*found, *REPAIRS, IN_A_CHILD)]
        assert len(set(names)) == len(names)
        assert len({rung.flags for rung in found}) == len(found)
