"""XLA's shape text, both ways, and shapes of MLIR types."""

from __future__ import annotations

import gc
import weakref

import pytest
from hypothesis import given, strategies as st

from hloforge.dialect.element_types import TABLE, ElementType, element_type
from hloforge.dialect.mlir import context, ir
from hloforge.dialect.shapes import Layout, Shape


@pytest.mark.parametrize(
    "text",
    [
        "f32[]",
        "bf16[8,1,1280,16384]{3,2,0,1:T(8,128)(2,1)S(1)}",
        "s4[2,3]{1,0:E(4)}",
        "pred[0,5]{1,0}",
        "f32[<=5,3]{1,0}",
        "c64[?,2]",
        "(f32[2]{0}, (s32[], token[]), ())",
        "f8e4m3b11fnuz[7]{0}",
    ],
)
def test_text_round_trips(text: str) -> None:
    assert str(Shape.parse(text)) == text


def test_xla_comments_and_space_are_skipped() -> None:
    assert str(Shape.parse(" (f32[2]{0},/*index=1*/ s32[]) ")) == "(f32[2]{0}, s32[])"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("f33[2]", "f33"),
        ("f32", "an element type"),
        ("f32[2]{1}", "permutation of 1 dimensions"),
        ("f32[2,2]{0}", "permutation of 2 dimensions"),
        ("(f32[2]", "',' or '\\)'"),
        ("f32[2] s32[]", "the end of the shape at 7"),
        ("f32[a]", "a dimension's size.* at 4"),
    ],
)
def test_malformed_text_says_what_was_expected(text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        Shape.parse(text)


def layouts(rank: int) -> st.SearchStrategy[Layout | None]:
    return st.none() if not rank else st.none() | st.permutations(range(rank)).map(lambda order: Layout(tuple(order)))


arrays = st.tuples(st.sampled_from(TABLE), st.lists(st.integers(0, 9), max_size=4)).flatmap(
    lambda pair: layouts(len(pair[1])).map(lambda layout: Shape.array(pair[0], *pair[1], layout=layout))
)
shapes = st.recursive(arrays, lambda inner: st.lists(inner, max_size=3).map(lambda many: Shape.tuple_of(*many)))


@given(shapes)
def test_any_shape_parses_back_from_its_text(shape: Shape) -> None:
    assert Shape.parse(str(shape)) == shape


@given(shapes)
def test_leaves_are_the_arrays_in_reading_order(shape: Shape) -> None:
    text = str(shape)
    position = 0
    for leaf in shape.leaves():
        position = text.index(str(leaf), position) + len(str(leaf))


@given(arrays)
def test_mlir_types_keep_everything_but_the_layout(shape: Shape) -> None:
    with context():
        assert Shape.of_type(shape.mlir_type()) == shape.without_layout()


def test_a_dynamic_mlir_dimension_is_unbounded() -> None:
    with context():
        assert str(Shape.of_type(ir.Type.parse("tensor<2x?xf32>"))) == "f32[2,?]"


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("f32[<=5]", "tensor<?xf32, #stablehlo.bounds<5>>"),
        ("f32[2,<=5,?]", "tensor<2x?x?xf32, #stablehlo.bounds<?, 5, ?>>"),
        ("u8[?]", "tensor<?xui8>"),
        ("pred[]", "tensor<i1>"),
    ],
)
def test_bounds_are_part_of_the_type(text: str, type_: str) -> None:
    with context():
        assert str(Shape.parse(text).mlir_type()) == str(ir.Type.parse(type_))
        assert str(Shape.of_type(ir.Type.parse(type_))) == text


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.name)
def test_every_element_type_has_its_mlir_type(row: ElementType) -> None:
    with context():
        tensor = ir.Type.parse(f"tensor<2x{row.mlir}>")
        assert Shape(row, (2,)).mlir_type() == tensor
        assert Shape.of_type(tensor).element is row


@pytest.mark.parametrize("type_", ["tensor<2xi3>", "tensor<2xsi8>", "tensor<2xindex>", "i32"])
def test_other_types_have_no_shape(type_: str) -> None:
    with context(), pytest.raises(ValueError, match=r"is not an XLA element type|no XLA shape"):
        Shape.of_type(ir.Type.parse(type_))


def test_types_keep_no_context_alive() -> None:
    ctx = context()
    with ctx:
        Shape.of_type(Shape.array("f32", 2, 3).mlir_type())
    gone = weakref.ref(ctx)
    del ctx
    gc.collect()
    assert gone() is None


def test_members_of_tuples_and_tokens() -> None:
    with context():
        shape = Shape.of_type(ir.Type.parse("tuple<tensor<2xf32>, tuple<!stablehlo.token, tensor<i32>>>"))
        assert str(shape) == "(f32[2], (token[], s32[]))"


def test_dimensions_count_from_both_ends() -> None:
    shape = Shape.parse("f32[2,1,4]{0,1,2}")
    assert [shape.dimension(d) for d in (0, 2, -1, -3)] == [2, 4, 4, 2]
    assert shape.dimension_number(-1) == 2
    assert (shape.rank, shape.true_rank, shape.element_count, shape.byte_size) == (3, 2, 8, 32)
    for number in (3, -4):
        with pytest.raises(ValueError, match=f"none is number {number}"):
            shape.dimension(number)


def test_a_shape_without_layout_is_row_major() -> None:
    assert Shape.array("f32", 2, 3).layout_or_default == Layout((1, 0))
    assert Shape.array("f32", 2, 3).with_layout((0, 1)) == Shape.parse("f32[2,3]{0,1}")
    assert Shape.parse("(f32[2]{0}, f32[])").without_layout() == Shape.parse("(f32[2], f32[])")


def test_dynamic_dimensions() -> None:
    bounded = Shape.array("f32", 5, 3, dynamic=(True, False))
    assert str(bounded) == "f32[<=5,3]" and not bounded.is_static
    assert bounded.element_count == 15
    assert Shape.array("f32", -1) == Shape.parse("f32[?]")
    with pytest.raises(ValueError, match="unbounded"):
        Shape.parse("f32[?]").byte_size  # noqa: B018


def test_element_types_are_indexed_by_sizes() -> None:
    assert element_type("f32")[4, 8] == Shape.array("f32", 4, 8)
    assert element_type("s4")[3] == Shape.array("s4", 3)
    assert element_type("pred")[()] == Shape.array("pred")


def test_constructors_check_ranks() -> None:
    f32 = element_type("f32")
    with pytest.raises(ValueError, match="1 flags of dynamic dimensions for 2"):
        Shape(f32, (2, 3), (True,))
    with pytest.raises(ValueError, match="a static size is not negative"):
        Shape(f32, (-1, 3), (False, True))
    with pytest.raises(ValueError, match="none of 2 dimensions"):
        Shape.array("f32", 2, 3, layout=(0,))
    with pytest.raises(ValueError, match="not to a tuple"):
        Shape(elements=(), layout=Layout(()))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [("b(f32[2])", "buffers"), ("opaque[]", "no elements"), ("(f32[2], f33[1])", "at 9"), ("f32[-1]", "size.* at 4")],
)
def test_what_is_no_array_is_refused_where_it_stands(text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        Shape.parse(text)
