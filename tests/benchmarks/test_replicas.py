"""The program that several devices train by, and its form for one of them."""

from __future__ import annotations

import numpy as np
import pytest

import hloforge
from benchmarks import replicas


def test_two_replicas_of_half_a_batch_step_as_one_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replicas, "WIDTH", 8)
    random = np.random.default_rng(0)
    first, second, x, y = (random.normal(size=sizes).astype(np.float32) for sizes in [(8, 8), (8, 8), (6, 8), (6, 8)])
    training = hloforge.replicate(replicas.training_step(3), replicas=2)
    parts = [(first, second, x[rows], y[rows]) for rows in (slice(3), slice(3, 6))]
    hidden = np.maximum(x @ first, 0)
    error = hidden @ second - y
    behind = np.where(hidden > 0, error @ second.T, 0)
    expected = first - 1e-5 * x.T @ behind, second - 1e-5 * hidden.T @ error
    whole = hloforge.compile(replicas.training_step(6))(first, second, x, y)
    for results in (*training.each(parts), whole):
        for result, wanted in zip(results, expected, strict=True):
            np.testing.assert_allclose(result, wanted, rtol=1e-6, atol=1e-6)
