"""Plans: numpy's results bit for bit as those of StableHLO's interpreter, and what has no plan."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from hloforge.dialect.program import Program
from hloforge.importers.reader import read
from hloforge.pipelines.evaluation.plan import SpentError
from hloforge.pipelines.evaluation.plans import plan_of
from hloforge.runtime.reference.engines import reference
from tests.fuzz.plans import differences, planned, same_bits

_INTERPRETER = reference("interpreter", isolated=False)

_FLOATS = np.array([0.0, -0.0, 1.5, -2.5, 3e9, -3e9, np.inf, -np.inf, np.nan, 1e-45, 255.7, -0.3], np.float32)
_INTEGERS = np.array([0, 1, -1, 7, -7, 2**31 - 1, -(2**31), 33, -128, 100, 31, 32], np.int32)
_ROWS = np.arange(24, dtype=np.int32).reshape(2, 3, 4)


def _text(body: str, arguments: str, results: str) -> str:
    return f"func.func @main({arguments}) -> {results} {{\n{body}\n}}"


def _elementwise(name: str, row: str, count: int = 2, result: str = "") -> str:
    operands = ", ".join(f"%{'abc'[n]}" for n in range(count))
    arguments = ", ".join(f"%{'abc'[n]}: tensor<12x{row}>" for n in range(count))
    types = ", ".join([f"tensor<12x{row}>"] * count)
    made = f"tensor<12x{result or row}>"
    return _text(f"%r = {name} {operands} : ({types}) -> {made}\nreturn %r : {made}", arguments, made)


def _agrees(text: str, *arguments: Any) -> None:
    program = read(text)
    plan = plan_of(program)
    assert plan is not None
    expected = _INTERPRETER.prepare(program)(*arguments)
    found = plan([np.asarray(argument) for argument in arguments])
    expected = expected if isinstance(expected, tuple | list) else [expected]
    for one, other in zip(found, expected, strict=True):
        assert same_bits(one, np.asarray(other)), f"{one} for {other}"


@pytest.mark.parametrize("row", ["i32", "ui32", "i8", "ui8", "i64", "ui64"])
@pytest.mark.parametrize(
    "name", ["add", "subtract", "multiply", "divide", "remainder", "maximum", "minimum", "and", "or", "xor"]
)
def test_integers(name: str, row: str) -> None:
    dtype = np.dtype(row.replace("ui", "uint") if row.startswith("u") else row.replace("i", "int"))
    a = _INTEGERS.astype(dtype)
    b = np.roll(a, 5)
    if name in ("divide", "remainder"):
        # What the specification leaves open: the interpreter refuses a division by zero, and overflows by -1.
        b = np.where((b == 0) | (b == np.invert(dtype.type(0))), dtype.type(3), b)
    _agrees(_elementwise(f"stablehlo.{name}", row), a, b)


def test_integers_divided_by_zero() -> None:
    """By zero, and the least number by -1. Source: XLA's operation semantics, Div and Rem."""
    for name, results in {"divide": [-1, -(2**31), 0], "remainder": [5, 0, 0]}.items():
        text = _elementwise(f"stablehlo.{name}", "i32").replace("12x", "3x")
        plan = plan_of(read(text))
        assert plan is not None
        (found,) = plan([np.array([5, -(2**31), 0], np.int32), np.array([0, -1, 7], np.int32)])
        assert found.tolist() == results


@pytest.mark.parametrize("name", ["shift_left", "shift_right_logical", "shift_right_arithmetic"])
@pytest.mark.parametrize("row", ["i32", "ui32", "i8"])
def test_shifts_by_more_than_the_width(name: str, row: str) -> None:
    dtype = {"i32": np.int32, "ui32": np.uint32, "i8": np.int8}[row]
    a = _INTEGERS.astype(dtype)
    _agrees(_elementwise(f"stablehlo.{name}", row), a, np.roll(a, 3))


@pytest.mark.wide(2)
@pytest.mark.parametrize("row", ["f32", "f64"])
@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "divide", "maximum", "minimum"])
def test_floats(name: str, row: str) -> None:
    a = _FLOATS.astype({"f32": np.float32, "f64": np.float64}[row])
    for shift in range(12):
        _agrees(_elementwise(f"stablehlo.{name}", row), a, np.roll(a, shift))


