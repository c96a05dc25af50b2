"""lower-bitcast: the bytes of the operand read anew, judged by numpy on the bytes themselves."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from hloforge.dialect.element_types import element_type
from hloforge.dialect.errors import UnsupportedError
from hloforge.dialect.mlir import parse_module
from hloforge.dialect.operations import operations
from hloforge.importers.reader import read
from hloforge.pipelines.framework.manager import PassManager
from hloforge.pipelines.normalize.lower_bitcast import LowerBitcast
from hloforge.pipelines.normalize.normalization import normalize
from tests.engines import interpret

Array = np.ndarray[Any, Any]
# A type and one whose elements it may be read as.
PAIRS = [
    ("f32", "f32"),
    ("f32", "s32"),
    ("u32", "f32"),
    ("f32", "u8"),
    ("s8", "f32"),
    ("bf16", "u16"),
    ("f64", "s16"),
    ("u16", "s64"),
    ("pred", "pred"),
]


def in_memory(array: Array, minor_to_major: tuple[int, ...]) -> bytes:
    """The bytes of an array in a layout."""
    return np.ascontiguousarray(array.transpose(minor_to_major[::-1])).tobytes()


def from_memory(data: bytes, dtype: Any, dims: tuple[int, ...], minor_to_major: tuple[int, ...]) -> Array:
    """The array that bytes in a layout mean."""
    major_to_minor = minor_to_major[::-1]
    physical = np.frombuffer(data, dtype).reshape([dims[d] for d in major_to_minor])
    return physical.transpose(np.argsort(major_to_minor, kind="stable"))


def tensor(name: str, dims: tuple[int, ...]) -> str:
    return f"tensor<{''.join(f'{size}x' for size in dims)}{element_type(name).mlir}>"


def lowered(source: str, dims: tuple[int, ...], target: str, new: tuple[int, ...], attributes: str) -> Any:
    kind = f"({tensor(source, dims)}) -> {tensor(target, new)}"
    module = parse_module(f"""func.func @main(%x: {tensor(source, dims)}) -> {tensor(target, new)} {{
      %r = "mhlo.bitcast"(%x) {{{attributes}}} : {kind}
      return %r : {tensor(target, new)} }}""")
    PassManager([LowerBitcast()]).run(module)
    return module


def layouts(source: tuple[int, ...], target: tuple[int, ...]) -> str:
    def dense(layout: tuple[int, ...]) -> str:
        return f"dense<{list(layout)}> : tensor<{len(layout)}xindex>"

    return f"source_layout = {dense(source)}, result_layout = {dense(target)}"


@st.composite
def bitcasts(draw: st.DrawFn) -> tuple[Any, ...]:
    source, target = draw(st.sampled_from(PAIRS))
    wide = max(element_type(source).dtype.itemsize, element_type(target).dtype.itemsize)
    factors = draw(st.lists(st.sampled_from([1, 2, 3]), min_size=0, max_size=4))

    def dims(name: str) -> tuple[int, ...]:
        sizes = [*factors, wide // element_type(name).dtype.itemsize]
        order = draw(st.permutations(sizes))
        cut = draw(st.integers(0, len(order)))
        return (prod(order[:cut]), *order[cut:])

    old, new = dims(source), dims(target)
    return source, old, draw(layout_of(old)), target, new, draw(layout_of(new))


def layout_of(dims: tuple[int, ...]) -> st.SearchStrategy[tuple[int, ...]]:
    return st.permutations(range(len(dims))).map(tuple)


@settings(max_examples=120, derandomize=True)
@given(bitcasts())
def test_bytes_are_read_anew(case: tuple[Any, ...]) -> None:
    source, dims, source_layout, target, new, target_layout = case
    old_type, new_type = element_type(source).dtype, element_type(target).dtype
    count = prod(dims) * old_type.itemsize
    # Bytes below 0x7f make no NaN, whose bits an interpreter may canonicalize.
    data = (np.arange(count, dtype=np.uint8) * 37 + 1) % (2 if source == "pred" else 0x7F)
    x = from_memory(data.astype(np.uint8).tobytes(), old_type, dims, source_layout)
    expected = from_memory(in_memory(x, source_layout), new_type, new, target_layout)
    module = lowered(source, dims, target, new, layouts(source_layout, target_layout))
    (actual,) = interpret(module, x)
    np.testing.assert_array_equal(actual.view(np.uint8) if actual.ndim else actual, _as(expected, actual))


def _as(expected: Array, actual: Array) -> Array:
    return np.ascontiguousarray(expected).view(np.uint8) if actual.ndim else expected


def test_special_values_keep_their_bits() -> None:
    x = np.array([[0.0, -0.0, np.inf], [-np.inf, 1e-45, -1.5]], np.float32)
    module = lowered("f32", (2, 3), "s32", (6,), layouts((0, 1), (0,)))
    np.testing.assert_array_equal(interpret(module, x)[0], x.T.reshape(6).view(np.int32))


def test_pred_is_a_byte() -> None:
    x = np.array([True, False, True, True])
    module = lowered("pred", (4,), "s32", (), layouts((0,), ()))
    assert interpret(module, x)[0] == 0x01010001
    back = lowered("s32", (), "pred", (2, 2), layouts((), (0, 1)))
    np.testing.assert_array_equal(interpret(back, np.int32(0x01010001))[0], [[True, True], [False, True]])


def test_complex_is_two_floats() -> None:
    x = np.array([[1, 2], [3, 4], [5, -0.0]], np.float32)
    text = lowered("f32", (3, 2), "c64", (3,), layouts((1, 0), (0,)))
    # The interpreter cannot return complex values: go there and back.
    module = parse_module(f"""func.func @main(%x: tensor<3x2xf32>) -> tensor<2x3xf32> {{
      %c = "mhlo.bitcast"(%x) {{{layouts((1, 0), (0,))}}} : (tensor<3x2xf32>) -> tensor<3xcomplex<f32>>
      %d = stablehlo.negate %c : tensor<3xcomplex<f32>>
      %r = "mhlo.bitcast"(%d) {{{layouts((0,), (0, 1))}}} : (tensor<3xcomplex<f32>>) -> tensor<2x3xf32>
      return %r : tensor<2x3xf32> }}""")
    assert operations(text, {"stablehlo.complex"})
    PassManager([LowerBitcast()]).run(module)
    np.testing.assert_array_equal(interpret(module, x)[0], -x.T)


def test_without_layouts_it_is_row_major() -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(interpret(lowered("f32", (2, 3), "f32", (3, 2), ""), x)[0], x.reshape(3, 2))


def test_sub_byte_elements_of_the_same_type_move() -> None:
    module = parse_module(f"""func.func @main(%x: tensor<2x3xi8>) -> tensor<6xi8> {{
      %a = stablehlo.convert %x : (tensor<2x3xi8>) -> tensor<2x3xi4>
      %b = "mhlo.bitcast"(%a) {{{layouts((0, 1), (0,))}}} : (tensor<2x3xi4>) -> tensor<6xi4>
      %r = stablehlo.convert %b : (tensor<6xi4>) -> tensor<6xi8>
      return %r : tensor<6xi8> }}""")
    PassManager([LowerBitcast()]).run(module)
    x = np.array([[-8, 7, 0], [1, -1, 3]], np.int8)
    np.testing.assert_array_equal(interpret(module, x)[0], x.T.reshape(6))


def test_hlo_text() -> None:
    program = read("""ENTRY main {
      x = f32[2,3]{0,1} parameter(0)
      ROOT y = f32[3,2]{1,0} bitcast(x)
    }""")
    normalize(program.module)
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(interpret(program.module, x)[0], x.T)


@pytest.mark.parametrize(
    ("source", "dims", "target", "new", "message"),
    [("f32", (4,), "bf16", (4,), "different sizes"), ("s4", (4,), "s8", (2,), "packed")],
)
def test_what_has_no_meaning_is_refused(
    source: str, dims: tuple[int, ...], target: str, new: tuple[int, ...], message: str
) -> None:
    with pytest.raises(UnsupportedError, match=message):
        lowered(source, dims, target, new, "")
