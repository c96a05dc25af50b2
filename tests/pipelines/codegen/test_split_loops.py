"""Dimensions that are several loops, because what they read of is reshaped, beside XLA."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hloforge.pipelines.codegen import index as places
from hloforge.pipelines.codegen.access import Accesses
from hloforge.pipelines.codegen.index import Index, Symbol
from hloforge.pipelines.codegen.splitting import finer, is_simpler, joined
from tests.pipelines.codegen.jax_programs import check

_PROGRAMS: dict[str, Callable[..., Any]] = {
    "kronecker": lambda x: jnp.kron(x, x[:3, :5]),
    "repeated": lambda x: jnp.repeat(x, 5, 1) + 1,
    "both ways": lambda x: jnp.repeat(jnp.repeat(x, 3, 0), 2, 1) * jnp.repeat(jnp.repeat(x, 2, 1), 3, 0),
    "sums of repeated": lambda x: (jnp.repeat(x, 6, 1).sum(1), jnp.kron(x, x[:2, :2]).max(0)),
    "shuffled": lambda x: x.reshape(4, 6, 2, 5).transpose(0, 2, 1, 3).reshape(8, 30) * 2,
    "tiled": lambda x: jnp.tile(x, (3, 4)) * jnp.repeat(x.reshape(-1), 12).reshape(24, 120),
    "padded": lambda x: jnp.pad(jnp.repeat(x, 4, 1), ((1, 2), (3, 5))),
    "rolled": lambda x: jnp.roll(jnp.repeat(x, 2, 1), 7, 1) + jnp.repeat(x, 2, 1),
    "in a loop": lambda x: jax.lax.fori_loop(0, 3, lambda i, y: jnp.repeat(y[:, ::2], 2, 1) * 0.5 + y * i, x),
    "quarters and halves": lambda x: jnp.repeat(x[:, :10], 12, 1) * jnp.repeat(x, 4, 1),
}


@pytest.mark.parametrize("name", _PROGRAMS)
def test_programs(name: str) -> None:
    check(_PROGRAMS[name], np.random.default_rng(len(name)).standard_normal((8, 30)).astype(np.float32))


def test_loops_are_of_divisors_that_divide_each_other() -> None:
    (counter,) = place = (places.counter(120),)
    uses = [counter.over(5), counter.modulo(5), counter.over(20)]
    found = Accesses(lambda _: True, uses=uses)
    assert finer(place, (120,), found) == ((6, 4, 5),)
    split = tuple(places.counter(size) for size in (6, 4, 5))
    (whole,) = joined(split, ((6, 4, 5),))
    after = Accesses(lambda _: True, uses=[whole.over(5), whole.modulo(5), whole.over(20)])
    assert [len(use.terms) for use in after.uses] == [2, 1, 1]
    assert is_simpler(found, after)
    assert not is_simpler(after, found)
    assert finer(place, (120,), Accesses(lambda _: True, uses=[counter.over(7), counter * 3])) is None


def test_quotients_of_sums_are_right() -> None:
    random.seed(1)

    def value(index: Index, given: Mapping[Symbol, int]) -> int:
        total = index.offset
        for symbol, factor in index.terms:
            inner = symbol.quotient
            total += factor * (value(inner[0], given) // inner[1] if inner else given[symbol])
        return total

    for _ in range(1500):
        symbols = [Symbol(random.randint(1, 40)) for _ in range(3)]
        factors = [random.choice([1, 2, 3, 4, 6, 8, 12, 24, 48]) for _ in symbols]
        index = Index(tuple(zip(symbols, factors, strict=True)), random.randint(0, 30))
        divisor = random.choice([2, 3, 4, 6, 8, 12, 24, 36, 48, 96])
        given = {symbol: random.randint(0, symbol.most) for symbol in symbols}
        found = value(index.over(divisor), given)
        assert found == value(index, given) // divisor
        assert index.over(divisor).low <= found <= index.over(divisor).high


def test_rows_of_rows_need_no_quotient() -> None:
    row, column = places.counter(6), places.counter(4)
    assert (row * 4 + column).over(12) == row.over(3)
