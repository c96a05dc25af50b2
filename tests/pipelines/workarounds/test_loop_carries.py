"""legalize-loop-carries: fewer carries, the same results."""

from __future__ import annotations

import numpy as np
import pytest

import hloforge
from hloforge import Value, ops
from hloforge.dialect.mlir import parse_module
from hloforge.dialect.operations import operations
from hloforge.importers.reader import read
from hloforge.pipelines.framework.manager import PassManager
from hloforge.pipelines.named import lower
from hloforge.pipelines.workarounds.loop_buffers import KeepLoopBuffers
from hloforge.pipelines.workarounds.loop_carries import LegalizeLoopCarries
from hloforge.pipelines.workarounds.whole_slices import LegalizeWholeSlices
from hloforge.runtime.compile.by_iree import compile_module
from hloforge.runtime.compile.compiler import compile_program
from hloforge.runtime.compile.targets import Target
from hloforge.runtime.options import CompileOptions
from tests.engines import interpret

LOOP = """func.func @main(%x: tensor<2xf32>, %k: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %four = stablehlo.constant dense<4> : tensor<i32>
  %go = stablehlo.constant dense<true> : tensor<i1>
  %r:5 = stablehlo.while(%i = %zero, %scale = %k, %y = %x, %idle = %x, %flag = %go)
      : tensor<i32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<i1>
    cond { stablehlo.return %flag : tensor<i1> }
    do {
      %n = stablehlo.add %i, %one : tensor<i32>
      %p = stablehlo.multiply %y, %scale : tensor<2xf32>
      %f = stablehlo.compare LT, %n, %four : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %n, %scale, %p, %p, %f : tensor<i32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<i1>
    }
  return %r#2, %r#1 : tensor<2xf32>, tensor<2xf32> }"""


def test_invariant_and_unused_carries_are_dropped() -> None:
    module = parse_module(LOOP)
    PassManager([LegalizeLoopCarries()]).run(module)
    (loop,) = operations(module, {"stablehlo.while"})
    assert [str(result.type) for result in loop.results] == ["tensor<i32>", "tensor<2xf32>", "tensor<i1>"]
    x, k = np.array([1, 2], np.float32), np.array([3, -1], np.float32)
    power, scale = interpret(module, x, k)
    np.testing.assert_array_equal(power, x * k**4)
    np.testing.assert_array_equal(scale, k)


def test_the_body_reads_what_only_the_condition_read() -> None:
    module = parse_module(LOOP)
    PassManager([LegalizeLoopCarries()]).run(module)
    (barrier,) = operations(module, {"stablehlo.optimization_barrier"})
    assert [str(operand.type) for operand in barrier.operands] == ["tensor<i1>", "tensor<i1>"]
    once = str(module)
    PassManager([LegalizeLoopCarries()]).run(module)
    assert str(module) == once


def test_the_next_value_of_what_only_the_condition_read_depends_on_it() -> None:
    """Else IREE drops it from what the condition of a loop with calls passes on ("region successor needs 0 inputs")."""
    module = parse_module(LOOP)
    LegalizeLoopCarries().run(module)
    KeepLoopBuffers().run(module)
    (loop,) = operations(module, {"stablehlo.while"})
    body = loop.regions[1].blocks[0]
    flag = list(body.operations)[-1].operation.operands[2].owner.operation
    assert flag.name == "stablehlo.select"
    assert flag.operands[1] == body.arguments[2]


OVERWRITTEN = """func.func @main(%n: tensor<i32>, %x: tensor<4xf32>) -> tensor<4xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %last = %x) : tensor<i32>, tensor<4xf32>
    cond {
      %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      %j = stablehlo.add %i, %one : tensor<i32>
      %f = stablehlo.convert %j : (tensor<i32>) -> tensor<f32>
      %b = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<f32>) -> tensor<4xf32>
      stablehlo.return %j, %b : tensor<i32>, tensor<4xf32>
    }
  return %r#1 : tensor<4xf32> }"""


def test_a_carry_that_the_body_overwrites_unread_is_still_read() -> None:
    module = parse_module(OVERWRITTEN)
    PassManager([LegalizeLoopCarries()]).run(module)
    (loop,) = operations(module, {"stablehlo.while"})
    assert all(list(argument.uses) for argument in loop.regions[1].blocks[0].arguments)
    start = np.array([7, 7, 7, 7], np.float32)
    np.testing.assert_array_equal(interpret(module, np.int32(0), start)[0], start)
    np.testing.assert_array_equal(interpret(module, np.int32(3), start)[0], np.full(4, 3, np.float32))


