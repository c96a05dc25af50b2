"""Sums of many terms, of every kind, are about as near to float64 as XLA's: no accumulator adds many numbers."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from hloforge.pipelines.codegen.chains import LONGEST, Terms, cut, length
from tests.prove.long_sums import KINDS, judge


@pytest.mark.wide(2)
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 100_000))
def test_sums_are_as_near_to_float64_as_xlas(kind: str, seed: int) -> None:
    assert judge(seed, kind) == ""


@pytest.mark.parametrize("sizes", [(4096,), (100_003,), (3, 3, 64), (129,), (128,), (2, 20_000, 7), (1, 1), (500_000,)])
@pytest.mark.parametrize("weight", [1, 2, 7])
def test_chains_are_short_and_visit_each_term_once(sizes: tuple[int, ...], weight: int) -> None:
    loops = [Terms(size, size, ()) for size in sizes]
    chains = cut(loops, weight, LONGEST)
    counts = dict(enumerate(sizes))
    for number, chain in enumerate(chains):
        added = weight if number == len(chains) - 1 else 1
        for piece in chain:
            added *= -(-counts[piece.loop] // piece.step)
            counts[piece.loop] = min(piece.step, counts[piece.loop])
        assert added <= LONGEST
        if number == 0:
            assert added == length(loops, weight, LONGEST)
    assert set(counts.values()) == {1}
