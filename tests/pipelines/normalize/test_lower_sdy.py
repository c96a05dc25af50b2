"""lower-sdy and strip-attributes: JAX's shardings of one device leave no trace; several devices are refused."""

from __future__ import annotations

import numpy as np
import pytest

from hloforge.dialect.errors import UnsupportedError
from hloforge.dialect.mlir import parse_module
from hloforge.pipelines.manager import PassManager
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


def test_one_device() -> None:
    module = parse_module(TEXT.replace("SIZE", "1").replace("LOCAL", "4"))
    PassManager([LowerSdy(), StripAttributes()]).run(module)
    x = np.array([1, -2, np.inf, 0], np.float32)
    np.testing.assert_array_equal(interpret(module, x)[0], 2 - 2 * x)
    assert "sdy" not in str(module)


def test_several_devices_are_refused() -> None:
    module = parse_module(TEXT.replace("SIZE", "2").replace("LOCAL", "2"))
    with pytest.raises(UnsupportedError, match='over "x"=2') as info:
        PassManager([LowerSdy()]).run(module)
    assert info.value.location is not None
