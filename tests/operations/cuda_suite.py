"""Rows in f32 and s32, compiled for CUDA without a GPU: what the vmfb holds is PTX of the asked architecture.

A name is ``id/architecture``. NVIDIA's assembler judges the text where it is installed, and an emulator runs it where
there is a compiler to build it; the reference engines judge what comes out.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from emulator import library
from hloforge.dialect.errors import Error
from hloforge.runtime.compile.compiler import compile_program
from hloforge.runtime.options import CompileOptions
from tests import ptx
from tests.expectations import Outcome
from tests.operations import suite
from tests.operations.programs import elements_of, program_of
from tests.operations.tables import ROWS

EXPECTATIONS = Path(__file__).parent / "expected_failures_cuda.txt"
HEADER = "Rows of operations, in f32 and s32, that do not compile for CUDA or are wrong there, by architecture."
ARCHITECTURES = ("sm_80", "sm_90")
# Seconds for one name, and for one run of IREE's compiler.
TIMEOUT, _COMPILER = 600.0, 300.0
_ELEMENTS = {"f32", "s32"}


def programs() -> list[str]:
    """The rows that have one of the element types, by architecture."""
    rows = [row_id for row_id in suite.programs() if _ELEMENTS.intersection(elements_of(ROWS[row_id]))]
    return [f"{row_id}/{architecture}" for architecture in ARCHITECTURES for row_id in rows]


def environment() -> dict[str, str]:
    """Of the processes in which rows are compiled and run."""
    return dict(os.environ) if library.missing() else library.environment()


def outcome(name: str) -> Outcome:
    """Compile a row, have its PTX assembled, and run it on the emulated GPU."""
    row_id, _, architecture = name.rpartition("/")
    # What processors do not compile is no matter of CUDA's.
    elements = [element for element in suite.elements_left(row_id, suite.EXPECTATIONS) if element in _ELEMENTS]
    if not elements:
        return Outcome()
    program, arguments = program_of(ROWS[row_id], elements)
    try:
        executable = compile_program(program, f"cuda:{architecture}", CompileOptions(timeout=_COMPILER))
    except Error as error:
        return Outcome("compile", str(error))
    complaint = _complaint(executable.vmfb, architecture)
    if complaint or library.missing():
        return Outcome("compile", complaint) if complaint else Outcome()
    found, differing = suite.ran(ROWS[row_id], program, arguments, executable)
    # An engine that refuses one of two types refuses the row's whole program.
    return suite.outcome_on(f"cuda:{architecture}", ROWS[row_id], elements) if differing else found


def _complaint(vmfb: bytes, architecture: str) -> str:
    """What is wrong with the PTX of a vmfb; nothing if there is nothing."""
    texts = ptx.texts(vmfb)
    # A program whose results are constants or arguments has no code.
    if texts and ptx.architectures(vmfb) != {architecture}:
        return f"PTX for {sorted(ptx.architectures(vmfb))}"
    tool = ptx.assembler()
    with tempfile.TemporaryDirectory() as folder:
        for text in texts if tool else ():
            if complaint := ptx.complaint(str(tool), text, architecture, Path(folder)):
                return complaint
    return ""
