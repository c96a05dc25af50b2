"""Random programs: each is valid and made again by its seed; a sample is compiled and judged; findings can be read."""

from __future__ import annotations

from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies

import hloforge
from hloforge.runtime.debug.reproducer import recorded_inputs
from hloforge.tools.calling import arguments
from tests.fuzz import chains
from tests.fuzz.__main__ import campaign
from tests.fuzz.corpus import keep, likeness
from tests.fuzz.examine import AGREES, Outcome
from tests.fuzz.generator import case_of, make

# Programs that every run of the tests compiles, in one go.
_SAMPLE = 6


@pytest.mark.parametrize("seed", range(8))
def test_a_seed_is_a_program(seed: int) -> None:
    first, again = case_of(seed), case_of(seed)
    assert str(first.program) == str(again.program)
    for one, other in zip(_leaves(first.arguments), _leaves(again.arguments), strict=True):
        assert one.tobytes() == other.tobytes()


@given(strategies.randoms(use_true_random=False), strategies.booleans())
@settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_all_choices_make_valid_programs(random: Random, has_borders: bool) -> None:
    program, given_ = make(random, "any", has_borders=has_borders)
    assert len(given_) == len(program.signature.parameters)


def test_a_sample_agrees() -> None:
    assert not _wrong(range(_SAMPLE))


def test_chains_of_moves_agree() -> None:
    assert not list(chains.findings(range(3)))


@pytest.mark.slow
@pytest.mark.parametrize("start", range(3, 203, 20))
def test_more_chains_of_moves_agree(start: int) -> None:
    assert not list(chains.findings(range(start, start + 20)))


@pytest.mark.slow
@pytest.mark.parametrize("start", range(_SAMPLE, _SAMPLE + 200, 20))
def test_more_agree(start: int) -> None:
    assert not _wrong(range(start, start + 20))


def test_a_finding_is_a_file_with_its_arguments(tmp_path: Path) -> None:
    outcome = Outcome((3,), "differs", "result: 1 of 2 elements differ")
    place = keep(tmp_path, outcome)
    program = hloforge.read(place)
    found = arguments(program.signature, recorded_inputs(place.read_bytes(), str(place)), 0, program)
    for one, other in zip(_leaves(found), _leaves(case_of(3).arguments), strict=True):
        np.testing.assert_array_equal(one, other)
    assert likeness(outcome) != likeness(Outcome((4,), "differs", outcome.message))
    assert likeness(Outcome((3,), "compiler", "'x' failed")) == likeness(Outcome((4,), "compiler", "'y' failed"))


def _wrong(seeds: range) -> list[Outcome]:
    return [outcome for outcome in campaign(seeds, size=6, deadline=240, target="cpu") if outcome.kind != AGREES]


def _leaves(value: object) -> list[np.ndarray]:
    if isinstance(value, tuple | list):
        return [leaf for member in value for leaf in _leaves(member)]
    return [np.asarray(value)]
