"""Rows on the two reference engines: XLA's CPU client judged by StableHLO's interpreter, both by a source's values.

Names are those of ``suite.py``; ``id=`` asks whether an engine gives the values that the row states.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from hloforge.dialect.errors import Error
from hloforge.runtime.reference.compare import compare
from hloforge.runtime.reference.correctness import judge
from tests.expectations import Outcome
from tests.operations.programs import elements_of, program_of
from tests.operations.suite import TIMEOUT, elements_left, engine, members, programs
from tests.operations.tables import ROWS

__all__ = ["EXPECTATIONS", "HEADER", "TIMEOUT", "members", "outcome", "programs"]

EXPECTATIONS = Path(__file__).parent / "engine_differences.txt"
HEADER = """Rows on which StableHLO's interpreter and XLA's CPU client differ, or of which one engine has no answer.
Stage compile: the interpreter has none; run: XLA's client has none; numerics: they differ."""


def outcome(name: str) -> Outcome:
    """Evaluate a row on both engines and compare."""
    if name.endswith("="):
        return _stated(name.removesuffix("="))
    row_id = name.partition("/")[0]
    elements = elements_left(name, EXPECTATIONS)
    if not elements:
        return Outcome()
    program, arguments = program_of(ROWS[row_id], elements)
    try:
        engine("interpreter").prepare(program)(*arguments)
    except Error as error:
        return Outcome("compile", str(error))
    try:
        actual = engine("xla").prepare(program)(*arguments)
    except Error as error:
        return Outcome("run", str(error))
    report = judge(engine("interpreter"), program, arguments, actual)
    return Outcome() if report.agrees else Outcome("numerics", report.text())


def _stated(row_id: str) -> Outcome:
    row = ROWS[row_id]
    program, arguments = program_of(row, elements_of(row)[:1])
    second = "xla" if row.judge == "interpreter" else "interpreter"
    try:
        actual = engine(row.judge).prepare(program)(*arguments)
    except Error:
        actual = engine(second).prepare(program)(*arguments)
    report = compare(actual[0], _like(row.expected, actual[0]))
    return Outcome() if report.agrees else Outcome("numerics", report.text())


def _like(expected: Any, actual: Any) -> Any:
    if isinstance(actual, tuple):
        return tuple(map(_like, expected, actual))
    return np.asarray(expected).astype(actual.dtype)
