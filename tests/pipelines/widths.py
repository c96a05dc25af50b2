"""Programs compiled for the vectors of one processor and run on this one, by several registers for one if need be."""

from __future__ import annotations

from hloforge.dialect.program import Program
from hloforge.pipelines.named import lower
from hloforge.pipelines.vectors import AVX2, AVX512, Vectors
from hloforge.runtime.compiler import compile_module
from hloforge.runtime.executable import Executable
from hloforge.runtime.options import CompileOptions
from hloforge.runtime.targets import Target

WIDTHS = (AVX2, AVX512)


def compiled_for(program: Program, vectors: Vectors) -> Executable:
    """The code that a processor with these registers gets."""
    copy = program.clone()
    lower(copy.module, vectors=vectors)
    return compile_module(copy, Target(), CompileOptions())
