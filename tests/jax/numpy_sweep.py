"""Functions of JAX on hloforge, as JAX's backend, beside JAX's CPU: ``python -m tests.jax.numpy_sweep``.

``tests/jax/sweep`` has the tables. Both engines run in one process. Cases of one function are compiled together, six at
a time; where that fails, each half by itself.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
import warnings
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.jax.sweep.verdicts import Verdict, compared

ROOT = Path(__file__).resolve().parents[2]
TABLES = (
    "edges",
    "ufuncs",
    "reducers",
    "shaping",
    "indexing",
    "functions",
    "gradients",
    "linear_algebra",
    "lax_functions",
    "lax_contractions",
    "lax_arrays",
    "control",
    "libraries",
)
# Cases in a program: what takes one of many cases to compile, all of them take again where it fails.
_TOGETHER = 6
_FAILED = ("compile", "numerics", "gone")
_DIVIDER = re.compile(r"/[^/]*$")


def groups(pattern: str = "") -> dict[str, list[Any]]:
    """The cases of all tables by ``table/function``."""
    import importlib

    found: dict[str, list[Any]] = {}
    for table in TABLES:
        for case in importlib.import_module(f"tests.jax.sweep.{table}").cases():
            key = f"{table}/{_DIVIDER.sub('', case.id)}"
            if re.search(pattern, key):
                found.setdefault(key, []).append(case)
    return found


def judged(cases: Sequence[Any], *, x64: bool) -> list[Verdict]:
    """The verdicts of cases, which are compiled as one program where that works."""
    import jax

    ready, verdicts = [], []
    with jax.enable_x64(x64):
        for case in cases:
            try:
                with jax.default_device(jax.devices("cpu")[0]):
                    ready.append((case, jax.device_get(jax.jit(case.function)(*case.arguments))))
            except Exception as error:
                verdicts.append(Verdict(case.id, "refused", f"{type(error).__name__}: {error}"[:200]))
        return verdicts + _judged(ready, x64)


def _judged(ready: Sequence[tuple[Any, Any]], x64: bool) -> list[Verdict]:
    import jax

    if not ready:
        return []
    if len(ready) > _TOGETHER:
        return _judged(ready[:_TOGETHER], x64) + _judged(ready[_TOGETHER:], x64)
    functions = [case.function for case, _ in ready]
    together = jax.jit(lambda all: [f(*a) for f, a in zip(functions, all, strict=True)])
    try:
        results = jax.device_get(together([case.arguments for case, _ in ready]))
    except Exception as error:
        if len(ready) == 1:
            return [Verdict(ready[0][0].id, "compile", " ".join(f"{type(error).__name__}: {error}".split())[-300:])]
        half = len(ready) // 2
        return _judged(ready[:half], x64) + _judged(ready[half:], x64)
    return [compared(case, want, got, x64=x64) for (case, want), got in zip(ready, results, strict=True)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="a pattern that table/function contains")
    parser.add_argument("--no-x64", action="store_true")
    parser.add_argument("--log", type=Path, help="append verdicts there, and leave out what is there already")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--budget", type=float, default=1e9, help="seconds")
    options = parser.parse_args()
    if not options.child:
        return _parent(sys.argv[1:], options.log)
    return _child(options)


def _parent(arguments: Sequence[str], log: Path | None) -> int:
    """Run children until one ends by itself: one that crashes has said in the log what it was at."""
    environment = os.environ | {"JAX_PLATFORMS": "hloforge", "OPENBLAS_NUM_THREADS": "1"}
    while True:
        code = subprocess.call(
            [sys.executable, "-X", "faulthandler", "-m", "tests.jax.numpy_sweep", "--child", *arguments],
            cwd=ROOT,
            env=environment,
        )
        if code in (0, 1) or log is None:
            return code


def _child(options: argparse.Namespace) -> int:
    warnings.simplefilter("ignore")
    done, crashed = _logged(options.log)
    found: Counter[str] = Counter({"crash": len(crashed)})
    for key in sorted(crashed):
        print(f"crash {key}", flush=True)
    end = time.monotonic() + options.budget
    for key, cases in groups(options.only).items():
        if key in done | crashed:
            continue
        if time.monotonic() > end:
            break
        if options.log:
            _write(options.log, {"start": key})
        start, used = time.monotonic(), time.process_time()
        verdicts = judged(cases, x64=not options.no_x64)
        seconds = time.process_time() - used
        for verdict in verdicts:
            found[verdict.stage] += 1
            if verdict.stage in _FAILED or verdict.steps > 1:
                print(
                    f"{verdict.stage} {key.partition('/')[0]}/{verdict.name} [{verdict.steps}]: {verdict.reason}",
                    flush=True,
                )
        if seconds > 30:
            print(f"slow {key}: {seconds:.0f} s of processor time, {time.monotonic() - start:.0f} s", flush=True)
        if options.log:
            _write(options.log, {"done": key, "verdicts": [vars(v) for v in verdicts], "seconds": round(seconds, 1)})
    print(dict(found))
    return int(sum(found[stage] for stage in (*_FAILED, "crash")) > 0)


def _write(log: Path, row: dict[str, Any]) -> None:
    with log.open("a") as stream:
        stream.write(json.dumps(row) + "\n")


def _logged(log: Path | None) -> tuple[set[str], set[str]]:
    """What is done, and what a child was at when it ended."""
    if log is None or not log.exists():
        return set(), set()
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    done = {row["done"] for row in rows if "done" in row}
    return done, {row["start"] for row in rows if "start" in row} - done


if __name__ == "__main__":
    sys.exit(main())
