"""Rows on the CPU target, judged by StableHLO's interpreter and XLA's client.

A name is a row's id, which stands for all of its element types that have no line in the file of expected failures, or
``id/element`` for one of them.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

from hloforge.dialect.errors import Error, ReferenceEngineError
from hloforge.runtime.artifact.executable import Executable
from hloforge.runtime.compile.compiler import compile_program
from hloforge.runtime.options import CompileOptions
from hloforge.runtime.reference.compare import compare
from hloforge.runtime.reference.correctness import judge
from hloforge.runtime.reference.engines import ReferenceEngine, reference
from hloforge.runtime.session.feeds import Feeds
from tests.expectations import Outcome, read_expectations
from tests.operations.programs import elements_of, program_of
from tests.operations.row import Row
from tests.operations.tables import ROWS
from tests.support import REPRODUCERS

EXPECTATIONS = Path(__file__).parent / "expected_failures_cpu.txt"
HEADER = "Rows of operations that the CPU target does not compute rightly yet, by element type."
# Seconds for one name.
TIMEOUT = 120.0
# Seconds that a program waits for its host.
_PATIENCE = 5.0


def programs() -> list[str]:
    """The rows."""
    return list(ROWS)


def members(row_id: str) -> list[str]:
    """The names of a row's element types."""
    return [f"{row_id}/{element}" for element in elements_of(ROWS[row_id])]


def elements_left(name: str, expectations: Path) -> list[str]:
    """The element types that a name stands for."""
    row_id, _, element = name.partition("/")
    if element:
        return [element]
    known = read_expectations(expectations)
    return [element for element in elements_of(ROWS[row_id]) if f"{row_id}/{element}" not in known]


def outcome(name: str) -> Outcome:
    """Compile and run a row and compare with the reference engines."""
    return outcome_on("cpu", ROWS[name.partition("/")[0]], elements_left(name, EXPECTATIONS))


def outcome_on(target: str, row: Row, elements: list[str]) -> Outcome:
    """The same on any target, for some of a row's element types."""
    if not elements:
        return Outcome()
    together, differing = _outcome(row, elements, target)
    if len(elements) == 1 or not differing:
        return together
    # An engine that refuses one element type refuses the row's whole program, and may judge the others one by one.
    alone = (_outcome(row, [elements[number]], target)[0] for number in sorted(differing))
    return next((outcome for outcome in alone if outcome.stage), Outcome())


def _outcome(row: Row, elements: list[str], target: str) -> tuple[Outcome, set[int]]:
    """How far the program of some element types comes, and which of them differ from both engines, by number."""
    program, arguments = program_of(row, elements)
    try:
        executable = compile_program(program, target, CompileOptions(reproducer_dir=REPRODUCERS))
    except Error as error:
        return Outcome("compile", str(error)), set()
    return ran(row, program, arguments, executable)


def ran(row: Row, program: Any, arguments: list[Any], executable: Executable) -> tuple[Outcome, set[int]]:
    """What a row's compiled program computes, and the numbers of the element types that differ."""
    try:
        if row.oracle is not None:
            return _by_oracle(row, executable, arguments)
        actual = executable(*arguments)
    except (Error, RuntimeError) as error:
        return Outcome("run", str(error)), set()
    return judged(row.judge, program, arguments, actual)


def _by_oracle(row: Row, executable: Executable, arguments: list[Any]) -> tuple[Outcome, set[int]]:
    """A row whose values its oracle knows, and whose program may talk to its host."""
    assert row.oracle is not None  # asked before
    session = executable.load(feeds=Feeds(timeout=_PATIENCE))
    if row.feed is not None:
        row.feed(session.feeds)
    actual = session(*arguments)
    if row.drain is not None:
        report = compare((actual[0], row.drain(session.feeds)), row.oracle(*arguments))
    else:
        width = len(row.inputs)
        given = [arguments[number * width : (number + 1) * width] for number in range(len(actual))]
        report = compare(actual, tuple(row.oracle(*inputs) for inputs in given))
    differing = {_element(result.name) for result in report.results if not result.agrees}
    return (Outcome("numerics", report.text()), differing) if differing else (Outcome(), set())


def judged(first: str, program: Any, arguments: list[Any], actual: Any) -> tuple[Outcome, set[int]]:
    """Each result has to agree with the row's judge, or with the other engine where the two differ, which
    engine_differences.txt lists."""
    reports, refusals = [], []
    for name in (first, "xla" if first == "interpreter" else "interpreter"):
        try:
            reports.append(judge(engine(name), program, arguments, actual))
        except ReferenceEngineError as error:
            refusals.append(str(error))
            continue
        leaves = list(zip(*(report.results for report in reports), strict=True))
        differing = {_element(leaf[0].name) for leaf in leaves if not any(result.agrees for result in leaf)}
        if not differing:
            return Outcome(), set()
    if not reports:
        return Outcome("reference", "; ".join(refusals)), set()
    return Outcome("numerics", reports[0].text()), differing


def _element(leaf: str) -> int:
    """The number of the element type that a leaf belongs to: 3 for ``result{3,0}``; 0 for ``result``."""
    return int(next(iter(re.findall(r"\d+", leaf)), 0))


@cache
def engine(name: str) -> ReferenceEngine:
    return reference(name, timeout=60.0)
