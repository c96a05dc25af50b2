"""A sample of the programs that ship with JAX to judge a backend; ``make test-jax`` runs all of them."""

from __future__ import annotations

import pytest

pytest.importorskip("jax")
pytest.importorskip("absl")

from tests.jax.harnesses import all_names, complaint_of, expected_failures, judge, sample

# Each part has a child process of its own.
_PARTS = 3


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.slow) for part in range(1, _PARTS))])
def test_a_sample_agrees_with_the_cpu(part: int) -> None:
    names = sample(all_names())
    assert len(names) == 60
    chosen = names[part::_PARTS]
    known = expected_failures()
    verdicts = list(judge(chosen, batch=10))
    assert sorted(verdict["name"] for verdict in verdicts) == sorted(chosen)
    assert [complaint for verdict in verdicts if (complaint := complaint_of(verdict, known))] == []
    # Skipped is what JAX's own CPU backend fails on, which is little.
    assert sum(verdict["stage"] == "skipped" for verdict in verdicts) < 3


def test_what_is_expected_to_fail_exists() -> None:
    assert expected_failures().keys() <= set(all_names())
    assert all(reason for _, reason in expected_failures().values())


@pytest.mark.slow
def test_a_child_that_ends_costs_its_programs_alone() -> None:
    names = all_names()[:2]
    verdicts = {verdict["name"]: verdict for verdict in judge(["no such name", *names], batch=3)}
    assert verdicts["no such name"]["stage"] == "crash"
    assert [verdicts[name]["stage"] for name in names] == ["passed", "passed"]
