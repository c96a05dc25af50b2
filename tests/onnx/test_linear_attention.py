"""``LinearAttention`` by chunks, beside its recurrence in f64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import hloforge
from tests.onnx.test_contrib import MICROSOFT, model_of

Array = np.ndarray[Any, Any]


def recurrence(rule: str, q: Array, k: Array, v: Array, state: Array, decay: Array | None, beta: Array | None) -> Any:
    """Of ``[heads, rows, size]``, a row after the other; the state has fewer heads than the queries."""
    out = np.zeros((*q.shape[:2], v.shape[2]))
    for t in range(q.shape[1]):
        written = v[:, t]
        if decay is not None:
            state = state * np.exp(decay[:, t])[..., None]
        if beta is not None:
            written = beta[:, t] * (written - np.einsum("hd,hde->he", k[:, t], state))
        state = state + k[:, t, :, None] * written[:, None]
        out[:, t] = np.einsum("hd,hde->he", q[:, t], np.repeat(state, len(q) // len(k), 0)) / np.sqrt(q.shape[2])
    return out, state


@pytest.mark.wide(4)
@pytest.mark.parametrize(
    ("rule", "length", "heads", "by_key", "dtype"),
    [
        ("linear", 37, 4, False, np.float32),
        ("gated", 1, 2, True, np.float32),
        ("gated", 21, 4, True, np.float32),
        ("gated", 50, 2, False, np.float32),
        ("delta", 16, 2, False, np.float32),
        ("delta", 70, 6, False, np.float32),
        ("gated_delta", 1, 4, False, np.float32),
        ("gated_delta", 13, 2, True, np.float32),
        ("gated_delta", 40, 4, True, np.float32),
        ("gated_delta", 33, 2, False, np.float16),
    ],
)
def test_rules(rule: str, length: int, heads: int, by_key: bool, dtype: Any) -> None:
    rng = np.random.default_rng(length)
    groups, size, depth = 2, 8, 12
    q, k, v = (rng.standard_normal((n, length, d)) for n, d in ((heads, size), (groups, size), (groups, depth)))
    k /= np.linalg.norm(k, axis=2, keepdims=True)
    state = rng.standard_normal((groups, size, depth))
    decay = -np.abs(rng.standard_normal((groups, length, size if by_key else 1))) if "gated" in rule else None
    beta = rng.random((groups, length, 1)) if "delta" in rule else None
    if decay is not None and length > 20:
        # What was before is forgotten; nothing may be divided by such a decay.
        decay[0, 7], decay[1, 19] = -np.inf, -1e4
    given = [None if x is None else x.astype(dtype) for x in (q, k, v, decay, beta)]
    wide = [None if x is None else x.astype(np.float64) for x in given]
    expected, last = recurrence(rule, *wide[:3], state.astype(dtype).astype(np.float64), *wide[3:])  # type: ignore[arg-type]
    rows = [None if x is None else np.swapaxes(x, 0, 1).reshape(1, length, -1) for x in given]
    inputs = [*rows[:3], state[None].astype(dtype), *rows[3:]]
    attributes = {"q_num_heads": heads, "kv_num_heads": groups, "update_rule": rule}
    program = hloforge.compile(model_of("LinearAttention", inputs, 2, attributes, MICROSOFT))
    found, present = program.load()(*(x for x in inputs if x is not None))
    assert found.dtype == present.dtype == dtype
    exact = 2e-3 if dtype == np.float16 else 1e-5
    np.testing.assert_allclose(found[0], np.swapaxes(expected, 0, 1).reshape(length, -1), rtol=exact, atol=exact)
    np.testing.assert_allclose(present[0], last, rtol=exact, atol=exact)
