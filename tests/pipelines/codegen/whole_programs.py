"""Whole programs compiled by our own code generator, compared with XLA's client."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import hloforge
from hloforge.dialect.forked import trusted
from hloforge.dialect.program import Program
from hloforge.runtime.artifact.executable import Executable
from hloforge.runtime.compile.generated import CODEGEN, LOUD, generated
from hloforge.runtime.compile.targets import parse_targets
from hloforge.runtime.options import CompileOptions
from hloforge.runtime.reference.engines import ReferenceEngine
from hloforge.runtime.reference.jaxlib_engines import XlaEngine


def compiled(program: Program) -> Executable:
    """A program without IREE's compiler. Raises what goes wrong."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(CODEGEN, LOUD)
        made = generated(program, parse_targets("cpu")[0], CompileOptions(cache=False))
    assert made is not None, "refused"
    return made


def check(text: str, *arguments: Any) -> None:
    """Two calls of a program give XLA's results, of integers and of floats that nothing rounds."""
    with trusted():
        program = hloforge.read(text.encode())
    expected = _arrays(quick_xla().prepare(program)(*map(np.array, arguments)))
    session = compiled(program).load()
    for _ in range(2):
        for got, want in zip(_arrays(session(*map(np.array, arguments))), expected, strict=True):
            assert got.dtype == want.dtype
            np.testing.assert_array_equal(got, want)


@cache
def quick_xla() -> ReferenceEngine:
    """XLA's client without LLVM's optimizations: of programs that run twice they took 70 of 100 ms."""
    return ReferenceEngine("xla", XlaEngine(xla_backend_optimization_level=0, xla_cpu_use_fusion_emitters=False))


def _arrays(results: Any) -> list[np.ndarray[Any, Any]]:
    return [np.asarray(result) for result in (results if isinstance(results, tuple | list) else [results])]
