"""legalize-entry-abi: bytes in XLA's layout go in and come out, judged by the StableHLO interpreter."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from hloforge.dialect.abi import physical_shape
from hloforge.dialect.errors import PassError, UnsupportedError
from hloforge.dialect.mlir import parse_module
from hloforge.dialect.packing import pack
from hloforge.dialect.program import Signature, entry_function
from hloforge.dialect.shapes import Shape
from hloforge.pipelines.framework.manager import PassManager
from hloforge.pipelines.legalize.entry_abi import LegalizeEntryAbi
from tests.engines import interpret


def program(body: str, parameters: str, result: str, main: str) -> str:
    return f"""module attributes {{hloforge.parameter_names = ["a", "b"], hloforge.parameter_shapes = [{parameters}],
      hloforge.result_shape = "{result}", hloforge.input_output_alias = []}} {{
      func.func @main{main} {{ {body} }} }}"""


def lowered(text: str) -> object:
    module = parse_module(text)
    PassManager([LegalizeEntryAbi()]).run(module)
    return module


def test_layouts_of_parameters_and_results_are_honoured() -> None:
    text = program(
        "%r = stablehlo.subtract %a, %b : tensor<2x3x4xf32> return %r : tensor<2x3x4xf32>",
        '"f32[2,3,4]{0,2,1}", "f32[2,3,4]{2,1,0}"',
        "f32[2,3,4]{1,0,2}",
        "(%a: tensor<2x3x4xf32>, %b: tensor<2x3x4xf32>) -> tensor<2x3x4xf32>",
    )
    a, b = np.random.default_rng(0).normal(size=(2, 2, 3, 4)).astype(np.float32)
    (result,) = interpret(lowered(text), a.transpose(1, 2, 0), b)
    np.testing.assert_array_equal(result, (a - b).transpose(2, 0, 1))


def test_a_square_array_is_transposed_although_its_type_stays() -> None:
    text = program(
        "%r = stablehlo.subtract %a, %b : tensor<3x3xf32> return %r : tensor<3x3xf32>",
        '"f32[3,3]{0,1}", "f32[3,3]{1,0}"',
        "f32[3,3]{1,0}",
        "(%a: tensor<3x3xf32>, %b: tensor<3x3xf32>) -> tensor<3x3xf32>",
    )
    a, b = np.random.default_rng(0).normal(size=(2, 3, 3)).astype(np.float32)
    (result,) = interpret(lowered(text), a.T, b)
    np.testing.assert_array_equal(result, a - b)


@pytest.mark.parametrize(
    ("parameter", "result"),
    [
        ("{0,1:T(2,2)}", "{1,0:T(8,128)(2,1)}"),
        ("{1,0:T(4)L(16)}", "{0,1:T(*,3)}"),
        ("{1,0:T(2,4)(2,1,1,1)S(1)}", "{1,0:T(1,2,2)}"),
    ],
)
def test_tiled_arrays_cross_as_their_buffers(parameter: str, result: str) -> None:
    text = program(
        "%r = stablehlo.subtract %a, %b : tensor<5x7xf32> return %r : tensor<5x7xf32>",
        f'"f32[5,7]{parameter}", "f32[5,7]"',
        f"f32[5,7]{result}",
        "(%a: tensor<5x7xf32>, %b: tensor<5x7xf32>) -> tensor<5x7xf32>",
    )
    a, b = np.random.default_rng(0).normal(size=(2, 5, 7)).astype(np.float32)
    (buffer,) = interpret(lowered(text), pack(a, Shape.parse(f"f32[5,7]{parameter}")), b)
    np.testing.assert_array_equal(buffer, pack(a - b, Shape.parse(f"f32[5,7]{result}")))


def test_tiles_of_dynamic_arrays_are_refused() -> None:
    text = program(
        "return %a : tensor<?xf32>",
        '"f32[?]{0:T(8)}", "f32[]"',
        "f32[?]",
        "(%a: tensor<?xf32>, %b: tensor<f32>) -> tensor<?xf32>",
    )
    with pytest.raises(UnsupportedError, match="has no known size") as raised:
        lowered(text)
    assert raised.value.location is not None


def test_sub_byte_integers_cross_as_bytes() -> None:
    text = program(
        "return %b, %a : tensor<3xui4>, tensor<2x3xi4>",
        '"s4[2,3]{0,1}", "u4[3]{0}"',
        "(u4[3], s4[2,3])",
        "(%a: tensor<2x3xi4>, %b: tensor<3xui4>) -> (tensor<3xui4>, tensor<2x3xi4>)",
    )
    a, b = np.array([[-8, -1, 0], [1, 6, 7]], np.int8), np.array([0, 8, 15], np.uint8)
    unsigned, signed = interpret(lowered(text), a.T, b)
    np.testing.assert_array_equal(signed, a)
    np.testing.assert_array_equal(unsigned, b)
    assert (signed.dtype, unsigned.dtype) == (np.int8, np.uint8)


@pytest.mark.parametrize("name", ["f8e4m3fn", "f8e3m4", "f4e2m1fn", "f8e8m0fnu"])
def test_narrow_floats_cross_as_codes(name: str) -> None:
    shape = Shape.array(name, 4)
    type_ = shape.element.mlir
    text = program(
        f"return %a : tensor<4x{type_}>",
        f'"{name}[4]", "f32[]"',
        f"{name}[4]",
        f"(%a: tensor<4x{type_}>, %b: tensor<f32>) -> tensor<4x{type_}>",
    )
    entry = entry_function(lowered(text))
    assert [str(type_) for type_ in entry.type.inputs] == ["tensor<4xui8>", "tensor<f32>"]
    assert str(physical_shape(shape)) == "u8[4]"


def test_the_code_of_a_float_keeps_its_bits() -> None:
    text = program(
        "%r = stablehlo.convert %a : (tensor<4xf8E5M2>) -> tensor<4xf32> return %r : tensor<4xf32>",
        '"f8e5m2[4]", "f32[]"',
        "f32[4]",
        "(%a: tensor<4xf8E5M2>, %b: tensor<f32>) -> tensor<4xf32>",
    )
    codes = np.array([0x80, 0x01, 0x7C, 0x3C], np.uint8)
    (result,) = interpret(lowered(text), codes, np.float32(0))
    np.testing.assert_array_equal(result.view(np.uint32), codes.view(ml_dtypes.float8_e5m2).astype("f4").view("u4"))


def test_tokens_do_not_cross_and_the_signature_survives() -> None:
    text = program(
        "return %a, %b : tensor<3xi2>, !stablehlo.token",
        '"s2[3]", "token[]"',
        "(s2[3], token[])",
        "(%a: tensor<3xi2>, %b: !stablehlo.token) -> (tensor<3xi2>, !stablehlo.token)",
    )
    module = lowered(text)
    entry = entry_function(module)
    assert [str(type_) for type_ in (*entry.type.inputs, *entry.type.results)] == ["tensor<3xi8>"] * 2
    assert str(Signature.of(module)) == "(a: s2[3], b: token[]) -> (s2[3], token[])"


def test_a_second_run_changes_nothing() -> None:
    module = parse_module("func.func @main(%a: tensor<2xi4>) -> tensor<2xi4> { return %a : tensor<2xi4> }")
    PassManager([LegalizeEntryAbi()]).run(module)
    once = str(module)
    PassManager([LegalizeEntryAbi()]).run(module)
    assert str(module) == once
    assert str(Signature.of(module).result) == "s4[2]"


def test_a_signature_of_another_program_is_refused() -> None:
    text = program("return %a : tensor<2xf32>", '"f32[2]", "f32[2]"', "f32[2]", "(%a: tensor<2xf32>) -> tensor<2xf32>")
    with pytest.raises(PassError, match="names 2 parameters, @main has 1"):
        lowered(text)