@pytest.mark.parametrize("name", ["abs", "ceil", "floor", "negate", "round_nearest_even", "sqrt"])
def test_functions_of_floats(name: str) -> None:
    _agrees(_elementwise(f"stablehlo.{name}", "f32", 1), _FLOATS)


@pytest.mark.parametrize("row", ["i1", "i8", "ui8", "i32", "f64", "bf16", "f16"])
def test_conversions_of_f32(row: str) -> None:
    inside = _FLOATS if row in ("i1", "f64", "bf16", "f16") else np.where(np.abs(_FLOATS) < 100, _FLOATS, 0)
    _agrees(_elementwise("stablehlo.convert", "f32", 1, row), inside.astype(np.float32))


def test_floats_beyond_integers() -> None:
    """Saturating, and 0 for NaN, as XLA; the interpreter's are undefined."""
    plan = plan_of(read(_elementwise("stablehlo.convert", "f32", 1, "i32")))
    assert plan is not None
    (found,) = plan([_FLOATS])
    assert found.tolist() == [0, 0, 1, -2, 2**31 - 1, -(2**31), 2**31 - 1, -(2**31), 0, 0, 255, 0]


@pytest.mark.parametrize("direction", ["EQ", "NE", "LT", "LE", "GT", "GE"])
def test_comparisons(direction: str) -> None:
    body = f"%r = stablehlo.compare {direction}, %a, %b : (tensor<12xf32>, tensor<12xf32>) -> tensor<12xi1>"
    text = _text(f"{body}\nreturn %r : tensor<12xi1>", "%a: tensor<12xf32>, %b: tensor<12xf32>", "tensor<12xi1>")
    _agrees(text, _FLOATS, np.roll(_FLOATS, 1))


@pytest.mark.parametrize(
    ("padding", "sizes"),
    [("low = [0, 1, 2], high = [3, 0, 1], interior = [0, 2, 0]", "5x8x7"),
     ("low = [-1, -2, 1], high = [2, 3, -2], interior = [1, 2, 3]", "4x8x12"),
     ("low = [-2, 0, -5], high = [0, -1, 5], interior = [0, 0, 1]", "0x2x7")],
)  # fmt: skip
def test_paddings(padding: str, sizes: str) -> None:
    made = f"tensor<{sizes}xi32>"
    body = f"%r = stablehlo.pad %a, %b, {padding} : (tensor<2x3x4xi32>, tensor<i32>) -> {made}"
    _agrees(_text(f"{body}\nreturn %r : {made}", "%a: tensor<2x3x4xi32>, %b: tensor<i32>", made), _ROWS, np.int32(9))


def test_moves() -> None:
    body = """
    %1 = stablehlo.transpose %a, dims = [2, 0, 1] : (tensor<2x3x4xi32>) -> tensor<4x2x3xi32>
    %2 = stablehlo.reverse %1, dims = [0, 2] : tensor<4x2x3xi32>
    %3 = stablehlo.slice %2 [1:4:2, 0:2, 0:3:2] : (tensor<4x2x3xi32>) -> tensor<2x2x2xi32>
    %4 = stablehlo.reshape %3 : (tensor<2x2x2xi32>) -> tensor<8xi32>
    %5 = stablehlo.iota dim = 1 : tensor<3x8xi32>
    %6 = stablehlo.broadcast_in_dim %4, dims = [1] : (tensor<8xi32>) -> tensor<3x8xi32>
    %7 = stablehlo.concatenate %5, %6, dim = 0 : (tensor<3x8xi32>, tensor<3x8xi32>) -> tensor<6x8xi32>
    %8 = stablehlo.bitcast_convert %7 : (tensor<6x8xi32>) -> tensor<6x8x2xi16>
    %9 = stablehlo.bitcast_convert %8 : (tensor<6x8x2xi16>) -> tensor<6x8xf32>
    return %9 : tensor<6x8xf32>"""
    _agrees(_text(body, "%a: tensor<2x3x4xi32>", "tensor<6x8xf32>"), _ROWS)


