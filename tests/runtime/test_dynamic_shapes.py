"""Programs of dynamic shapes: compiled once and run at several sizes, or compiled for each; numpy tells the results."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hloforge
from hloforge import ArgumentError, OptionError
from hloforge.dialect.element_types import ElementType, element_type
from hloforge.importers.reader import read
from hloforge.runtime.artifact.executable import Executable
from hloforge.runtime.compile.compiler import compile_program
from hloforge.runtime.options import CompileOptions

Array = np.ndarray[Any, Any]
SIZES = (0, 1, 4)
# MLIR's element types by XLA's names.
ELEMENTS = {
    "pred": "i1",
    "s4": "i4",
    "s64": "i64",
    "u8": "ui8",
    "bf16": "bf16",
    "f32": "f32",
    "f64": "f64",
    "f8e4m3fn": "f8E4M3FN",
    "c64": "complex<f32>",
    "c128": "complex<f64>",
}
# The number of rows of %x, in a list and between others.
ROWS = """
  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x3xT>) -> tensor<i32>
  %rows = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
  %two = stablehlo.constant dense<2> : tensor<1xi32>
  %three = stablehlo.constant dense<3> : tensor<1xi32>
  %code = stablehlo.constant dense<1> : tensor<ui8>
  %one = stablehlo.convert %code : (tensor<ui8>) -> tensor<T>
