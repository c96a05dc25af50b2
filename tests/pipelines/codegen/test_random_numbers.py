"""``rng`` by our code: the program's count of blocks goes on in operations, loops, branches, calls and threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import hloforge
from tests.pipelines.codegen.whole_programs import compiled

_DRAWS = """func.func @main(%p: tensor<i1>) -> (tensor<4xf32>, tensor<3x4xf32>, tensor<4xf32>) {
  %a = stablehlo.constant dense<0.0> : tensor<f32>
  %b = stablehlo.constant dense<1.0> : tensor<f32>
  %n = stablehlo.constant dense<4> : tensor<1xi64>
  %x = stablehlo.rng %a, %b, %n, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<4xf32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %three = stablehlo.constant dense<3> : tensor<i32>
  %none = stablehlo.constant dense<0.0> : tensor<3x4xf32>
  %loop:2 = stablehlo.while(%i = %zero, %rows = %none) : tensor<i32>, tensor<3x4xf32>
    cond {
      %c = stablehlo.compare LT, %i, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %r = stablehlo.rng %a, %b, %n, distribution = NORMAL : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<4xf32>
      %row = stablehlo.reshape %r : (tensor<4xf32>) -> tensor<1x4xf32>
      %all = stablehlo.dynamic_update_slice %rows, %row, %i, %zero
        : (tensor<3x4xf32>, tensor<1x4xf32>, tensor<i32>, tensor<i32>) -> tensor<3x4xf32>
      %next = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %next, %all : tensor<i32>, tensor<3x4xf32>
    }
  %z = "stablehlo.if"(%p) ({
    %r = stablehlo.rng %a, %b, %n, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<4xf32>
    stablehlo.return %r : tensor<4xf32>
  }, {
    stablehlo.return %x : tensor<4xf32>
  }) : (tensor<i1>) -> tensor<4xf32>
  return %x, %loop#1, %z : tensor<4xf32>, tensor<3x4xf32>, tensor<4xf32> }"""


def _session(**options: Any) -> Any:
    return compiled(hloforge.as_program(_DRAWS)).load(**options)


def _numbers(results: Any) -> np.ndarray[Any, Any]:
    return np.concatenate([np.asarray(result).ravel() for result in results])


def test_numbers_are_those_of_the_other_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = _session()
    monkeypatch.setenv("HLOFORGE_CODEGEN", "iree")
    theirs = hloforge.compile(_DRAWS, cache=False).load()
    for flag in (True, False, True):
        got, want = _numbers(ours(np.bool_(flag))), _numbers(theirs(np.bool_(flag)))
        np.testing.assert_allclose(got, want, rtol=1e-5)


def test_a_branch_that_is_not_taken_draws_nothing() -> None:
    one, other = _session(), _session()
    one(np.bool_(False))
    other(np.bool_(True))
    assert not np.array_equal(_numbers(one(np.bool_(False))), _numbers(other(np.bool_(False))))


def test_arrays_of_the_device_draw_from_the_same_count() -> None:
    session = _session()
    first, second = _numbers(session(np.bool_(True))), _numbers(session.call_device(np.bool_(True)))
    assert len(np.unique(np.concatenate([first, second]))) == 2 * 20


@pytest.mark.parametrize("device", ["local-sync", "local-task"])
def test_calls_in_threads_draw_different_numbers(device: str) -> None:
    session = _session(device=device)
    with ThreadPoolExecutor(4) as pool:
        drawn = list(pool.map(lambda _: _numbers(session(np.bool_(True))), range(40)))
    assert len(np.unique(np.concatenate(drawn))) > 0.99 * 40 * 20
