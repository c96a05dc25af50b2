"""legalize-host-calls and import-host-calls: which calls go to the host, in which form, and how often."""

from __future__ import annotations

import numpy as np
import pytest

from hloforge.dialect.errors import UnsupportedError
from hloforge.dialect.host_calls import HostCall
from hloforge.dialect.shapes import Shape
from hloforge.importers.reader import read
from hloforge.pipelines.host_calls import declare_host_functions, host_calls_of
from hloforge.pipelines.named import lower

ORDERED = """func.func @main(%x: tensor<4xf32>, %t: !stablehlo.token)
    -> (tensor<4xf32>, tensor<4xf32>, !stablehlo.token) {
  %a = stablehlo.custom_call @pure(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %b = stablehlo.custom_call @pure(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %unused = stablehlo.custom_call @pure(%b) : (tensor<4xf32>) -> tensor<4xf32>
  stablehlo.custom_call @effect(%x) {has_side_effect = true} : (tensor<4xf32>) -> ()
  %t1, %c = stablehlo.custom_call @ordered(%t, %x)
    : (!stablehlo.token, tensor<4xf32>) -> (!stablehlo.token, tensor<4xf32>)
  %t2, %d = stablehlo.custom_call @ordered(%t1, %x)
    : (!stablehlo.token, tensor<4xf32>) -> (!stablehlo.token, tensor<4xf32>)
  stablehlo.custom_call @effect(%x) {has_side_effect = true} : (tensor<4xf32>) -> ()
  return %a, %b, %t2 : tensor<4xf32>, tensor<4xf32>, !stablehlo.token
}"""


def lowered(text: str, *names: str) -> tuple[str, tuple[HostCall, ...]]:
    program = read(text)
    declare_host_functions(program.module, names)
    lower(program.module)
    return program.text(), host_calls_of(program.module)


def test_pure_calls_are_shared_or_dropped_and_others_keep_their_order() -> None:
    text, calls = lowered(ORDERED, "pure", "effect", "ordered")
    made = [line.split("call @host.")[1].split("(")[0] for line in text.splitlines() if " call @host." in line]
    names = [calls[int(name.removeprefix("call_"))].target for name in made]
    assert names == ["pure", "effect", "ordered", "ordered", "effect"]
    assert [call.target for call in calls] == ["pure", "effect", "ordered"]
    assert [str(shape) for shape in calls[2].operands] == ["token[]", "f32[4]"]
    assert "token" not in text.partition("func.func")[2].replace("token[]", "")


def test_arrays_take_their_physical_form_and_the_record_keeps_the_logical_one() -> None:
    text, calls = lowered(
        """func.func @main(%x: tensor<4x8xf32>, %k: tensor<3xi4>) -> tensor<3xf8E4M3FN> {
          %y = stablehlo.custom_call @f(%x, %k) {
            operand_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<0> : tensor<1xindex>],
            result_layouts = [dense<0> : tensor<1xindex>]}
            : (tensor<4x8xf32>, tensor<3xi4>) -> tensor<3xf8E4M3FN>
          return %y : tensor<3xf8E4M3FN> }""",
        "f",
    )
    assert "@host.call_0(tensor<8x4xf32>, tensor<3xi8>) -> tensor<3xui8>" in text
    assert calls == (
        HostCall("f", (Shape.parse("f32[4,8]{0,1}"), Shape.parse("s4[3]{0}")), Shape.parse("f8e4m3fn[3]{0}")),
    )


