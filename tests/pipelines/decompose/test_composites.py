"""lower-composites: handlers first, then the composite's own body, at any depth."""

from __future__ import annotations

import numpy as np
import pytest

from hloforge.dialect.errors import PassError
from hloforge.dialect.mlir import parse_module
from hloforge.pipelines.decompose.composites import LowerComposites, handles
from hloforge.pipelines.framework.manager import PassManager
from tests.engines import interpret

X = np.array([0.25, -0.5], np.float32)


def program(call: str, functions: str) -> str:
    return f"""module {{
      func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {{ %r = {call} return %r : tensor<2xf32> }}
      {functions} }}"""


def composite(name: str, decomposition: str, operand: str = "%x") -> str:
    return f"""stablehlo.composite "{name}" {operand} {{decomposition = @{decomposition}}}
      : (tensor<2xf32>) -> tensor<2xf32>"""


def body(name: str, call: str) -> str:
    return f"func.func private @{name}(%x: tensor<2xf32>) -> tensor<2xf32> {{ %r = {call} return %r : tensor<2xf32> }}"


DOUBLE = body("double", "stablehlo.add %x, %x : tensor<2xf32>")


def test_nested_composites_expand_to_their_bodies() -> None:
    outer = body("outer", composite("my.inner", "double"))
    module = parse_module(program(composite("my.outer", "outer"), outer + DOUBLE))
    PassManager([LowerComposites()]).run(module)
    assert "composite" not in str(module)
    np.testing.assert_array_equal(interpret(module, X)[0], 2 * X)


def test_a_composite_named_like_a_chlo_operation_becomes_that_operation() -> None:
    # The body is wrong on purpose: a handler must have had its turn before it.
    module = parse_module(program(composite("chlo.asin", "double"), DOUBLE))
    PassManager([LowerComposites()]).run(module)
    assert "chlo.asin" in str(module)


TOP_K = """
  func.func @main(%x: tensor<3xf32>) -> (tensor<2xf32>, tensor<2xi32>) {{
    %r:2 = stablehlo.composite "chlo.top_k" %x {{decomposition = @body, version = 1 : i32,
      composite_attributes = {{k = 2 : i64, largest = {largest}}}}} : (tensor<3xf32>) -> (tensor<2xf32>, tensor<2xi32>)
    return %r#0, %r#1 : tensor<2xf32>, tensor<2xi32>
  }}
  func.func private @body(%x: tensor<3xf32>) -> (tensor<2xf32>, tensor<2xi32>) {{
    %v = stablehlo.constant dense<[-7.0, -6.0]> : tensor<2xf32>
    %i = stablehlo.constant dense<[1, 2]> : tensor<2xi32>
    return %v, %i : tensor<2xf32>, tensor<2xi32>
  }}"""


def test_attributes_of_a_composite_become_those_of_the_chlo_operation() -> None:
    module = parse_module(TOP_K.format(largest="true"))
    PassManager([LowerComposites()]).run(module)
    assert "chlo.top_k(%arg0, k = 2)" in str(module)


def test_what_the_chlo_operation_cannot_say_is_expanded() -> None:
    module = parse_module(TOP_K.format(largest="false"))
    PassManager([LowerComposites()]).run(module)
    assert "chlo" not in str(module)
    assert interpret(module, np.zeros(3, np.float32))[0].tolist() == [-7, -6]


@pytest.mark.parametrize("name", ["my.kept", "chlo.asin"])
def test_a_kept_composite_stays(name: str) -> None:
    """Whether there is a handler or not."""
    module = parse_module(program(composite(name, "double"), DOUBLE))
    PassManager([LowerComposites(keep=("my.other", name))]).run(module)
    assert f'composite "{name}"' in str(module)


def test_endless_nesting_is_an_error() -> None:
    module = parse_module(program(composite("my.loop", "loop"), body("loop", composite("my.loop", "loop"))))
    with pytest.raises(PassError, match="calls itself"):
        LowerComposites().run(module)


def test_a_second_handler_for_a_name_is_refused() -> None:
    with pytest.raises(ValueError, match=r"chlo\.asin has two handlers"):
        handles("chlo.asin")(lambda op: [])
