"""Cases compiled for the CPU several at a time, and judged by XLA's CPU client and StableHLO's interpreter."""

from __future__ import annotations

import importlib
import zlib
from collections.abc import Sequence
from functools import cache
from typing import Any

import hloforge
from hloforge.dialect.errors import Error
from hloforge.dialect.program import Program
from hloforge.runtime.compile.compiler import compile_program
from hloforge.runtime.options import CompileOptions
from hloforge.runtime.reference.correctness import judge
from hloforge.runtime.reference.engines import ReferenceEngine, reference
from tests.expectations import Outcome
from tests.support import REPRODUCERS
from tests.sweep.case import Array, Case

TABLES = (
    "elementwise",
    "special_functions",
    "shaping",
    "indexing",
    "reductions",
    "windows",
    "products",
    "ordering",
    "control",
    "random_numbers",
)
# Cases in one program.
BUNDLE = 24
# One case in so many is run: together they reach every operation, and every element type with most of them.
SAMPLE = 8


@cache
def cases() -> dict[str, Case]:
    """All cases by id."""
    found: dict[str, Case] = {}
    for table in TABLES:
        for case in importlib.import_module(f"tests.sweep.{table}").cases():
            if case.id in found:
                raise ValueError(f"two cases are called {case.id}")
            found[case.id] = case
    return found


def sampled() -> list[Case]:
    """The cases that are run, by group."""
    chosen = [case for case in cases().values() if zlib.crc32(case.id[::-1].encode()) % SAMPLE == 0]
    return sorted(chosen, key=lambda case: case.group)


def bundles() -> dict[str, list[Case]]:
    """Cases that are compiled together, by number and first case."""
    row = sampled()
    parts = [row[start : start + BUNDLE] for start in range(0, len(row), BUNDLE)]
    return {f"{number}-{part[0].group}": part for number, part in enumerate(parts)}


def lowered(members: Sequence[Case]) -> tuple[Program, list[Array]]:
    """One program that returns the results of every case, as JAX writes it before any optimization."""
    import jax

    arguments = [argument for case in members for argument in case.arguments]

    def together(*flat: Any) -> list[Any]:
        given = iter(flat)
        return [jax.tree.leaves(case.function(*[next(given) for _ in case.arguments])) for case in members]

    with jax.enable_x64(True), jax.default_device(jax.devices("cpu")[0]):
        text = jax.jit(together, keep_unused=True).lower(*arguments).as_text()
    return hloforge.read(text), arguments


def outcomes(members: Sequence[Case]) -> dict[str, Outcome]:
    """What becomes of every case: where the program of all fails, of each alone."""
    outcome = _outcome(members)
    if not outcome.stage or len(members) == 1:
        return {case.id: outcome for case in members}
    half = len(members) // 2
    return outcomes(members[:half]) | outcomes(members[half:])


def _outcome(members: Sequence[Case]) -> Outcome:
    program, arguments = lowered(members)
    try:
        executable = compile_program(program, options=CompileOptions(reproducer_dir=REPRODUCERS))
    except Error as error:
        return Outcome("compile", str(error))
    try:
        actual = executable(*arguments)
    except (Error, RuntimeError) as error:
        return Outcome("run", str(error))
    return judged(program, arguments, actual)


def judged(program: Program, arguments: Sequence[Array], actual: Any) -> Outcome:
    """Each result has to agree with XLA's CPU client, or with StableHLO's interpreter."""
    reports, refusals = [], []
    for name in ("xla", "interpreter"):
        try:
            reports.append(judge(engine(name), program, arguments, actual))
        except Error as error:
            refusals.append(str(error))
            continue
        if all(any(r.agrees for r in results) for results in zip(*(r.results for r in reports), strict=True)):
            return Outcome()
    return Outcome("numerics", reports[0].text()) if reports else Outcome("reference", "; ".join(refusals))


@cache
def engine(name: str) -> ReferenceEngine:
    return reference(name, timeout=120.0)
