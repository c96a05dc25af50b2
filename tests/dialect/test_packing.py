"""Buffers as layouts describe them: the drawings of XLA's documents, its formulas, and the way back."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given

from hloforge.dialect.element_types import element_type
from hloforge.dialect.layouts import Layout
from hloforge.dialect.packing import pack, unpack
from hloforge.dialect.shapes import Shape
from hloforge.runtime.reference.jaxlib_engines import XlaEngine
from tests.dialect.layouts_strategy import position_by_document, shapes, values

LETTERS = np.array([["a", "b", "c"], ["d", "e", "f"]])


def codes(text: str) -> list[int]:
    """Letters as their code points, 0 as itself."""
    return [0 if letter == "0" else ord(letter) for letter in text.split()]


@pytest.mark.parametrize(
    ("layout", "buffer"),
    [
        pytest.param(Layout((0, 1)), "a d b e c f", id="column-major"),
        pytest.param(Layout((1, 0)), "a b c d e f", id="row-major"),
        pytest.param(Layout((0, 1), padded_dimensions=(3, 5)), "a d 0 b e 0 c f 0 0 0 0 0 0 0", id="padded"),
        pytest.param(Layout((1, 0), padded_dimensions=(3, 5)), "a b c 0 0 d e f 0 0 0 0 0 0 0", id="padded-row-major"),
        pytest.param(Layout((1, 0), tail_padding_alignment_in_elements=4), "a b c d e f 0 0", id="tail"),
    ],
)
def test_the_drawings_of_shapes_and_layout(layout: Layout, buffer: str) -> None:
    letters = np.vectorize(ord)(LETTERS).astype(np.uint8)
    packed = pack(letters, layout)
    assert packed.tolist() == codes(buffer)
    assert (unpack(packed, Shape.array("u8", 2, 3, layout=layout)) == letters).all()


@pytest.mark.parametrize(
    ("text", "index", "position"),
    [
        ("s32[3,5]{1,0:T(2,2)}", (2, 3), 17),
        ("s32[8,8]{1,0:T(2,4)(2,1,1,1)}", (6, 5), 51),
        # Figure 2: 2x4 tiles of 2x1 tiles; the second row of the first tile alternates with the first.
        ("s32[4,8]{1,0:T(2,4)(2,1)}", (1, 0), 1),
        ("s32[4,8]{1,0:T(2,4)(2,1)}", (0, 4), 8),
        ("s32[4,8]{1,0:T(2,4)(2,1)}", (3, 7), 31),
        # "Combining dimensions": the same place as in f32[112,110]{1,0:T(2,3)}.
        ("s32[2,7,8,11,10]{4,3,2,1,0:T(*,*,2,*,3)}", (1, 2, 3, 4, 5), (37 * 37 + 15) * 6 + 3),
    ],
)
def test_the_examples_of_tiled_layout(text: str, index: tuple[int, ...], position: int) -> None:
    shape = Shape.parse(text)
    array = np.zeros(shape.dimensions, np.int32)
    array[index] = 1
    assert pack(array, shape).nonzero()[0].tolist() == [position]


@given(shapes())
def test_unpack_undoes_pack(shape: Shape) -> None:
    array = values(shape)
    buffer = pack(array, shape)
    back = unpack(buffer, shape)
    assert back.dtype == array.dtype
    assert back.shape == array.shape
    assert back.tobytes() == array.tobytes()
    assert unpack(buffer.tobytes(), shape).tobytes() == array.tobytes()
    assert buffer.nbytes == shape.byte_size


@given(shapes())
def test_every_element_stands_where_the_document_says(shape: Shape) -> None:
    layout = shape.layout_or_default
    plain = Layout(
        layout.minor_to_major,
        layout.tiles,
        layout.tail_padding_alignment_in_elements,
        padded_dimensions=layout.padded_dimensions,
    )
    unpacked = Shape.array("s32", *shape.dimensions, layout=plain)
    numbers = np.arange(1, unpacked.element_count + 1, dtype=np.int32).reshape(shape.dimensions)
    expected = np.zeros(pack(numbers, unpacked).size, np.int32)
    for index in product(*map(range, shape.dimensions)):
        expected[position_by_document(unpacked, index)] = numbers[index]
    assert pack(numbers, unpacked).tolist() == expected.tolist()


@pytest.mark.parametrize("tiles", ["T(8,128)", "T(8,128)(2,1)", "T(8,128)(2,1,1,1)", "T(8,128)(3,1)", "T(*,8,128)"])
@pytest.mark.parametrize("sizes", [(2, 16, 256), (3, 20, 130), (1, 5, 7)], ids=str)
def test_tiles_of_accelerators(tiles: str, sizes: tuple[int, ...]) -> None:
    shape = Shape.parse(f"s32[{','.join(map(str, sizes))}]{{2,1,0:{tiles}}}")
    array = np.arange(1, shape.element_count + 1, dtype=np.int32).reshape(sizes)
    buffer = pack(array, shape)
    for index in [(0, 0, 0), (0, 3, 5), (sizes[0] - 1, sizes[1] - 1, sizes[2] - 1), (0, sizes[1] - 1, 6)]:
        assert buffer[position_by_document(shape, index)] == array[index]
    assert (unpack(buffer, shape) == array).all()
    assert np.count_nonzero(buffer) == array.size


def test_padding_holds_the_padding_value() -> None:
    layout = Layout((1, 0), tiles=((2, 2),), padded_dimensions=(2, 3), padding_value=-1)
    assert pack(np.ones((1, 2), np.float32), layout).tolist() == [1, 1, -1, -1, -1, -1, -1, -1]


def test_a_row_major_buffer_is_the_array_itself() -> None:
    array = np.ones((4, 8), np.float32)
    assert np.shares_memory(pack(array, Layout.default(2)), array)
    assert np.shares_memory(pack(array, Shape.array("f32", 4, 8)), array)


def test_packed_elements_lie_as_xla_reads_them() -> None:
    """XLA's CPU client, asked for the elements of two bytes."""
    asm = b"""func.func @main(%x: tensor<2xi8>) -> tensor<2x2xi8> {
      %0 = stablehlo.bitcast_convert %x : (tensor<2xi8>) -> tensor<2x2xi4>
      %1 = stablehlo.convert %0 : (tensor<2x2xi4>) -> tensor<2x2xi8>
      return %1 : tensor<2x2xi8> }"""
    data = np.array([0x21, 0xE3], np.uint8)
    (expected,) = XlaEngine().compile(asm)([data.view(np.int8)])
    shape = Shape.parse("s4[2,2]{1,0:E(4)}")
    assert (unpack(data, shape).astype(np.int8) == expected).all()
    assert (pack(expected.astype(shape.element.dtype), shape) == data).all()  # type: ignore[union-attr]


