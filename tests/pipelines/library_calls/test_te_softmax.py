"""TransformerEngine's softmax against numpy in float64."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.pipelines.library_calls.ffi_calls import run, shape

SCALE = 0.2
DTYPES = {"f32": (np.float32, 1e-6), "bf16": (ml_dtypes.bfloat16, 1e-2)}


def draw(*dims: int, dtype: Any = np.float32) -> Any:
    return np.random.default_rng(sum(dims)).normal(size=dims, scale=4).astype(dtype)


def softmax(scores: Any, seen: Any = True) -> Any:
    """Of the scores that are seen; zeros for rows that see none."""
    powers = np.where(seen, np.exp(scores.astype(float) * SCALE), 0.0)
    return np.divide(powers, powers.sum(-1, keepdims=True), out=np.zeros_like(powers), where=powers.any(-1)[..., None])


@pytest.mark.parametrize("name", DTYPES)
def test_scaled(name: str) -> None:
    dtype, close = DTYPES[name]
    scores = draw(2, 3, 8, 16, dtype=dtype)
    (got,) = run("te_scaled_softmax_forward_ffi", [shape(scores)], [scores], {"scale_factor": SCALE})
    np.testing.assert_allclose(got.astype(float), softmax(scores), atol=close)


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("dtype", [np.uint8, np.bool_])
def test_masked(batch: int, dtype: Any) -> None:
    scores = draw(2, 3, 8, 16)
    mask = np.random.default_rng(batch).integers(0, 2, (batch, 1, 8, 16)).astype(dtype)
    mask[:, :, 3] = 1
    (got,) = run("te_scaled_masked_softmax_forward_ffi", [shape(scores)], [scores, mask], {"scale_factor": SCALE})
    np.testing.assert_allclose(got, softmax(scores, mask == 0), atol=1e-6)


def test_causal() -> None:
    scores = draw(2, 3, 16, 16)
    target = "te_scaled_upper_triang_masked_softmax_forward_ffi"
    (got,) = run(target, [shape(scores)], [scores], {"scale_factor": SCALE})
    np.testing.assert_allclose(got, softmax(scores, np.tril(np.ones((16, 16), bool))), atol=1e-6)


@pytest.mark.parametrize("kind", ["scaled", "scaled_masked", "scaled_upper_triang_masked"])
def test_gradient(kind: str) -> None:
    """By central differences of the definition."""
    scores, gradient = draw(1, 1, 4, 4), draw(1, 1, 4, 4) + 1
    seen = np.tril(np.ones((4, 4), bool)) if "upper" in kind else np.ones((4, 4), bool)
    weights = softmax(scores, seen).astype(np.float32)
    wanted = np.zeros(scores.shape)
    for place in np.ndindex(*scores.shape):
        step = np.zeros(scores.shape)
        step[place] = 1e-5
        high, low = (softmax(scores.astype(float) + sign * step, seen) for sign in (1, -1))
        wanted[place] = ((high - low) * gradient).sum() / 2e-5
    (got,) = run(f"te_{kind}_softmax_backward_ffi", [shape(scores)], [gradient, weights], {"scale_factor": SCALE})
    np.testing.assert_allclose(got, wanted, atol=1e-5)
