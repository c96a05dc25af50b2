"""Rows compiled for 64-bit Arm, whose kernels an emulator runs; the reference engines judge what comes out.

A name is a row's id, which stands for all of its element types.
"""

from __future__ import annotations

from pathlib import Path

from hloforge.dialect.errors import Error
from hloforge.runtime.compile.compiler import compile_program
from hloforge.runtime.options import CompileOptions
from tests.expectations import Outcome
from tests.operations import suite
from tests.operations.programs import program_of
from tests.operations.tables import ROWS

EXPECTATIONS = Path(__file__).parent / "expected_failures_aarch64.txt"
HEADER = "Rows of operations that code for 64-bit Arm does not compute, or not rightly, on the emulated processor."
TIMEOUT = 240.0
TARGET = "cpu:aarch64"


def programs() -> list[str]:
    """The rows that neither talk to their host nor are judged by numbers of their own."""
    return [
        name for name in suite.programs() if ROWS[name].oracle is None and suite.elements_left(name, suite.EXPECTATIONS)
    ]


def outcome(name: str) -> Outcome:
    """Compile a row by code generation, run its kernels in the emulator, and compare with the reference engines."""
    from tests.emulated_aarch64 import EmulatedError, emulated  # an emulator that may not be installed

    row = ROWS[name]
    program, arguments = program_of(row, suite.elements_left(name, suite.EXPECTATIONS))
    try:
        executable = compile_program(program, TARGET, CompileOptions())
    except Error as error:
        return Outcome("compile", str(error))
    if not executable.manifest.is_generated:
        return Outcome("compile", "IREE's compiler made it")
    try:
        actual = emulated(executable, *arguments)
    except EmulatedError as error:
        return Outcome("run", str(error))
    return suite.judged(row.judge, program, arguments, actual)[0]
