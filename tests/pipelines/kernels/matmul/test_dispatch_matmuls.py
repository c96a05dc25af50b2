"""dispatch-matmuls: products by hand-made tiles have numpy's numbers, in every arrangement of their factors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

import hloforge
from hloforge import Builder, Value, ops
from hloforge.dialect.operations import operations
from hloforge.dialect.program import Program
from hloforge.importers.reader import read
from hloforge.pipelines.framework.machine import AVX2, Machine
from hloforge.pipelines.named import lower
from hloforge.pipelines.normalize.normalization import normalize
from hloforge.runtime.reference.correctness import judge
from tests.engines import shared_reference
from tests.pipelines.widths import WIDTHS, compiled_for

RANDOM = np.random.default_rng(0)
Array = np.ndarray[Any, Any]

# Letters of the left factor, the right one and the result, and the sizes.
FORMS = [
    ("mk,kn->mn", {"m": 64, "k": 784, "n": 1024}, np.float32),
    ("mk,kn->mn", {"m": 97, "k": 576, "n": 272}, np.float32),  # a prime number of rows, 17 strips of columns
    ("mk,kn->mn", {"m": 700, "k": 512, "n": 256}, np.float32),  # several groups of rows
    ("mk,kn->mn", {"m": 20, "k": 520, "n": 136}, np.float64),
    ("mk,kn->mn", {"m": 19, "k": 521, "n": 1009}, np.float32),  # primes alone
    ("mk,nk->mn", {"m": 17, "k": 1031, "n": 171}, np.float64),
    ("mk,nk->mn", {"m": 5, "k": 300, "n": 600}, np.float32),  # few rows: IREE's, where vectors are narrow
    ("bmk,bnk->bmn", {"b": 9, "m": 27, "k": 83, "n": 27}, np.float32),  # small ones that no tile divides
    ("mk,kn->mn", {"m": 48, "k": 517, "n": 500}, ml_dtypes.bfloat16),
    ("bmk,bkn->bmn", {"b": 3, "m": 33, "k": 384, "n": 352}, np.float32),
    ("kbm,kbn->bmn", {"b": 2, "m": 18, "k": 512, "n": 272}, np.float32),
    ("mk,nk->mn", {"m": 64, "k": 512, "n": 256}, np.float32),  # columns that lie in a row each
    ("mkj,nbkj->mnb", {"m": 16, "k": 8, "j": 64, "n": 64, "b": 4}, np.float16),
    ("mkj,kjpn->mpn", {"m": 16, "k": 8, "j": 64, "p": 4, "n": 80}, np.float32),
    ("mk,kn->mn", {"m": 48, "k": 512, "n": 512}, ml_dtypes.bfloat16),
    ("mk,kn->mn", {"m": 48, "k": 512, "n": 512}, np.float16),
    ("mk,kn->mn", {"m": 64, "k": 1024, "n": 96}, np.float32),  # columns for strips of middling width
]


def factors(form: str, sizes: dict[str, int], dtype: Any) -> list[Array]:
    letters = form.partition("->")[0].split(",")
    return [RANDOM.standard_normal([sizes[d] for d in side]).astype(dtype) for side in letters]


def product(form: str, lhs: Value, rhs: Value) -> Value:
    (left, right), result = form.partition("->")[0].split(","), form.partition("->")[2]
    batch = [d for d in result if d in left and d in right]
    summed = [d for d in left if d not in result]
    numbers = ops.DotDimensionNumbers(
        [left.index(d) for d in summed],
        [right.index(d) for d in summed],
        [left.index(d) for d in batch],
        [right.index(d) for d in batch],
    )
    return ops.dot_general(lhs, rhs, numbers)


def program_of(forms: Sequence[str], arrays: Sequence[Array]) -> Program:
    with Builder("products") as builder:
        values = [
            builder.parameter(n, hloforge.Shape.array(array.dtype, *array.shape), f"x{n}")
            for n, array in enumerate(arrays)
        ]
        pairs = zip(values[::2], values[1::2], strict=True)
        return builder.build(tuple(product(form, *pair) for form, pair in zip(forms, pairs, strict=True)))


def dispatches(program: Program, machine: Machine = AVX2) -> tuple[int, int]:
    """How many products became dispatches, and how many are left."""
    copy = program.clone()
    lower(copy.module, machine=machine)
    names = [op.name for op in operations(copy.module)]
    return names.count("flow.dispatch"), names.count("stablehlo.dot_general")


@pytest.mark.parametrize("machine", WIDTHS)
def test_products_of_every_form_are_right(machine: Machine) -> None:
    arrays = [array for form in FORMS for array in factors(*form)]
    program = program_of([form for form, _, _ in FORMS], arrays)
    left = int(machine == AVX2)
    assert dispatches(program, machine) == (len(FORMS) - left, left)
    executable = compiled_for(program, machine)
    for device in ("local-sync", "local-task"):
        results = executable.load(device=device)(*arrays)
        for (form, sizes, dtype), lhs, rhs, got in zip(FORMS, arrays[::2], arrays[1::2], results, strict=True):
            wide = lhs.astype(np.float64), rhs.astype(np.float64)
            want = np.einsum(form, *wide, optimize=True)
            # Rounding errors of a sum grow like the root of its length; results of 16 bits are rounded once more.
            terms = np.prod([size for name, size in sizes.items() if name not in form.partition("->")[2]])
            sums = np.finfo(np.float64 if dtype is np.float64 else np.float32).eps * np.sqrt(terms)
            bound = sums * np.einsum(form, *map(np.abs, wide), optimize=True)
            if np.dtype(dtype).itemsize == 2:
                bound += float(ml_dtypes.finfo(dtype).eps) * np.abs(want)
            assert np.all(np.abs(got.astype(np.float64) - want) <= bound), form


def test_equal_products_share_their_code() -> None:
    sizes = {"m": 64, "k": 784, "n": 1024}
    forms = ["mk,kn->mn", "mk,kn->mn", "km,kn->mn", "mk,nk->mn"]
    arrays = [array for form in forms for array in factors(form, sizes, np.float32)]
    program = program_of(forms, arrays)
    copy = program.clone()
    lower(copy.module)
    names = [op.name for op in operations(copy.module)]
    # A transposed left factor is laid out before; a transposed right one is read by other code.
    assert (names.count("flow.dispatch"), names.count("flow.executable")) == (4, 2)
    for form, lhs, rhs, got in zip(
        forms, arrays[::2], arrays[1::2], program.compile("cpu").load()(*arrays), strict=True
    ):
        np.testing.assert_allclose(got, np.einsum(form, lhs, rhs, optimize=True), rtol=1e-3, atol=1e-4)


def test_infinities_and_nan_reach_their_rows_alone() -> None:
    # The last strip of the columns is read with columns of the one before.
    lhs, rhs = (np.ones(dims, np.float32) for dims in ((32, 521), (521, 501)))
    lhs[3, 7], lhs[5, 100], rhs[9, 30], rhs[520, 490] = np.inf, np.nan, -np.inf, np.inf
    (got,) = program_of(["mk,kn->mn"], [lhs, rhs]).compile("cpu").load()(lhs, rhs)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(got, lhs @ rhs)


@pytest.mark.parametrize(
    ("form", "sizes", "dtype"),
    [
        ("mk,kn->mn", {"m": 256, "k": 64, "n": 256}, np.float32),  # the right factor fits a cache, the sums are short
        ("mk,kn->mn", {"m": 64, "k": 1024, "n": 1024}, np.int32),
    ],
)
def test_products_that_iree_computes_as_well_stay_its_own(form: str, sizes: dict[str, int], dtype: Any) -> None:
    assert dispatches(program_of([form], factors(form, sizes, dtype))) == (0, 1)


def test_products_in_loops_and_of_their_results_are_right() -> None:
    text = """func.func @main(%x: tensor<32x512xf32>, %w: tensor<512x512xf32>) -> tensor<32x512xf32> {
      %start = stablehlo.constant dense<0> : tensor<i32>
      %one = stablehlo.constant dense<1> : tensor<i32>
      %end = stablehlo.constant dense<4> : tensor<i32>
      %last:2 = stablehlo.while(%i = %start, %v = %x) : tensor<i32>, tensor<32x512xf32>
       cond {
        %more = stablehlo.compare LT, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %more : tensor<i1>
      } do {
        %next = stablehlo.add %i, %one : tensor<i32>
        %y = stablehlo.dot %v, %w : (tensor<32x512xf32>, tensor<512x512xf32>) -> tensor<32x512xf32>
        %t = stablehlo.tanh %y : tensor<32x512xf32>
        stablehlo.return %next, %t : tensor<i32>, tensor<32x512xf32>
      }
      return %last#1 : tensor<32x512xf32>
    }"""
    x, w = RANDOM.standard_normal((32, 512)) / 4, RANDOM.standard_normal((512, 512)) / 16
    program = hloforge.read(text)
    assert dispatches(program)[0] == 1
    got = hloforge.compile(program)(*(array.astype(np.float32) for array in (x, w)))
    want = x
    for _ in range(4):
        want = np.tanh(want @ w)
    np.testing.assert_allclose(got, want, atol=2e-5)


def test_factors_from_before_loops_are_laid_out_once_there() -> None:
    # A whole factor, one whose columns lie in rows, one of 16 bits, one of a batch, one without whole strips, one that
    # each turn of an inner loop reads, a kernel of windows, and one that is made in the loop.
    text = """func.func @main(%x: tensor<48x64xf32>, %w: tensor<64x96xf32>, %v: tensor<64x96xf32>,
        %h: tensor<64x64xbf16>, %b: tensor<3x64x64xf32>, %odd: tensor<64x250xf32>, %inner: tensor<64x64xf32>,
        %k: tensor<3x3x32x32xf32>) -> tensor<48x64xf32> {
      %start = stablehlo.constant dense<0> : tensor<i32>
      %one = stablehlo.constant dense<1> : tensor<i32>
      %end = stablehlo.constant dense<3> : tensor<i32>
      %zero = stablehlo.constant dense<0.0> : tensor<f32>
      %last:2 = stablehlo.while(%i = %start, %a = %x) : tensor<i32>, tensor<48x64xf32>
       cond {
        %more = stablehlo.compare LT, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %more : tensor<i1>
      } do {
        %next = stablehlo.add %i, %one : tensor<i32>
        %0 = stablehlo.dot_general %a, %w, contracting_dims = [1] x [0]
            : (tensor<48x64xf32>, tensor<64x96xf32>) -> tensor<48x96xf32>
        %1 = stablehlo.dot_general %0, %v, contracting_dims = [1] x [1]
            : (tensor<48x96xf32>, tensor<64x96xf32>) -> tensor<48x64xf32>
        %2 = stablehlo.tanh %1 : tensor<48x64xf32>
        %3 = stablehlo.dot_general %2, %h, contracting_dims = [1] x [0]
            : (tensor<48x64xf32>, tensor<64x64xbf16>) -> tensor<48x64xf32>
        %4 = stablehlo.reshape %3 : (tensor<48x64xf32>) -> tensor<3x16x64xf32>
        %5 = stablehlo.dot_general %4, %b, batching_dims = [0] x [0], contracting_dims = [2] x [1]
            : (tensor<3x16x64xf32>, tensor<3x64x64xf32>) -> tensor<3x16x64xf32>
        %6 = stablehlo.reshape %5 : (tensor<3x16x64xf32>) -> tensor<48x64xf32>
        %7 = stablehlo.dot_general %6, %odd, contracting_dims = [1] x [0]
            : (tensor<48x64xf32>, tensor<64x250xf32>) -> tensor<48x250xf32>
        %8 = stablehlo.slice %7 [0:48, 186:250] : (tensor<48x250xf32>) -> tensor<48x64xf32>
        %9 = stablehlo.tanh %8 : tensor<48x64xf32>
        %10:2 = stablehlo.while(%j = %i, %c = %9) : tensor<i32>, tensor<48x64xf32>
         cond {
          %more = stablehlo.compare LT, %j, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
          stablehlo.return %more : tensor<i1>
        } do {
          %after = stablehlo.add %j, %one : tensor<i32>
          %d = stablehlo.dot_general %c, %inner, contracting_dims = [1] x [0]
              : (tensor<48x64xf32>, tensor<64x64xf32>) -> tensor<48x64xf32>
          stablehlo.return %after, %d : tensor<i32>, tensor<48x64xf32>
        }
        %11 = stablehlo.reshape %10#1 : (tensor<48x64xf32>) -> tensor<1x8x12x32xf32>
        %12 = stablehlo.convolution(%11, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
            window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
            : (tensor<1x8x12x32xf32>, tensor<3x3x32x32xf32>) -> tensor<1x8x12x32xf32>
        %13 = stablehlo.reshape %12 : (tensor<1x8x12x32xf32>) -> tensor<48x64xf32>
        %14 = stablehlo.tanh %13 : tensor<48x64xf32>
        %made = stablehlo.dot_general %14, %14, contracting_dims = [0] x [0]
            : (tensor<48x64xf32>, tensor<48x64xf32>) -> tensor<64x64xf32>
        %15 = stablehlo.dot_general %14, %made, contracting_dims = [1] x [0]
            : (tensor<48x64xf32>, tensor<64x64xf32>) -> tensor<48x64xf32>
        %16 = stablehlo.tanh %15 : tensor<48x64xf32>
        stablehlo.return %next, %16 : tensor<i32>, tensor<48x64xf32>
      }
      return %last#1 : tensor<48x64xf32>
    }"""
    program = hloforge.read(text)
    assert dispatches(program)[0] == 7
    copy = program.clone()
    lower(copy.module)
    inside = [op.name for loop in operations(copy.module, {"stablehlo.while"}) for op in operations(loop)]
    assert "stablehlo.transpose" not in inside
    shapes = [(48, 64), (64, 96), (64, 96), (64, 64), (3, 64, 64), (64, 250), (64, 64), (3, 3, 32, 32)]
    arrays = [(RANDOM.standard_normal(shape) / 8).astype(np.float32) for shape in shapes]
    arrays[3] = arrays[3].astype(ml_dtypes.bfloat16)
    executable = hloforge.compile(program)
    for device in ("local-sync", "local-task"):
        report = judge(shared_reference("xla"), program, arrays, executable.load(device=device)(*arrays))
        assert report.agrees, report.text()


def test_large_products_run_on_threads() -> None:
    program = program_of(["mk,kn->mn"], factors("mk,kn->mn", {"m": 256, "k": 1024, "n": 1024}, np.float32))
    assert program.compile("cpu").load().device == "local-task"


# Image, kernel, HLO's names of their dimensions, element type, and whether the product reads the windows in the image.
# Of each, how many loops of our own compute it.
CONVOLUTIONS: list[tuple[tuple[int, ...], tuple[int, ...], str, str, dict[str, Any], int]] = [
    ((1, 14, 14, 64), (3, 3, 64, 32), "b01f_01io->b01f", "f32", {"padding": [(1, 1), (1, 1)]}, 1),
    ((2, 15, 9, 32), (3, 2, 32, 48), "b01f_01io->b01f", "f32", {"strides": (2, 1), "padding": [(2, 0), (0, 1)]}, 1),
    ((1, 9, 9, 32), (3, 3, 32, 25), "b01f_01io->b01f", "f32", {"padding": [(1, 1), (1, 1)]}, 1),  # no whole strips
    ((1, 40, 96), (5, 96, 16), "b0f_0io->b0f", "f32", {"padding": [(4, 4)], "rhs_dilation": (2,)}, 1),
    ((1, 6, 7, 8, 32), (2, 3, 1, 32, 16), "b012f_012io->b012f", "f32", {"strides": (1, 2, 2)}, 1),
    ((1, 64, 16, 16), (32, 64, 1, 1), "bf01_oi01->bf01", "f32", {"strides": (2, 2)}, 1),
    (
        (1, 9, 9, 32),
        (3, 3, 32, 16),
        "b01f_01io->b01f",
        "f32",
        {"padding": [(-1, 2), (1, 1)], "lhs_dilation": (2, 2)},
        3,  # of the phases of its image; the fourth is small
    ),
    ((1, 4, 8, 512), (1, 1, 512, 256), "b01f_01io->b01f", "f32", {}, 1),
    ((1, 12, 12, 64), (3, 3, 64, 16), "b01f_01io->b01f", "f32", {"window_reversal": (True, True)}, 0),
    ((1, 14, 14, 24), (3, 3, 24, 32), "b01f_01io->b01f", "f32", {}, 1),  # few features: rows of the window are laid out
    ((1, 9, 9, 32), (3, 3, 32, 16), "b01f_01io->b01f", "bf16", {"padding": [(1, 1), (1, 1)]}, 1),
]


def convolved(*cases: tuple[Any, ...]) -> tuple[Program, list[Array]]:
    arrays: list[Array] = []
    random = np.random.default_rng(0)
    with Builder("convolutions") as builder:
        results = []
        for image, kernel, names, element, window, _ in cases:
            pair = [random.standard_normal(dims).astype(element.replace("f", "float")) for dims in (image, kernel)]
            operands = [
                builder.parameter(len(arrays) + n, hloforge.Shape.array(element, *array.shape), f"x{len(arrays) + n}")
                for n, array in enumerate(pair)
            ]
            arrays += pair
            space = len(image) - 2
            settings = {"strides": (1,) * space, "padding": [(0, 0)] * space} | window
            strides, padding = settings.pop("strides"), settings.pop("padding")
            results.append(
                ops.conv_with_general_padding(*operands, strides, padding, dimension_numbers=names, **settings)
            )
        return builder.build(tuple(results)), arrays


@pytest.mark.parametrize("machine", WIDTHS)
def test_convolutions_read_their_windows_in_the_image(machine: Machine) -> None:
    program, arrays = convolved(*CONVOLUTIONS)
    found = compiled_for(program, machine).load()(*arrays)
    report = judge(shared_reference("xla"), program, arrays, found, tolerance=1e-4)
    assert report.agrees, report.text()


def test_convolutions_that_gain_have_loops_of_their_own() -> None:
    found = [dispatches(convolved(case)[0])[0] for case in CONVOLUTIONS]
    assert found == [loops for *_, loops in CONVOLUTIONS]


def test_the_factors_of_layers_are_read_where_they_lie() -> None:
    """A loop over layers: factors by rows and columns, and numbers beyond the last layer, which mean that."""
    layers, depth = 3, 160
    up, down = (RANDOM.standard_normal((layers, depth, depth)).astype(np.float32) / 12 for _ in range(2))
    wide = up.astype(ml_dtypes.bfloat16)
    x = RANDOM.standard_normal((300, depth)).astype(np.float32)

    def looped(x: Any, up: Any, down: Any, wide: Any) -> Any:
        def turn(number: Any, x: Any) -> Any:
            first = jnp.tanh(x @ jax.lax.dynamic_index_in_dim(up, number, keepdims=False))
            second = first @ jax.lax.dynamic_index_in_dim(down, number + 1, keepdims=False).T
            third = jax.lax.dynamic_index_in_dim(wide, number - 2, keepdims=False)
            return x + second + jnp.dot(x, third, preferred_element_type=x.dtype)

        return jax.lax.fori_loop(0, layers, turn, x)

    text = str(jax.jit(looped).lower(x, up, down, wide).as_text())
    program = read(text)
    normalize(program.module)
    lower(program.module)
    assert not operations(program.module, ["stablehlo.dot_general"])
    assert not operations(program.module, ["stablehlo.dynamic_slice"])
    want = x.astype(np.float64)
    for number in range(layers):
        last, before = min(number + 1, layers - 1), max(number - 2, -layers) % layers
        want = want + np.tanh(want @ up[number]) @ down[last].T + want @ wide[before].astype(np.float64)
    executable = hloforge.compile(text, cache=False)
    for device in ("local-sync", "local-task"):
        found = executable.load(device=device)(x, up, down, wide)
        np.testing.assert_allclose(found, want, rtol=2e-3, atol=2e-3)
