"""The contracts of passes: a wrong order is found, and no pass breaks what it does not say."""

from __future__ import annotations

import pytest

from hloforge.dialect.errors import Error, PipelineError
from hloforge.pipelines.catalogue import passes_by_name
from hloforge.pipelines.framework.facts import Contract, Fact, check_order
from hloforge.pipelines.framework.passes import NativePass, Pass
from hloforge.pipelines.named import PIPELINES, pipeline
from tests.operations.programs import elements_of, program_of
from tests.operations.tables import ROWS
from tests.pipelines.framework.observers import CONTRADICTS, lies

# Every so many rows of operations.
_EVERY = 24


def contracts(passes: list[Pass]) -> list[Contract]:
    return [entry.contract() for entry in passes]


def moved(name: str, before: str) -> list[Pass]:
    """The CPU's pipeline with one pass in front of another."""
    passes = pipeline("cpu")
    names = [entry.name for entry in passes]
    entry = passes.pop(names.index(name))
    passes.insert([entry.name for entry in passes].index(before), entry)
    return passes


@pytest.mark.parametrize("name", PIPELINES)
def test_the_named_pipelines_are_in_order(name: str) -> None:
    held = check_order(name, contracts(pipeline(name)))
    assert {Fact.ONE_FUNCTION, Fact.NO_TUPLES, Fact.NO_MHLO} <= held
    if name != "normalize":
        assert {Fact.UPDATES_DECIDED, Fact.NO_CHLO, Fact.SAFE_GATHERS} <= held


@pytest.mark.parametrize(
    ("name", "before", "message"),
    [
        ("flatten-tuples", "inline-calls", "flatten-tuples requires one-function, and no pass before it"),
        ("lower-sdy", "flatten-tuples", "flatten-tuples requires one-function, and lower-sdy broke it"),
        ("lower-feeds", "legalize-entry-abi", "requires host-calls, and lower-feeds broke it"),
        ("decompose-library-calls", "legalize-accumulation", "requires no-library-calls"),
        ("decompose-einsum", "legalize-narrow-integers", "breaks safe-products|requires safe-products"),
        ("keep-loop-buffers", "decide-updates", "keep-loop-buffers requires updates-decided, and no pass before it"),
        ("legalize-long-chains", "import-host-calls", "requires updates-decided, and legalize-long-chains broke it"),
        ("legalize-complex-constants", "legalize-bf16", "breaks split-constants, and no later pass"),
    ],
)
def test_a_wrong_order_is_an_error(name: str, before: str, message: str) -> None:
    with pytest.raises(PipelineError, match=message):
        check_order("cpu", contracts(moved(name, before)))


def test_what_is_broken_is_established_again_or_an_error() -> None:
    makes = Contract("make", establishes=frozenset({Fact.NO_CHLO}))
    undoes = Contract("undo", breaks=frozenset({Fact.NO_CHLO}))
    needs = Contract("need", requires=frozenset({Fact.NO_CHLO}))
    assert check_order("p", [makes, undoes, makes, needs]) == {Fact.NO_CHLO}
    with pytest.raises(PipelineError, match="pipeline p: undo breaks no-chlo, and no later pass"):
        check_order("p", [makes, undoes])
    with pytest.raises(PipelineError, match="pipeline p: need requires no-chlo, and undo broke it"):
        check_order("p", [makes, undoes, needs])


def test_each_fact_is_established_by_a_pass() -> None:
    native = NativePass("func.func(chlo-legalize-to-stablehlo)").contract()
    established = native.establishes.union(*(cls.establishes for cls in passes_by_name().values()))
    assert established == frozenset(Fact)


def test_mlirs_passes_are_known_by_their_names() -> None:
    both = NativePass("func.func(canonicalize,shape-legalize-to-stablehlo)").contract()
    assert Fact.COUNTED_CARRIES in both.breaks
    assert not NativePass("func.func(stablehlo-canonicalize-dynamism)").contract().breaks & {Fact.COUNTED_CARRIES}


@pytest.mark.parametrize("target", ["cpu", "vulkan", "cuda"])
def test_no_pass_breaks_what_it_does_not_say(target: str) -> None:
    assert len(CONTRADICTS) >= 14
    tried, found = 0, []
    for number, row in enumerate(list(ROWS.values())[:: _EVERY if target == "cpu" else 3 * _EVERY]):
        elements = list(elements_of(row))
        program, _ = program_of(row, [elements[number % len(elements)]])
        try:
            found += lies(program.module, pipeline(target))
        except Error:  # The target rejects a type of this row, with a reason.
            continue
        tried += 1
    assert tried >= 4
    assert found == []


def test_a_pass_that_lies_is_seen() -> None:
    class Liar(NativePass):
        def contract(self) -> Contract:
            return Contract("liar", establishes=frozenset({Fact.NO_FACTORIZATIONS}))

    program, _ = program_of(ROWS["Cholesky"], ["f32"])
    assert [text.split(": ")[:2] for text in lies(program.module, [Liar("canonicalize")])] == [
        ["liar", "no-factorizations"]
    ]