@pytest.mark.parametrize("starts", [(0, 1, 1), (-5, 9, 2), (2**31 - 1, -(2**31), 0)])
def test_windows_stay_inside(starts: tuple[int, int, int]) -> None:
    body = """
    %1 = stablehlo.dynamic_slice %a, %i, %j, %k, sizes = [1, 2, 3]
      : (tensor<2x3x4xi32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x2x3xi32>
    %2 = stablehlo.negate %1 : tensor<1x2x3xi32>
    %3 = stablehlo.dynamic_update_slice %a, %2, %k, %i, %j
      : (tensor<2x3x4xi32>, tensor<1x2x3xi32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<2x3x4xi32>
    return %1, %3 : tensor<1x2x3xi32>, tensor<2x3x4xi32>"""
    arguments = "%a: tensor<2x3x4xi32>, %i: tensor<i32>, %j: tensor<i32>, %k: tensor<i32>"
    _agrees(_text(body, arguments, "(tensor<1x2x3xi32>, tensor<2x3x4xi32>)"), _ROWS, *map(np.int32, starts))


@pytest.mark.parametrize(
    ("numbers", "sizes", "indices", "result"),
    [("offset_dims = [1, 2], collapsed_slice_dims = [1], start_index_map = [1], index_vector_dim = 1", "2, 1, 4",
      "5x1", "5x2x4"),
     ("offset_dims = [0], collapsed_slice_dims = [0, 2], start_index_map = [2, 0], index_vector_dim = 0", "1, 2, 1",
      "2x3", "2x3"),
     ("offset_dims = [1, 2, 3], start_index_map = [0, 1, 2], index_vector_dim = 1", "1, 2, 3", "4x3", "4x1x2x3"),
     ("offset_dims = [2], collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [1], "
      "start_index_map = [1], index_vector_dim = 2", "1, 1, 4", "3x2x1", "3x2x4")],
)  # fmt: skip
def test_gathers(numbers: str, sizes: str, indices: str, result: str) -> None:
    body = f"""%r = "stablehlo.gather"(%a, %i) <{{dimension_numbers = #stablehlo.gather<{numbers}>,
      slice_sizes = array<i64: {sizes}>}}> : (tensor<2x3x4xi32>, tensor<{indices}xi32>) -> tensor<{result}xi32>
    return %r : tensor<{result}xi32>"""
    shape = tuple(map(int, indices.split("x")))
    given = np.random.default_rng(0).integers(-2, 5, shape).astype(np.int32)
    _agrees(_text(body, f"%a: tensor<2x3x4xi32>, %i: tensor<{indices}xi32>", f"tensor<{result}xi32>"), _ROWS, given)


@pytest.mark.parametrize("direction", ["EQ", "LT", "GE"])
def test_comparisons_in_total_order(direction: str) -> None:
    kind = "(tensor<12xf32>, tensor<12xf32>) -> tensor<12xi1>"
    body = f"%r = stablehlo.compare {direction}, %a, %b, TOTALORDER : {kind}"
    plan = plan_of(
        read(_text(f"{body}\nreturn %r : tensor<12xi1>", "%a: tensor<12xf32>, %b: tensor<12xf32>", "tensor<12xi1>"))
    )
    assert plan is not None
    order = np.array([-np.nan, -np.inf, -2, -1e-45, -0.0, 0.0, 1e-45, 2, 3e9, np.inf, np.nan, np.nan], np.float32)
    order[0], order[10:] = np.copysign(order[0], -1), np.copysign(order[10:], 1)
    ranks = np.array([*range(11), 10])
    for shift in range(12):
        (found,) = plan([order, np.roll(order, shift)])
        compare = {"EQ": np.equal, "LT": np.less, "GE": np.greater_equal}[direction]
        assert found.tolist() == compare(ranks, np.roll(ranks, shift)).tolist()


def _sort(comparison: str, *, is_stable: bool = True, sizes: str = "3x7", dimension: int = 1) -> str:
    settings = f"dimension = {dimension} : i64, is_stable = {str(is_stable).lower()}"
    body = f"""%r:2 = "stablehlo.sort"(%a, %i) <{{{settings}}}> ({{
      ^bb0(%x: tensor<f32>, %y: tensor<f32>, %m: tensor<i32>, %n: tensor<i32>):
        %c = {comparison} : (tensor<f32>, tensor<f32>) -> tensor<i1>
        stablehlo.return %c : tensor<i1>
      }}) : (tensor<{sizes}xf32>, tensor<{sizes}xi32>) -> (tensor<{sizes}xf32>, tensor<{sizes}xi32>)
    return %r#0, %r#1 : tensor<{sizes}xf32>, tensor<{sizes}xi32>"""
    types = f"tensor<{sizes}xf32>, tensor<{sizes}xi32>"
    return _text(body, f"%a: tensor<{sizes}xf32>, %i: tensor<{sizes}xi32>", f"({types})")


