"""legalize-constant-reductions: sums of one number beside sums of an array."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import hloforge
from hloforge.dialect.operations import operations
from hloforge.importers.reader import read
from hloforge.pipelines.legalize.constant_reductions import LegalizeConstantReductions


def weighted(x: Any) -> Any:
    return jnp.cov(x, aweights=jnp.full(4, 0.25))


def test_constant_weights_are_weights() -> None:
    x = np.random.default_rng(0).normal(size=(1, 4)).astype(np.float32)
    found = hloforge.compile(jax.jit(weighted).lower(x), cache=False).load()(x)
    np.testing.assert_allclose(found, np.cov(x.astype(np.float64), aweights=np.full(4, 0.25)), rtol=1e-5)


def total(x: Any) -> Any:
    return jax.lax.reduce(x, np.float32(0), jax.lax.add, (0,))


def test_only_arrays_of_one_known_number_are_hidden() -> None:
    def sums(x: Any) -> Any:
        return total(x), total(jax.lax.iota(jnp.float32, 4)), total(jnp.abs(jax.lax.full((4,), np.float32(2))))

    program = read(jax.jit(sums).lower(np.ones(4, np.float32)).as_text())
    LegalizeConstantReductions().run(program.module)
    assert program.module.operation.verify()
    assert len(operations(program.module, {"stablehlo.optimization_barrier"})) == 1


def test_complex_constants_are_hidden() -> None:
    program = read(jax.jit(lambda: jax.lax.reduce(np.full(4, 1 + 2j), 0j, jax.lax.add, (0,))).lower().as_text())
    LegalizeConstantReductions().run(program.module)
    assert len(operations(program.module, {"stablehlo.optimization_barrier"})) == 1
