"""XLA's calling convention survives as text on the module."""

from __future__ import annotations

import pytest

from hloforge.dialect.errors import ImporterError, UnsupportedError
from hloforge.dialect.mlir import parse_module
from hloforge.dialect.program import Alias, Parameter, Signature
from hloforge.dialect.shapes import Layout, Shape

IDENTITY = """func.func @main(%x: tensor<4x8xf32> {tf.aliasing_output = 0 : i32}) -> tensor<4x8xf32> {
  return %x : tensor<4x8xf32> }"""


def test_without_attributes_the_function_type_speaks() -> None:
    signature = Signature.of(parse_module(IDENTITY))
    assert str(signature) == "(arg0: f32[4,8]) -> f32[4,8]"
    assert signature.aliases == (Alias((), 0),)


def test_names_tuples_layouts_and_donation_survive_printing() -> None:
    signature = Signature(
        (Parameter("params['w'] (a, b)", Shape.parse("(f32[4,8]{0,1}, (s32[], f32[2]{0}))")),),
        Shape.parse("(f32[4,8]{0,1})"),
        (Alias((0,), 0, (1, 1), "must-alias"),),
    )
    module = parse_module(IDENTITY)
    signature.attach(module)
    assert Signature.of(parse_module(str(module))) == signature


def test_flat_parameters_carry_xla_index_names() -> None:
    signature = Signature(
        (Parameter("p", Shape.parse("(f32[2], (s32[], f32[]))")), Parameter("q", Shape.parse("f32[]"))),
        Shape.tuple_of(),
    )
    assert [leaf.name for leaf in signature.flat_parameters] == ["p{0}", "p{1,0}", "p{1,1}", "q"]


def test_a_module_without_main_says_what_it_has() -> None:
    with pytest.raises(ImporterError) as caught:
        Signature.of(parse_module("func.func @forward() { return }"))
    assert "no function @main" in caught.value.message
    assert "@forward" in caught.value.hint


def test_damaged_attributes_are_reported() -> None:
    module = parse_module(
        'module attributes {hloforge.parameter_names = [], hloforge.parameter_shapes = ["f99[2]"]} {' + IDENTITY + "}"
    )
    with pytest.raises(ImporterError, match=r"malformed hloforge\.\*"):
        Signature.of(module)


def test_an_unreadable_module_gives_the_parsers_message() -> None:
    with pytest.raises(ImporterError, match="expected"):
        parse_module("func.func @main( {")


def test_a_type_that_no_array_has_is_refused_by_name() -> None:
    type_ = "tensor<2x!quant.uniform<i8:f32, 1.0>>"
    module = parse_module(f"func.func @main(%x: {type_}) -> {type_} {{ return %x : {type_} }}")
    with pytest.raises(ImporterError, match=r"quant\.uniform.* is no array of an XLA element type"):
        Signature.of(module)


def test_padding_by_dimension_has_no_text_and_is_refused() -> None:
    padded = Shape.array("f32", 4, 8, layout=Layout((1, 0), padded_dimensions=(4, 9)))
    signature = Signature((Parameter("x", padded),), Shape.array("f32", 4, 8))
    with pytest.raises(UnsupportedError, match="cannot be passed"):
        signature.attach(parse_module(IDENTITY))
