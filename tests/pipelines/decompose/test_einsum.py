"""decompose-einsum: products, sums over one operand's dimension, diagonals, by numpy's einsum."""

from __future__ import annotations

import numpy as np
import pytest

from hloforge.dialect.mlir import parse_module
from hloforge.dialect.operations import operations
from hloforge.importers.reader import read
from hloforge.pipelines.decompose.einsum import DecomposeEinsum
from hloforge.runtime.compile.compiler import compile_program
from tests.engines import interpret

_SIZES = {"i": 3, "j": 4, "k": 2, "l": 5}
CONFIGS = (
    "ij,jk->ik",
    "ijk,jl->li",
    "ij,ij->",
    "i,j->ji",
    ",ij->i",
    "bij,bjk->bki".replace("b", "l"),
    "ii,ij->j",
    "iij,i->ij",
)


def _text(config: str) -> str:
    terms, wanted = config.split("->")
    types = [f"tensor<{''.join(f'{_SIZES[n]}x' for n in name)}f64>" for name in (*terms.split(","), wanted)]
    return f"""func.func @main(%x: {types[0]}, %y: {types[1]}) -> {types[2]} {{
      %r = "stablehlo.einsum"(%x, %y) <{{einsum_config = "{config}"}}> : ({types[0]}, {types[1]}) -> {types[2]}
      return %r : {types[2]} }}"""


@pytest.mark.parametrize("config", CONFIGS)
def test_einsum(config: str) -> None:
    random = np.random.default_rng(0)
    x, y = (random.standard_normal([_SIZES[n] for n in name]) for name in config.split("->")[0].split(","))
    module = parse_module(_text(config))
    DecomposeEinsum().run(module)
    assert not operations(module, {"stablehlo.einsum"})
    np.testing.assert_allclose(interpret(module, x, y)[0], np.einsum(config, x, y), rtol=1e-12)


def test_compiled_unary_einsum() -> None:
    program = read(
        """func.func @main(%x: tensor<3x4xf32>) -> tensor<3xf32> {
          %c = "stablehlo.unary_einsum"(%x) <{einsum_config = "ij->i"}> : (tensor<3x4xf32>) -> tensor<3xf32>
          return %c : tensor<3xf32> }"""
    )
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    np.testing.assert_array_equal(compile_program(program)(x), x.sum(1))
