"""The Builder: parameters, tuples, aliases, functions, programs as computations, scopes, and what it refuses."""

from __future__ import annotations

import gc
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from hloforge import Builder, Computation, OperationError, Shape, Value, ops
from hloforge.dialect.program import Alias
from hloforge.importers.reader import read
from tests.engines import interpret


def build(function: Callable[..., Any], *shapes: str) -> Computation:
    with Builder("test") as builder:
        return builder.build(function(*(builder.parameter(n, shape) for n, shape in enumerate(shapes))))


def run(program: Computation, *arguments: Any) -> list[Any]:
    return [np.asarray(result) for result in interpret(program.module, *map(np.asarray, arguments))]


def test_parameters_are_ordered_by_their_numbers() -> None:
    builder = Builder("order")
    y = builder.parameter(2, "(f32[2], s32[])", "y")
    x = builder.parameter(0, "f32[2]", "x")
    z = builder.parameter(1, "f32[]")
    program = builder.build([x - y[0], y[1], z])
    assert str(program.signature) == "(x: f32[2], arg1: f32[], y: (f32[2], s32[])) -> (f32[2], s32[], f32[])"
    results = run(program, np.array([3, 4], np.float32), np.float32(7), np.array([1, 1], np.float32), np.int32(5))
    assert [result.tolist() for result in results] == [[2, 3], 5, 7]


def test_operations_find_their_program_without_a_with() -> None:
    builder = Builder("pair")
    pair = builder.parameter(0, "(f32[], (f32[]))")
    program = builder.build(ops.call(lambda p: p[0] * p[1][0], pair))
    assert run(program, np.float32(3), np.float32(4)) == [12]


def test_two_programs_at_a_time() -> None:
    one, other = Builder("one"), Builder("other")
    x, y = one.parameter(0, "s32[]"), other.parameter(0, "s32[]")
    doubled, squared = x + x, y * y
    assert run(one.build(doubled), np.int32(5)) == [10]
    assert run(other.build(squared), np.int32(5)) == [25]


@pytest.mark.parametrize(
    ("declare", "message"),
    [
        (lambda b: b.build(b.parameter(1, "f32[]")), r"parameters are numbered \[1\], not 0 to 0"),
        (lambda b: b.build(b.parameter(0, "f32[]"), shape="f32[2]"), r"the result has shape f32\[\], not f32\[2\]"),
        (lambda b: [b.alias((1,), 0), b.build([b.parameter(0, "f32[]")])], "names no leaf"),
        (lambda b: [b.alias((), 1), b.build(b.parameter(0, "f32[]"))], "names no leaf"),
        (lambda b: [b.alias((), 0), b.build(b.parameter(0, "f32[2]")[:1])], r"joins a parameter of f32\[2\]"),
        (lambda b: b.build("text"), "a str is no Value"),
        (lambda b: b.build([1.0]), "a float is no Value"),
    ],
    ids=["gap", "result shape", "alias of no result", "alias of no parameter", "alias of two shapes", "text", "number"],
)
def test_what_cannot_be_built(declare: Callable[[Builder], Any], message: str) -> None:
    with pytest.raises(OperationError, match=message):
        declare(Builder("bad"))


def test_a_built_program_takes_no_more() -> None:
    builder = Builder("done")
    x = builder.parameter(0, "f32[]")
    builder.build(x)
    with pytest.raises(OperationError, match="belong to a program that is built already"):
        x + x
    with pytest.raises(OperationError, match="'done' is built already"):
        builder.build(x)


def test_aliases_and_layouts_reach_hlo() -> None:
    builder = Builder("donating")
    x = builder.parameter(0, "(f32[4,8]{0,1:T(2,2)}, s32[])", "x")
    y = builder.parameter(1, "f32[2]", "y")
    builder.alias((0, 0), 0, (0,))
    builder.alias((1,), 1, must=True)
    program = builder.build([[x[0] + 1.0], y], shape="((f32[4,8]{0,1:T(2,2)}), f32[2])")
    hlo = program.hlo_text()
    assert "input_output_alias={ {0,0}: (0, {0}, may-alias), {1}: (1, {}, must-alias) }" in hlo
    layout = "{((f32[4,8]{0,1:T(2,2)}, s32[]), f32[2]{0})->((f32[4,8]{0,1:T(2,2)}), f32[2]{0})}"
    assert f"entry_computation_layout={layout}" in hlo
    again = read(program.hlo_proto())
    assert again.signature.aliases == (Alias((0, 0), 0, (0,)), Alias((1,), 1, (), "must-alias"))
    assert again.signature.result == Shape.parse("((f32[4,8]{0,1:T(2,2)}), f32[2]{0})")
    assert [parameter.name for parameter in again.signature.parameters] == ["x.1", "y.1"]