def shifting(next_values: str, element: str = "f32") -> str:
    """A loop of three carries, as long as the first is below the bound: %t grows, %u takes what is given."""
    t = f"tensor<{element}>"
    two = "2.0" if "f" in element else "2"
    return f"""func.func @main(%y0: tensor<8xf32>, %t0: {t}, %u0: {t}, %n: {t}) -> (tensor<8xf32>, {t}, {t}) {{
  %two = stablehlo.constant dense<{two}> : {t}
  %r:3 = stablehlo.while(%y = %y0, %t = %t0, %u = %u0) : tensor<8xf32>, {t}, {t}
    cond {{
      %p = stablehlo.compare LT, %t, %n : ({t}, {t}) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    }} do {{
      %a = stablehlo.add %y, %y : tensor<8xf32>
      %b = stablehlo.add %t, %two : {t}
      %bits = stablehlo.optimization_barrier %t : {t}
      stablehlo.return %a, {next_values} : tensor<8xf32>, {t}, {t}
    }}
  return %r#0, %r#1, %r#2 : tensor<8xf32>, {t}, {t} }}""".replace(
        "dense<2>", "dense<2.0>" if "f" in element else "dense<2>"
    )


@pytest.mark.parametrize(
    ("next_values", "element", "last"),
    [("%b, %t", "f32", 8), ("%b, %bits", "f64", 8), ("%b, %t", "i64", 8), ("%b, %t", "bf16", 8), ("%b, %b", "f32", 10)],
)
def test_a_carry_that_takes_over_another_one_compiles(next_values: str, element: str, last: int) -> None:
    program = read(shifting(next_values, element))
    zero, one, nine = (np.asarray(number, program.signature.parameters[1].shape.element.dtype) for number in (0, 1, 9))
    y, t, u = compile_program(program)(np.ones(8, np.float32), zero, one, nine)
    np.testing.assert_array_equal(y, np.full(8, 2**5, np.float32))
    assert (t, u) == (10, last)


@pytest.mark.parametrize(("element", "direction", "selects"), [("i64", "LT", 0), ("i64", "NE", 1), ("f32", "LT", 1)])
def test_only_a_loop_that_counts_keeps_its_carries(element: str, direction: str, selects: int) -> None:
    reads = f"%a, %b, %t : tensor<8xf32>, tensor<{element}>, tensor<{element}>"
    text = shifting("%b, %t", element).replace("LT", direction)
    # A carry that nobody reads is another matter.
    end = f"stablehlo.return {reads}"
    module = parse_module(text.replace(end, f"%c = stablehlo.add %u, %u : tensor<{element}>\n{end}"))
    PassManager([LegalizeLoopCarries()]).run(module)
    assert len(operations(module, {"stablehlo.select"})) == selects


NESTED = """func.func @main(%x: tensor<8xf32>, %h: tensor<f64>) -> (tensor<8xf32>, tensor<f64>, tensor<f64>) {
  %zero = stablehlo.constant dense<0> : tensor<i64>
  %one = stablehlo.constant dense<1> : tensor<i64>
  %two = stablehlo.constant dense<2> : tensor<i64>
  %times = stablehlo.iota dim = 0 : tensor<3xf64>
  %cell = stablehlo.slice %times [0:1] : (tensor<3xf64>) -> tensor<1xf64>
  %start = stablehlo.reshape %cell : (tensor<1xf64>) -> tensor<f64>
  %ends = stablehlo.slice %times [1:3] : (tensor<3xf64>) -> tensor<2xf64>
  %r:4 = stablehlo.while(%i = %zero, %y = %x, %t = %start, %u = %start)
      : tensor<i64>, tensor<8xf32>, tensor<f64>, tensor<f64>
    cond {
      %p = stablehlo.compare LT, %i, %two : (tensor<i64>, tensor<i64>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      %j = stablehlo.add %i, %one : tensor<i64>
      %e = stablehlo.dynamic_slice %ends, %i, sizes = [1] : (tensor<2xf64>, tensor<i64>) -> tensor<1xf64>
      %end = stablehlo.reshape %e : (tensor<1xf64>) -> tensor<f64>
      %w:3 = stablehlo.while(%a = %y, %s = %t, %v = %u) : tensor<8xf32>, tensor<f64>, tensor<f64>
        cond {
          %q = stablehlo.compare LT, %s, %end : (tensor<f64>, tensor<f64>) -> tensor<i1>
          stablehlo.return %q : tensor<i1>
        } do {
          %b = stablehlo.add %a, %a : tensor<8xf32>
          %n = stablehlo.add %s, %h : tensor<f64>
          %ok = stablehlo.compare GT, %n, %v : (tensor<f64>, tensor<f64>) -> tensor<i1>
          %next = stablehlo.select %ok, %n, %s : tensor<i1>, tensor<f64>
          %last = stablehlo.select %ok, %s, %v : tensor<i1>, tensor<f64>
          stablehlo.return %b, %next, %last : tensor<8xf32>, tensor<f64>, tensor<f64>
        }
      stablehlo.return %j, %w#0, %w#1, %w#2 : tensor<i64>, tensor<8xf32>, tensor<f64>, tensor<f64>
    }
  return %r#1, %r#2, %r#3 : tensor<8xf32>, tensor<f64>, tensor<f64> }"""