@pytest.mark.parametrize(
    ("sizes", "dimension"), [("3x7", 1), ("3x7", 0), ("2x5x3", 1), ("1x1", 1), ("0x4", 1), ("4x0", 1)]
)
@pytest.mark.parametrize("direction", ["LT", "GT"])
def test_stable_sorts(sizes: str, dimension: int, direction: str) -> None:
    shape = tuple(map(int, sizes.split("x")))
    count = int(np.prod(shape))
    keys = (np.arange(count) * 7 % 4).astype(np.float32).reshape(shape)
    text = _sort(f"stablehlo.compare {direction}, %x, %y", sizes=sizes, dimension=dimension)
    _agrees(text, keys, np.arange(count, dtype=np.int32).reshape(shape))


def test_sorts_by_no_order_are_given_up() -> None:
    plan = plan_of(read(_sort("stablehlo.compare LT, %x, %y")))
    assert plan is not None
    keys = np.array([[1, np.nan, 0, 2, np.nan, -1, 5]] * 3, np.float32)
    with pytest.raises(SpentError):
        plan([keys, np.zeros((3, 7), np.int32)])
    assert plan_of(read(_sort("stablehlo.compare LT, %x, %y", is_stable=False))) is None
    assert plan_of(read(_sort("stablehlo.compare LT, %x, %y", sizes="3x70000"))) is None


_SET = "stablehlo.return %q : tensor<i32>"
_ADD = "%s = stablehlo.add %p, %q : tensor<i32>\n stablehlo.return %s : tensor<i32>"


def _scatter(numbers: str, indices: str, updates: str, region: str, *, is_unique: bool = False) -> str:
    body = f"""%r = "stablehlo.scatter"(%a, %i, %u) <{{scatter_dimension_numbers = #stablehlo.scatter<{numbers}>,
      unique_indices = {str(is_unique).lower()}}}> ({{
      ^bb0(%p: tensor<i32>, %q: tensor<i32>):
        {region}
      }}) : (tensor<2x3x4xi32>, tensor<{indices}xi32>, tensor<{updates}xi32>) -> tensor<2x3x4xi32>
    return %r : tensor<2x3x4xi32>"""
    arguments = f"%a: tensor<2x3x4xi32>, %i: tensor<{indices}xi32>, %u: tensor<{updates}xi32>"
    return _text(body, arguments, "tensor<2x3x4xi32>")


@pytest.mark.parametrize("row", [(1, 2), (0, 0), (1, 3), (-1, 0)])
def test_one_scattered_window(row: tuple[int, int]) -> None:
    numbers = "update_window_dims = [0], inserted_window_dims = [0, 1], scatter_dims_to_operand_dims = [0, 1]"
    _agrees(_scatter(numbers, "2", "4", _SET), _ROWS, np.array(row, np.int32), np.arange(90, 94, dtype=np.int32))


def test_scattered_sums_and_transposed_windows() -> None:
    numbers = (
        "update_window_dims = [0, 2], inserted_window_dims = [1], scatter_dims_to_operand_dims = [1], "
        "index_vector_dim = 1"
    )
    indices = np.array([[2], [0], [2], [5], [-4]], np.int32)
    updates = np.arange(40, dtype=np.int32).reshape(2, 5, 4)
    _agrees(_scatter(numbers, "5x1", "2x5x4", _ADD), _ROWS, indices, updates)
    distinct = np.array([[2], [0], [1], [5], [-4]], np.int32)
    _agrees(_scatter(numbers, "5x1", "2x5x4", _SET, is_unique=True), _ROWS, distinct, updates)


def test_several_windows_of_an_order_have_no_plan() -> None:
    numbers = (
        "update_window_dims = [1], inserted_window_dims = [0, 1], scatter_dims_to_operand_dims = [0, 1], "
        "index_vector_dim = 1"
    )
    assert plan_of(read(_scatter(numbers, "3x2", "3x4", _SET))) is None
    assert plan_of(read(_scatter(numbers, "3x2", "3x4", _SET, is_unique=True))) is not None


