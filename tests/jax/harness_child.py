"""Child of ``tests.jax.harnesses``: takes lists of names, one a line, and answers each name with a verdict.

A verdict is ``{"name", "stage", "reason"}``, the stage being ``passed``, ``skipped`` (JAX's CPU backend fails as well),
``compile``, ``run`` or ``numerics``.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from dataclasses import dataclass
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("JAX_ENABLE_X64", "1")

import jax

import hloforge
from tests.jax.agreement import disagreement
from tests.jax.cases import Case, cases

Verdict = dict[str, str]


@dataclass(frozen=True)
class _Ready:
    """A case to be judged; those of equal programs share a compilation, a quarter of all."""

    case: Case
    program: str
    arguments: list[Any]
    expected: Any


def main() -> None:
    warnings.simplefilter("ignore")
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what programs print is no verdict
    known = cases()
    for line in sys.stdin:
        names = json.loads(line)
        for verdict in judged([known[name] for name in names]):
            print(json.dumps(verdict), file=out, flush=True)
        print("{}", file=out, flush=True)


def judged(chosen: list[Case]) -> list[Verdict]:
    """The verdicts of several cases, which are compiled as one program where that works."""
    engines: dict[str, Any] = {}
    ready, verdicts = [], []
    for case in chosen:
        try:
            ready.append(_by_jax(case, engines))
        except Exception as error:
            verdicts.append(_verdict(case, "skipped", error))
    return verdicts + _judged(ready)


def _by_jax(case: Case, engines: dict[str, Any]) -> _Ready:
    """A case with its results of JAX's CPU backend, whose executables ``engines`` has by program."""
    arguments = case.arguments()
    lowered = jax.jit(case.function).lower(*arguments)
    program = "\n".join(map(str, (lowered.as_text(), lowered.in_avals, lowered.in_tree, lowered.out_tree)))
    if program not in engines:
        engines[program] = lowered.compile()
    return _Ready(case, program, arguments, engines[program](*arguments))


def _judged(ready: list[_Ready]) -> list[Verdict]:
    if not ready:
        return []
    by_program: dict[str, list[_Ready]] = {}
    for case in ready:
        by_program.setdefault(case.program, []).append(case)
    groups = list(by_program.values())
    # By number, for functions may be shared among cases.
    functions = [group[0].case.function for group in groups]
    together = hloforge.jit(lambda *all: tuple(f(*a) for f, a in zip(functions, all, strict=True)))
    stage = "compile"
    try:
        program = together.compiled(*[group[0].arguments for group in groups])
        stage = "run"
        results = {number: program(*arguments) for number, arguments in enumerate(_calls(groups))}
    except Exception as error:
        if len(ready) == 1:
            return [_verdict(ready[0].case, stage, error)]
        half = len(ready) // 2
        return _judged(ready[:half]) + _judged(ready[half:])
    return [
        _compared(case, results[number][place])
        for place, group in enumerate(groups)
        for number, case in enumerate(group)
    ]


def _calls(groups: list[list[_Ready]]) -> list[list[Any]]:
    """The arguments of each call of all programs: of the first cases, of the second ones, and so on to the last."""
    count = max(map(len, groups))
    return [[group[min(number, len(group) - 1)].arguments for group in groups] for number in range(count)]


def _compared(ready: _Ready, got: Any) -> Verdict:
    reason = disagreement(ready.case, ready.expected, got)
    return _verdict(ready.case, "numerics" if reason else "passed", reason)


def _verdict(case: Case, stage: str, reason: object) -> Verdict:
    text = " ".join(f"{type(reason).__name__}: {reason}".split()) if isinstance(reason, Exception) else str(reason)
    return {"name": case.name, "stage": stage, "reason": text[:300]}


if __name__ == "__main__":
    main()
