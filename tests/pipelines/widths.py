"""Programs compiled for the vectors of one processor and run on this one, by several registers for one if need be."""

from __future__ import annotations

from hloforge.dialect.program import Program
from hloforge.pipelines.framework.machine import AVX2, AVX512, Machine
from hloforge.pipelines.named import lower
from hloforge.runtime.artifact.executable import Executable
from hloforge.runtime.compile.by_iree import compile_module
from hloforge.runtime.compile.targets import Target
from hloforge.runtime.options import CompileOptions

WIDTHS = (AVX2, AVX512)


def compiled_for(program: Program, machine: Machine) -> Executable:
    """The code that a processor with these registers gets."""
    copy = program.clone()
    lower(copy.module, machine=machine)
    return compile_module(copy, Target(), CompileOptions())