def test_attributes_and_aliases_are_kept() -> None:
    _, (call,) = lowered(
        """func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
          %y = stablehlo.custom_call @f(%x) {api_version = 4 : i32,
            backend_config = {n = 3 : ui8, e = 0.1 : f32, name = "a", flag = true, sizes = array<i64: 1, 2>,
                              pairs = [[1, 2], [3, 4]], table = dense<[0.5, 2.0]> : tensor<2xf64>,
                              more = {m = 1 : i64}},
            output_operand_aliases = [#stablehlo.output_operand_alias<
              output_tuple_indices = [], operand_index = 0, operand_tuple_indices = []>]}
            : (tensor<2xf32>) -> tensor<2xf32>
          return %y : tensor<2xf32> }""",
        "f",
    )
    assert call.version == 4 and call.aliases == ((0, 0),)
    found = call.attributes
    assert found["n"] == 3 and found["n"].dtype == np.uint8
    assert found["e"] == np.float32(0.1) and found["name"] == "a" and bool(found["flag"])
    assert found["sizes"].tolist() == [1, 2] and found["pairs"].tolist() == [[1, 2], [3, 4]]
    assert found["table"].dtype == np.float64 and found["more"] == {"m": 1}


def test_a_decomposition_goes_before_a_function() -> None:
    text = """func.func @main(%x: tensor<4xf32>) -> (tensor<2xf32>, tensor<2xi32>) {
      %y:2 = stablehlo.custom_call @TopK(%x) {backend_config = "k"} : (tensor<4xf32>) -> (tensor<2xf32>, tensor<2xi32>)
      return %y#0, %y#1 : tensor<2xf32>, tensor<2xi32> }"""
    from hloforge.pipelines.library_calls.registry import decompositions

    assert "TopK" in decompositions()
    try:
        assert lowered(text, "TopK")[1] == ()
    except UnsupportedError as error:
        # The decomposition's own refusal of a configuration, and no call of the host.
        assert "@TopK" in str(error)


REDUCED = """func.func @main(%x: tensor<4xf32>, %z: tensor<f32>) -> tensor<f32> {
  %r = stablehlo.reduce(%x init: %z) across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
    reducer(%a: tensor<f32>, %b: tensor<f32>) {
      %c = stablehlo.custom_call @f(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      stablehlo.return %c : tensor<f32> }
  return %r : tensor<f32> }"""
CALLING = """func.func private @g(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = stablehlo.custom_call @f(%x) {called_computations = [@g]} : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32> }"""
UNTYPED = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = stablehlo.custom_call @f(%x) {api_version = 4 : i32, backend_config = {a = tensor<4xf32>}}
    : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32> }"""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(REDUCED, "inside of stablehlo.reduce, for each element", id="reduce"),
        pytest.param(CALLING, "calls computations of the program", id="computations"),
        pytest.param(UNTYPED, "attribute 'a' of a custom call cannot be passed", id="attribute"),
    ],
)
def test_what_the_host_cannot_be_given_is_refused_at_its_line(text: str, message: str) -> None:
    with pytest.raises(UnsupportedError, match=message) as caught:
        lowered(text, "f")
    assert caught.value.location is not None and caught.value.location.line > 1


def test_an_unknown_function_is_refused_with_the_names_that_are_close() -> None:
    with pytest.raises(UnsupportedError, match=r"custom_call @pure is not supported: .* not registered") as caught:
        lowered(ORDERED, "pur", "effect", "ordered")
    assert "similar names: pur" in caught.value.hint
    with pytest.raises(UnsupportedError, match=r"custom_call @ordered is not supported: .* not registered"):
        lowered(ORDERED, "pure", "effect")


def test_records_survive_json() -> None:
    values = {
        "s": "text",
        "b": np.bool_(True),
        "f": np.float32(0.1),
        "nan": np.float64("nan"),
        "a": np.array([[1, 2]], np.int8),
        "empty": np.array([], np.float32),
        "d": {"x": np.uint64(2**64 - 1)},
    }
    call = HostCall("f", (Shape.parse("(f32[2]{0}, token[])"),), Shape.parse("()"), 4, "", values, ((0, 1),))
    back = HostCall.from_json(call.to_json())
    assert back.to_json() == call.to_json()
    assert back.operands == call.operands and back.result == call.result and back.aliases == call.aliases
    assert back.attributes["a"].dtype == np.int8 and back.attributes["a"].shape == (1, 2)
    assert back.attributes["empty"].shape == (0,) and back.attributes["d"]["x"] == 2**64 - 1
    assert type(back.attributes["f"]) is np.float32 and np.isnan(back.attributes["nan"])
