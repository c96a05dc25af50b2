"""Arrays in blocks with a scale each, as JAX calls them for GPUs, against numpy."""

from __future__ import annotations

import json
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from hloforge.dialect.errors import UnsupportedError
from tests.pipelines.library_calls.ffi_calls import run

E4M3, E5M2, E8M0 = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.float8_e8m0fnu


def draw(*dims: int, dtype: Any = E4M3) -> Any:
    return np.random.default_rng(sum(dims)).normal(size=dims).astype(dtype)


def scales(*dims: int) -> Any:
    return (2.0 ** np.random.default_rng(sum(dims)).integers(-3, 4, dims)).astype(E8M0)


def whole(numbers: Any, factors: Any, size: int) -> Any:
    count = numbers.shape[-1] // size
    return numbers.astype(float) * np.repeat(factors.astype(float)[..., :count], size, -1)


@pytest.mark.parametrize("batch", [(), (3,)])
def test_dot(batch: tuple[int, ...]) -> None:
    lhs, rhs = draw(*batch, 8, 64), draw(*batch, 16, 64)
    factors = scales(*batch, 8, 2), scales(*batch, 16, 2)
    dims = ",".join(map(str, (*batch, 8, 16)))
    (got,) = run("__op$block_scaled_dot", [f"f32[{dims}]"], [lhs, rhs, *factors], "{}")
    want = whole(lhs, factors[0], 32) @ whole(rhs, factors[1], 32).swapaxes(-1, -2)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-4)


def test_one_scaled_factor() -> None:
    lhs, rhs, factors = draw(8, 64), draw(16, 64, dtype=ml_dtypes.bfloat16), scales(8, 2)
    (got,) = run("__op$block_scaled_dot", ["f32[8,16]"], [lhs, rhs, factors], "{}")
    np.testing.assert_allclose(got, whole(lhs, factors, 32) @ rhs.astype(float).T, rtol=1e-5, atol=1e-4)


def test_padded_scales() -> None:
    lhs, rhs, factors = draw(8, 96), draw(16, 96), (scales(8, 4), scales(16, 4))
    config = json.dumps({"block_scaled_dot_backend_config": {"block_size": 32}})
    (got,) = run("__op$block_scaled_dot", ["f32[8,16]"], [lhs, rhs, *factors], config)
    np.testing.assert_allclose(got, whole(lhs, factors[0], 32) @ whole(rhs, factors[1], 32).T, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("dtype", [E4M3, E5M2])
def test_numbers_and_scales(dtype: Any) -> None:
    x = draw(8, 64, dtype=np.float32) * 100
    name = {E4M3: "f8e4m3fn", E5M2: "f8e5m2"}[dtype]
    data, factors = run("__op$quantize", [f"{name}[8,64]", "f8e8m0fnu[8,2]"], [x], "{}")
    power = 2.0 ** np.floor(np.log2(float(ml_dtypes.finfo(dtype).max)))
    blocks = x.reshape(8, 2, 32)
    want = (np.abs(blocks).max(-1) / np.float32(power)).astype(E8M0)
    np.testing.assert_array_equal(factors.view(np.uint8), want.view(np.uint8))
    np.testing.assert_array_equal(data, (blocks / want.astype(np.float32)[..., None]).reshape(8, 64).astype(dtype))
    (back,) = run("__op$dequantize", ["f32[8,64]"], [data, factors], "{}")
    np.testing.assert_allclose(back, whole(data, factors, 32), rtol=1e-6)


def test_scales_of_no_blocks_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="not of blocks"):
        run("__op$dequantize", ["f32[8,60]"], [draw(8, 60), scales(8, 7)], "{}")
