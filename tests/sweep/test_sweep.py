"""Programs of JAX and of other frameworks on the CPU target, judged by XLA's client and StableHLO's interpreter."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

import hloforge
from hloforge.runtime.compile.compiler import compile_program
from hloforge.runtime.options import CompileOptions
from tests.sweep import bounded
from tests.sweep.forms import forms

_HAS_JAX = importlib.util.find_spec("jax") is not None
if _HAS_JAX:
    import jax

    from tests.sweep import polymorphic, suite
    from tests.sweep.chains import chain
    from tests.sweep.loops import loop

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not _HAS_JAX, reason="JAX writes the programs")]

# Cases that differ, and why that is right or left so.
_DIFFERENCES = {
    "gamma/bfloat16": "the exponential of a logarithm that is rounded to bf16, of which XLA leaves out some roundings",
    "gamma/bfloat16_positive": "one element in 130 is two steps of bf16 from XLA's, after a chain of ten roundings",
    "atan2/complex64[200]": "XLA and the interpreter overflow from 1e19 on, where hloforge does not",
    "sort_keys/int2": "the interpreter misorders floats, XLA's client has no sorts of two-bit keys",
    "sort_keys/uint2": "the interpreter misorders floats, XLA's client has no sorts of two-bit keys",
    "power_mixed/complex64^int64": "powers beyond the largest number: infinite parts for XLA's NaN",
    "power_mixed/complex128^int64": "powers beyond the largest number: infinite parts for XLA's NaN",
}


@pytest.mark.parametrize("name", suite.bundles() if _HAS_JAX else [])
def test_operations(name: str) -> None:
    members = [case for case in suite.bundles()[name] if case.id not in _DIFFERENCES]
    wrong = {key: outcome for key, outcome in suite.outcomes(members).items() if outcome.stage}
    assert not wrong, "\n".join(f"{key}: {outcome.stage}: {outcome.message}" for key, outcome in wrong.items())


@pytest.mark.parametrize("start", range(0, 600, 10))
def test_chains(start: int) -> None:
    wrong = {
        key: outcome
        for key, outcome in suite.outcomes([chain(seed) for seed in range(start, start + 10)]).items()
        if outcome.stage
    }
    assert not wrong, "\n".join(f"{key}: {outcome.stage}: {outcome.message}" for key, outcome in wrong.items())


@pytest.mark.parametrize("seed", range(70))
def test_loops(seed: int) -> None:
    (outcome,) = suite.outcomes([loop(seed)]).values()
    assert not outcome.stage, f"{outcome.stage}: {outcome.message}"


@pytest.mark.parametrize("name", forms())
def test_forms(name: str) -> None:
    form = forms()[name]
    program = hloforge.read(form.text)
    outcome = suite.judged(program, form.arguments, hloforge.compile(form.text)(*form.arguments))
    assert not outcome.stage, f"{outcome.stage}: {outcome.message}"


@pytest.mark.parametrize("name", polymorphic.bundles() if _HAS_JAX else [])
def test_symbolic_sizes(name: str) -> None:
    members = polymorphic.bundles()[name]
    mode = members[0].mode
    options = CompileOptions(dynamic_shapes="keep" if mode == "keep" else "specialize")
    session = compile_program(polymorphic.exported(members), options=options).load()
    for sizes in polymorphic.SIZES:
        arguments = [argument for member in members for argument in member.drawn(sizes)]
        actual = session(*arguments)
        if mode == "jax":
            expected = jax.tree.leaves(polymorphic.together(members)(*arguments))
            for number, (got, wanted) in enumerate(zip(jax.tree.leaves(actual), expected, strict=True)):
                np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-4, err_msg=f"result {number} at {sizes}")
            continue
        outcome = suite.judged(polymorphic.static(members, arguments), arguments, actual)
        assert not outcome.stage, f"at {sizes}: {outcome.stage}: {outcome.message}"


@pytest.mark.parametrize("name", bounded.NAMES)
def test_bounded_sizes(name: str) -> None:
    session = compile_program(hloforge.read(bounded.program(name))).load()
    x = np.random.default_rng(0).normal(size=(5, 4)).astype(np.float32)
    for rows in (3, 5, 1):
        got, wanted = np.asarray(session(x, np.int32(rows))), bounded.expected(name, x, rows)
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6, err_msg=f"{rows} rows")
