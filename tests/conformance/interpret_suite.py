"""StableHLO's own interpreter tests, run through hloforge on the CPU."""

from __future__ import annotations

import importlib.util
import sys
from functools import cache
from pathlib import Path
from typing import Any

from hloforge.dialect.errors import Error
from hloforge.importers.reader import read
from hloforge.runtime.compile.compiler import compile_program
from hloforge.runtime.options import CompileOptions
from tests.expectations import Outcome
from tests.support import REPRODUCERS, SHARED

EXPECTATIONS = Path(__file__).parent / "expected_failures_cpu.txt"
# Seconds for one program.
TIMEOUT = 60.0
HEADER = "Programs of StableHLO's interpreter tests that hloforge does not run rightly on the CPU yet."


@cache
def _cases_module() -> Any:
    specification = importlib.util.spec_from_file_location("conformance_cases", SHARED / "conformance" / "cases.py")
    if specification is None or specification.loader is None:
        raise ImportError("no cases.py")
    module = importlib.util.module_from_spec(specification)
    # Its dataclasses look their own module up.
    sys.modules[specification.name] = module
    specification.loader.exec_module(module)
    return module


@cache
def programs() -> dict[str, Any]:
    """The cases of one device by name; empty where there is no shared data."""
    if not (SHARED / "conformance" / "cases.py").is_file():
        return {}
    return {case.name.replace(" ", "_"): case for case in _cases_module().load() if case.inputs is not None}


def outcome(name: str) -> Outcome:
    """Compile and run a case and compare with the values in its test."""
    return outcome_on("cpu", name)


def outcome_on(target: str, name: str) -> Outcome:
    """The same on any target."""
    case = programs()[name]
    try:
        program = read(case.mlir, name=name)
    except Error as error:
        return Outcome("import", error.message)
    try:
        executable = compile_program(program, target, CompileOptions(reproducer_dir=REPRODUCERS))
    except Error as error:
        return Outcome("compile", error.message)
    try:
        results = executable.load()(*case.inputs)
    except (Error, RuntimeError) as error:
        return Outcome("run", str(error))
    flat = list(results) if isinstance(results, tuple) else [results]
    difference = _cases_module().agrees(flat, case)
    return Outcome("numerics", difference) if difference else Outcome()
