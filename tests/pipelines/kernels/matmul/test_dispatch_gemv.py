"""dispatch-gemv: products of a few rows have numpy's numbers, however the large factor lies in memory."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import hloforge
from hloforge import Builder, Value, ops
from hloforge.dialect.operations import operations
from hloforge.dialect.program import Program
from hloforge.pipelines.named import lower

RANDOM = np.random.default_rng(0)
Array = np.ndarray[Any, Any]

F32, F64, F16, BF16 = np.float32, np.float64, np.float16, ml_dtypes.bfloat16
# Letters of the left factor, the right one and the result, the sizes, and the element type.
FORMS: list[tuple[str, dict[str, int], Any]] = [
    ("mk,kn->mn", {"m": 1, "k": 130, "n": 384}, F32),
    ("mk,kn->mn", {"m": 15, "k": 257, "n": 203}, F32),  # no whole vectors, and no divisor but 7 and 29
    ("mk,kn->mn", {"m": 6, "k": 77, "n": 1000}, F64),
    ("mk,nk->mn", {"m": 1, "k": 768, "n": 50}, F32),
    ("mk,nk->mn", {"m": 3, "k": 201, "n": 211}, F32),  # a prime number of columns
    ("mk,nk->mn", {"m": 2, "k": 67, "n": 300}, F64),
    ("mk,k->m", {"m": 301, "k": 300}, F32),
    ("km,kn->mn", {"m": 600, "k": 70, "n": 5}, F32),  # the left factor is the large one
    ("mk,kn->mn", {"m": 200, "k": 300, "n": 2}, F32),
    ("mk,nk->mn", {"m": 3, "k": 9001, "n": 3}, F32),
    ("bmk,bkn->bmn", {"b": 3, "m": 4, "k": 96, "n": 80}, F32),
    ("bmk,nbk->bmn", {"b": 12, "m": 1, "k": 64, "n": 90}, F32),  # a cache of keys, and one of values
    ("bmk,kbn->bmn", {"b": 12, "m": 1, "k": 90, "n": 64}, F32),
    ("abmk,bnak->abmn", {"a": 2, "b": 3, "m": 2, "k": 50, "n": 80}, F32),  # a batch that is broken up: IREE's
    ("pmqkj,kjrs->pmqrs", {"p": 1, "m": 2, "q": 3, "k": 8, "j": 20, "r": 10, "s": 12}, F32),
    ("mjk,kjn->mn", {"m": 4, "k": 16, "j": 10, "n": 120}, F32),  # summed in another order
    ("mk,kn->mn", {"m": 5, "k": 256, "n": 300}, BF16),
    ("mk,nk->mn", {"m": 1, "k": 200, "n": 301}, BF16),
    ("mk,kn->mn", {"m": 2, "k": 256, "n": 300}, F16),
    ("mk,nk->mn", {"m": 3, "k": 200, "n": 301}, F16),
]
LEFT_TO_IREE = 1


def factors(form: str, sizes: dict[str, int], dtype: Any) -> list[Array]:
    letters = form.partition("->")[0].split(",")
    return [RANDOM.standard_normal([sizes[d] for d in side]).astype(dtype) for side in letters]


def product(form: str, lhs: Value, rhs: Value, result_type: str | None = None) -> Value:
    (left, right), result = form.partition("->")[0].split(","), form.partition("->")[2]
    batch = [d for d in result if d in left and d in right]
    summed = [d for d in left if d not in result]
    numbers = ops.DotDimensionNumbers(
        [left.index(d) for d in summed],
        [right.index(d) for d in summed],
        [left.index(d) for d in batch],
        [right.index(d) for d in batch],
    )
    return ops.dot_general(lhs, rhs, numbers, preferred_element_type=result_type)


def program_of(*forms: str, arrays: list[Array]) -> Program:
    with Builder("products") as builder:
        values = [
            builder.parameter(n, hloforge.Shape.array(array.dtype, *array.shape), f"x{n}")
            for n, array in enumerate(arrays)
        ]
        pairs = zip(values[::2], values[1::2], strict=True)
        return builder.build(tuple(product(form, *pair) for form, pair in zip(forms, pairs, strict=True)))


def left_over(program: Program) -> tuple[int, int, int]:
    """How many products became dispatches, how many are left, and how many transposes and conversions."""
    copy = program.clone()
    lower(copy.module)
    names = [op.name for op in operations(copy.module)]
    counts = [names.count(f"stablehlo.{name}") for name in ("dot_general", "transpose", "convert")]
    return names.count("flow.dispatch"), counts[0], counts[1] + counts[2]


def test_products_of_every_form_are_right() -> None:
    arrays = [array for form in FORMS for array in factors(*form)]
    program = program_of(*(form for form, _, _ in FORMS), arrays=arrays)
    assert left_over(program)[:2] == (len(FORMS) - LEFT_TO_IREE, LEFT_TO_IREE)
    executable = program.compile("cpu")
    for device in ("local-sync", "local-task"):
        results = executable.load(device=device)(*arrays)
        for (form, sizes, dtype), lhs, rhs, got in zip(FORMS, arrays[::2], arrays[1::2], results, strict=True):
            wide = lhs.astype(F64), rhs.astype(F64)
            want = np.einsum(form, *wide, optimize=True)
            # Rounding errors of a sum grow like the root of its length; results of 16 bits are rounded once more.
            terms = np.prod([size for name, size in sizes.items() if name not in form.partition("->")[2]])
            sums = np.finfo(F64 if dtype is F64 else F32).eps * np.sqrt(terms)
            bound = sums * np.einsum(form, *map(np.abs, wide), optimize=True)
            if np.dtype(dtype).itemsize == 2:
                bound += float(ml_dtypes.finfo(dtype).eps) * np.abs(want)
            assert np.all(np.abs(got.astype(F64) - want) <= bound), form


@pytest.mark.parametrize(
    ("form", "sizes", "dtype"),
    [
        ("mk,kn->mn", {"m": 1, "k": 64, "n": 64}, F32),  # no dispatch's worth
        ("mk,kn->mn", {"m": 16, "k": 512, "n": 200}, F32),  # arithmetic takes longer than reading
        ("mk,nk->mn", {"m": 4, "k": 512, "n": 200}, F32),  # IREE is as fast
        ("mk,kn->mn", {"m": 4, "k": 512, "n": 200}, np.int32),
        ("k,k->", {"k": 50_000}, F32),  # no columns
        ("m,n->mn", {"m": 2, "n": 50_000}, F32),  # no sums
        ("bm,bk->bmk", {"b": 300, "m": 2, "k": 300}, F32),
        ("mk,kn->mn", {"m": 0, "k": 300, "n": 300}, F32),
        ("mk,kn->mn", {"m": 1, "k": 300, "n": 300}, np.int64),
    ],
)
def test_other_products_stay_iree_s(form: str, sizes: dict[str, int], dtype: Any) -> None:
    assert left_over(program_of(form, arrays=factors(form, sizes, dtype)))[0] == 0


def test_infinities_and_nan_reach_their_columns_alone() -> None:
    lhs, rhs = np.ones((2, 301), F32), np.ones((301, 290), F32)
    rhs[3, 7], rhs[300, 100], rhs[9, 289] = np.inf, np.nan, -np.inf
    lhs[1, 9] = 0
    forms = ("mk,kn->mn", "mk,nk->mn")
    arrays = [lhs, rhs, lhs, np.ascontiguousarray(rhs.T)]
    with np.errstate(invalid="ignore"):
        want = lhs @ rhs
    for got in program_of(*forms, arrays=arrays).compile("cpu").load()(*arrays):
        np.testing.assert_array_equal(got, want)


def test_integers_are_multiplied_exactly() -> None:
    forms = [("mk,kn->mn", (2, 301), (301, 290)), ("mk,nk->mn", (3, 301), (290, 301))] * 2
    arrays = [
        RANDOM.integers(np.iinfo(dtype).min, 1 + np.iinfo(dtype).max, dims).astype(dtype)
        for number, (_, *both) in enumerate(forms)
        for dims in both
        for dtype in ([np.int8, np.int32][number // 2],)
    ]
    with Builder("products") as builder:
        values = [
            builder.parameter(n, hloforge.Shape.array(array.dtype, *array.shape), f"x{n}")
            for n, array in enumerate(arrays)
        ]
        pairs = zip(values[::2], values[1::2], strict=True)
        program = builder.build(
            tuple(product(form, *pair, "s32") for (form, *_), pair in zip(forms, pairs, strict=True))
        )
    assert left_over(program)[0] == len(forms)
    results = hloforge.compile(program)(*arrays)
    for (form, *_), lhs, rhs, got in zip(forms, arrays[::2], arrays[1::2], results, strict=True):
        want = np.einsum(form, lhs.astype(np.int64), rhs.astype(np.int64))
        np.testing.assert_array_equal(got, want.astype(np.int32), form)


def test_transposes_and_conversions_of_the_large_factor_are_read_through() -> None:
    text = """func.func @main(%x: tensor<2x130xf32>, %w: tensor<300x130xbf16>, %v: tensor<130x3x90xf16>,
                              %q: tensor<3x1x130xf32>, %p: tensor<130x600xi8>)
                              -> (tensor<2x300xf32>, tensor<3x1x90xf32>, tensor<2x600xf32>) {
      %wide = stablehlo.convert %w : (tensor<300x130xbf16>) -> tensor<300x130xf32>
      %turned = stablehlo.transpose %wide, dims = [1, 0] : (tensor<300x130xf32>) -> tensor<130x300xf32>
      %y = stablehlo.dot %x, %turned : (tensor<2x130xf32>, tensor<130x300xf32>) -> tensor<2x300xf32>
      %heads = stablehlo.transpose %v, dims = [1, 0, 2] : (tensor<130x3x90xf16>) -> tensor<3x130x90xf16>
      %u = stablehlo.convert %heads : (tensor<3x130x90xf16>) -> tensor<3x130x90xf32>
      %z = stablehlo.dot_general %q, %u, batching_dims = [0] x [0], contracting_dims = [2] x [1]
        : (tensor<3x1x130xf32>, tensor<3x130x90xf32>) -> tensor<3x1x90xf32>
      %packed = stablehlo.convert %p : (tensor<130x600xi8>) -> tensor<130x600xf32>
      %s = stablehlo.dot %x, %packed : (tensor<2x130xf32>, tensor<130x600xf32>) -> tensor<2x600xf32>
      return %y, %z, %s : tensor<2x300xf32>, tensor<3x1x90xf32>, tensor<2x600xf32>
    }"""
    program = hloforge.read(text)
    assert left_over(program) == (3, 0, 0)
    x, q = RANDOM.standard_normal((2, 130)).astype(F32), RANDOM.standard_normal((3, 1, 130)).astype(F32)
    w, v = RANDOM.standard_normal((300, 130)).astype(BF16), RANDOM.standard_normal((130, 3, 90)).astype(F16)
    p = RANDOM.integers(-128, 128, (130, 600)).astype(np.int8)
    y, z, s = hloforge.compile(program)(x, w, v, q, p)
    np.testing.assert_allclose(y, x.astype(F64) @ w.astype(F64).T, atol=1e-4)
    np.testing.assert_allclose(z, np.einsum("bmk,kbn->bmn", q.astype(F64), v.astype(F64)), atol=1e-4)
    np.testing.assert_allclose(s, x.astype(F64) @ p.astype(F64), atol=1e-2)


# Five turns, whose layers are -1 to 3, clamped, of three.
DECODER = """func.func @main(%x: tensor<1x160xf32>, %w: tensor<3x160x160xf32>) -> tensor<1x160xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %end = stablehlo.constant dense<5> : tensor<i32>
  %half = stablehlo.constant dense<0.5> : tensor<1x1x160xf32>
  %last:3 = stablehlo.while(%i = %zero, %v = %x, %s = %w) : tensor<i32>, tensor<1x160xf32>, tensor<3x160x160xf32>
   cond {
    %more = stablehlo.compare LT, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %more : tensor<i1>
  } do {
    %next = stablehlo.add %i, %one : tensor<i32>
    %before = stablehlo.subtract %i, %one : tensor<i32>
    %part = stablehlo.dynamic_slice %s, %before, %zero, %zero, sizes = [1, 160, 160]
      : (tensor<3x160x160xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x160x160xf32>
    UPDATE
    %layer = stablehlo.reshape %part : (tensor<1x160x160xf32>) -> tensor<160x160xf32>
    %y = stablehlo.dot_general %v, %layer, contracting_dims = [1] x [DIMENSION]
      : (tensor<1x160xf32>, tensor<160x160xf32>) -> tensor<1x160xf32>
    %t = stablehlo.tanh %y : tensor<1x160xf32>
    %sum = stablehlo.add %t, %v : tensor<1x160xf32>
    stablehlo.return %next, %sum, STACK : tensor<i32>, tensor<1x160xf32>, tensor<3x160x160xf32>
  }
  return %last#1 : tensor<1x160xf32>
}"""
UPDATE = """%stack = stablehlo.dynamic_update_slice %s, %half, %before, %zero, %one
      : (tensor<3x160x160xf32>, tensor<1x1x160xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3x160x160xf32>"""


@pytest.mark.parametrize("update", [False, True], ids=["kept", "updated"])
@pytest.mark.parametrize("dimension", [0, 1])
def test_a_decoder_that_loops_over_its_layers_is_right(dimension: int, update: bool) -> None:
    """A layer is read in the array of all layers, unless a loop writes into that."""
    text = DECODER.replace("DIMENSION", str(dimension))
    text = text.replace("UPDATE", UPDATE if update else "").replace("STACK", "%stack" if update else "%s")
    program = hloforge.read(text)
    lowered = program.clone()
    lower(lowered.module)
    names = [op.name for op in operations(lowered.module)]
    assert ("stablehlo.dynamic_slice" in names) == update
    assert "stablehlo.dot_general" not in names
    x, w = RANDOM.standard_normal((1, 160)), RANDOM.standard_normal((3, 160, 160)) / 16
    got = hloforge.compile(program)(x.astype(F32), w.astype(F32))
    want = x
    for turn in range(5):
        layer = w[max(0, min(2, turn - 1))]
        want = np.tanh(want @ (layer if dimension == 0 else layer.T)) + want
        if update:
            layer[0] = 0.5  # the update starts at column 0, for it must fit
    np.testing.assert_allclose(got, want, atol=2e-5)
