"""Programs with products of complex numbers: around loops, conjugates and other types."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from jax import lax

from tests.pipelines.codegen.jax_programs import check, normal


@given(st.data())
@settings(max_examples=25, deadline=None)
def test_any_labels(data: st.DataObject) -> None:
    """Batches, contracted and free dimensions in any order, of conjugates, in memory or computed."""
    batch, depth, rows, columns = (data.draw(st.integers(0 if name != "k" else 1, 2), name) for name in "bkmn")
    names = {"b": "ab"[:batch], "k": "kl"[:depth], "m": "mo"[:rows], "n": "np"[:columns]}
    left = "".join(data.draw(st.permutations(names["b"] + names["k"] + names["m"]), "left"))
    right = "".join(data.draw(st.permutations(names["b"] + names["k"] + names["n"]), "right"))
    result = "".join(data.draw(st.permutations(names["b"] + names["m"] + names["n"]), "result"))
    sizes = {label: data.draw(st.integers(1, 9), label) for label in sorted({*left, *right})}
    dtype = data.draw(st.sampled_from([np.complex64, np.complex128]), "type")
    conjugates = data.draw(st.tuples(st.booleans(), st.booleans()), "conjugates")

    def function(x: Any, y: Any) -> Any:
        x, y = (jnp.conj(z) if one else z for z, one in zip((x, y), conjugates, strict=True))
        return jnp.einsum(f"{left},{right}->{result}", x, y) * 0.5j

    check(function, *(normal(*(sizes[one] for one in labels), dtype=dtype) for labels in (left, right)))


@pytest.mark.parametrize("rows", [1, 3, 40])
def test_in_a_loop(rows: int) -> None:
    """A factor that the loop changes beside one that it does not."""

    def function(x: Any, w: Any) -> Any:
        return lax.fori_loop(0, 4, lambda _, h: h @ w / 6 + jnp.conj(h[:, ::-1]) @ w.T / 7, x)

    check(function, normal(rows, 33, dtype=np.complex64), normal(33, 33, dtype=np.complex64))


@pytest.mark.parametrize("size", [(1, 700, 300), (8, 40, 600), (300, 9, 400), (40, 900, 2)], ids=str)
def test_of_one_real_factor(size: tuple[int, int, int]) -> None:
    m, k, n = size
    check(lambda x, y: x @ y, normal(m, k, dtype=np.complex64), normal(k, n))
    check(lambda x, y: (y @ x.T).T, normal(m, k), normal(n, k, dtype=np.complex128))


def test_rows_of_products_follow_each_other() -> None:
    """A chain of products and what is elementwise between them, as attention of complex numbers."""

    def function(q: Any, k: Any, v: Any) -> Any:
        scores = jnp.einsum("hqd,hkd->hqk", q, jnp.conj(k))
        return jnp.einsum("hqk,hkd->hqd", scores / (1 + jnp.abs(scores)), v)

    check(function, *(normal(3, 100, 12, dtype=np.complex64) for _ in range(3)))
