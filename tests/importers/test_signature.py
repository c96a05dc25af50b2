"""XLA's calling convention: names, tuples, layouts and donation survive the import."""

from __future__ import annotations

import pytest

from hloforge.dialect.errors import ImporterError
from hloforge.dialect.mlir import ir
from hloforge.dialect.program import Alias, Signature
from hloforge.importers.reader import read

HLO = """HloModule m, input_output_alias={ {0}: (1, {1}, must-alias) }, num_partitions=2,
  entry_computation_layout={
    (f32[4,8]{0,1}, (s32[3]{0}, bf16[2,2]{1,0:T(8,128)}))->(bf16[2,2]{1,0}, f32[4,8]{1,0})}

other {
  w = f32[] parameter(0)
  ROOT r = f32[] negate(w)
}

ENTRY main {
  w = f32[4,8]{0,1} parameter(0)
  pair = (s32[3]{0}, bf16[2,2]{1,0}) parameter(1)
  b = bf16[2,2]{1,0} get-tuple-element(pair), index=1
  c = f32[4,8]{1,0} copy(w)
  ROOT out = (bf16[2,2]{1,0}, f32[4,8]{1,0}) tuple(b, c)
}
"""


def test_hlo() -> None:
    signature = read(HLO).signature
    assert [parameter.name for parameter in signature.parameters] == ["w", "pair"]
    assert str(signature.parameters[0].shape) == "f32[4,8]{0,1}"
    assert str(signature.parameters[1].shape) == "(s32[3]{0}, bf16[2,2]{1,0:T(8,128)})"
    assert str(signature.result) == "(bf16[2,2]{1,0}, f32[4,8]{1,0})"
    assert [leaf.name for leaf in signature.flat_parameters] == ["w", "pair{0}", "pair{1}"]
    assert signature.aliases == (Alias((0,), 1, (1,), "must-alias"),)


def test_it_replaces_the_attributes_of_xla() -> None:
    module = read(HLO).module
    names = list(module.operation.attributes)
    assert not [name for name in names if name.startswith("mhlo.")]
    assert ir.IntegerAttr(module.operation.attributes["hloforge.num_partitions"]).value == 2
    assert Signature.of(module) == read(HLO).signature


def test_stablehlo_with_tiles_in_its_entry_layout() -> None:
    text = """module attributes {
      mhlo.xla_entry_computation_parameter_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<> : tensor<0xindex>],
      mhlo.xla_entry_computation_parameter_tiles = [
        [dense<[8, 128]> : tensor<2xindex>, dense<[2, 1]> : tensor<2xindex>], []],
      mhlo.xla_entry_computation_result_layout = [dense<[1, 0]> : tensor<2xindex>],
      mhlo.xla_entry_computation_result_tiles = [[dense<2> : tensor<2xindex>]]} {
      func.func @main(%x: tensor<4x8xf32>, %y: tensor<f32>) -> tensor<4x8xf32> { return %x : tensor<4x8xf32> } }"""
    signature = read(text).signature
    assert [str(parameter.shape) for parameter in signature.parameters] == ["f32[4,8]{0,1:T(8,128)(2,1)}", "f32[]"]
    assert str(signature.result) == "f32[4,8]{1,0:T(2,2)}"
    with pytest.raises(ImporterError, match="malformed tiles"):
        read(text.replace("dense<2>", "dense<0>"))


def test_an_array_result_is_no_tuple() -> None:
    text = "ENTRY main {\n ROOT x = f32[2]{0} parameter(0)\n}"
    assert str(read(text).signature) == "(x: f32[2]{0}) -> f32[2]{0}"


def test_nested_tuples() -> None:
    text = """ENTRY main {
      p = ((f32[2], s32[]), pred[3]) parameter(0)
      a = (f32[2], s32[]) get-tuple-element(p), index=0
      b = pred[3] get-tuple-element(p), index=1
      ROOT r = (pred[3], (f32[2], s32[])) tuple(b, a)
    }"""
    signature = read(text).signature
    assert [leaf.name for leaf in signature.flat_parameters] == ["p{0,0}", "p{0,1}", "p{1}"]
    assert len(signature.flat_results) == 3


def test_jax_style_stablehlo() -> None:
    text = """module @jit_f attributes {
  mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 4 : i32,
  mhlo.xla_entry_computation_parameter_layouts = [
    dense<[0, 1]> : tensor<2xindex>, dense<0> : tensor<1xindex>, dense<0> : tensor<1xindex>]
} {
  func.func public @main(%a: tensor<2x3xf32> loc("params"),
      %b: tensor<5xf32> {tf.aliasing_output = 1 : i32}, %c: tensor<5xf32> {jax.buffer_donor = true})
      -> (tensor<5xf32> {jax.result_info = "y"}, tensor<5xf32>) {
    return %c, %b : tensor<5xf32>, tensor<5xf32>
  }
}"""
    program = read(text)
    signature = program.signature
    assert [parameter.name for parameter in signature.parameters] == ["params", "arg1", "arg2"]
    assert str(signature.parameters[0].shape) == "f32[2,3]{0,1}"
    assert signature.aliases == (Alias((1,), 1), Alias((0,), 2))
    assert ir.IntegerAttr(program.module.operation.attributes["hloforge.num_replicas"]).value == 4


def test_donors_get_a_result_of_their_shape_or_of_their_size() -> None:
    text = """func.func public @main(
      %a: tensor<4xf32> {jax.buffer_donor = true}, %b: tensor<2x2xi32> {jax.buffer_donor = true},
      %c: tensor<5xf32> {jax.buffer_donor = true}) -> (tensor<2x2xi32>, tensor<2x2xi32>, tensor<4xi8>) {
    %0 = stablehlo.constant dense<1> : tensor<4xi8>
    return %b, %b, %0 : tensor<2x2xi32>, tensor<2x2xi32>, tensor<4xi8>
  }"""
    assert read(text).signature.aliases == (Alias((1,), 0), Alias((0,), 1))


def test_hloforge_text_keeps_its_signature() -> None:
    program = read(HLO)
    assert read(program.text()).signature == program.signature


def test_an_entry_that_is_no_program_is_refused() -> None:
    text = "func.func @main(%x: memref<4xf32>) {\n return\n}"
    with pytest.raises(ImporterError, match="memref"):
        read(text)


@pytest.mark.parametrize("element", ["!quant.any<i8:f32>", "!quant.uniform<i8:f32:{0:2}, {{0.5:1}, {0.25:0}}>"])
def test_quantized_types_without_meaning_in_stablehlo_are_refused(element: str) -> None:
    type_ = f"tensor<4x{element}>"
    with pytest.raises(ImporterError, match="no uniform quantized type") as caught:
        read(f"\nfunc.func @main(%x: {type_}) -> {type_} {{\n return %x : {type_}\n}}")
    assert caught.value.location is not None and caught.value.location.line == 2