def test_carries_chosen_as_a_whole_in_a_nested_loop_compile() -> None:
    y, t, u = compile_program(read(NESTED))(np.ones(8, np.float32), np.float64(0.5))
    np.testing.assert_array_equal(y, np.full(8, 2**4, np.float32))
    assert (t, u) == (2, 1.5)


TESTS_AN_ARRAY = """func.func @main(%x: tensor<8x8xi32>, %c0: tensor<8x8xi32>, %i0: tensor<i32>)
    -> (tensor<8x8xi32>, tensor<8x8xi32>) {
  %one = stablehlo.constant dense<1> : tensor<i32>
  %three = stablehlo.constant dense<3> : tensor<i32>
  %r:3 = stablehlo.while(%i = %i0, %a = %x, %c = %c0) : tensor<i32>, tensor<8x8xi32>, tensor<8x8xi32>
    cond {
      %few = stablehlo.compare LT, %i, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %cell = stablehlo.slice %a [0:1, 0:1] : (tensor<8x8xi32>) -> tensor<1x1xi32>
      %number = stablehlo.reshape %cell : (tensor<1x1xi32>) -> tensor<i32>
      %small = stablehlo.compare LT, %number, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %p = stablehlo.and %few, %small : tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      %j = stablehlo.add %i, %one : tensor<i32>
      %t = stablehlo.transpose %a, dims = [1, 0] : (tensor<8x8xi32>) -> tensor<8x8xi32>
      %b = stablehlo.add %a, %t : tensor<8x8xi32>
      %square = stablehlo.multiply %a, %a : tensor<8x8xi32>
      stablehlo.return %j, %b, %square : tensor<i32>, tensor<8x8xi32>, tensor<8x8xi32>
    }
  return %r#1, %r#2 : tensor<8x8xi32>, tensor<8x8xi32> }"""


def test_a_carry_overwritten_unread_compiles_where_the_condition_reads_an_array() -> None:
    module = parse_module(TESTS_AN_ARRAY)
    PassManager([LegalizeLoopCarries()]).run(module)
    assert len(operations(module, {"stablehlo.select"})) == 1
    run = compile_program(read(TESTS_AN_ARRAY))
    x, c = np.eye(8, dtype=np.int32), np.full((8, 8), 7, np.int32)
    for start, turns in ((0, 2), (2, 1), (3, 0)):
        a, square = run(x, c, np.int32(start))
        np.testing.assert_array_equal(a, x * 2**turns)
        np.testing.assert_array_equal(square, x * 4 ** (turns - 1) if turns else c)


# A list of one element, as TensorFlow writes it, in a loop that does not count.
LIST = """func.func @main(%x: tensor<1x4xf32>, %n: tensor<f32>) -> (tensor<4xf32>, tensor<1x4xf32>) {
  %none = stablehlo.constant dense<0> : tensor<i32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %one = stablehlo.constant dense<1.0> : tensor<f32>
  %zeros = stablehlo.constant dense<0.0> : tensor<4xf32>
  %r:3 = stablehlo.while(%i = %zero, %list = %x, %sum = %zeros) : tensor<f32>, tensor<1x4xf32>, tensor<4xf32>
    cond {
      %p = stablehlo.compare LT, %i, %n : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      %j = stablehlo.add %i, %one : tensor<f32>
      %element = stablehlo.reshape %list : (tensor<1x4xf32>) -> tensor<4xf32>
      %next = stablehlo.add %sum, %element : tensor<4xf32>
      %part = stablehlo.reshape %PART : (tensor<4xf32>) -> tensor<1x4xf32>
      %changed = stablehlo.dynamic_update_slice %list, %part, %none, %none
          : (tensor<1x4xf32>, tensor<1x4xf32>, tensor<i32>, tensor<i32>) -> tensor<1x4xf32>
      stablehlo.return %j, %changed, %next : tensor<f32>, tensor<1x4xf32>, tensor<4xf32>
    }
  return %r#2, %r#1 : tensor<4xf32>, tensor<1x4xf32> }"""


