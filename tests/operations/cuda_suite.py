"""Rows in f32 and s32, compiled for CUDA without a GPU: what the vmfb holds is PTX of the asked architecture.

A name is ``id/architecture``. NVIDIA's assembler judges the text where it is installed; nothing is run.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from hloforge.dialect.errors import Error
from hloforge.runtime.compiler import compile_program
from hloforge.runtime.options import CompileOptions
from tests import ptx
from tests.expectations import Outcome
from tests.operations import suite
from tests.operations.programs import elements_of, program_of
from tests.operations.tables import ROWS

EXPECTATIONS = Path(__file__).parent / "expected_failures_cuda.txt"
HEADER = "Rows of operations, in f32 and s32, that do not compile for CUDA yet, by architecture."
ARCHITECTURES = ("sm_80", "sm_90")
# Seconds for one name, and for one run of IREE's compiler.
TIMEOUT, _COMPILER = 600.0, 300.0
_ELEMENTS = {"f32", "s32"}


def programs() -> list[str]:
    """The rows that have one of the element types, by architecture."""
    rows = [row_id for row_id in suite.programs() if _ELEMENTS.intersection(elements_of(ROWS[row_id]))]
    return [f"{row_id}/{architecture}" for architecture in ARCHITECTURES for row_id in rows]


def outcome(name: str) -> Outcome:
    """Compile a row, and have its PTX assembled."""
    row_id, _, architecture = name.rpartition("/")
    # What processors do not compile is no matter of CUDA's.
    elements = [element for element in suite.elements_left(row_id, suite.EXPECTATIONS) if element in _ELEMENTS]
    if not elements:
        return Outcome()
    program, _ = program_of(ROWS[row_id], elements)
    try:
        vmfb = compile_program(program, f"cuda:{architecture}", CompileOptions(timeout=_COMPILER)).vmfb
    except Error as error:
        return Outcome("compile", str(error))
    texts = ptx.texts(vmfb)
    # A program whose results are constants or arguments has no code.
    if texts and ptx.architectures(vmfb) != {architecture}:
        return Outcome("compile", f"PTX for {sorted(ptx.architectures(vmfb))}")
    tool = ptx.assembler()
    with tempfile.TemporaryDirectory() as folder:
        for text in texts if tool else ():
            if complaint := ptx.complaint(str(tool), text, architecture, Path(folder)):
                return Outcome("compile", complaint)
    return Outcome()
