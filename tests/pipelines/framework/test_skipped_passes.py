"""Passes that say what they need: the manager skips them, and they would have done nothing."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest

from hloforge.dialect.mlir import in_context, ir, parse_module
from hloforge.dialect.operations import operations
from hloforge.pipelines.framework.manager import PassManager, names_below
from hloforge.pipelines.framework.passes import NATIVE_NEEDS, NativePass, Pass, registered
from hloforge.pipelines.named import PIPELINES, stages
from tests.conformance.interpret_suite import programs
from tests.pipelines.framework.test_manager import ADD

_NAMES = sorted(programs())[::9]
# Every pass that says what it needs, as it stands in a pipeline: many do not take programs before normalization.
_LOADED = [stages(pipeline) for pipeline in PIPELINES]
_PASSES = sorted(name for name, cls in registered().items() if cls.needs is not None)


@dataclass(frozen=True)
class Counting(Pass):
    name: ClassVar[str] = "counting"
    needs: ClassVar[frozenset[str]] = frozenset({"stablehlo.tan", "chlo."})
    runs: ClassVar[list[str]] = []

    def run(self, module: Any) -> None:
        self.runs.append("run")


def test_there_are_such_passes() -> None:
    assert len(_PASSES) > 50 and all(_LOADED)


@pytest.mark.skipif(not _NAMES, reason="the shared conformance programs are not here")
@pytest.mark.parametrize("name", _NAMES)
def test_a_pass_does_nothing_without_what_it_needs(name: str) -> None:
    module = parse_module(programs()[name].mlir)
    PassManager([entry.entry for entry in stages("normalize")]).run(module)
    before = str(module)
    present = names_below(module)
    skipped: list[Pass] = [registered()[each]() for each in _PASSES] + [NativePass(text) for text in NATIVE_NEEDS]
    skipped = [each for each in skipped if present.isdisjoint(each.concerned() or ())]
    assert skipped
    with in_context(module):
        for entry in skipped:
            entry.run(module)
            assert str(module) == before, entry


def test_the_manager_skips_it(tmp_path: Path) -> None:
    module = parse_module(ADD)
    Counting.runs.clear()
    manager = PassManager([Counting()], dump_after=frozenset({"all"}), dump_to=tmp_path)
    manager.run(module)
    assert Counting.runs == []
    assert [timing.name for timing in manager.timings] == ["counting"]
    assert [path.name for path in tmp_path.iterdir()] == ["000-counting.mlir"]


@pytest.mark.parametrize("name", ["stablehlo.tan", "chlo.tan"])
def test_the_manager_runs_it_after_a_pass_has_made_what_it_needs(name: str) -> None:
    @dataclass(frozen=True)
    class Makes(Pass):
        name: ClassVar[str] = "makes"

        def run(self, module: Any) -> None:
            (add,) = operations(module, {"stablehlo.add"})
            with in_context(module), ir.InsertionPoint(add):
                ir.Operation.create(made, [add.results[0].type], [add.operands[0]])

    made = name
    Counting.runs.clear()
    PassManager([Counting(), Makes(), Counting()]).run(parse_module(ADD))
    assert Counting.runs == ["run"]
