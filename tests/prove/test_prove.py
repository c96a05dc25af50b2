"""The service of random programs: a sample of each generator agrees, and the ledger counts what it should."""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Generator
from pathlib import Path

import numpy as np
import pytest

import hloforge
from tests.fuzz.examine import AGREES, Examiner, Outcome
from tests.fuzz.first_opinion import FirstOpinion
from tests.prove import batch
from tests.prove.__main__ import entries
from tests.prove.generators import GENERATORS
from tests.prove.jax_functions import case_of
from tests.prove.known import Known, cause_of
from tests.prove.ledger import Entry, Ledger, table

# Programs of each generator that every run of the tests judges; those of the builder are in tests/fuzz, one of JAX is
# in ``test_a_wrong_number_is_a_finding``, one of devices in ``test_devices_agree``.
_SAMPLE = {
    "algorithms": 1,
    "calls": 1,
    "edges": 2,
    "guarded": 2,
    "habits": 1,
    "hlo": 1,
    "long": 2,
    "onnx": 1,
    "onnx-edges": 1,
    "short": 2,
    "sizes": 1,
    "torch": 1,
}

_PLAIN = """func.func @main(%a: tensor<3xf32>) -> tensor<3xf32> {
  %r = stablehlo.add %a, %a : tensor<3xf32>
  return %r : tensor<3xf32>
}"""
_ABORTS = """func.func @main(%a: tensor<i32>) -> tensor<i32> {
  %zero = stablehlo.subtract %a, %a : tensor<i32>
  %r = stablehlo.divide %a, %zero : tensor<i32>
  return %r : tensor<i32>
}"""


@pytest.mark.wide(4)
@pytest.mark.parametrize("name", sorted(_SAMPLE))
def test_a_sample_agrees(name: str) -> None:
    generator = GENERATORS[name]
    if generator.needs and importlib.util.find_spec(generator.needs) is None:
        pytest.skip(f"{generator.needs} is not installed")
    outcomes = list(generator.outcomes(range(_SAMPLE[name]), 240))
    assert sum(len(outcome.seeds) for outcome in outcomes) == _SAMPLE[name]
    assert not [outcome for outcome in outcomes if outcome.is_finding]


def test_devices_agree() -> None:
    """In a process of its own, because JAX has to be told of devices before it looks for them."""
    outcomes = list(batch.judged("replicas", range(1), 240, None))
    assert [outcome.kind for outcome in outcomes] == [AGREES], outcomes


def test_a_seed_is_a_program() -> None:
    first, again = case_of(5), case_of(5)
    assert first.program.text() == again.program.text()
    for one, other in zip(first.arguments, again.arguments, strict=True):
        assert one.tobytes() == other.tobytes()


def test_a_wrong_number_is_a_finding() -> None:
    case = case_of(0)
    with Examiner("cpu", 240) as examiner:
        right = examiner.results(case.program, case.arguments)
        assert examiner.verdict(case.program, case.arguments, right)[0] == AGREES
        wrong = tuple(np.asarray(one) if place else np.asarray(one) + 1 for place, one in enumerate(right))
        assert examiner.verdict(case.program, case.arguments, wrong)[0] == "differs"


def test_a_child_that_ends_costs_one_program(monkeypatch: pytest.MonkeyPatch) -> None:
    def child(generator: str, seeds: list[int], *_: object) -> Generator[Outcome, None, tuple[str, str]]:
        before = [seed for seed in seeds if seed < 3] if 3 in seeds else seeds
        yield from (Outcome((seed,), AGREES) for seed in before)
        return "crash", "SIGSEGV"

    monkeypatch.setattr(batch, "_by_child", child)
    found = {outcome.seeds[0]: outcome.kind for outcome in batch.judged("jax", range(8), 1, None)}
    assert found == {seed: "crash" if seed == 3 else AGREES for seed in range(8)}


def test_the_first_opinion_is_one_of_two() -> None:
    """It agrees with what is right, not with what is wrong, and with nothing that ends its process."""
    plain, aborts = (hloforge.read(text) for text in (_PLAIN, _ABORTS))
    with contextlib.closing(FirstOpinion()) as first:
        ones = np.ones(3, np.float32)
        for _ in range(2):
            assert first.agrees(plain, [ones], 2 * ones)
            assert not first.agrees(plain, [ones], 3 * ones)
            assert not first.agrees(aborts, [np.int32(1)], np.int32(0))


def test_the_ledger_goes_on_and_counts(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.jsonl")
    ledger.add([Entry("jax", 0, "old", "crash"), Entry("jax", 1, "new", AGREES), Entry("jax", 2, "new", "differs")])
    ledger.add([Entry("jax", 3, "new", AGREES), Entry("jax", 4, "new", AGREES), Entry("calls", 0, "new", AGREES)])
    with ledger.path.open("a") as file:
        file.write('{"generator": "jax", "se')
    assert [ledger.next_seed("jax", 0), ledger.next_seed("jax", 9), ledger.next_seed("onnx", 0)] == [5, 9, 0]
    lines = table(ledger, "new")
    assert lines[2] == "| calls | 1 | 0 | 1 | 1 | 0 | 0 | 1 |"
    assert lines[3] == "| jax | 5 | 2 | 4 | 3 | 0 | 0 | 2 |"
    assert lines[4] == "| together | 6 | 2 | 5 | 4 | 0 | 0 | 3 |"


def test_known_findings_keep_their_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    known = (Known("jax", "differs", "XLA folds it", words="s2 of"), Known("jax", "refused", "open", seeds=(7,)))
    monkeypatch.setattr("tests.prove.known.KNOWN", known)
    assert cause_of("jax", 1, "differs", "an s2 of 3") == "XLA folds it"
    assert not cause_of("jax", 1, "crash", "an s2 of 3")
    entry, *others = entries("jax", Outcome((7,), "refused", "no such thing"), "new")
    assert (entry.verdict, entry.cause, others) == ("known", "open", [])
    assert next(entries("jax", Outcome((8, 9), "refused", "no"), "new")).is_finding
