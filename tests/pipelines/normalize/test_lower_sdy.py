"""lower-sdy and strip-attributes: shardings leave no trace, and computations over several devices run for all."""

from __future__ import annotations

import numpy as np
import pytest

from hloforge.dialect.errors import UnsupportedError
from hloforge.dialect.mlir import parse_module
from hloforge.pipelines.framework.manager import PassManager
from hloforge.pipelines.framework.passes import NativePass
from hloforge.pipelines.normalize.lower_sdy import LowerSdy
from hloforge.pipelines.normalize.strip_attributes import StripAttributes
from tests.engines import interpret

TEXT = """module {
  sdy.mesh @mesh = <["x"=SIZE, "y"=2]>
  func.func @main(%x: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})
      -> (tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
    %s = sdy.sharding_constraint %x <@mesh, [{"y"}]> : tensor<4xf32>
    %g = sdy.reshard %s <@mesh, [{"x"}]> : tensor<4xf32>
    %c = sdy.constant dense<2.0> : tensor<4xf32>
    sdy.sharding_group %g group_id=3 : tensor<4xf32>
    %m = sdy.manual_computation(%g, %c) in_shardings=[<@mesh, [{"x"}]>, <@mesh, [{}]>]
        out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%a: tensor<LOCALxf32>, %b: tensor<4xf32>) {
      %p = stablehlo.add %a, %a : tensor<LOCALxf32>
      sdy.return %p : tensor<LOCALxf32>
    } : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %n = sdy.named_computation<"f">(%m, %c) (%a: tensor<4xf32>, %b: tensor<4xf32>) {
      %q = stablehlo.subtract %b, %a : tensor<4xf32>
      sdy.return %q : tensor<4xf32>
    } : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    return %n : tensor<4xf32>
  }
}"""


@pytest.mark.parametrize(("size", "local"), [(1, 4), (2, 2)])
def test_shardings_leave_no_trace(size: int, local: int) -> None:
    module = parse_module(TEXT.replace("SIZE", str(size)).replace("LOCAL", str(local)))
    PassManager([LowerSdy(), StripAttributes()]).run(module)
    x = np.array([1, -2, np.inf, 0], np.float32)
    np.testing.assert_array_equal(interpret(module, x)[0], 2 - 2 * x)
    assert "sdy" not in str(module)


# Rows by d, columns by m; the result is cut along its columns by both axes, d the major one.
MANUAL = """module {
  sdy.mesh @mesh = <["d"=2, "m"=2]DEVICES>
  func.func @main(%x: tensor<4x8xf32>, %n: tensor<f32>) -> (tensor<2x16xf32>, tensor<f32>) {
    %r:2 = sdy.manual_computation(%x, %n)
        in_shardings=[<@mesh, [{"d"}, {"m"}]>, <@mesh, []>]
        out_shardings=[<@mesh, [{}, {"d", "m"}]>, <@mesh, []>] manual_axes={"d", "m"}
        (%a: tensor<2x4xf32>, %b: tensor<f32>) {
      %s = func.call @sum(%a) : (tensor<2x4xf32>) -> tensor<2x4xf32>
      %id = stablehlo.partition_id : tensor<ui32>
      %f = stablehlo.convert %id : (tensor<ui32>) -> tensor<f32>
      %w = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<f32>) -> tensor<2x4xf32>
      %t = stablehlo.add %s, %w : tensor<2x4xf32>
      %u = stablehlo.add %b, %b : tensor<f32>
      sdy.return %t, %u : tensor<2x4xf32>, tensor<f32>
    } : (tensor<4x8xf32>, tensor<f32>) -> (tensor<2x16xf32>, tensor<f32>)
    return %r#0, %r#1 : tensor<2x16xf32>, tensor<f32>
  }
  func.func private @sum(%a: tensor<2x4xf32>) -> tensor<2x4xf32> {
    %s = "stablehlo.all_reduce"(%a) ({
    ^bb0(%p: tensor<f32>, %q: tensor<f32>):
      %c = stablehlo.add %p, %q : tensor<f32>
      stablehlo.return %c : tensor<f32>
    }) {replica_groups = GROUPS, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>,
      use_global_device_ids} : (tensor<2x4xf32>) -> tensor<2x4xf32>
    return %s : tensor<2x4xf32>
  }
}"""
BY_AXIS = '#stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = [#stablehlo.axis_ref<name = "m">]>'
LISTED = "dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>"


@pytest.mark.parametrize(
    ("groups", "devices", "numbers"),
    [(BY_AXIS, "", [0, 1, 2, 3]), (LISTED, "", [0, 1, 2, 3]), (BY_AXIS, ", device_ids=[3, 1, 0, 2]", [3, 1, 0, 2])],
    ids=["axes", "lists", "ordered"],
)
def test_a_manual_computation_runs_for_all_devices_of_its_mesh(groups: str, devices: str, numbers: list[int]) -> None:
    module = parse_module(MANUAL.replace("GROUPS", groups).replace("DEVICES", devices))
    PassManager([LowerSdy(), NativePass("symbol-dce"), StripAttributes()]).run(module)
    x = np.arange(32, dtype=np.float32).reshape(4, 8)
    # The sum over m of each half of the rows, and the number of each device.
    sums = [x[rows, :4] + x[rows, 4:] for rows in (slice(0, 2), slice(2, 4))]
    expected = np.concatenate([sums[position // 2] + number for position, number in enumerate(numbers)], axis=1)
    joined, doubled = interpret(module, x, np.float32(3))
    np.testing.assert_array_equal(joined, expected)
    assert doubled == 6


def test_parts_of_axes_are_refused_at_their_line() -> None:
    part = (
        MANUAL.replace("GROUPS", LISTED)
        .replace("DEVICES", "")
        .replace('<@mesh, [{"d"}, {"m"}]>', '<@mesh, [{"d":(1)2}, {"m"}]>')
    )
    with pytest.raises(UnsupportedError, match="over parts of axes") as info:
        PassManager([LowerSdy()]).run(
            parse_module(part.replace('"d"=2', '"d"=4').replace("tensor<2x16xf32>", "tensor<2x32xf32>"))
        )
    assert info.value.location is not None
