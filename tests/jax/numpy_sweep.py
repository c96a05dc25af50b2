"""Functions of JAX on hloforge, as JAX's backend, beside JAX's CPU: ``python -m tests.jax.numpy_sweep``.

``tests/jax/sweep`` has the tables. Both engines run in one process. Cases of one function are compiled together; where
that fails, each half by itself.
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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
TABLES = ("ufuncs", "reducers", "shaping", "indexing", "functions", "linear_algebra")
_DIVIDER = re.compile(r"/[^/]*$")
# What differs from JAX's CPU, and why it may.
_DIFFERENCES = {
    r"(nan)?cum(sum|ulative_sum)/bfloat16|nanmean_axes/bfloat16|sum_dtype/float32|(unwrap|apply)/bfloat16"
    r"|einsum_(ii|abc->b)/bfloat16|nn.standardize/bfloat16": (
        "XLA rounds partial sums to 16 bits; hloforge is nearer to the sum in f64"
    ),
    r"poly/bfloat16": "the remainder of a division cancels: 0.0139 from the result in f64, XLA's 0.0128",
    r"nn.attention_.*/float64": "JAX's softmax of f64 is one of f32: both are 1.7e-6 from the result in f64",
    r"cumprod_special/(float32|bfloat16)": "XLA flushes a subnormal number that nothing is multiplied with",
    r"absolute/complex64": "XLA's magnitude of an infinity beside NaN is NaN; hloforge's and numpy's is infinite",
    r"cast_narrow/float4_e2m1fn": "XLA makes the least and greatest integers of small floats of 4 bits",
}


@dataclass(frozen=True)
class Verdict:
    """What became of a case: ``passed``, ``refused`` (by JAX's CPU as well), ``expected`` (to differ), ``compile`` or
    ``numerics``.

    Attributes:
        steps: how far the result is from the CPU's, in tolerances of JAX's own tests: above 1 they may fail.
    """

    name: str
    stage: str
    reason: str = ""
    steps: float = 0.0


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
        return verdicts + _judged(ready)


def _judged(ready: Sequence[tuple[Any, Any]]) -> list[Verdict]:
    import jax

    if not ready:
        return []
    functions = [case.function for case, _ in ready]
    together = jax.jit(lambda all: [f(*a) for f, a in zip(functions, all, strict=True)])
    try:
        results = jax.device_get(together([case.arguments for case, _ in ready]))
    except Exception as error:
        if len(ready) == 1:
            return [Verdict(ready[0][0].id, "compile", " ".join(f"{type(error).__name__}: {error}".split())[-300:])]
        half = len(ready) // 2
        return _judged(ready[:half]) + _judged(ready[half:])
    return [_compared(case.id, want, got) for (case, want), got in zip(ready, results, strict=True)]


def _compared(name: str, expected: Any, got: Any) -> Verdict:
    import jax

    want, have = jax.tree.leaves(expected), jax.tree.leaves(got)
    steps, reason = 0.0, ""
    for number, (a, b) in enumerate(zip(want, have, strict=True)):
        far, text = _difference(a, b)
        if text and not reason:
            reason = f"result {number}: {text}"
        steps = max(steps, far)
    if not reason:
        return Verdict(name, "passed", steps=round(steps, 2))
    is_known = any(re.fullmatch(pattern, name) for pattern in _DIFFERENCES)
    return Verdict(name, "expected" if is_known else "numerics", reason, round(steps, 2))


def _difference(want: Any, got: Any) -> tuple[float, str]:
    import jax
    import numpy as np

    from hloforge.runtime.compare import compare_arrays

    if jax.dtypes.issubdtype(getattr(want, "dtype", None), jax.dtypes.prng_key):
        want, got = jax.random.key_data(want), jax.random.key_data(got)
    a, b = np.asarray(want), np.asarray(got)
    if a.dtype.kind == "c" and a.dtype == b.dtype and a.shape == b.shape:
        parts = [_difference(a.real, b.real), _difference(a.imag, b.imag)]
        scale = np.maximum(np.abs(a), 1e-300)
        with np.errstate(all="ignore"):
            near = np.where(np.isfinite(a) & np.isfinite(b), np.abs(a - b) / scale, 0)
        bits = 1e-4 if a.dtype == np.complex64 else 1e-9
        special = ~(np.isfinite(a) & np.isfinite(b))
        same = all(_difference(p[special], q[special])[1] == "" for p, q in ((a.real, b.real), (a.imag, b.imag)))
        if same and (near <= bits).all():
            return float(near.max(initial=0) / (bits * 1e-2)), ""
        return max(p[0] for p in parts), next((p[1] for p in parts if p[1]), "")
    result = compare_arrays(b, a)
    text = "" if result.agrees else " ".join(result.text().split())[:400]
    if a.dtype != b.dtype or a.shape != b.shape or jax.dtypes.issubdtype(a.dtype, np.integer) or a.dtype == np.bool_:
        return 0.0, text
    tolerance = {8: 1e-15, 4: 1e-6, 2: 1e-2 if a.dtype.name == "bfloat16" else 1e-3}.get(a.dtype.itemsize, 0.1)
    with np.errstate(all="ignore"):
        x, y = a.astype(np.float64), b.astype(np.float64)
        far = np.where(np.isfinite(x) & np.isfinite(y), np.abs(x - y) / (tolerance * (1 + np.abs(x))), 0)
    return float(far.max(initial=0)), text


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
            if verdict.stage in ("compile", "numerics") or verdict.steps > 1:
                print(
                    f"{verdict.stage} {key.partition('/')[0]}/{verdict.name} [{verdict.steps}]: {verdict.reason}",
                    flush=True,
                )
        if seconds > 30:
            print(f"slow {key}: {seconds:.0f} s of processor time, {time.monotonic() - start:.0f} s", flush=True)
        if options.log:
            _write(options.log, {"done": key, "verdicts": [vars(v) for v in verdicts], "seconds": round(seconds, 1)})
    print(dict(found))
    return int(found["compile"] + found["numerics"] + found["crash"] > 0)


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
