"""The pass manager's contract: order, verification, audits, dumps, timings, located errors."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest

from hloforge.dialect.errors import PassError, UnsupportedError
from hloforge.dialect.mlir import in_context, ir, parse_module
from hloforge.dialect.operations import operations
from hloforge.pipelines.capability.audit import Audit
from hloforge.pipelines.framework.defects import DefectError
from hloforge.pipelines.framework.manager import PassManager
from hloforge.pipelines.framework.passes import NativePass, Pass, register
from hloforge.pipelines.framework.patterns import NoMatch, apply_patterns, pattern
from hloforge.pipelines.named import PIPELINES, lower, stages

ADD = """func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.add %x, %x : tensor<2xf32> loc("model.hlo":7:3)
  return %0 : tensor<2xf32>
}"""


@dataclass(frozen=True)
class Nothing(Pass):
    """Changes nothing, whatever it promised."""

    name: ClassVar[str] = "nothing"


@dataclass(frozen=True)
class Promises(Nothing):
    removes: ClassVar[frozenset[str]] = frozenset({"stablehlo.add"})

    def run(self, module: Any) -> None:
        pass


@dataclass(frozen=True)
class Breaks(Nothing):
    def run(self, module: Any) -> None:
        with in_context(module):
            (op,) = operations(module, {"func.return"})
            op.attributes["unrelated"] = ir.UnitAttr.get()
            (add,) = operations(module, {"stablehlo.add"})
            with ir.InsertionPoint(op):
                ir.Operation.create("func.return", operands=[add.result])


def test_a_leftover_of_a_promised_removal_is_located() -> None:
    with pytest.raises(PassError) as caught:
        PassManager([Promises()]).run(parse_module(ADD))
    assert str(caught.value.location) == "model.hlo:7:3"
    assert "promised to remove stablehlo.add" in caught.value.message
    assert "stablehlo.add %arg0" in caught.value.op


def defect_of(*passes: Pass) -> DefectError:
    with pytest.raises(DefectError) as caught:
        PassManager(passes).run(parse_module(ADD))
    assert "defect of hloforge" in caught.value.hint
    return caught.value


def test_invalid_ir_is_blamed_on_the_pass_that_left_it() -> None:
    error = defect_of(Breaks())
    assert error.message.startswith("pass nothing left invalid IR: ")
    assert str(error.location) == "model.hlo:7:3"


def test_invalid_ir_is_found_before_a_native_pass_sees_it() -> None:
    error = defect_of(NativePass("symbol-dce"), Breaks(), NativePass("func.func(cse)"))
    assert error.message.startswith("pass nothing left invalid IR")


@dataclass(frozen=True)
class Counts(Nothing):
    """The third of three like it breaks the IR; they are verified together."""

    name: ClassVar[str] = "counts"
    number: int = 0

    def run(self, module: Any) -> None:
        if self.number == 2:
            Breaks().run(module)


def test_of_passes_that_are_verified_together_one_is_named() -> None:
    error = defect_of(*(Counts(number) for number in range(5)))
    assert error.message.startswith("pass counts{number=2} left invalid IR")
    assert error.pipeline == "counts{number=2}"
    assert "stablehlo.add" in error.before and error.before.count("return") == 1


@dataclass(frozen=True)
class Fails(Nothing):
    def run(self, module: Any) -> None:
        next(iter(()))


def test_an_exception_of_a_pass_is_a_located_defect() -> None:
    error = defect_of(NativePass("symbol-dce"), Fails())
    assert error.message == "pass nothing failed: StopIteration: no message"
    assert str(error.location) == "model.hlo:7:3"
    assert isinstance(error.__cause__, StopIteration)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_of_a_pipeline_of_native_passes_the_one_that_fails_is_named() -> None:
    text = ADD.replace("stablehlo.add %x, %x : tensor<2xf32>", "chlo.erf_inv %x : tensor<2xf32> -> tensor<2xf32>")
    passes = NativePass("symbol-dce,func.func(canonicalize{max-iterations=3}),stablehlo-legalize-to-vhlo,symbol-dce")
    with pytest.raises(PassError) as caught:
        PassManager([passes]).run(parse_module(text))
    assert caught.value.message.startswith("pass stablehlo-legalize-to-vhlo failed")


def test_dumps_are_numbered_files_and_only_those_asked_for(tmp_path: Path) -> None:
    passes = [NativePass("symbol-dce"), NativePass("func.func(cse)")]
    PassManager(passes, dump_after=frozenset({"func.func(cse)"}), dump_to=tmp_path).run(parse_module(ADD))
    (dump,) = tmp_path.iterdir()
    assert dump.name == "001-func_func_cse_.mlir"
    assert "stablehlo.add" in dump.read_text()


def test_dumps_without_a_folder_go_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    PassManager([NativePass("symbol-dce")], dump_after=frozenset({"all"})).run(parse_module(ADD))
    assert "IR after symbol-dce" in capsys.readouterr().err


def test_timings_stand_in_the_order_of_the_passes() -> None:
    manager = PassManager([NativePass("symbol-dce"), NativePass("func.func(cse)")])
    manager.run(parse_module(ADD))
    assert [timing.name for timing in manager.timings] == ["symbol-dce", "func.func(cse)"]
    assert all(timing.seconds >= 0 for timing in manager.timings)


def test_a_name_cannot_be_registered_twice() -> None:
    with pytest.raises(ValueError, match="audit is registered twice"):
        register(type("Audit", (Nothing,), {"name": "audit"}))


def test_every_stage_of_a_named_pipeline_gives_its_reason() -> None:
    for name in PIPELINES:
        assert stages(name)
        assert all(stage.reason for stage in stages(name))


def test_lower_refuses_an_unknown_operation_with_its_location_and_the_way_out() -> None:
    text = ADD.replace("stablehlo.add %x, %x : tensor<2xf32>", '"my.op"(%x) : (tensor<2xf32>) -> tensor<2xf32>')
    with pytest.raises(UnsupportedError) as caught:
        lower(parse_module(text))
    assert str(caught.value.location) == "model.hlo:7:3"
    assert "my.op" in caught.value.message
    assert "target cpu" in caught.value.message
    assert caught.value.hint


def test_the_audit_lists_every_kind_of_finding_once() -> None:
    module = parse_module("""func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = stablehlo.custom_call @first(%x) : (tensor<2xf32>) -> tensor<2xf32>
      %1 = stablehlo.custom_call @second(%0) : (tensor<2xf32>) -> tensor<2xf32>
      %2 = stablehlo.custom_call @second(%1) : (tensor<2xf32>) -> tensor<2xf32>
      return %2 : tensor<2xf32> }""")
    with pytest.raises(UnsupportedError) as caught:
        Audit().run(module)
    assert "@first" in caught.value.message
    assert sum("@second" in note for note in caught.value.notes) == 1
    assert "1 more" in caught.value.notes[-1]


class TestPatterns:
    def test_inner_operations_are_rewritten_before_the_outer_one(self) -> None:
        seen: list[str] = []

        @pattern("stablehlo.add", "stablehlo.reduce")
        def record(op: Any) -> NoMatch:
            seen.append(op.name)
            return NoMatch("only looking")

        module = parse_module("""func.func @main(%a: tensor<4xf32>) -> tensor<f32> {
          %z = stablehlo.constant dense<0.0> : tensor<f32>
          %r = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [0]
            : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
          return %r : tensor<f32> }""")
        outcome = apply_patterns(module, record)
        assert seen == ["stablehlo.add", "stablehlo.reduce"]
        assert outcome.rewritten == 0
        assert outcome.refused["stablehlo.add"] == ["only looking"]

    def test_a_pattern_error_is_located_at_the_operation(self) -> None:
        @pattern("stablehlo.add")
        def refuse(op: Any) -> NoMatch:
            raise UnsupportedError("no")

        with pytest.raises(UnsupportedError) as caught:
            apply_patterns(parse_module(ADD), refuse)
        assert str(caught.value.location) == "model.hlo:7:3"

    def test_patterns_that_rewrite_their_own_output_are_reported(self) -> None:
        from hloforge.dialect.values import Value

        @pattern("stablehlo.add")
        def again(op: Any) -> Value:
            return Value(op.operands[0]) + Value(op.operands[1])

        with pytest.raises(RuntimeError, match="still match"):
            apply_patterns(parse_module(ADD), again)