@pytest.mark.parametrize(("part", "selects", "turns"), [("zeros", 0, [0, 1, 1, 1]), ("next", 1, [0, 1, 2, 4])])
def test_a_list_of_one_element_that_is_fixed_or_another_carry_compiles(
    part: str, selects: int, turns: list[int]
) -> None:
    text = LIST.replace("%PART", f"%{part}")
    module = parse_module(text)
    PassManager([LegalizeWholeSlices(), LegalizeLoopCarries()]).run(module)
    assert not operations(module, {"stablehlo.dynamic_update_slice"})
    assert len(operations(module, {"stablehlo.select"})) == selects
    assert len(operations(module, {"stablehlo.optimization_barrier"})) == 1 - selects
    program = read(text)
    lower(program.module)
    run = compile_module(program, Target(), CompileOptions()).load()
    x = np.array([[1, 2, 3, -4]], np.float32)
    for count, factor in enumerate(turns):
        total, last = run(x, np.float32(count))
        np.testing.assert_array_equal(total, x[0] * factor)
        np.testing.assert_array_equal(last, x if not count else x * (factor if part == "next" else 0))


@pytest.mark.parametrize(
    "test",
    [
        "%t = stablehlo.constant dense<false> : tensor<i1>",
        "%t = stablehlo.compare LT, %i, %zero, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>",
    ],
)
def test_a_loop_that_never_runs_is_left_out(test: str) -> None:
    """IREE forgot the buffers of this one, and of the conditional, and the program failed ("ref is null")."""
    program = read(f"""func.func @main(%x: tensor<3xi32>, %y: tensor<3xi32>)
    -> (tensor<3xi32>, tensor<3xi32>, tensor<3xi32>, tensor<3xi32>) {{
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %zeros = stablehlo.constant dense<0> : tensor<3xi32>
  %r:4 = stablehlo.while(%i = %zero, %a = %x, %b = %x, %c = %x)
      : tensor<i32>, tensor<3xi32>, tensor<3xi32>, tensor<3xi32>
    cond {{ {test} stablehlo.return %t : tensor<i1> }}
    do {{
      %one = stablehlo.constant dense<1> : tensor<i32>
      stablehlo.return %one, %zeros, %b, %zeros : tensor<i32>, tensor<3xi32>, tensor<3xi32>, tensor<3xi32>
    }}
  %s:3 = "stablehlo.case"(%r#0) ({{
    stablehlo.return %r#2, %r#3, %zeros : tensor<3xi32>, tensor<3xi32>, tensor<3xi32>
  }}, {{
    stablehlo.return %x, %x, %x : tensor<3xi32>, tensor<3xi32>, tensor<3xi32>
  }}, {{
    stablehlo.return %r#3, %y, %y : tensor<3xi32>, tensor<3xi32>, tensor<3xi32>
  }}) : (tensor<i32>) -> (tensor<3xi32>, tensor<3xi32>, tensor<3xi32>)
  return %r#1, %s#0, %s#1, %s#2 : tensor<3xi32>, tensor<3xi32>, tensor<3xi32>, tensor<3xi32> }}""")
    module = program.clone().module
    PassManager([LegalizeLoopCarries()]).run(module)
    assert not operations(module, {"stablehlo.while"})
    x = np.array([4, 5, 6], np.int32)
    for found, expected in zip(compile_program(program)(x, x + 3), (x, x, x, 0 * x), strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.wide(4)
@pytest.mark.parametrize("element", ["f32", "bf16", "c64", "s64", "pred"])
def test_a_carry_that_each_iteration_fills_with_one_number(element: str) -> None:
    """In a loop that counts to a number of the caller's: the array is one row, so that a row's update is all of it."""
    with hloforge.Builder("filled") as builder:
        x = builder.parameter(0, f"{element}[1,3]", "x")
        count = builder.parameter(1, "s32[]", "count")
        row = ops.broadcast(ops.constant(1, element), [1, 3])

        def turn(n: Value, rows: Value) -> list[Value]:
            return [n + 1, ops.dynamic_update_slice(rows, row, [n, 0])]

        (_, rows) = ops.while_(lambda n, _: n < count + 1, turn, [ops.constant(0, "s32"), x])
        program = builder.build((ops.rev(x, [1]), rows))
    given = hloforge.random_inputs(program.signature)[0]
    session = hloforge.compile(program, cache=False).load()
    for turns in (-1, 0, 2):
        expected = program.evaluate(given, np.int32(turns), engine="xla")
        for got, want in zip(session(given, np.int32(turns)), expected, strict=True):
            np.testing.assert_array_equal(got, want)