def test_scopes_and_lines_reach_hlo() -> None:
    builder = Builder("scoped")
    x = builder.parameter(0, "f32[]", "the x")
    with builder.scope("outer"), builder.scope("inner"):
        y = x * x
    line = inspect.currentframe().f_lineno - 1  # type: ignore[union-attr]
    program = builder.build(y - x)
    assert f'metadata={{op_name="outer/inner" source_file="{__file__}" source_line={line} ' in program.hlo_text()
    assert 'op_name="the_x"' in program.hlo_text()


def test_an_empty_result_and_no_parameter() -> None:
    program = build(list)
    assert "->()" in program.hlo_text()
    assert read(program.hlo_proto()).signature.result == Shape.tuple_of()


def test_a_function_is_made_once_a_shape() -> None:
    traced = []

    def double(x: Value) -> Value:
        traced.append(x.shape)
        return x + x

    program = build(lambda x, y: [ops.call(double, ops.call(double, x)), ops.call(double, y)], "f32[2]", "f32[3]")
    assert [str(shape) for shape in traced] == ["f32[2]", "f32[3]"]
    assert program.text().count("func.func private") == 2
    assert run(program, np.ones(2, np.float32), np.ones(3, np.float32))[0].tolist() == [4, 4]


def test_a_failed_call_leaves_nothing_behind() -> None:
    builder = Builder("failing")
    x = builder.parameter(0, "f32[2]")
    leaked = []

    def leak(y: Value) -> Value:
        leaked.append(y + y)
        raise KeyError

    with pytest.raises(KeyError):
        ops.call(leak, x)
    with pytest.raises(KeyError):
        ops.while_(lambda y: leak(y), lambda y: y, x)
    gc.collect()
    assert str(leaked[0]) == "Value(f32[2])"
    assert leaked[0].ir.owner.operation.name == "stablehlo.add"
    text = builder.build(x).text()
    assert "while" not in text
    assert "private" not in text


def test_programs_as_computations() -> None:
    helper = build(lambda x: ops.call(lambda y: y * y, x), "f32[]")
    add_all = build(lambda p: [p[0] + p[1], p[1]], "(f32[], f32[])")

    def main(x: Value, y: Value) -> Any:
        total = ops.while_(build(lambda p: p[0] < 10.0, "(f32[], f32[])"), add_all, ops.tuple([x, y]))
        chosen = ops.conditional(x < y, x, helper, y, helper)
        return [total, chosen, ops.call(helper, y), ops.call(helper, x)]

    program = build(main, "f32[]", "f32[]")
    assert [result.item() for result in run(program, np.float32(1), np.float32(4))] == [13, 4, 1, 16, 1]
    # The helper's own function moves along, under a name of its own for each copy.
    assert read(program.hlo_proto()).signature.result == program.signature.result


def test_functions_of_equal_names_stay_apart() -> None:
    def doubled_and_squared(x: Value) -> Any:
        def body(y: Value) -> Value:
            return y + y

        first = ops.call(body, x)

        def body(y: Value) -> Value:  # type: ignore[no-redef]
            return y * y

        return ops.call(body, first)

    helper = build(doubled_and_squared, "f32[]")
    assert ("@body(" in helper.text()) and ("@body_0(" in helper.text())

    def main(x: Value) -> Any:
        def body(y: Value) -> Value:
            return y - 1.0

        return [ops.call(body, x), ops.call(helper, x)]

    assert [result.item() for result in run(build(main, "f32[]"), np.float32(3))] == [2, 36]


