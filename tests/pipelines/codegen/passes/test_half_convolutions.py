"""legalize-half-convolutions: sums of products of f16 numbers in f32, rounded once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import hloforge
from tests.pipelines.codegen.whole_programs import compiled

_TEXT = """func.func @main(%x: tensor<{n}x{i}x15x13xf16>{argument}) -> tensor<{n}x{o}x{h}x{w}x{result}> {{
  {constant}
  %y = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1],
    window = {{stride = [{s}, {s}], pad = [[{p}, {p}], [{p}, {p}]]}}
    {{batch_group_count = 1 : i64, feature_group_count = {g} : i64}} :
    (tensor<{n}x{i}x15x13xf16>, tensor<{o}x{j}x{k}x{k}xf16>) -> tensor<{n}x{o}x{h}x{w}x{result}>
  return %y : tensor<{n}x{o}x{h}x{w}x{result}> }}"""


@pytest.mark.parametrize("is_known", [True, False])
@pytest.mark.parametrize("result", ["f16", "f32"])
@pytest.mark.parametrize(
    ("n", "i", "o", "k", "s", "g"),
    [(1, 16, 24, 3, 1, 1), (2, 13, 29, 5, 2, 1), (1, 24, 33, 1, 1, 1), (2, 8, 8, 3, 1, 8)],
)
def test_sums_are_rounded_once(n: int, i: int, o: int, k: int, s: int, g: int, result: str, is_known: bool) -> None:
    random = np.random.default_rng(k)
    x = random.normal(size=(n, i, 15, 13)).astype(np.float16)
    weights = (random.normal(size=(o, i // g, k, k)) / k).astype(np.float16)
    exact = torch.nn.functional.conv2d(
        *(torch.from_numpy(each.astype(np.float64)) for each in (x, weights)), stride=s, padding=k // 2, groups=g
    ).numpy()
    kind = f"tensor<{o}x{i // g}x{k}x{k}xf16>"
    words = "".join(f"{word:04X}" for word in weights.view(np.uint16).byteswap().reshape(-1))
    text = _TEXT.format(
        n=n, i=i, o=o, j=i // g, k=k, s=s, g=g, p=k // 2, h=exact.shape[2], w=exact.shape[3], result=result,
        argument="" if is_known else f", %w: {kind}",
        constant=f'%w = stablehlo.constant dense<"0x{words}"> : {kind}' if is_known else "",
    )  # fmt: skip
    given: list[Any] = [x] if is_known else [x, weights]
    got = np.asarray(compiled(hloforge.as_program(text)).load()(*given))
    step = np.finfo(got.dtype).eps
    np.testing.assert_allclose(got, exact, 0.51 * step if result == "f16" else 0, 2e-5)
