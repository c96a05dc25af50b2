"""drop-tokens: values are the same without them, judged by StableHLO's interpreter; effects are refused."""

from __future__ import annotations

import numpy as np
import pytest

from hloforge.dialect.errors import UnsupportedError
from hloforge.dialect.mlir import parse_module
from hloforge.pipelines.framework.manager import PassManager
from hloforge.pipelines.normalize.drop_tokens import DropTokens
from tests.engines import interpret

# A token through a loop, a branch, a barrier and a function, beside an array.
CARRIED = """
func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  %t = stablehlo.create_token : !stablehlo.token
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %r:3 = stablehlo.while(%t1 = %t, %i = %zero, %v = %x) : !stablehlo.token, tensor<i32>, tensor<3xf32>
  cond {
    %three = stablehlo.constant dense<3> : tensor<i32>
    %p = stablehlo.compare LT, %i, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %next = stablehlo.add %i, %one : tensor<i32>
    %doubled = stablehlo.add %v, %v : tensor<3xf32>
    %t2 = stablehlo.after_all %t1, %t : !stablehlo.token
    stablehlo.return %t2, %next, %doubled : !stablehlo.token, tensor<i32>, tensor<3xf32>
  }
  %true = stablehlo.constant dense<true> : tensor<i1>
  %b:2 = "stablehlo.if"(%true) ({
    %t3 = stablehlo.after_all %r#0 : !stablehlo.token
    stablehlo.return %r#2, %t3 : tensor<3xf32>, !stablehlo.token
  }, {
    stablehlo.return %x, %r#0 : tensor<3xf32>, !stablehlo.token
  }) : (tensor<i1>) -> (tensor<3xf32>, !stablehlo.token)
  %c:2 = func.call @negated(%b#1, %b#0) : (!stablehlo.token, tensor<3xf32>) -> (tensor<3xf32>, !stablehlo.token)
  %o:2 = stablehlo.optimization_barrier %c#1, %c#0 : !stablehlo.token, tensor<3xf32>
  return %o#1 : tensor<3xf32>
}
func.func private @negated(%t: !stablehlo.token, %x: tensor<3xf32>) -> (tensor<3xf32>, !stablehlo.token) {
  %n = stablehlo.negate %x : tensor<3xf32>
  return %n, %t : tensor<3xf32>, !stablehlo.token
}
"""
INFEED = """
func.func @main() -> tensor<2xf32> {
  %t = stablehlo.after_all : !stablehlo.token
  %r:2 = "stablehlo.infeed"(%t) {infeed_config = ""} : (!stablehlo.token) -> (tensor<2xf32>, !stablehlo.token)
  return %r#0 : tensor<2xf32>
}
"""
CALLBACK = """
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %t = stablehlo.create_token : !stablehlo.token
  %u = stablehlo.custom_call @print(%t, %x) {has_side_effect = true}
    : (!stablehlo.token, tensor<2xf32>) -> !stablehlo.token
  return %x : tensor<2xf32>
}
"""


def test_values_beside_tokens_are_the_same() -> None:
    module = parse_module(CARRIED)
    PassManager([DropTokens()]).run(module)
    assert "token" not in str(module)
    x = np.array([1, -0.0, np.inf], np.float32)
    np.testing.assert_array_equal(interpret(module, x)[0], -8 * x)


@pytest.mark.parametrize(("text", "name"), [(INFEED, "stablehlo.infeed"), (CALLBACK, "custom_call @print")])
def test_what_speaks_to_the_host_is_refused_by_its_name(text: str, name: str) -> None:
    with pytest.raises(UnsupportedError, match=f"^.*{name} is not supported: "):
        PassManager([DropTokens()]).run(parse_module(text))
