"""dispatch-transposes: rows moved by hand-made loops lie where numpy puts them."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import ml_dtypes
import numpy as np

import hloforge
from tests.pipelines.kernels.rows.test_dispatch_reductions import RANDOM, dispatches, lowered

CASES = [
    ((16, 32, 12, 8), (0, 2, 1, 3), np.float32),
    ((700, 5, 24), (1, 0, 2), np.float64),
    ((4, 6, 7, 5, 2, 32), (3, 1, 0, 2, 4, 5), ml_dtypes.bfloat16),
    ((64, 64, 16), (1, 0, 2), np.int8),
]


def test_rows_move_and_the_rest_is_left_to_iree() -> None:
    arrays = [RANDOM.integers(-100, 100, shape).astype(dtype) for shape, _, dtype in CASES]
    x = RANDOM.standard_normal((256, 256)).astype(np.float32)

    def moved(*arrays: Any) -> Any:
        *some, x = arrays
        rows = [jnp.transpose(array, order) for array, (_, order, _) in zip(some, CASES, strict=True)]
        fused = jnp.transpose(x.reshape(16, 16, 256), (1, 0, 2)) * 2
        return [*rows, x.T, fused]

    text = lowered(moved, *arrays, x)
    assert dispatches(text) == len(CASES)
    expected = [np.transpose(array, order) for array, (_, order, _) in zip(arrays, CASES, strict=True)]
    expected += [x.T, np.transpose(x.reshape(16, 16, 256), (1, 0, 2)) * 2]
    executable = hloforge.compile(text, cache=False)
    for device in ("local-sync", "local-task"):
        for found, want in zip(executable.load(device=device)(*arrays, x), expected, strict=True):
            np.testing.assert_array_equal(found, want)


def test_rows_move_in_loops_and_between_products() -> None:
    import jax

    def looped(x: Any, w: Any) -> Any:
        def turn(_: Any, x: Any) -> Any:
            heads = jnp.transpose((x @ w).reshape(512, 8, 64), (1, 0, 2))
            return jnp.transpose(heads, (1, 0, 2)).reshape(512, 512) + heads.reshape(512, 512)

        return jax.lax.fori_loop(0, 3, turn, x)

    x = RANDOM.standard_normal((512, 512)).astype(np.float32)
    w = (RANDOM.standard_normal((512, 512)) / 24).astype(np.float32)
    found = hloforge.compile(lowered(looped, x, w), cache=False)(x, w)
    want = x.astype(np.float64)
    for _ in range(3):
        heads = (want @ w).reshape(512, 8, 64).transpose(1, 0, 2)
        want = heads.transpose(1, 0, 2).reshape(512, 512) + heads.reshape(512, 512)
    np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-4)
