"""Long bodies of loops and branches as functions of parts: LLVM gets no long function, equal parts are one."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy.linalg
import numpy as np
import pytest

import hloforge
from hloforge.pipelines.codegen import blocks
from hloforge.pipelines.codegen.generate import generate
from hloforge.pipelines.codegen.lang import outlining
from hloforge.pipelines.codegen.lowering import lower
from hloforge.runtime.compile.targets import parse_targets
from tests.pipelines.codegen.jax_programs import check, normal
from tests.pipelines.codegen.whole_programs import compiled


def _layers(x: Any, count: int) -> Any:
    """A loop of sorts, running sums and sums, which have lines of code of their own."""

    def body(turn: Any, state: Any) -> Any:
        rows, total = state
        for _ in range(count):
            rows = jnp.sort(jnp.tanh(rows[::-1] * 0.3), axis=1) + jnp.cumsum(rows, 0) * 0.1
            rows = jnp.where(turn > 1, rows, rows.mean(1, keepdims=True))
            total = total * 0.5 + rows[1]
        return rows, total

    return jax.lax.fori_loop(0, 3, body, (x, jnp.zeros_like(x[0])))


@pytest.fixture(autouse=True)
def long_bodies_are_vast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "VAST", outlining.LONG)


def _kernels(function: Callable[..., Any], x: Any) -> list[str]:
    """The longest kernel, alone."""
    program = hloforge.as_program(jax.jit(function).lower(x))
    lower(program.module)
    return sorted(generate(program.module, parse_targets("cpu")[0].machine).kernels, key=len)[-1:]


def _functions(count: int) -> list[int]:
    """Lines of the functions of the longest kernel."""
    (kernel,) = _kernels(lambda x: _layers(x, count), normal(6, 20))
    return [text.count("\n") for text in re.split(r"^define ", kernel, flags=re.MULTILINE)[1:]]


def test_a_long_body_agrees_with_xla() -> None:
    check(lambda x: _layers(x, 12), normal(6, 20))


def test_equal_layers_are_compiled_once() -> None:
    """Twice the layers are more calls, not more code."""
    few, many = _functions(48), _functions(96)
    assert 1 < len(many) < len(few) + 4
    assert max(many) < 3 * outlining.LONG


def _factored(x: Any, count: int) -> Any:
    """Factorizations in a loop and in the branches of a conditional in it."""

    def step(a: Any) -> Any:
        one = jnp.eye(len(a), dtype=a.dtype)
        q, r = jnp.linalg.qr(a * 0.1 + one)
        c = jnp.linalg.cholesky(a @ a.T + 8 * one)
        solved = jax.scipy.linalg.solve_triangular(c, r, lower=True)
        return jnp.sort(q + a, axis=1) * 0.5 + solved @ q.T * 0.25

    def body(turn: Any, a: Any) -> Any:
        for _ in range(count):
            a = step(a)
        return jax.lax.cond(turn % 2 == 0, lambda b: step(step(b)).T, lambda b: step(b) + 1, a)

    return jax.lax.fori_loop(0, 4, body, x)


def test_equal_algorithms_in_loops_and_branches_are_one_function(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "VAST", outlining.VAST)
    functions = [
        # What has vectors has a text of its own, and is only declared here.
        re.findall(r"^define internal|^declare i32 @kernel\.", kernel, flags=re.MULTILINE)
        for count in (1, 4)
        for kernel in _kernels(lambda x, count=count: _factored(x, count), normal(24, 24))
    ]
    few, many = map(len, functions)
    # QR, its orthogonal factor, Cholesky, the triangular system; the branches, where they are long.
    assert 4 <= few == many <= 12


def test_algorithms_that_are_functions_agree_with_xla(monkeypatch: pytest.MonkeyPatch) -> None:
    check(lambda x: _factored(x, 2), normal(24, 24))
    monkeypatch.setattr(blocks, "WORTH", 1)
    monkeypatch.setattr(blocks, "LONG", 1)
    check(lambda x: _factored(x, 1), normal(5, 5))
    check(lambda x: _layers(x, 3), normal(6, 20))


def test_llvm_complains_of_no_loop(capfd: pytest.CaptureFixture[str]) -> None:
    """A loop of the program that ends with a short loop, which LLVM writes out, is not to be written out itself."""
    program = hloforge.as_program(jax.jit(jax.scipy.linalg.sqrtm).lower(normal(8, 8, dtype=np.complex64)))
    assert compiled(program).manifest.is_generated
    assert "not unrolled" not in capfd.readouterr().err


@pytest.mark.parametrize("fails", [False, True])
def test_functions_of_the_host_in_parts(monkeypatch: pytest.MonkeyPatch, fails: bool) -> None:
    """Calls keep their order, and a failure in a part ends the program."""
    monkeypatch.setattr(blocks, "VAST", 1)
    monkeypatch.setattr(outlining, "LONG", 1)
    seen: list[int] = []

    def log(x: Any) -> Any:
        seen.append(int(x))
        if fails and len(seen) == 3:
            raise ValueError("no more")
        return np.int32(x + 1)

    call = 'custom-call(x), custom_call_target="log", custom_call_has_side_effect=true'
    text = f"""HloModule m
go {{ x = s32[] parameter(0) n = s32[] constant(6) ROOT less = pred[] compare(x, n), direction=LT }}
turn {{ x = s32[] parameter(0) a = s32[] {call} ROOT b = s32[] {call.replace("(x)", "(a)")} }}
ENTRY main {{ x = s32[] parameter(0) ROOT end = s32[] while(x), condition=go, body=turn }}"""
    executable = hloforge.compile(text, host_calls={"log"}, cache=False)
    assert executable.manifest.is_generated
    session = executable.load(host={"log": log})
    if fails:
        with pytest.raises(ValueError, match="no more"):
            session(np.int32(0))
        assert seen == [0, 1, 2]
    else:
        assert int(session(np.int32(0))) == 6
        assert seen == [0, 1, 2, 3, 4, 5]
