"""HLO dumps of real programs, judged by XLA's CPU client on random inputs."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from hloforge.dialect.errors import Error
from hloforge.importers.reader import read
from hloforge.pipelines.replicas.fold import fold_replicas
from hloforge.runtime.compile.compiler import compile_program
from hloforge.runtime.data.plausible_inputs import plausible_inputs
from hloforge.runtime.options import CompileOptions
from hloforge.runtime.reference.correctness import judge
from hloforge.runtime.reference.engines import ReferenceEngine, reference
from hloforge.runtime.replicas.replicas import Replicas
from tests.expectations import Outcome
from tests.support import REPRODUCERS, shared_files

EXPECTATIONS = Path(__file__).parent / "expected_failures_cpu.txt"
HEADER = "HLO dumps that do not agree with XLA's CPU client yet. Stage reference: XLA's client gives no answer."
# Seconds for one program, for one compilation by IREE, and for one answer of XLA.
TIMEOUT = 300.0
_COMPILE_TIMEOUT = 200.0
_REFERENCE_TIMEOUT = 120.0
# How many replicas the dumps that communicate were made for, which they do not say.
_REPLICAS = {
    "benchmarks/u4_all_gather_1x8": 8,
    "optimized/xla__tools__hlo_opt__tests__gpu_hlo_collective_cse": 8,
}


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
    replicas = _REPLICAS.get(name, 1)
    try:
        executable = compile_program(
            program, options=CompileOptions(timeout=_COMPILE_TIMEOUT, reproducer_dir=REPRODUCERS, replicas=replicas)
        )
    except Error as error:
        return Outcome("compile", str(error))
    try:
        if replicas > 1:
            # XLA computes the folded program, whose arrays have the same leading dimension.
            program = fold_replicas(program, replicas)
        inputs = plausible_inputs(program)
        run = executable.load() if replicas == 1 else Replicas(executable, replicas)
        actual = run(*inputs)
    except (Error, RuntimeError) as error:
        return Outcome("run", str(error))
    try:
        report = judge(_xla(), program, inputs, actual)
    except Error as error:
        return Outcome("reference", str(error))
    return Outcome() if report.agrees else Outcome("numerics", report.text())