_ARGMAX = """
    %v, %w = stablehlo.reduce(%a init: %low), (%i init: %zero) across dimensions = [1]
      : (tensor<3x7xf32>, tensor<3x7xi32>, tensor<f32>, tensor<i32>) -> (tensor<3xf32>, tensor<3xi32>)
      reducer(%x: tensor<f32>, %y: tensor<f32>) (%m: tensor<i32>, %n: tensor<i32>) {
        %1 = stablehlo.compare GT, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
        %2 = stablehlo.compare NE, %x, %x : (tensor<f32>, tensor<f32>) -> tensor<i1>
        %3 = stablehlo.or %1, %2 : tensor<i1>
        %4 = stablehlo.compare EQ, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
        %5 = stablehlo.compare LT, %m, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
        %6 = stablehlo.and %4, %5 : tensor<i1>
        %7 = stablehlo.or %3, %6 : tensor<i1>
        %8 = stablehlo.select %3, %x, %y : tensor<i1>, tensor<f32>
        %9 = stablehlo.select %7, %m, %n : tensor<i1>, tensor<i32>
        stablehlo.return %8, %9 : tensor<f32>, tensor<i32>
      }
    return %v, %w : tensor<3xf32>, tensor<3xi32>"""


def test_reductions_without_an_order() -> None:
    constants = (
        "%low = stablehlo.constant dense<0xFF800000> : tensor<f32>\n%zero = stablehlo.constant dense<0> : tensor<i32>"
    )
    iota = "%i = stablehlo.iota dim = 1 : tensor<3x7xi32>"
    values = np.array([[3, 1, 9, 9, 2, 9, 0], [np.nan, 1, np.nan, 2, 3, 4, 5], [-1] * 7], np.float32)
    text = _text(f"{constants}\n{iota}{_ARGMAX}", "%a: tensor<3x7xf32>", "(tensor<3xf32>, tensor<3xi32>)")
    _agrees(text, values)


def test_sums_of_integers() -> None:
    body = """%z = stablehlo.constant dense<5> : tensor<i32>
    %r = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [0, 2]
      : (tensor<2x3x4xi32>, tensor<i32>) -> tensor<3xi32>
    return %r : tensor<3xi32>"""
    _agrees(_text(body, "%a: tensor<2x3x4xi32>", "tensor<3xi32>"), _ROWS)


_LOOP = """
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %r:3 = stablehlo.while(%i = %zero, %x = %a, %y = %b) : tensor<i32>, tensor<i32>, tensor<i32>
    cond {
      %go = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %go : tensor<i1>
    } do {
      %j = stablehlo.add %i, %one : tensor<i32>
      %z = func.call @sum(%x, %y) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      stablehlo.return %j, %y, %z : tensor<i32>, tensor<i32>, tensor<i32>
    }
    return %r#1, %r#2 : tensor<i32>, tensor<i32>
}
func.func private @sum(%a: tensor<i32>, %b: tensor<i32>) -> tensor<i32> {
  %r = stablehlo.add %a, %b : tensor<i32>
  return %r : tensor<i32>"""


def test_loops_and_calls() -> None:
    arguments = "%n: tensor<i32>, %a: tensor<i32>, %b: tensor<i32>"
    text = _text(_LOOP, arguments, "(tensor<i32>, tensor<i32>)")
    for turns in (0, 1, 10):
        _agrees(text, np.int32(turns), np.int32(1), np.int32(2))


def test_a_long_loop_is_given_up() -> None:
    plan = plan_of(
        read(_text(_LOOP, "%n: tensor<i32>, %a: tensor<i32>, %b: tensor<i32>", "(tensor<i32>, tensor<i32>)"))
    )
    assert plan is not None
    with pytest.raises(SpentError):
        plan([np.int32(10**9), np.int32(1), np.int32(2)])


@pytest.mark.parametrize("index", [-3, 0, 1, 2, 7])
def test_branches(index: int) -> None:
    body = """%r = "stablehlo.case"(%i) ({
      %x = stablehlo.negate %a : tensor<i32>
      stablehlo.return %x : tensor<i32>
    }, {
      stablehlo.return %a : tensor<i32>
    }, {
      %p = stablehlo.compare LT, %i, %a : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %y = "stablehlo.if"(%p) ({ stablehlo.return %i : tensor<i32> }, { stablehlo.return %a : tensor<i32> })
        : (tensor<i1>) -> tensor<i32>
      stablehlo.return %y : tensor<i32>
    }) : (tensor<i32>) -> tensor<i32>
    return %r : tensor<i32>"""
    _agrees(_text(body, "%i: tensor<i32>, %a: tensor<i32>", "tensor<i32>"), np.int32(index), np.int32(5))