def test_functions_that_call_each_other_keep_their_callees() -> None:
    """The callee follows its caller, and has a name that is taken where the program is called."""
    helper = read("""func.func @main(%x: tensor<f32>) -> tensor<f32> {
      %0 = call @outer(%x) : (tensor<f32>) -> tensor<f32>
      return %0 : tensor<f32> }
    func.func private @outer(%x: tensor<f32>) -> tensor<f32> {
      %0 = call @body(%x) : (tensor<f32>) -> tensor<f32>
      return %0 : tensor<f32> }
    func.func private @body(%x: tensor<f32>) -> tensor<f32> {
      %0 = stablehlo.multiply %x, %x : tensor<f32>
      return %0 : tensor<f32> }""")

    def main(x: Value) -> Any:
        def body(y: Value) -> Value:
            return y - 1.0

        return [ops.call(body, x), ops.call(helper, x)]

    assert [result.item() for result in run(build(main, "f32[]"), np.float32(3))] == [2, 9]


def test_a_program_is_applied_to_its_own_shapes_only() -> None:
    square = build(lambda x: x * x, "f32[2]")
    with pytest.raises(OperationError, match=r"takes \(f32\[2\]\), and is applied to \(f32\[3\]\)"):
        build(lambda x: ops.call(square, x), "f32[3]")


def test_closures_survive_hlo() -> None:
    """Loops and branches may use what stands around them; HLO's computations get it as an operand."""

    def main(x: Value, y: Value, p: Value) -> Any:
        z = x + y
        count = ops.constant(3, "s32")

        def body(n: Value, v: Value) -> list[Value]:
            branch = ops.conditional(p, v, lambda v: v + z, v, lambda v: [v - z][0])
            return [n + 1, branch * y]

        return ops.while_(lambda n, v: n < count, body, [ops.constant(0, "s32"), x])[1]

    program = build(main, "f32[]", "f32[]", "pred[]")
    again = read(program.hlo_proto())
    for flag in (True, False):
        arguments = np.float32(1), np.float32(2), np.bool_(flag)
        expected = np.float32(1)
        for _ in range(3):
            expected = (expected + 3 if flag else expected - 3) * 2
        assert run(program, *arguments) == [expected]
        assert [np.asarray(r) for r in interpret(again.module, *map(np.asarray, arguments))] == [expected]


def _leaked(use: Callable[[Value], Any]) -> Callable[[Value], Any]:
    def function(x: Value) -> Any:
        kept: list[Value] = []

        def body(y: Value) -> Value:
            kept.append(y + 1.0)
            return kept[0]

        ops.while_(lambda y: y < 1.0, body, x)
        return use(kept[0])

    return function


OTHER = Builder("other")
FOREIGN = OTHER.parameter(0, "f32[]")


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (_leaked(lambda y: y + y), "made in another computation"),
        (_leaked(lambda y: y), "made in another computation"),
        (_leaked(lambda y: ops.while_(lambda z: z < 1.0, lambda z: y, y)), "made in another computation"),
        (lambda x: ops.call(lambda: x), "made in another computation"),
        (lambda x: ops.call(lambda: x + x), "made in another computation"),
        (lambda x: ops.all_reduce(x, lambda a, b: a + x), "from around it"),
        (lambda x: x + FOREIGN, "belongs to another program"),
        (
            lambda x: ops.while_(lambda y: y < 1.0, lambda y: FOREIGN, x),
            "another program",
        ),
        (lambda x: FOREIGN, "another program"),
    ],
    ids=[
        "use",
        "result",
        "operand",
        "call result",
        "call",
        "reducer",
        "operand's program",
        "body's",
        "result's program",
    ],
)
def test_values_from_elsewhere_are_refused(function: Callable[[Value], Any], message: str) -> None:
    with pytest.raises(OperationError, match=message) as caught:
        build(function, "f32[]")
    assert caught.value.location is not None
    assert caught.value.location.file == __file__


def test_values_outlive_their_builder() -> None:
    def value() -> Value:
        builder = Builder("dropped")
        return ops.tanh(builder.parameter(0, "f32[4]"))

    kept = value()
    gc.collect()
    assert str(ops.exp(kept).shape) == "f32[4]"
