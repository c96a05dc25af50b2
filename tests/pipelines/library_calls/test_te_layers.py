"""TransformerEngine's norms, activations and their quantized forms against numpy and JAX's gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from hloforge.dialect.errors import UnsupportedError
from tests.pipelines.library_calls.ffi_calls import run, shape

jax = pytest.importorskip("jax")
jnp = jax.numpy

BF16, E4M3, E5M2 = ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2
CLOSE = {"rtol": 1e-5, "atol": 1e-5}
EPSILON = 1e-3


def draw(*dims: int, dtype: Any = np.float32) -> Any:
    return np.random.default_rng(sum(dims)).normal(size=dims).astype(dtype)


def normed(x: Any, factors: Any, shifts: Any, zero_centered: bool) -> Any:
    """A layer norm, or an RMS norm where there are no shifts."""
    scale = factors + 1 if zero_centered else factors
    if shifts is None:
        return x / jnp.sqrt((x * x).mean(-1, keepdims=True) + EPSILON) * scale
    centred = x - x.mean(-1, keepdims=True)
    return centred / jnp.sqrt((centred * centred).mean(-1, keepdims=True) + EPSILON) * scale + shifts


class TestNorms:
    """Calls since release 2.3, and those before it."""

    x, factors, shifts, given = draw(2, 3, 8) * 3 + 1, draw(8), draw(8) * 0.5, draw(2, 3, 8)

    def statistics(self, has_mean: bool) -> tuple[Any, Any]:
        x = self.x.astype(float)
        mean = x.mean(-1) if has_mean else np.zeros((2, 3))
        inverse = 1 / np.sqrt(((x - mean[..., None]) ** 2).mean(-1) + EPSILON)
        return mean.astype(np.float32), inverse.astype(np.float32)

    def gradients(self, has_mean: bool, zero_centered: bool) -> list[Any]:
        shifts = self.shifts if has_mean else None
        _, pull = jax.vjp(lambda x, f, s: normed(x, f, s, zero_centered), self.x, self.factors, shifts)
        return [np.asarray(found) for found in pull(jnp.asarray(self.given)) if found is not None]

    @pytest.mark.parametrize("zero_centered", [False, True])
    @pytest.mark.parametrize("kind", [0, 1])
    def test_forward(self, kind: int, zero_centered: bool) -> None:
        settings = {"norm_type": kind, "zero_centered_gamma": zero_centered, "epsilon": EPSILON, "sm_margin": 0}
        settings |= {"scaling_mode": 0, "quantize_layout": 0, "output_amax_when_no_scaling": kind == 1}
        means = "f32[2,3]" if kind == 0 else "f32[1]"
        results = ["f32[2,3,8]", "f32[1]", "f32[0]", "f32[0]", "f32[1]", means, "f32[2,3]", "u8[16]"]
        state = [np.zeros(0, np.float32), np.ones(1, np.float32)]
        got = run("te_norm_forward_ffi", results, [self.x, *state, self.factors, self.shifts], settings)
        want = normed(self.x, self.factors, self.shifts if kind == 0 else None, zero_centered)
        np.testing.assert_allclose(got[0], want, **CLOSE)
        mean, inverse = self.statistics(kind == 0)
        np.testing.assert_allclose(got[6], inverse, **CLOSE)
        if kind == 0:
            np.testing.assert_allclose(got[5], mean, **CLOSE)
        np.testing.assert_allclose(got[4], max(1, np.abs(want).max()) if kind else 1, **CLOSE)

    @pytest.mark.parametrize("zero_centered", [False, True])
    @pytest.mark.parametrize("kind", [0, 1])
    def test_backward(self, kind: int, zero_centered: bool) -> None:
        settings = {"norm_type": kind, "zero_centered_gamma": zero_centered, "sm_margin": 0}
        mean, inverse = self.statistics(kind == 0)
        shift = "f32[8]" if kind == 0 else "f32[1]"
        results = ["f32[2,3,8]", "f32[8]", shift, "u8[16]"]
        got = run("te_norm_backward_ffi", results, [self.given, self.x, mean, inverse, self.factors], settings)
        for found, want in zip(got, self.gradients(kind == 0, zero_centered), strict=False):
            np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-5)

    @pytest.mark.parametrize("has_mean", [True, False])
    def test_before_release_2_3(self, has_mean: bool) -> None:
        name, settings = (
            "layernorm" if has_mean else "rmsnorm",
            {"zero_centered_gamma": True, "eps": EPSILON, "sm_margin": 0},
        )
        mean, inverse = self.statistics(has_mean)
        shifts = [self.shifts] if has_mean else []
        means = [mean] if has_mean else []
        results = ["f32[2,3,8]", *map(shape, means), "f32[2,3]", "u8[16]"]
        got = run(f"te_{name}_forward_ffi", results, [self.x, self.factors, *shifts], settings)
        want = normed(self.x, self.factors, self.shifts if has_mean else None, True)
        np.testing.assert_allclose(got[0], want, **CLOSE)
        np.testing.assert_allclose(got[len(means) + 1], inverse, **CLOSE)
        results = ["f32[2,3,8]", "f32[8]", *map(shape, shifts), "u8[16]"]
        operands = [self.given, self.x, *means, inverse, self.factors]
        got = run(f"te_{name}_backward_ffi", results, operands, settings)
        for found, expected in zip(got, self.gradients(has_mean, True), strict=False):
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)

    def test_in_8_bits_before_release_2_3(self) -> None:
        settings = {"zero_centered_gamma": False, "eps": EPSILON, "sm_margin": 0}
        state = [np.full(1, 0.5, np.float32), np.full(1, 8, np.float32), np.full(1, 1 / 8, np.float32)]
        results = ["f8e4m3fn[2,3,8]", "f32[2,3]", "f32[1]", "u8[16]"]
        got = run("te_rmsnorm_forward_fp8_ffi", results, [self.x, self.factors, *state], settings)
        want = np.asarray(normed(self.x, self.factors, None, False))
        np.testing.assert_allclose(got[0].astype(float), want * 8, rtol=0.07, atol=0.02)
        np.testing.assert_allclose(got[2], np.abs(want).max(), **CLOSE)

    def test_rows_of_bf16(self) -> None:
        settings = {"norm_type": 1, "zero_centered_gamma": False, "sm_margin": 0, "epsilon": EPSILON, "scaling_mode": 0}
        x, state = self.x.astype(BF16), np.zeros(1, np.float32)
        results = ["bf16[2,3,8]", "bf16[1]", "f32[1]", "f32[1]", "f32[1]", "f32[1]", "f32[2,3]", "u8[16]"]
        operands = [x, state, self.factors.astype(BF16), self.shifts.astype(BF16)]
        got = run("te_norm_forward_ffi", results, operands, {**settings, "is_2x": False})
        factors = self.factors.astype(BF16).astype(np.float32)
        want = normed(x.astype(np.float32), factors, None, False)
        np.testing.assert_allclose(got[0].astype(float), want, rtol=1e-2, atol=1e-2)


def clamped(alpha: float, limit: float, offset: float) -> Callable[..., Any]:
    def function(first: Any, second: Any) -> Any:
        cut = jnp.minimum(first, limit)
        return cut * jax.nn.sigmoid(alpha * cut) * (jnp.clip(second, -limit, limit) + offset)

    return function


def quick(x: Any) -> Any:
    return x * jax.nn.sigmoid(1.702 * x)


def squared(x: Any) -> Any:
    return jax.nn.relu(x) ** 2


# NVTE_Activation_Type, in its order.
ACTIVATIONS: list[Callable[..., Any]] = [
    jax.nn.gelu,
    lambda x, y: jax.nn.gelu(x) * y,
    lambda x, y: jax.nn.sigmoid(x) * y,
    jax.nn.silu,
    lambda x, y: jax.nn.silu(x) * y,
    jax.nn.relu,
    lambda x, y: jax.nn.relu(x) * y,
    quick,
    lambda x, y: quick(x) * y,
    squared,
    lambda x, y: squared(x) * y,
    clamped(1.5, 0.75, 0.5),
]
PARAMETERS = {"clamped_swiglu": {"limit": 0.75, "alpha": 1.5, "glu_linear_offset": 0.5}}


def activated(number: int, x: Any) -> Any:
    return ACTIVATIONS[number](*(x[..., part, :] for part in range(x.shape[-2])))


def parts(number: int) -> int:
    return 2 if number in (1, 2, 4, 6, 8, 10, 11) else 1


@pytest.mark.wide(2)
@pytest.mark.parametrize("number", range(len(ACTIVATIONS)))
def test_activations(number: int) -> None:
    x, given = draw(2, 3, parts(number), 8) * 1.5, draw(2, 3, 8)
    settings = {"act_enum": number, "scaling_mode": 0, "quantize_layout": 0, "act_params": PARAMETERS}
    settings["output_amax_when_no_scaling"] = False
    state = [np.zeros(0, np.float32), np.zeros(1, np.float32)]
    results = ["f32[2,3,8]", "f32[1]", "f32[0]", "f32[0]", "f32[1]"]
    got = run("te_act_lu_ffi", results, [x, *state], settings)
    np.testing.assert_allclose(got[0], activated(number, x), **CLOSE)
    want, pull = jax.vjp(lambda x: activated(number, x), x)
    (want,) = pull(jnp.asarray(given))
    results = [shape(x), "f32[1]", "f32[0]", "f32[0]", "f32[1]", "f32[1]", "f32[1]"]
    settings = {**settings, "is_dbias": False}
    got = run("te_dact_dbias_quantize_ffi", results, [given, x, *state], settings)
    np.testing.assert_allclose(got[0], want, rtol=1e-4, atol=1e-5)


def test_activations_before_release_2_3() -> None:
    x, given = draw(4, 6, 2, 8), draw(4, 6, 8)
    (got,) = run("te_act_lu_ffi", ["f32[4,6,8]"], [x], {"act_enum": 4})
    np.testing.assert_allclose(got, activated(4, x), **CLOSE)
    (got,) = run("te_dact_lu_ffi", ["f32[4,6,2,8]"], [given, x], {"act_enum": 4})
    want = np.asarray(jax.vjp(lambda x: activated(4, x), x)[1](jnp.asarray(given))[0])
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    state = [np.zeros(1, np.float32), np.ones(1, np.float32) * 16, np.ones(1, np.float32) / 16]
    results = ["f8e5m2[4,6,2,8]", "f8e5m2[2,8,4,6]", "f32[1]"]
    rows, columns, greatest = run("te_dgated_act_lu_cast_transpose_ffi", results, [given, x, *state], {"act_enum": 4})
    np.testing.assert_allclose(rows.astype(float), want * 16, rtol=0.13, atol=1e-3)
    np.testing.assert_array_equal(columns, rows.transpose(2, 3, 0, 1))
    np.testing.assert_allclose(greatest, np.abs(want).max(), rtol=1e-4)
    rows, greatest = run("te_act_lu_fp8_ffi", ["f8e4m3fn[4,6,8]", "f32[1]"], [x, *state], {"act_enum": 4})
    np.testing.assert_allclose(rows.astype(float), np.asarray(activated(4, x)) * 16, rtol=0.07, atol=1e-2)
    np.testing.assert_allclose(greatest, np.abs(activated(4, x)).max(), rtol=1e-4)


class TestQuantizing:
    @pytest.mark.parametrize("mode", [1, 3])
    @pytest.mark.parametrize("dtype", [E4M3, E5M2])
    def test_one_scale(self, mode: int, dtype: Any) -> None:
        x = draw(2, 3, 4, 8, dtype=BF16)
        scale, greatest = np.full(1, 300, np.float32), np.full(1, 0.25, np.float32)
        narrow = shape(np.zeros(0, dtype)).split("[")[0]
        results = [f"{narrow}[2,3,4,8]", f"{narrow}[4,8,2,3]", "f32[1]", "f32[1]", "f32[1]", "bf16[4,8]", "f32[1]"]
        settings = {"scaling_mode": mode, "q_layout": 2, "flatten_axis": -2, "is_dbias": True}
        settings |= {"stochastic_rounding": False, "use_rht": False}
        unread = [np.zeros(4, np.uint32), np.zeros(1, np.float32), np.zeros((16, 16), BF16)]
        got = run("te_dbias_quantize_ffi", results, [x, scale, greatest, *unread], settings)
        most = float(ml_dtypes.finfo(dtype).max)
        want = np.clip(x.astype(np.float32) * 300, -most, most).astype(dtype)
        assert (np.abs(want.astype(float)) == most).any() == (dtype is E4M3)
        np.testing.assert_array_equal(got[0], want)
        np.testing.assert_array_equal(got[1], want.transpose(2, 3, 0, 1))
        np.testing.assert_allclose(got[2], 1 / 300, rtol=1e-6)
        np.testing.assert_allclose(got[4], np.abs(x.astype(float)).max())
        np.testing.assert_allclose(got[5].astype(float), x.astype(float).sum((0, 1)), rtol=1e-2, atol=1e-2)

    def test_columns_alone(self) -> None:
        x = draw(4, 8)
        results = ["f8e4m3fn[1]", "f8e4m3fn[8,4]", "f32[1]", "f32[1]", "f32[1]", "f32[1]", "f32[1]"]
        settings = {"scaling_mode": 1, "q_layout": 1, "flatten_axis": -1, "is_dbias": False}
        _, columns, *_ = run("te_dbias_quantize_ffi", results, [x, np.ones(1, np.float32)], settings)
        np.testing.assert_array_equal(columns, x.astype(E4M3).T)

    @pytest.mark.parametrize("dtype", [E4M3, E5M2])
    def test_powers_of_two_for_blocks(self, dtype: Any) -> None:
        """Each block is scaled by the least power of two that leaves no number too large."""
        x = draw(64, 96) * np.exp(8 * draw(64, 96))
        x[0, :32], x[32:, 40] = 0, 448 * 2.0**5
        narrow = shape(np.zeros(0, dtype)).split("[")[0]
        powers = ["f8e8m0fnu[128,4]", "f8e8m0fnu[4,128]"]
        results = [f"{narrow}[64,96]", f"{narrow}[64,96]", *powers, "f32[1]", "f32[1]", "f32[1]"]
        settings = {"scaling_mode": 2, "q_layout": 2, "flatten_axis": -1, "is_dbias": False}
        operands = [x, np.ones(1, np.float32), np.zeros(1, np.float32)]
        rows, columns, row_powers, column_powers, *_ = run("te_dbias_quantize_ffi", results, operands, settings)
        most = float(ml_dtypes.finfo(dtype).max)
        for blocks, found, scales in (
            (x.reshape(64, 3, 32), rows.reshape(64, 3, 32), row_powers[:64, :3]),
            (x.T.reshape(96, 2, 32), columns.T.reshape(96, 2, 32), column_powers[:2, :96].T),
        ):
            sizes = np.abs(blocks.astype(float)).max(-1)
            with np.errstate(divide="ignore"):
                exponents = np.where(sizes > 0, np.ceil(np.log2(sizes / most)), -127)
            np.testing.assert_array_equal(scales.view(np.uint8).astype(int) - 127, exponents)
            want = (blocks / 2.0 ** exponents[..., None]).astype(np.float32)
            np.testing.assert_array_equal(found, np.clip(want, -most, most).astype(dtype))

    def test_before_release_2_3(self) -> None:
        x = draw(2, 3, 8)
        state = [np.zeros(1, np.float32), np.full(1, 4, np.float32), np.full(1, 0.25, np.float32)]
        narrow = (x * 4).astype(E4M3)
        rows, greatest = run("te_quantize_ffi", ["f8e4m3fn[2,3,8]", "f32[1]"], [x, *state], {})
        np.testing.assert_array_equal(rows, narrow)
        np.testing.assert_allclose(greatest, np.abs(x).max())
        (back,) = run("te_dequantize_ffi", ["f32[2,3,8]"], [narrow, *state], {})
        np.testing.assert_array_equal(back, narrow.astype(np.float32) / 4)
        results = ["f8e4m3fn[2,3,8]", "f8e4m3fn[8,2,3]", "f32[8]", "f32[1]", "u8[4]"]
        settings = {"transpose_axis": -1}
        rows, columns, sums, *_ = run("te_dbias_cast_transpose_ffi", results, [x, *state], settings)
        np.testing.assert_array_equal(rows, narrow)
        np.testing.assert_array_equal(columns, narrow.transpose(2, 0, 1))
        np.testing.assert_allclose(sums, x.sum((0, 1)), **CLOSE)
        (turned,) = run("te_transpose_ffi", ["f32[3,8,2]"], [x], {"transpose_axis": 1})
        np.testing.assert_array_equal(turned, x.reshape(2, 24).T.reshape(3, 8, 2))

    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"scaling_mode": 4}, "NVFP4_1D_SCALING"),
            ({"scaling_mode": 1, "use_rht": True}, "turns its numbers"),
            ({"scaling_mode": 1, "other": 1}, "'other'"),
        ],
    )
    def test_what_is_not_known_is_refused(self, settings: dict[str, Any], message: str) -> None:
        results = ["f8e4m3fn[4,8]", "f8e4m3fn[1]", "f32[1]", "f32[1]", "f32[1]", "f32[1]", "f32[1]"]
        with pytest.raises(UnsupportedError, match=message):
            run(
                "te_dbias_quantize_ffi", results, [draw(4, 8), np.ones(1, np.float32)], {"flatten_axis": -1, **settings}
            )