@pytest.mark.parametrize(("text", "bits"), [("pred[9]{0:E(1)}", [0xFF, 1]), ("s2[3]{0:E(2)}", [0b010101])], ids=str)
def test_elements_share_bytes(text: str, bits: list[int]) -> None:
    shape = Shape.parse(text)
    assert pack(np.ones(shape.dimensions, shape.element.dtype), shape).tolist() == bits  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("text", "given", "complaint"),
    [
        ("f32[2,3]{1,0:E(64)}", "f32", "cannot be stored in 64 bits"),
        ("s8[2,3]{1,0:E(4)}", "s8", "cannot be stored in 4 bits"),
        ("f6e2m3fn[2,3]{1,0:E(6)}", "f6e2m3fn", "cannot be stored in 6 bits"),
        ("f32[3,2]", "f32", "is not of the shape"),
        ("s32[2,3]", "f32", "is not of the shape"),
    ],
)
def test_what_cannot_be_packed(text: str, given: str, complaint: str) -> None:
    shape = Shape.parse(text)
    with pytest.raises(ValueError, match=complaint):
        pack(np.zeros((2, 3), element_type(given).dtype), shape)


def test_what_cannot_be_unpacked() -> None:
    with pytest.raises(ValueError, match="20 bytes is none of f32"):
        unpack(bytes(20), Shape.array("f32", 2, 3))
    with pytest.raises(ValueError, match="static sizes"):
        unpack(bytes(20), Shape.parse("f32[<=5]"))
    with pytest.raises(ValueError, match="none of 2 dimensions"):
        pack(np.zeros((2, 3), np.float32), Layout((0,)))
