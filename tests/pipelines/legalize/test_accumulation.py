"""legalize-accumulation: long 16-bit sums are no further from the truth than one rounding."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from hloforge.dialect.mlir import parse_module
from hloforge.pipelines.framework.manager import PassManager
from hloforge.pipelines.legalize.accumulation import LegalizeAccumulation
from tests.engines import interpret

RANDOM = np.random.default_rng(5)
DTYPES = {"bf16": np.dtype(ml_dtypes.bfloat16), "f16": np.dtype(np.float16)}
ULP = {"bf16": 2.0**-8, "f16": 2.0**-11}


def lowered(text: str) -> object:
    module = parse_module(text)
    PassManager([LegalizeAccumulation()]).run(module)
    return module


DOT = """func.func @main(%a: tensor<3x700xbf16>, %b: tensor<700x2xbf16>) -> tensor<3x2xbf16> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
    : (tensor<3x700xbf16>, tensor<700x2xbf16>) -> tensor<3x2xbf16>
  return %0 : tensor<3x2xbf16> }"""


@pytest.mark.parametrize("element", DTYPES)
def test_a_long_dot_is_rounded_once(element: str) -> None:
    a, b = (RANDOM.uniform(size=shape).astype(DTYPES[element]) for shape in [(3, 700), (700, 2)])
    (result,) = interpret(lowered(DOT.replace("bf16", element)), a, b)
    np.testing.assert_allclose(result.astype(np.float64), a.astype(float) @ b.astype(float), rtol=1.01 * ULP[element])


REDUCE = """func.func @main(%a: tensor<700x2xbf16>) -> tensor<2xbf16> {{
  %z = stablehlo.constant dense<0.0> : tensor<bf16>
  %0 = stablehlo.reduce(%a init: %z) across dimensions = [0] : (tensor<700x2xbf16>, tensor<bf16>) -> tensor<2xbf16>
   reducer(%x: tensor<bf16>, %y: tensor<bf16>) {{
    {body}
    stablehlo.return %r : tensor<bf16>
  }}
  return %0 : tensor<2xbf16> }}"""


def test_a_long_sum_is_rounded_once() -> None:
    a = RANDOM.uniform(size=(700, 2)).astype(ml_dtypes.bfloat16)
    (result,) = interpret(lowered(REDUCE.format(body="%r = stablehlo.add %y, %x : tensor<bf16>")), a)
    np.testing.assert_allclose(result.astype(np.float64), a.astype(float).sum(0), rtol=1.01 * ULP["bf16"])


@pytest.mark.parametrize(
    "body",
    [
        "%r = stablehlo.maximum %x, %y : tensor<bf16>",
        "%r = stablehlo.add %x, %x : tensor<bf16>",
        "%s = stablehlo.add %x, %y : tensor<bf16>\n%r = stablehlo.negate %s : tensor<bf16>",
    ],
)
def test_other_computations_keep_their_type(body: str) -> None:
    assert "f32" not in str(lowered(REDUCE.format(body=body)))


def test_f32_is_left_alone() -> None:
    text = REDUCE.format(body="%r = stablehlo.add %x, %y : tensor<bf16>").replace("bf16", "f32")
    assert str(lowered(text)) == str(parse_module(text))
