"""legalize-independent-reductions: arrays that are reduced side by side give what each gives alone."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import hloforge
from hloforge.dialect.operations import operations
from hloforge.importers.reader import read
from hloforge.pipelines.workarounds.independent_reductions import LegalizeIndependentReductions


def reductions(text: str) -> int:
    program = read(text)
    LegalizeIndependentReductions().run(program.module)
    assert program.module.operation.verify()
    return len(operations(program.module, {"stablehlo.reduce"}))


def bounds(x: Any) -> Any:
    iota = jax.lax.broadcasted_iota(jnp.int32, x.shape, 1)
    pair = np.float32(0), np.int32(0)
    return jax.lax.reduce(
        (x, iota),
        pair,
        lambda one, other: (jnp.where(one[0] > other[0], one[0], other[0]), one[1] | other[1]),
        (1,),
    )


def counted(x: Any) -> Any:
    """The second result depends on both arrays."""
    iota = jax.lax.broadcasted_iota(jnp.int32, x.shape, 1)

    def both(one: Any, other: Any) -> Any:
        return one[0] + other[0], jnp.where(one[0] < other[0], one[1], other[1])

    return jax.lax.reduce((x, iota), (np.float32(0), np.int32(0)), both, (1,))


def test_only_independent_ones_are_taken_apart() -> None:
    x = np.random.default_rng(0).integers(-4, 5, (64, 100)).astype(np.float32)
    text = jax.jit(bounds).lower(x).as_text()
    assert reductions(text) == 2
    assert reductions(jax.jit(counted).lower(x).as_text()) == 1
    found = hloforge.compile(text, cache=False).load()(x)
    np.testing.assert_array_equal(found[0], np.maximum(x.max(1), 0))
    np.testing.assert_array_equal(found[1], np.full(64, 127))


def test_a_sum_of_16_bit_floats_beside_another_reduction_is_carried_in_f32() -> None:
    x = np.random.default_rng(0).normal(size=(6, 300)).astype(jnp.bfloat16)
    pair = x.dtype.type(0), x.dtype.type(1)

    def both(one: Any, other: Any) -> Any:
        return one[0] + other[0], jnp.minimum(one[1], other[1])

    text = jax.jit(lambda x: jax.lax.reduce((x, x * 2), pair, both, (1,))).lower(x).as_text()
    total, least = hloforge.compile(text, cache=False).load()(x)
    np.testing.assert_array_equal(least, (x * 2).min(1))
    np.testing.assert_allclose(np.asarray(total, np.float64), x.astype(np.float64).sum(1), rtol=2**-8, atol=1e-5)


def test_branches_in_a_computation() -> None:
    """What a branch reads from around it belongs to the reduction that is taken out."""
    x, y = np.arange(3, dtype=np.int8), np.arange(1, 4, dtype=np.int16)

    def both(one: Any, other: Any) -> Any:
        nested = jax.lax.cond(one[0] == other[0], lambda: one[0] - other[0], lambda: one[0] ^ other[0])
        return nested, one[1] + other[1]

    def reduced(a: Any, b: Any) -> Any:
        return jax.lax.reduce((a, b), (np.int8(0), np.int16(0)), both, (0,))

    text = jax.jit(reduced).lower(x, y).as_text()
    assert "stablehlo.case" in text
    assert reductions(text) == 2
    found = hloforge.compile(text, cache=False).load()(x, y)
    for got, want in zip(found, jax.jit(reduced)(x, y), strict=True):
        np.testing.assert_array_equal(got, want)