"""


def padded(x: Array) -> Array:
    rows = len(x)
    result = np.ones((2 * rows + 1, 7), x.dtype)
    result[rows : 2 * rows, 0:5:2] = x
    return result[:, 1:]


def updated(x: Array) -> Array:
    result = x.copy()
    if len(x):
        result[min(1, len(x) - 1), 1:3] = 1
    return result


# Operations on %x, [n, 3], in every element type: the type of %r, the program and what numpy says.
OPERATIONS: dict[str, tuple[str, str, Callable[[Array], Array]]] = {
    "dynamic_broadcast_in_dim": (
        "?x?x3",
        """%s = stablehlo.concatenate %two, %rows, %three, dim = 0
             : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
           %r = stablehlo.dynamic_broadcast_in_dim %x, %s, dims = [1, 2]
             : (tensor<?x3xT>, tensor<3xi32>) -> tensor<?x?x3xT>""",
        lambda x: np.broadcast_to(x, (2, *x.shape)),
    ),
    "dynamic_broadcast_in_dim of a scalar": (
        "?x3",
        """%s = stablehlo.concatenate %rows, %three, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
           %r = stablehlo.dynamic_broadcast_in_dim %one, %s, dims = [] : (tensor<T>, tensor<2xi32>) -> tensor<?x3xT>""",
        np.ones_like,
    ),
    "dynamic_reshape": (
        "?",
        """%s = stablehlo.multiply %rows, %three : tensor<1xi32>
           %r = stablehlo.dynamic_reshape %x, %s : (tensor<?x3xT>, tensor<1xi32>) -> tensor<?xT>""",
        np.ravel,
    ),
    "dynamic_pad": (
        "?x?",
        """%less = stablehlo.constant dense<-1> : tensor<1xi32>
           %low = stablehlo.concatenate %rows, %less, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
           %high = stablehlo.constant dense<[1, 2]> : tensor<2xi32>
           %gaps = stablehlo.constant dense<[0, 1]> : tensor<2xi32>
           %r = stablehlo.dynamic_pad %x, %one, %low, %high, %gaps
             : (tensor<?x3xT>, tensor<T>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?x?xT>""",
        padded,
    ),
    "dynamic_gather": (
        "2x?",
        """%p = stablehlo.dynamic_pad %x, %one, %two2, %two2, %none
             : (tensor<?x3xT>, tensor<T>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?x?xT>
           %i = stablehlo.constant dense<[[3], [-5]]> : tensor<2x1xi32>
           %z = stablehlo.constant dense<[1, 4]> : tensor<2xi32>
           %r = "stablehlo.dynamic_gather"(%p, %i, %z) {dimension_numbers = #stablehlo.gather<offset_dims = [1],
             collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>}
             : (tensor<?x?xT>, tensor<2x1xi32>, tensor<2xi32>) -> tensor<2x?xT>""",
        lambda x: np.pad(x.astype(object), 2, constant_values=x.dtype.type(1))[[3, 0], :4].astype(x.dtype),
    ),
    "real_dynamic_slice": (
        "?x?",
        """%start = stablehlo.constant dense<[0, 1]> : tensor<2xi32>
           %steps = stablehlo.constant dense<[2, 1]> : tensor<2xi32>
           %limit = stablehlo.concatenate %rows, %three, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
           %r = stablehlo.real_dynamic_slice %x, %start, %limit, %steps
             : (tensor<?x3xT>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?x?xT>""",
        lambda x: x[::2, 1:],
    ),
    "concatenate, reverse and transpose": (
        "3x?",
        """%b = stablehlo.reverse %x, dims = [0, 1] : tensor<?x3xT>
           %both = stablehlo.concatenate %x, %b, dim = 0 : (tensor<?x3xT>, tensor<?x3xT>) -> tensor<?x3xT>
           %r = stablehlo.transpose %both, dims = [1, 0] : (tensor<?x3xT>) -> tensor<3x?xT>""",
        lambda x: np.concatenate([x, x[::-1, ::-1]]).T,
    ),
}


def values(element: ElementType, rows: int, seed: int) -> Array:
    rng = np.random.default_rng(seed)
    if element.name == "pred":
        return rng.integers(0, 2, (rows, 3)).astype(bool)
    if element.is_complex:
        return (rng.normal(size=(rows, 3)) + 1j * rng.normal(size=(rows, 3))).astype(element.dtype)
    low = 0 if element.name.startswith("u") else -2
    return rng.integers(low, 2, (rows, 3)).astype(np.float32).astype(element.dtype)


def program_of(operation: str) -> str:
    """One program that applies an operation in every element type."""
    sizes, text, _ = OPERATIONS[operation]
    text = text.replace("%two2", "%pair").replace("%none", "%zeros")
    extra = """
  %pair = stablehlo.constant dense<2> : tensor<2xi32>
  %zeros = stablehlo.constant dense<0> : tensor<2xi32>
"""
    bodies = [
        re.sub(r"%(\w+)", rf"%\1_{name}", (ROWS + extra + text).replace("T>", f"{type_}>"))
        for name, type_ in ELEMENTS.items()
    ]
    inputs = ", ".join(f"%x_{name}: tensor<?x3x{type_}>" for name, type_ in ELEMENTS.items())
    outputs = ", ".join(f"tensor<{sizes}x{type_}>" for type_ in ELEMENTS.values())
    results = ", ".join(f"%r_{name}" for name in ELEMENTS)
    return f"func.func @main({inputs}) -> ({outputs}) {{\n{''.join(bodies)}\n  return {results} : {outputs}\n}}"


@pytest.mark.wide(3)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_element_type_at_three_sizes(operation: str) -> None:
    executable = compiled(program_of(operation), "keep")
    for rows in SIZES:
        arguments = [values(element_type(name), rows, rows + i) for i, name in enumerate(ELEMENTS)]
        for name, argument, got in zip(ELEMENTS, arguments, executable(*arguments), strict=True):
            expected = OPERATIONS[operation][2](argument)
            assert (got.dtype, got.shape) == (expected.dtype, expected.shape), name
            np.testing.assert_array_equal(got, expected, err_msg=f"{name} at {rows} rows")


def compiled(text: str, dynamic_shapes: str) -> Executable:
    return compile_program(read(text), options=CompileOptions(dynamic_shapes=dynamic_shapes))


MIXED = """
func.func @main(%x: tensor<?x6xf32>, %k: tensor<?x1x1xf32>, %u: tensor<?xui32>)
    -> (tensor<?x6xf32>, tensor<?x6xf32>, tensor<?x6xf32>, tensor<1x?x1xf32>, tensor<?xui32>, tensor<?x6xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %near = "stablehlo.reduce_window"(%x, %least) ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %m = stablehlo.maximum %a, %b : tensor<f32>
      stablehlo.return %m : tensor<f32>
  }) {window_dimensions = array<i64: 3, 2>, window_dilations = array<i64: 1, 2>,
      padding = dense<[[1, 1], [0, 2]]> : tensor<2x2xi64>} : (tensor<?x6xf32>, tensor<f32>) -> tensor<?x6xf32>
  %sums = "stablehlo.reduce_window"(%x, %zero) ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %m = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %m : tensor<f32>
  }) {window_dimensions = array<i64: 1, 6>, padding = dense<[[0, 0], [5, 0]]> : tensor<2x2xi64>}
    : (tensor<?x6xf32>, tensor<f32>) -> tensor<?x6xf32>
  %i = stablehlo.constant dense<2> : tensor<i32>
  %row = stablehlo.constant dense<7.0> : tensor<1x2xf32>
  %set = stablehlo.dynamic_update_slice %x, %row, %i, %i
    : (tensor<?x6xf32>, tensor<1x2xf32>, tensor<i32>, tensor<i32>) -> tensor<?x6xf32>
  %image = stablehlo.constant dense<[[[1.0], [2.0], [3.0], [4.0], [5.0]]]> : tensor<1x5x1xf32>
  %n = stablehlo.get_dimension_size %k, dim = 0 : (tensor<?x1x1xf32>) -> tensor<i32>
  %o = stablehlo.constant dense<1> : tensor<i32>
  %left = stablehlo.subtract %n, %o : tensor<i32>
  %l = stablehlo.reshape %left : (tensor<i32>) -> tensor<1x1xi32>
  %h = stablehlo.constant dense<0> : tensor<1x1xi32>
  %pads = stablehlo.concatenate %l, %h, dim = 1 : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x2xi32>
  %conv = "stablehlo.dynamic_conv"(%image, %k, %pads) {
      dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>,
      batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<1x5x1xf32>, tensor<?x1x1xf32>, tensor<1x2xi32>) -> tensor<1x?x1xf32>
  %us = stablehlo.get_dimension_size %u, dim = 0 : (tensor<?xui32>) -> tensor<i32>
  %count = stablehlo.convert %us : (tensor<i32>) -> tensor<ui32>
  %list = stablehlo.reshape %us : (tensor<i32>) -> tensor<1xi32>
  %iota = stablehlo.dynamic_iota %list, dim = 0 : (tensor<1xi32>) -> tensor<?xui32>
  %all = stablehlo.dynamic_broadcast_in_dim %count, %list, dims = [] : (tensor<ui32>, tensor<1xi32>) -> tensor<?xui32>
  %mod = stablehlo.remainder %u, %all : tensor<?xui32>
  %v = stablehlo.add %mod, %iota : tensor<?xui32>
  %start = stablehlo.constant dense<0> : tensor<i32>
  %loop:2 = stablehlo.while(%c = %start, %w = %x) : tensor<i32>, tensor<?x6xf32>
    cond {
      %more = stablehlo.compare LT, %c, %i, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %more : tensor<i1>
    } do {
      %next = stablehlo.add %c, %o : tensor<i32>
      %twice = stablehlo.add %w, %w : tensor<?x6xf32>
      stablehlo.return %next, %twice : tensor<i32>, tensor<?x6xf32>
    }
  return %near, %sums, %set, %conv, %v, %loop#1
    : tensor<?x6xf32>, tensor<?x6xf32>, tensor<?x6xf32>, tensor<1x?x1xf32>, tensor<?xui32>, tensor<?x6xf32>
}"""


def mixed(x: Array, k: Array, u: Array) -> list[Array]:
    """What MIXED computes."""
    wide = np.pad(x, [(1, 1), (0, 2)], constant_values=-np.inf)
    near = np.max([wide[i : i + len(x), j : j + 6] for i in range(3) for j in (0, 2)], axis=0)
    changed = x.copy()
    changed[min(2, len(x) - 1), 2:4] = 7
    conv = np.convolve(np.arange(1.0, 6.0), k[::-1, 0, 0])[:5][None, :, None]
    turned = u % len(u) + np.arange(len(u)) if len(u) else u
    return [near, np.cumsum(x, axis=1), changed, conv, turned, 4 * x]


@pytest.mark.wide(2)
@pytest.mark.parametrize("dynamic_shapes", ["keep", "specialize"])
def test_windows_convolutions_and_loops(dynamic_shapes: str) -> None:
    executable = compiled(MIXED, dynamic_shapes)
    rng = np.random.default_rng(0)
    for rows in (1, 2, 5):
        x = rng.normal(size=(rows, 6)).astype(np.float32)
        k = rng.normal(size=(rows, 1, 1)).astype(np.float32)
        u = rng.integers(0, 9, rows - 1).astype(np.uint32)
        for number, (got, expected) in enumerate(zip(executable(x, k, u), mixed(x, k, u), strict=True)):
            np.testing.assert_allclose(got, expected, rtol=1e-5, err_msg=f"result {number} at {rows}")


SIZED_BY_VALUES = """
func.func @main(%x: tensor<?xf32>, %sizes: tensor<2xi32>) -> tensor<?x?xf32> {
  %r = stablehlo.dynamic_reshape %x, %sizes : (tensor<?xf32>, tensor<2xi32>) -> tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}"""


@pytest.mark.parametrize("dynamic_shapes", ["keep", "specialize"])
def test_sizes_that_are_an_arguments_values(dynamic_shapes: str) -> None:
    session = compiled(SIZED_BY_VALUES, dynamic_shapes).load()
    for sizes in ([2, 3], [3, 2], [1, 6]):
        x = np.arange(6, dtype=np.float32)
        np.testing.assert_array_equal(session(x, np.array(sizes, np.int32)), x.reshape(sizes))
        on_device = session.call_device(session.put(x, "arg0"), np.array(sizes, np.int32))
        assert on_device.shape == tuple(sizes)


BITCASTS = """
func.func @main(%x: tensor<?x2xui16>, %y: tensor<3x?xf64>) -> (tensor<?xf32>, tensor<3x?x8xui8>) {
  %r = stablehlo.bitcast_convert %x : (tensor<?x2xui16>) -> tensor<?xf32>
  %s = stablehlo.bitcast_convert %y : (tensor<3x?xf64>) -> tensor<3x?x8xui8>
  return %r, %s : tensor<?xf32>, tensor<3x?x8xui8>
}"""
NARROW_BITCAST = """
func.func @main(%x: tensor<?xui8>) -> tensor<?x2xui4> {
  %r = stablehlo.bitcast_convert %x : (tensor<?xui8>) -> tensor<?x2xui4>
  return %r : tensor<?x2xui4>
}"""


@pytest.mark.parametrize("dynamic_shapes", ["keep", "specialize"])
def test_bitcasts_between_widths(dynamic_shapes: str) -> None:
    executable = compiled(BITCASTS, dynamic_shapes)
    for rows in (0, 1, 5):
        x, y = np.arange(2 * rows, dtype=np.uint16).reshape(rows, 2) * 771, np.arange(3.0 * rows).reshape(3, rows)
        joined, split = executable(x, y)
        np.testing.assert_array_equal(joined, x.view(np.float32)[:, 0])
        np.testing.assert_array_equal(split, y.view(np.uint8).reshape(3, rows, 8))


def test_what_a_pass_cannot_write_is_compiled_for_each_size() -> None:
    got = compiled(NARROW_BITCAST, "auto")(np.array([0x21, 0xF3], np.uint8))
    np.testing.assert_array_equal(got.astype(int), [[1, 2], [3, 15]])


UNEQUAL = """
func.func @main(%x: tensor<?x?xf32>, %u: tensor<?x?xf32>, %b: tensor<?x?xui8>, %v: tensor<?xf32>)
    -> (tensor<?x?xf32>, tensor<?x?xui8>, tensor<?xf32>, tensor<?x?x?xf32>) {
  %i = stablehlo.constant dense<1> : tensor<i32>
  %p:3 = stablehlo.optimization_barrier %x, %b, %v : tensor<?x?xf32>, tensor<?x?xui8>, tensor<?xf32>
  %r = stablehlo.dynamic_update_slice %p#0, %u, %i, %i
    : (tensor<?x?xf32>, tensor<?x?xf32>, tensor<i32>, tensor<i32>) -> tensor<?x?xf32>
  %d = stablehlo.dot_general %p#2, %x, contracting_dims = [0] x [0] : (tensor<?xf32>, tensor<?x?xf32>) -> tensor<?xf32>
  %o = stablehlo.dot_general %u, %v, contracting_dims = [] x [] : (tensor<?x?xf32>, tensor<?xf32>) -> tensor<?x?x?xf32>
  return %r, %p#1, %d, %o : tensor<?x?xf32>, tensor<?x?xui8>, tensor<?xf32>, tensor<?x?x?xf32>
}"""


def test_arguments_of_one_operation_that_have_sizes_of_their_own() -> None:
    session = compiled(UNEQUAL, "keep").load()
    rng = np.random.default_rng(0)
    for rows, columns in ((3, 4), (2, 2)):
        x, v = (rng.normal(size=size).astype(np.float32) for size in ((rows, columns), rows))
        u, b = np.full((1, columns - 1), 7, np.float32), np.arange(5, dtype=np.uint8)[:, None]
        updated_, passed, product, outer = session(x, u, b, v)
        expected = x.copy()
        expected[1, 1:] = 7
        np.testing.assert_array_equal(updated_, expected)
        np.testing.assert_array_equal(passed, b)
        np.testing.assert_allclose(product, v @ x, rtol=1e-5)
        np.testing.assert_allclose(outer, np.multiply.outer(u, v), rtol=1e-6)


# Sizes of type index come from outside and go there, and StableHLO's refinement does not know the dialect shape.
INDICES = """
func.func @main(%x: tensor<?xf32>, %s: tensor<2xindex>, %y: tensor<?x?xf32>) -> (tensor<?x?xf32>, tensor<2xindex>) {
  %r = stablehlo.dynamic_reshape %x, %s : (tensor<?xf32>, tensor<2xindex>) -> tensor<?x?xf32>
  %t = shape.shape_of %y : tensor<?x?xf32> -> tensor<2xindex>
  %b = stablehlo.dynamic_broadcast_in_dim %r, %t, dims = [0, 1] : (tensor<?x?xf32>, tensor<2xindex>) -> tensor<?x?xf32>
  %a = stablehlo.add %b, %y : tensor<?x?xf32>
  return %a, %t : tensor<?x?xf32>, tensor<2xindex>
}"""


@pytest.mark.parametrize("dynamic_shapes", ["keep", "specialize"])
def test_sizes_of_type_index(dynamic_shapes: str) -> None:
    session = compiled(INDICES, dynamic_shapes).load()
    for rows, columns in ((2, 3), (1, 4)):
        x, y = np.arange(rows * columns, dtype=np.float32), np.ones((rows, columns), np.float32)
        sums, sizes = session(x, np.array([rows, columns]), y)
        np.testing.assert_array_equal(sums, x.reshape(rows, columns) + 1)
        np.testing.assert_array_equal(sizes, [rows, columns])


PAD_OF_NOTHING = """
func.func @main(%x: tensor<?x0xf32>) -> tensor<?x3xf32> {
  %v = stablehlo.constant dense<5.0> : tensor<f32>
  %r = stablehlo.pad %x, %v, low = [0, 1], high = [0, 2], interior = [0, 1]
    : (tensor<?x0xf32>, tensor<f32>) -> tensor<?x3xf32>
  return %r : tensor<?x3xf32>
}"""


def test_a_pad_of_nothing() -> None:
    np.testing.assert_array_equal(compiled(PAD_OF_NOTHING, "keep")(np.ones((2, 0), np.float32)), np.full((2, 3), 5))


BOUNDED = """
func.func @main(%x: tensor<?x2xf32, #stablehlo.bounds<4, ?>>) -> tensor<?x2xf32, #stablehlo.bounds<4, ?>> {
  %r = stablehlo.add %x, %x : tensor<?x2xf32, #stablehlo.bounds<4, ?>>
  return %r : tensor<?x2xf32, #stablehlo.bounds<4, ?>>
}"""


@pytest.mark.parametrize("dynamic_shapes", ["keep", "specialize"])
def test_bounds_hold_for_arguments(dynamic_shapes: str) -> None:
    session = compiled(BOUNDED, dynamic_shapes).load()
    assert str(session.signature) == "(arg0: f32[<=4,2]) -> f32[<=4,2]"
    for rows in (0, 3, 4):
        np.testing.assert_array_equal(session(np.ones((rows, 2), np.float32)), np.full((rows, 2), 2))
    with pytest.raises(
        ArgumentError, match=r"argument 'arg0': expected f32\[<=4,2\], got float32 array of shape \(5, 2\)"
    ):
        session(np.ones((5, 2), np.float32))


ASSERTING = """
func.func @main(%x: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %m = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x?xf32>) -> tensor<i32>
  %n = stablehlo.get_dimension_size %x, dim = 1 : (tensor<?x?xf32>) -> tensor<i32>
  %ok = stablehlo.compare LE, %m, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
  stablehlo.custom_call @shape_assertion(%ok, %m, %n) {api_version = 2 : i32, has_side_effect = true,
    error_message = "{0} rows are more than {1}"} : (tensor<i1>, tensor<i32>, tensor<i32>) -> ()
  return %x : tensor<?x?xf32>
}"""


@pytest.mark.parametrize(
    ("dynamic_shapes", "message"),
    [
        ("keep", r"\{dimension 0 of arg0\} rows are more than \{dimension 1 of arg0\}\n.*arg0 \[3, 2\]"),
        ("specialize", "3 rows are more than 2"),
    ],
)
def test_a_violated_assertion_is_an_error_with_its_message(dynamic_shapes: str, message: str) -> None:
    session = compiled(ASSERTING, dynamic_shapes).load()
    assert session(np.ones((2, 3), np.float32)).shape == (2, 3)
    with pytest.raises(ArgumentError, match=message):
        session(np.ones((3, 2), np.float32))


SORT = """
func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
  %r = "stablehlo.sort"(%x) ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %less = stablehlo.compare LT, %a, %b, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %less : tensor<i1>
  }) {is_stable = true} : (tensor<?xf32>) -> tensor<?xf32>
  return %r : tensor<?xf32>
}"""


def test_what_the_target_refuses_is_compiled_for_each_size() -> None:
    executable = hloforge.compile(SORT, cache=False)
    for size in SIZES:
        x = np.random.default_rng(size).normal(size=size).astype(np.float32)
        np.testing.assert_array_equal(executable(x), np.sort(x))
    with pytest.raises(OptionError, match=r"a vmfb holds one form.*\n.*sort is not supported"):
        executable.save("never.vmfb")
    with pytest.raises(hloforge.UnsupportedError, match=r"stablehlo\.sort"):
        hloforge.compile(SORT, dynamic_shapes="keep", cache=False)


FACTORS = """
func.func @main(%a: tensor<?x2x2xf32>) -> (tensor<?x2x2xf32>, tensor<?x2xi32>) {
  %n = stablehlo.get_dimension_size %a, dim = 0 : (tensor<?x2x2xf32>) -> tensor<i32>
  %batch = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
  %two = stablehlo.constant dense<2> : tensor<1xi32>
  %pivots = stablehlo.concatenate %batch, %two, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %dims = stablehlo.concatenate %pivots, %two, dim = 0 : (tensor<2xi32>, tensor<1xi32>) -> tensor<3xi32>
  %r:3 = stablehlo.custom_call @lapack_sgetrf_ffi(%a, %dims, %pivots, %batch) {
    mhlo.backend_config = {}, indices_of_shape_operands = dense<[1, 2, 3]> : tensor<3xi64>,
    output_operand_aliases = [#stablehlo.output_operand_alias<
      output_tuple_indices = [0], operand_index = 0, operand_tuple_indices = []>]
  } : (tensor<?x2x2xf32>, tensor<3xi32>, tensor<2xi32>, tensor<1xi32>)
    -> (tensor<?x2x2xf32>, tensor<?x2xi32>, tensor<?xi32>)
  return %r#0, %r#1 : tensor<?x2x2xf32>, tensor<?x2xi32>
}"""


def test_a_library_call_says_by_which_operands_its_results_have_sizes() -> None:
    session = compiled(FACTORS, "auto").load()
    for size in (1, 3):
        factors, pivots = session(np.tile(np.float32([[1, 2], [4, 4]]), (size, 1, 1)))
        np.testing.assert_array_equal(factors, np.tile(np.float32([[4, 4], [0.25, 1]]), (size, 1, 1)))
        np.testing.assert_array_equal(pivots, np.tile([2, 2], (size, 1)))


SORT_OF_A_PART = """
func.func @main(%x: tensor<5xf32>, %n: tensor<i32>) -> tensor<?xf32, #stablehlo.bounds<5>> {
  %part = stablehlo.set_dimension_size %x, %n, dim = 0
    : (tensor<5xf32>, tensor<i32>) -> tensor<?xf32, #stablehlo.bounds<5>>
  %r = "stablehlo.sort"(%part) ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %less = stablehlo.compare LT, %a, %b, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %less : tensor<i1>
  }) {is_stable = true} : (tensor<?xf32, #stablehlo.bounds<5>>) -> tensor<?xf32, #stablehlo.bounds<5>>
  return %r : tensor<?xf32, #stablehlo.bounds<5>>
}"""


def test_a_dimensions_size_that_is_set_to_an_arguments_value() -> None:
    session = compiled(SORT_OF_A_PART, "auto").load()
    x = np.array([4, 1, 5, 3, 2], np.float32)
    for size in (0, 3, 5):
        np.testing.assert_array_equal(session(x, np.int32(size)), np.sort(x[:size]))


def test_sizes_named_when_compiling() -> None:
    executable = hloforge.compile(SORT, shapes={"arg0": (3,)}, cache=False)
    assert str(executable.manifest.signature) == "(arg0: f32[3]) -> f32[3]"
    np.testing.assert_array_equal(executable(np.array([3, 1, 2], np.float32)), [1, 2, 3])
    with pytest.raises(ArgumentError, match=r"expected f32\[3\]"):
        executable(np.ones(4, np.float32))
    for shapes in ({"x": (3,)}, {"arg0": (3, 1)}):
        with pytest.raises(ArgumentError, match=r"no parameter is called 'x'|expected f32\[\?\], got f32\[3,1\]"):
            hloforge.compile(SORT, shapes=shapes, cache=False)


def test_one_compilation_serves_a_size(monkeypatch: pytest.MonkeyPatch) -> None:
    from hloforge.runtime.compile import specialize

    seen: list[Any] = []
    original = specialize.specialize
    monkeypatch.setattr(specialize, "specialize", lambda *given: seen.append(given) or original(*given))
    monkeypatch.setattr(specialize, "KEPT", 2)
    session = compiled(BOUNDED, "specialize").load()
    for rows in (1, 2, 1, 2, 3, 2, 1):
        session(np.ones((rows, 2), np.float32))
    assert len(seen) == 4


MEETING = """
func.func @main(%x: tensor<?x4xf32>, %y: tensor<?x4xf32>, %u: tensor<?xui8>, %v: tensor<?xui8>)
    -> (tensor<?x4xf32>, tensor<?xi1>, tensor<4x4xf32>) {
  %s = stablehlo.sine %y : tensor<?x4xf32>
  %r = stablehlo.add %x, %s : tensor<?x4xf32>
  %c = stablehlo.compare EQ, %u, %v : (tensor<?xui8>, tensor<?xui8>) -> tensor<?xi1>
  %d = stablehlo.dot_general %x, %y, contracting_dims = [0] x [0]
    : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<4x4xf32>
  return %r, %c, %d : tensor<?x4xf32>, tensor<?xi1>, tensor<4x4xf32>
}"""


@pytest.mark.parametrize(
    ("dynamic_shapes", "message"),
    [("keep", "dimension 0 of arg{0} and dimension 0 of arg{1} differ"), ("specialize", "the program does not take")],
)
def test_arguments_that_meet_have_equal_sizes(dynamic_shapes: str, message: str) -> None:
    session = compiled(MEETING, dynamic_shapes).load()
    for sizes, pair in (((2, 2, 3, 3), ()), ((2, 3, 3, 3), (0, 1)), ((2, 2, 3, 4), (2, 3))):
        m, n, i, j = sizes
        given = np.ones((m, 4), np.float32), np.ones((n, 4), np.float32), np.ones(i, np.uint8), np.ones(j, np.uint8)
        if not pair:
            assert session(*given)[1].all()
            continue
        with pytest.raises(ArgumentError, match=message.format(*pair)):
            session(*given)
