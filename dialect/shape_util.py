"""Shapes made, compared, walked and rearranged, as ``ShapeUtil`` of XLA does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from hloforge.dialect import layout_util
from hloforge.dialect.element_types import ElementType
from hloforge.dialect.layouts import Layout
from hloforge.dialect.shapes import Shape

# Where a shape is in nested tuples: () is the whole, (1, 0) the first member of the second.
ShapeIndex: TypeAlias = tuple[int, ...]


def make_shape(
    element: Any, dimensions: Sequence[int], layout: Layout | Sequence[int] | None = None, dynamic: Sequence[bool] = ()
) -> Shape:
    """``make_shape("f32", [2, 3])``; as ``Shape.array`` with the sizes in one argument."""
    return Shape.array(element, *dimensions, layout=layout, dynamic=dynamic)


def make_tuple_shape(elements: Iterable[Shape]) -> Shape:
    return Shape.tuple_of(*elements)


def physical_shape(shape: Shape) -> Shape:
    """The row-major shape of the same buffer: dimensions in major-to-minor order.

    Raises ValueError for a layout with padding or tiles, whose buffer is no array of these elements alone.
    """
    layout = _array(shape).layout_or_default
    if not layout.is_plain:
        raise ValueError(f"{shape}: its buffer holds more than the elements in their order")
    order = layout.major_to_minor
    return replace(
        shape,
        dimensions=tuple(shape.dimensions[d] for d in order),
        dynamic=tuple(shape.dynamic[d] for d in order),
        layout=None,
    )


def is_scalar(shape: Shape) -> bool:
    return shape.is_array and not shape.dimensions


def is_effective_scalar(shape: Shape) -> bool:
    """Whether an array has one element in however many dimensions."""
    return shape.is_array and shape.true_rank == 0 and 0 not in shape.dimensions


def is_zero_element_array(shape: Shape) -> bool:
    return shape.is_array and 0 in shape.dimensions


def byte_size_of_elements(shape: Shape) -> int:
    """Bytes of the elements alone, without padding (XLA: ``ByteSizeOfElements``)."""
    layout = _array(shape).layout_or_default
    bits = layout.element_size_in_bits or _element(shape).dtype.itemsize * 8
    return -(-shape.element_count * bits // 8)


def byte_size_of(shape: Shape, pointer_size: int | None = None) -> int:
    """Bytes of the buffer: with padding and tiles for an array, 0 for a token.

    A tuple has its leaves' bytes; or with ``pointer_size`` those of its table of pointers, as XLA counts.
    """
    if shape.elements is not None and pointer_size is not None:
        return pointer_size * len(shape.elements)
    return shape.byte_size


def same_dimensions(lhs: Shape, rhs: Shape) -> bool:
    return _array(lhs).dimensions == _array(rhs).dimensions


def same_element_type(lhs: Shape, rhs: Shape) -> bool:
    return _element(lhs) == _element(rhs)


def equal(
    lhs: Shape,
    rhs: Shape,
    *,
    ignore_layout: bool = False,
    ignore_tiles: bool = False,
    ignore_memory_space: bool = False,
    ignore_element_type: bool = False,
    ignore_fp_precision: bool = False,
    ignore_dynamic: bool = False,
) -> bool:
    """Whether two shapes agree in all that is not ignored; no layout equals the plain row-major one.

    Args:
        ignore_fp_precision: take all floats for one element type.
        ignore_dynamic: take a bounded dimension for a static one of its bound, and an unbounded one for any size.
    """
    left, right = dict(subshapes(lhs)), dict(subshapes(rhs))
    if left.keys() != right.keys():
        return False

    def agree(one: Shape, other: Shape) -> bool:
        if not (one.is_array and other.is_array):
            return one.is_tuple == other.is_tuple and one.is_token == other.is_token
        if not ignore_element_type and not _same_element(_element(one), _element(other), ignore_fp_precision):
            return False
        if not _same_sizes(one, other, ignore_dynamic):
            return False
        return ignore_layout or layout_util.equal(
            one.layout, other.layout, ignore_tiles=ignore_tiles, ignore_memory_space=ignore_memory_space
        )

    return all(agree(left[index], right[index]) for index in left)


def compatible(lhs: Shape, rhs: Shape) -> bool:
    """Whether values of the one can represent the other: equal except for layouts and dynamic dimensions."""
    return equal(lhs, rhs, ignore_layout=True, ignore_dynamic=True)


def compatible_ignoring_element_type(lhs: Shape, rhs: Shape) -> bool:
    """Whether tuples and sizes agree."""
    return equal(lhs, rhs, ignore_layout=True, ignore_dynamic=True, ignore_element_type=True)


def compatible_ignoring_fp_precision(lhs: Shape, rhs: Shape) -> bool:
    """Compatible, all floats taken for one element type."""
    return equal(lhs, rhs, ignore_layout=True, ignore_dynamic=True, ignore_fp_precision=True)


def subshapes(shape: Shape, index: ShapeIndex = ()) -> Iterator[tuple[ShapeIndex, Shape]]:
    """The shape, then each member with its index, before the members of that."""
    yield index, shape
    for number, member in enumerate(shape.elements or ()):
        yield from subshapes(member, (*index, number))


def leaves(shape: Shape) -> Iterator[tuple[ShapeIndex, Shape]]:
    """The arrays and tokens in order, with their indices."""
    return ((index, member) for index, member in subshapes(shape) if not member.is_tuple)


def leaf_count(shape: Shape) -> int:
    return sum(1 for _ in leaves(shape))


def index_is_valid(shape: Shape, index: ShapeIndex) -> bool:
    """Whether there is a shape at ``index``."""
    for number in index:
        if shape.elements is None or not 0 <= number < len(shape.elements):
            return False
        shape = shape.elements[number]
    return True


def subshape(shape: Shape, index: ShapeIndex) -> Shape:
    """The shape at ``index``. Raises ValueError if there is none."""
    if not index_is_valid(shape, index):
        raise ValueError(f"{shape} has nothing at {{{','.join(map(str, index))}}}")
    for number in index:
        assert shape.elements is not None  # the index is valid
        shape = shape.elements[number]
    return shape


def permute_dimensions(permutation: Sequence[int], shape: Shape) -> Shape:
    """The transposed shape, whose dimension i was ``permutation[i]``; its layout makes the transpose a bitcast.

    Raises ValueError: not a permutation of the shape's dimensions.
    """
    layout = layout_util.permute(_array(shape).layout_or_default, permutation)
    return replace(
        shape,
        dimensions=tuple(shape.dimensions[d] for d in permutation),
        dynamic=tuple(shape.dynamic[d] for d in permutation),
        layout=layout if shape.layout is not None else None,
    )


def delete_dimensions(dimensions: Iterable[int], shape: Shape) -> Shape:
    """The shape without some dimensions (negative: from the last); the others keep their order in memory."""
    gone = {_array(shape).dimension_number(d) for d in dimensions}
    kept = [d for d in range(shape.rank) if d not in gone]
    return replace(
        shape,
        dimensions=tuple(shape.dimensions[d] for d in kept),
        dynamic=tuple(shape.dynamic[d] for d in kept),
        layout=layout_util.delete_dimensions(shape.layout, gone) if shape.layout is not None else None,
    )


def drop_degenerate_dimensions(shape: Shape) -> Shape:
    """The shape without its dimensions of size 1."""
    return delete_dimensions([d for d, size in enumerate(_array(shape).dimensions) if size == 1], shape)


def prepend_major_dimension(size: int, shape: Shape) -> Shape:
    """The shape of ``size`` such arrays one after the other: a new dimension 0, the most major one.

    Raises ValueError for a layout with padding by dimension or at the tail.
    """
    layout = _array(shape).layout
    if layout is not None:
        if layout.padded_dimensions or layout.tail_padding_alignment_in_elements != 1:
            raise ValueError(f"{shape}: padding is between such arrays")
        layout = replace(layout, minor_to_major=(*(d + 1 for d in layout.minor_to_major), 0))
    return replace(shape, dimensions=(size, *shape.dimensions), dynamic=(size < 0, *shape.dynamic), layout=layout)


def _array(shape: Shape) -> Shape:
    if not shape.is_array:
        raise ValueError(f"{shape} is not an array")
    return shape


def _element(shape: Shape) -> ElementType:
    element = shape.element
    if element is None:
        raise ValueError(f"{shape} is not an array")
    return element


def _same_element(lhs: ElementType, rhs: ElementType, ignore_fp_precision: bool) -> bool:
    return lhs == rhs or (ignore_fp_precision and lhs.is_float and rhs.is_float)


def _same_sizes(lhs: Shape, rhs: Shape, ignore_dynamic: bool) -> bool:
    if not ignore_dynamic:
        return lhs.dimensions == rhs.dimensions and lhs.dynamic == rhs.dynamic
    pairs = zip(lhs.dimensions, rhs.dimensions, strict=True) if lhs.rank == rhs.rank else [(0, 1)]
    return all(one == other or min(one, other) < 0 for one, other in pairs)
