"""Operators that PT2E and quantization-aware training write; expected values are eager PyTorch's.

JAX's CPU client runs what the lowerings write.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra `torch`")
jax = pytest.importorskip("jax", reason="needs the extra `torch`")

from torch.ao.quantization.fx import _decomposed  # noqa: E402, F401  it registers the operators
from torch.fx.experimental.proxy_tensor import make_fx  # noqa: E402

from hloforge.torch.decompositions import decompositions  # noqa: E402
from hloforge.torch.interpreter import Interpreter, check  # noqa: E402

OPERATORS = torch.ops.quantized_decomposed
INT8, UINT8 = torch.int8, torch.uint8


def whole(x: Any) -> Any:
    stored = OPERATORS.quantize_per_tensor(x, 0.02, 7, 0, 255, UINT8)
    return stored, OPERATORS.dequantize_per_tensor(stored, 0.02, 7, 0, 255, UINT8)


def dynamic(x: Any) -> Any:
    scale, zero = OPERATORS.choose_qparams.tensor(x, -128, 127, 1e-5, INT8)
    stored = OPERATORS.quantize_per_tensor.tensor(x, scale, zero, -128, 127, INT8)
    symmetric = OPERATORS.choose_qparams_symmetric.tensor(x, -128, 127, 1e-5, INT8)
    return scale, zero, stored, OPERATORS.dequantize_per_tensor.tensor(stored, scale, zero, -128, 127, INT8), symmetric


def channels(x: Any) -> Any:
    scales, zeros = torch.linspace(0.01, 0.05, 6), torch.arange(6) - 3
    stored = OPERATORS.quantize_per_channel(x, scales, zeros, 1, -128, 127, INT8)
    return stored, OPERATORS.dequantize_per_channel(stored, scales, zeros, 1, -128, 127, INT8)


def tokens(x: Any) -> Any:
    scales, zeros = OPERATORS.choose_qparams_per_token_asymmetric(x, INT8)
    stored = OPERATORS.quantize_per_token(x, scales, zeros, -128, 127, INT8)
    found = OPERATORS.dequantize_per_token(stored, scales, zeros, -128, 127, INT8, torch.float32)
    return scales, zeros, stored, found


def fake(x: Any) -> Any:
    one = torch.fake_quantize_per_tensor_affine(x, 0.02, 3, -128, 127)
    scales, zeros = torch.linspace(0.001, 0.05, 6), torch.arange(6, dtype=torch.int32)
    return one, torch.fake_quantize_per_channel_affine(x, scales, zeros, 1, -128, 127)


@pytest.mark.parametrize("function", [whole, dynamic, channels, tokens, fake])
def test_as_pytorch(function: Any) -> None:
    torch.manual_seed(0)
    _check(function, torch.randn(4, 6))


def scaled_bytes(x: Any) -> Any:
    weights = (torch.arange(6 * 32) * 37 % 255 - 127).reshape(32, 6).to(INT8)
    return torch.ops.aten._weight_int8pack_mm(x, weights, torch.linspace(0.01, 0.05, 32))


def halves(x: Any) -> Any:
    """Columns that are whole blocks and others; what packs them is a part of the graph."""
    numbers = (torch.arange(112 * 64) * 37 % 16).reshape(112, 64).to(torch.int32)
    packed = torch.ops.aten._convert_weight_to_int4pack_for_cpu(numbers, 1)
    scales_and_zeros = torch.linspace(-0.05, 0.05, 2 * 112 * 2).reshape(2, 112, 2)
    wide = torch.cat([x] * 11, 1)[:, :64].contiguous()
    return packed, torch.ops.aten._weight_int4pack_mm_for_cpu(wide, packed, 32, scales_and_zeros)


def narrow_floats(x: Any) -> Any:
    """Products of 8-bit floats, with one scale and with one for each row and column."""
    left = torch.cat([x] * 8, 1)[:, :32].to(torch.float8_e4m3fn)
    right = torch.linspace(-3, 3, 48 * 32).reshape(48, 32).to(torch.float8_e4m3fn).t()
    one = torch._scaled_mm(left, right, torch.full((), 0.5), torch.full((), 0.3), out_dtype=torch.float32)
    scales = torch.linspace(0.1, 1, 4)[:, None], torch.linspace(0.2, 0.9, 48)[None]
    return one, torch._scaled_mm(left, right, *scales, bias=torch.ones(48), out_dtype=torch.float32)


@pytest.mark.parametrize("function", [scaled_bytes, halves, narrow_floats])
def test_products_of_narrow_weights(function: Any) -> None:
    torch.manual_seed(0)
    _check(function, torch.randn(4, 6), 1e-5)


def _check(function: Any, x: Any, tolerance: float = 1e-6) -> None:
    graph = make_fx(function, decomposition_table=decompositions(), tracing_mode="fake")(x)
    check(graph)
    with jax.enable_x64(True):
        found = jax.tree.leaves(jax.jit(lambda a: Interpreter().run(graph, [a]))(x.numpy()))
    expected = [leaf.numpy() for leaf in jax.tree.leaves(function(x))]
    for result, wanted in zip(found, expected, strict=True):
        assert result.dtype == wanted.dtype and result.shape == wanted.shape
        if wanted.dtype.kind in "iu":
            np.testing.assert_array_equal(result, wanted)
        else:
            np.testing.assert_allclose(result, wanted, rtol=tolerance, atol=tolerance / 10)
