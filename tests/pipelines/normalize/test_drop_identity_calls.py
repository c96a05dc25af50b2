"""drop-identity-calls: annotations vanish, computing calls stay, borders of several devices are refused."""

from __future__ import annotations

from typing import Any

import pytest

from hloforge.dialect.errors import UnsupportedError
from hloforge.dialect.mlir import parse_module
from hloforge.dialect.operations import operations
from hloforge.importers.reader import read
from hloforge.pipelines.framework.manager import PassManager
from hloforge.pipelines.normalize.drop_identity_calls import DropIdentityCalls
from hloforge.pipelines.normalize.normalization import normalize


def call(target: str, result: str = "tensor<4xf32>") -> Any:
    module = parse_module(f"""func.func @main(%x: tensor<4xf32>) -> {result} {{
      %r = stablehlo.custom_call @{target}(%x) {{mhlo.sharding = "{{replicated}}"}} : (tensor<4xf32>) -> {result}
        loc("m.hlo":7:3)
      return %r : {result} }}""")
    PassManager([DropIdentityCalls()]).run(module)
    return module


@pytest.mark.parametrize(
    "target",
    ["Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "LayoutConstraint", "annotate_device_placement",
     "MoveToHost", "MoveToDevice", "xla.sdy.FuncResultSharding"],
)  # fmt: skip
def test_annotations_are_their_operand(target: str) -> None:
    module = call(target)
    (done,) = operations(module, {"func.return"})
    (main,) = operations(module, {"func.func"})
    assert done.operands[0] == main.regions[0].blocks[0].arguments[0]


def test_an_annotated_tuple_is_its_arrays() -> None:
    program = read("""HloModule m
ENTRY e {
  x = f32[4] parameter(0)
  n = s32[] parameter(1)
  t = (f32[4], s32[]) tuple(x, n)
  h = (f32[4], s32[]) custom-call(t), custom_call_target="MoveToHost"
  ROOT d = (f32[4], s32[]) custom-call(h), custom_call_target="MoveToDevice"
}""")
    normalize(program.module)
    (done,) = operations(program.module, {"func.return"})
    (main,) = operations(program.module, {"func.func"})
    assert list(done.operands) == list(main.regions[0].blocks[0].arguments)


def test_calls_that_compute_stay() -> None:
    assert operations(call("te_softmax"), {"stablehlo.custom_call"})


def test_an_annotation_without_results_vanishes() -> None:
    module = parse_module("""func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      stablehlo.custom_call @xla.sdy.ShardingGroup(%x) {has_side_effect = true} : (tensor<4xf32>) -> ()
      return %x : tensor<4xf32> }""")
    PassManager([DropIdentityCalls()]).run(module)
    assert not operations(module, {"stablehlo.custom_call"})


def test_a_border_of_several_devices_is_refused_with_its_place() -> None:
    with pytest.raises(UnsupportedError, match="several devices") as info:
        call("SPMDFullToShardShape", "tensor<2xf32>")
    assert str(info.value.location) == "m.hlo:7:3"
