"""Child of ``tests.jax.harnesses``: takes lists of names, one a line, and answers each name with a verdict.

A verdict is ``{"name", "stage", "reason"}``, the stage being ``passed``, ``skipped`` (JAX's CPU backend fails as well),
``compile``, ``run`` or ``numerics``.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("JAX_ENABLE_X64", "1")

import jax

import hloforge
from tests.jax.agreement import disagreement
from tests.jax.cases import Case, cases

Verdict = dict[str, str]


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
    ready, verdicts = [], []
    for case in chosen:
        try:
            arguments = case.arguments()
            ready.append((case, arguments, jax.jit(case.function)(*arguments)))
        except Exception as error:
            verdicts.append(_verdict(case, "skipped", error))
    return verdicts + _judged(ready)


def _judged(ready: list[tuple[Case, list[Any], Any]]) -> list[Verdict]:
    if not ready:
        return []
    # By number, for functions may be shared among cases.
    functions = [case.function for case, _, _ in ready]
    together = hloforge.jit(lambda *all: tuple(f(*a) for f, a in zip(functions, all, strict=True)))
    arguments = [arguments for _, arguments, _ in ready]
    stage = "compile"
    try:
        program = together.compiled(*arguments)
        stage = "run"
        results = program(*arguments)
    except Exception as error:
        if len(ready) == 1:
            return [_verdict(ready[0][0], stage, error)]
        half = len(ready) // 2
        return _judged(ready[:half]) + _judged(ready[half:])
    return [_compared(case, expected, got) for (case, _, expected), got in zip(ready, results, strict=True)]


def _compared(case: Case, expected: Any, got: Any) -> Verdict:
    reason = disagreement(case, expected, got)
    return _verdict(case, "numerics" if reason else "passed", reason)


def _verdict(case: Case, stage: str, reason: object) -> Verdict:
    text = " ".join(f"{type(reason).__name__}: {reason}".split()) if isinstance(reason, Exception) else str(reason)
    return {"name": case.name, "stage": stage, "reason": text[:300]}


if __name__ == "__main__":
    main()
