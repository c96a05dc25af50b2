"""inline-calls: one function is left, with the callees' results and both locations."""

from __future__ import annotations

import numpy as np
import pytest

from hloforge.dialect.errors import PassError
from hloforge.dialect.mlir import parse_module
from hloforge.dialect.operations import location_of, operations
from hloforge.pipelines.framework.manager import PassManager
from hloforge.pipelines.normalize.inline_calls import InlineCalls
from tests.engines import interpret

X = np.array([1.0, -3.0], np.float32)


def function(name: str, call: str, kind: str = "private ") -> str:
    return f"""func.func {kind}@{name}(%x: tensor<2xf32>) -> tensor<2xf32> {{
      %r = {call} : (tensor<2xf32>) -> tensor<2xf32>
      return %r : tensor<2xf32> }}"""


TWICE = """func.func private @twice(%x: tensor<2xf32>) -> tensor<2xf32> {
  %r = stablehlo.add %x, %x : tensor<2xf32> loc("m.hlo":4:1)
  return %r : tensor<2xf32> }"""


def test_nested_calls_compute_the_same_in_one_function() -> None:
    text = (
        function("main", "call @four(%x)", "")
        + function("four", "call @three(%x)")
        + function("three", "call @twice(%x)")
    )
    module = parse_module(text + TWICE)
    PassManager([InlineCalls()]).run(module)
    assert str(module).count("func.func") == 1
    np.testing.assert_array_equal(interpret(module, X)[0], 2 * X)


def test_a_call_inside_a_region_is_inlined() -> None:
    module = parse_module(
        """func.func @main(%x: tensor<2xf32>, %n: tensor<i32>) -> tensor<2xf32> {
      %r = "stablehlo.case"(%n) ({ %a = call @twice(%x) : (tensor<2xf32>) -> tensor<2xf32>
        stablehlo.return %a : tensor<2xf32> }, { stablehlo.return %x : tensor<2xf32> }) : (tensor<i32>) -> tensor<2xf32>
      return %r : tensor<2xf32> }"""
        + TWICE
    )
    PassManager([InlineCalls()]).run(module)
    np.testing.assert_array_equal(interpret(module, X, np.int32(0))[0], 2 * X)
    np.testing.assert_array_equal(interpret(module, X, np.int32(1))[0], X)


def test_the_location_of_the_callee_survives() -> None:
    module = parse_module(function("main", "call @twice(%x)", "") + TWICE)
    PassManager([InlineCalls()]).run(module)
    (add,) = operations(module, {"stablehlo.add"})
    assert str(location_of(add)) == "m.hlo:4:1"


def test_an_external_function_stays() -> None:
    text = function("main", "call @host(%x)", "") + "func.func private @host(tensor<2xf32>) -> tensor<2xf32>"
    module = parse_module(text)
    PassManager([InlineCalls()]).run(module)
    assert "call @host" in str(module)


def test_recursion_is_refused() -> None:
    text = function("main", "call @a(%x)", "") + function("a", "call @b(%x)") + function("b", "call @a(%x)")
    with pytest.raises(PassError, match="@a calls itself"):
        InlineCalls().run(parse_module(text))
