"""dispatch-sorts computes keys as it reads them, and what is made of the first ones: XLA's numbers, in one dispatch."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import hloforge
from hloforge.dialect.operations import operations
from hloforge.importers.reader import read
from hloforge.pipelines.named import lower
from hloforge.pipelines.normalize.normalization import normalize

RANDOM = np.random.default_rng(0)


def test_one_dispatch_reads_floats_and_makes_floats() -> None:
    program = read(jax.jit(lambda x: jax.lax.top_k(x, 8)).lower(np.zeros((2, 1000), np.float32)).as_text())
    normalize(program.module)
    lower(program.module)
    assert len(operations(program.module, {"flow.dispatch", "flow.dispatch.workgroups"})) == 1
    (end,) = operations(program.module, {"func.return"})[-1:]
    assert all(value.owner.name.startswith("flow.") for value in end.operands)


def test_first_elements_and_their_places() -> None:
    def first(x: Any, y: Any, z: Any, w: Any) -> Any:
        greatest, places = jax.lax.top_k(y, 3)
        whole = jnp.sort(w, axis=1)
        both = jnp.sort(-x * 2 + 1, axis=1)[:, :3], jnp.argsort(x, axis=1)[:, :6]
        # The first result is read twice, the second one changed.
        return jax.lax.top_k(x, 5), greatest * 2, greatest + places, jax.lax.top_k(z, 7), whole, both

    x = (np.round(RANDOM.standard_normal((6, 100)) * 4) / 2).astype(np.float32)
    x[0, :5], x[1, 3], x[2, ::2], x[2, 1::2], x[3, 1] = np.nan, np.inf, -0.0, 0.0, -np.inf
    y, z = RANDOM.integers(-9, 9, (3, 50)).astype(np.int32), RANDOM.standard_normal((2, 40)).astype(np.float16)
    arguments = x, y, z, RANDOM.standard_normal((5, 20)).astype(np.float32)
    text = jax.jit(first).lower(*arguments).as_text()
    found = jax.tree.leaves(hloforge.compile(text, cache=False).load()(*arguments))
    for actual, wanted in zip(found, jax.tree.leaves(jax.jit(first)(*arguments)), strict=True):
        np.testing.assert_array_equal(actual, wanted)
        if actual.dtype.kind == "f":
            np.testing.assert_array_equal(np.signbit(actual), np.signbit(wanted))
