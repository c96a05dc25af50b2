"""strip-attributes: foreign attributes go from operations, arguments and results; our own and inherent ones stay."""

from __future__ import annotations

from hloforge.dialect.mlir import parse_module
from hloforge.pipelines.framework.manager import PassManager
from hloforge.pipelines.normalize.strip_attributes import StripAttributes


def test_foreign_attributes_go_and_ours_stay() -> None:
    module = parse_module("""module attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32,
        hloforge.result_shape = "f32[4]"} {
      func.func @main(%x: tensor<4xf32> {jax.buffer_donor = true, hloforge.kept = 1 : i32}, %y: tensor<4xf32>)
          -> (tensor<4xf32> {jax.result_info = "y", mhlo.layout_mode = "default"}) attributes {execution_thread = "m"} {
        %r = stablehlo.add %x, %y {mhlo.frontend_attributes = {a = "b"}, xla_shape = "f32[4]{0}",
          result_layout = dense<0> : tensor<1xindex>} : tensor<4xf32>
        %s = stablehlo.custom_call @f(%r) {backend_config = "c", mhlo.sharding = "{replicated}",
          result_layouts = [dense<0> : tensor<1xindex>], operand_layouts = [dense<0> : tensor<1xindex>]}
          : (tensor<4xf32>) -> tensor<4xf32>
        return %s : tensor<4xf32>
      }
    }""")
    PassManager([StripAttributes()]).run(module)
    text = str(module)
    for gone in ("jax.", "mhlo.", "xla_shape", "result_layout =", "execution_thread", "res_attrs"):
        assert gone not in text
    for kept in ("hloforge.result_shape", "hloforge.kept", 'backend_config = "c"', "result_layouts", "operand_layouts"):
        assert kept in text
