"""Programs as HLO: what an imported program knows comes out again. Built ones are in test_builder.py."""

from __future__ import annotations

import pytest

from hloforge.dialect.errors import CompileError
from hloforge.importers.reader import read

HLO = """HloModule kept, input_output_alias={ {1,0}: (0, {1}, may-alias) }, entry_computation_layout={((f32[2,3]{0,1}, s32[4]{0:T(128)}))->(f32[3,2]{0,1}, (s32[4]{0:T(128)}))}

ENTRY main {
  pair = (f32[2,3]{0,1}, s32[4]{0}) parameter(0), metadata={op_name="params['w']"}
  x = f32[2,3]{0,1} get-tuple-element(pair), index=0
  n = s32[4]{0} get-tuple-element(pair), index=1
  t = f32[3,2]{1,0} transpose(x), dimensions={1,0}, metadata={op_name="jit(f)/transpose" source_file="model.py" source_line=7}
  doubled = s32[4]{0} add(n, n)
  inner = (s32[4]{0}) tuple(doubled)
  ROOT result = (f32[3,2]{0,1}, (s32[4]{0})) tuple(t, inner)
}
"""  # noqa: E501


def test_hlo_comes_back_with_its_convention_and_metadata() -> None:
    program = read(HLO)
    hlo = program.hlo_text()
    header = hlo.partition("\n")[0]
    assert header == HLO.partition("\n")[0]
    assert 'metadata={op_name="jit(f)/transpose" source_file="model.py" source_line=7 ' in hlo
    # An instruction without metadata keeps its own name and line.
    assert 'op_name="doubled"' in hlo
    again = read(program.hlo_proto())
    assert again.signature.result == program.signature.result
    assert again.signature.aliases == program.signature.aliases
    assert [p.shape for p in again.signature.parameters] == [p.shape for p in program.signature.parameters]


def test_export_leaves_the_program_as_it_is() -> None:
    program = read(HLO)
    before = program.text(locations=True)
    program.hlo_proto()
    assert program.text(locations=True) == before


def test_donation_of_jax_is_not_said_twice() -> None:
    program = read(
        """func.func @main(%x: tensor<2xf32> {tf.aliasing_output = 0 : i32, mhlo.sharding = "{replicated}"})
             -> (tensor<2xf32> {jax.result_info = "y"}) {
             %y = stablehlo.add %x, %x : tensor<2xf32>
             return %y : tensor<2xf32> }"""
    )
    hlo = program.hlo_text()
    assert "input_output_alias={ {}: (0, {}, may-alias) }" in hlo
    assert "sharding={replicated}" in hlo


def test_what_has_no_hlo_is_one_error() -> None:
    program = read(
        """func.func @main(%a: tensor<?xf32>, %n: tensor<1xi32>) -> tensor<?xf32> {
             %0 = stablehlo.dynamic_reshape %a, %n : (tensor<?xf32>, tensor<1xi32>) -> tensor<?xf32>
             return %0 : tensor<?xf32> }"""
    )
    with pytest.raises(CompileError, match="XLA's converter has no HLO for this program"):
        program.hlo_text()


def test_floats_of_6_bits_come_back_but_their_constants_are_refused() -> None:
    """XLA's converter would end the process."""
    text = """func.func @main(%x: tensor<3xf6E3M2FN>) -> tensor<3xf6E3M2FN> {
      %c = stablehlo.add %x, %x : tensor<3xf6E3M2FN>
      return %c : tensor<3xf6E3M2FN> }"""
    assert "f6e3m2fn[3]{0} add(" in read(text).hlo_text()
    with pytest.raises(CompileError, match="no HLO for constants of f6E3M2FN") as caught:
        read(text.replace("add %x, %x", "constant dense<[1.0, 2.0, -28.0]>")).hlo_text()
    assert caught.value.location is not None
