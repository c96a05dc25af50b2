"""HLO dumps of real programs, judged by XLA's CPU client on random inputs."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from hloforge.dialect.errors import Error
from hloforge.importers.reader import read
from hloforge.runtime.compiler import compile_program
from hloforge.runtime.judgement import judge
from hloforge.runtime.options import CompileOptions
from hloforge.runtime.plausible_inputs import plausible_inputs
from hloforge.runtime.references import ReferenceEngine, reference
from tests.expectations import Outcome
from tests.support import REPRODUCERS, shared_files

EXPECTATIONS = Path(__file__).parent / "expected_failures_cpu.txt"
HEADER = "HLO dumps that do not agree with XLA's CPU client yet. Stage reference: XLA's client gives no answer."
# Seconds for one program, for one compilation by IREE, and for one answer of XLA.
TIMEOUT = 300.0
_COMPILE_TIMEOUT = 200.0
_REFERENCE_TIMEOUT = 120.0


def programs() -> dict[str, Path]:
    """The dumps by ``folder/name``."""
    return {f"{path.parent.name}/{path.stem}": path for path in shared_files("hlo/*/*.hlo")}


@cache
def _xla() -> ReferenceEngine:
    return reference("xla", timeout=_REFERENCE_TIMEOUT)


def outcome(name: str) -> Outcome:
    """Compile a dump, run it on random inputs and compare with XLA's client."""
    try:
        program = read(programs()[name], elided="random", drop_unknown_attributes=True)
    except Error as error:
        return Outcome("import", str(error))
    try:
        executable = compile_program(
            program, options=CompileOptions(timeout=_COMPILE_TIMEOUT, reproducer_dir=REPRODUCERS)
        )
    except Error as error:
        return Outcome("compile", str(error))
    try:
        inputs = plausible_inputs(program)
        actual = executable.load()(*inputs)
    except (Error, RuntimeError) as error:
        return Outcome("run", str(error))
    try:
        report = judge(_xla(), program, inputs, actual)
    except Error as error:
        return Outcome("reference", str(error))
    return Outcome() if report.agrees else Outcome("numerics", report.text())