_PRODUCT = "%0 = stablehlo.multiply %a, %a : tensor<3xf32>\n"
_WITHOUT = {
    "a function without one rounding": "%r = stablehlo.exponential %a : tensor<3xf32>",
    "a multiply-add": f"{_PRODUCT}%r = stablehlo.add %0, %a : tensor<3xf32>",
    "a product and a difference": f"{_PRODUCT}%r = stablehlo.subtract %a, %0 : tensor<3xf32>",
    "a call of a library": "%r = stablehlo.custom_call @f(%a) : (tensor<3xf32>) -> tensor<3xf32>",
    "floats of 16 bits": """%0 = stablehlo.convert %a : (tensor<3xf32>) -> tensor<3xbf16>
      %1 = stablehlo.add %0, %0 : tensor<3xbf16>
      %r = stablehlo.convert %1 : (tensor<3xbf16>) -> tensor<3xf32>""",
    "a sum of floats": """%z = stablehlo.constant dense<0.0> : tensor<f32>
      %0 = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [0]
        : (tensor<3xf32>, tensor<f32>) -> tensor<f32>
      %r = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<3xf32>""",
    "too many elements": """%0 = stablehlo.broadcast_in_dim %a, dims = [1] : (tensor<3xf32>) -> tensor<9000000x3xf32>
      %r = stablehlo.slice %0 [7:8, 0:3] : (tensor<9000000x3xf32>) -> tensor<1x3xf32>""",
}


@pytest.mark.parametrize("reason", _WITHOUT)
def test_programs_without_a_plan(reason: str) -> None:
    made = "tensor<1x3xf32>" if reason == "too many elements" else "tensor<3xf32>"
    assert plan_of(read(_text(f"{_WITHOUT[reason]}\nreturn %r : {made}", "%a: tensor<3xf32>", made))) is None


def test_short_floats_move() -> None:
    program: Program = read(_text(
        "%0 = stablehlo.compare LT, %a, %b : (tensor<3xbf16>, tensor<3xbf16>) -> tensor<3xi1>\n"
        "%r = stablehlo.select %0, %a, %b : tensor<3xi1>, tensor<3xbf16>\nreturn %r : tensor<3xbf16>",
        "%a: tensor<3xbf16>, %b: tensor<3xbf16>", "tensor<3xbf16>",
    ))  # fmt: skip
    plan = plan_of(program)
    assert plan is not None
    a, b = (np.array(row, ml_dtypes.bfloat16) for row in ([1, 5, np.nan], [2, 3, 4]))
    (found,) = plan([a, b])
    assert found.dtype == a.dtype
    assert found.astype(np.float32).tolist() == [1, 3, 4]


def test_plans_give_the_bits_of_compiled_code() -> None:
    cases = list(planned(range(14)))
    assert len(cases) >= 7
    assert differences(cases) == []


@pytest.mark.parametrize("windows", [1, 0])
def test_a_scatter_without_indices_writes_its_windows_at_the_start(windows: int) -> None:
    # As x.at[...].add(y) has it, and of no window at all.
    body = f"""
  %r = "stablehlo.scatter"(%x, %i, %u) <{{
    scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1, 2], index_vector_dim = 1>,
    unique_indices = true
  }}> ({{
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %s = stablehlo.add %a, %b : tensor<i32>
    stablehlo.return %s : tensor<i32>
  }}) : (tensor<2x3xi32>, tensor<{windows}x0xi32>, tensor<{windows}x2x3xi32>) -> tensor<2x3xi32>
  return %r : tensor<2x3xi32>"""
    arguments = f"%x: tensor<2x3xi32>, %i: tensor<{windows}x0xi32>, %u: tensor<{windows}x2x3xi32>"
    x = np.arange(6, dtype=np.int32).reshape(2, 3)
    _agrees(_text(body, arguments, "tensor<2x3xi32>"), x, np.zeros((windows, 0), np.int32), x[None][:windows] * 10)
