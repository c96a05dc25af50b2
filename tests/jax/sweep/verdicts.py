"""What becomes of a case of the sweep, and which cases are expected to differ from JAX's CPU."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tests.sweep.case import Case

# What differs from JAX's CPU, and why it may.
DIFFERENCES = {
    r"unwrap/bfloat16( 32)?": (
        "XLA rounds partial sums to 16 bits; hloforge is nearer to the sum in f64 except elements near 0"
    ),
    r"special.beta_any/float32 32": "one unit in the last place of the logarithm, 7,000, whose exponential it is",
    r"nn.attention_.*/float64": "JAX's softmax of f64 is one of f32: both are 1.7e-6 from the result in f64",
    r"absolute/complex64( 32)?": "XLA's magnitude of an infinity beside NaN is NaN; hloforge's and numpy's is infinite",
    r"power/complex128 32": "XLA's power of 0 and a positive real part is NaN beside an imaginary one; numpy's is 0",
    r"narrow/u?int2( 32)?": "XLA's CPU client does not sort integers of 2 bits",
    r"cast_narrow/float4_e2m1fn( 32)?": "XLA makes the least and greatest integers of small floats of 4 bits",
}


@dataclass(frozen=True)
class Verdict:
    """What became of a case: ``passed``, ``refused`` (by JAX's CPU as well), ``expected`` (to differ), ``compile``,
    ``numerics`` or ``gone`` (an expected difference that is not there).

    Attributes:
        steps: how far the result is from the CPU's, in tolerances of JAX's own tests: above 1 they may fail.
    """

    name: str
    stage: str
    reason: str = ""
    steps: float = 0.0


def compared(case: Case, expected: Any, got: Any, *, x64: bool) -> Verdict:
    """The verdict of results, beside the CPU's, and beside those in float64 where both differ."""
    import jax

    want, have = jax.tree.leaves(expected), jax.tree.leaves(got)
    found = [_difference(a, b) for a, b in zip(want, have, strict=True)]
    steps = round(max((far for far, _ in found), default=0.0), 2)
    reasons = [f"result {number}: {text}" for number, (_, text) in enumerate(found) if text]
    if not reasons or _is_as_near(case, want, have, [bool(text) for _, text in found]):
        verdict = Verdict(case.id, "passed", f"as near to float64: {reasons[0]}" if reasons else "", steps)
    else:
        verdict = Verdict(case.id, "numerics", reasons[0], steps)
    return _expected(verdict, x64=x64)


def _expected(verdict: Verdict, *, x64: bool) -> Verdict:
    """The verdict beside the list of differences: a difference that is gone is told."""
    name = verdict.name + ("" if x64 else " 32")
    if not any(re.fullmatch(pattern, name) for pattern in DIFFERENCES):
        return verdict
    if verdict.stage == "passed":
        return replace(verdict, stage="gone", reason="this is not different any more: take it off the list")
    return replace(verdict, stage="expected")


def _is_as_near(case: Case, want: list[Any], got: list[Any], differs: list[bool]) -> bool:
    """Whether the results that differ are no further from those of the program in float64 than the CPU's.

    Functions of LAPACK, which is called for one element type, have no opinion.
    """
    import jax

    import hloforge
    from hloforge.dialect.errors import Error
    from hloforge.runtime.reference.compare import compare
    from hloforge.runtime.reference.correctness import second_opinions
    from hloforge.runtime.reference.engines import reference

    def flat(*arguments: Any) -> list[Any]:
        return jax.tree.leaves(case.function(*arguments))

    floats = [jax.numpy.issubdtype(getattr(a, "dtype", np.bool_), np.inexact) for a in want]
    if not all(is_float for is_float, other in zip(floats, differs, strict=True) if other):
        return False
    try:
        with jax.default_device(jax.devices("cpu")[0]):
            # Without x64 JAX takes 64-bit arguments for 32-bit ones.
            given = jax.device_get([jax.numpy.asarray(argument) for argument in case.arguments])
            text = jax.jit(flat, keep_unused=True).trace(*given).lower(lowering_platforms=("cpu",)).as_text()
        engine = reference("xla", isolated=False)
        truth = engine.prepare(hloforge.read(text), float64=True)(*given)
    except (Error, jax.errors.JaxRuntimeError, ValueError):
        return False
    wide = list(truth) if isinstance(truth, tuple | list) else [truth]
    rows = [
        (np.asarray(a), np.asarray(b), c)
        for a, b, c, other in zip(got, want, wide, differs, strict=True)
        if other and a.shape == b.shape == c.shape
    ]
    if len(rows) < sum(differs):
        return False
    ours, theirs, wide = (list(column) for column in zip(*rows, strict=True))
    return second_opinions(compare(ours, theirs), ours, theirs, wide).agrees


def _difference(want: Any, got: Any) -> tuple[float, str]:
    import jax

    from hloforge.runtime.reference.compare import compare_arrays

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
