"""Every kind of random program is one that XLA's client and hloforge can be given, the same each time."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter

import numpy as np
import pytest

from benchmarks.__main__ import ROOT
from benchmarks.perf_fuzz.drawing import Draw
from benchmarks.perf_fuzz.programs import KINDS, kind_of, program_of

# XLA's client takes larger ones, but a process would spend its time reading them.
_LONGEST_TEXT = 400_000
_MOST_ELEMENTS = 3e7


@pytest.mark.wide(2)
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow), pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", sorted(KINDS))
def test_a_kind_gives_programs(name: str, seed: int) -> None:
    program = program_of(seed, name)
    text = program.text()
    assert "func.func public @main" in text
    assert len(text) < _LONGEST_TEXT
    assert sum(np.prod(one.shape) for one in program.drawn.arguments) < _MOST_ELEMENTS
    for argument, value in zip(program.drawn.arguments, program.values(), strict=True):
        assert (value.shape, value.dtype) == (argument.shape, argument.numpy_dtype)


def test_there_are_many_kinds_and_each_comes_once_a_turn() -> None:
    assert len(KINDS) >= 60
    for turn in (0, 3):
        drawn = Counter(kind_of(seed) for seed in range(turn * len(KINDS), (turn + 1) * len(KINDS)))
        assert drawn == dict.fromkeys(KINDS, 1)
    assert [kind_of(seed) for seed in range(9)] != [kind_of(len(KINDS) + seed) for seed in range(9)]


def test_programs_are_batched_differentiated_and_repeated() -> None:
    forms = Counter(program_of(seed).form for seed in range(2 * len(KINDS)))
    assert forms.keys() == {"plain", "vmap", "gradient", "loop"}
    assert forms["plain"] < 0.8 * forms.total()


def test_a_seed_is_one_program() -> None:
    for seed in (0, 11, 57):
        first, second = program_of(seed), program_of(seed)
        assert first.text() == second.text()
        for a, b in zip(first.values(), second.values(), strict=True):
            np.testing.assert_array_equal(a, b)
    assert program_of(1, "mlp").label != program_of(2, "mlp").label


def test_a_seed_is_one_program_in_another_process() -> None:
    command = [sys.executable, "-m", "benchmarks.perf_fuzz", "--show=5"]
    shown = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True, timeout=120).stdout
    program = program_of(5)
    first, _, text = shown.partition("\n")
    assert first == f"// 5 {program.kind.name}: {program.label}"
    assert text.rstrip("\n") == program.text().rstrip("\n")


def test_sizes_are_mixed_and_odd() -> None:
    draw = Draw(0, "sizes")
    sizes = [draw.elements() for _ in range(300)]
    assert min(sizes) < 100
    assert 1e6 < max(sizes) <= 1e7
    assert 0.2 < np.mean([size % 2 for size in sizes]) < 0.8
    for _ in range(50):
        shape = draw.sizes(10_000, 3, least=2, most=500)
        assert all(2 <= size <= 500 for size in shape)
        assert np.prod(shape) <= 10_000


def test_a_program_that_is_repeated_is_smaller() -> None:
    alone, repeated = Draw(0, "work"), Draw(0, "work", scale=100)
    assert max(repeated.work(1, 1e6) for _ in range(200)) <= 1e4 < max(alone.work(1, 1e6) for _ in range(200))
