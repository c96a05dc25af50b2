"""XLA shapes: an element type with sizes and a layout, a tuple of shapes, or a token.

Source: XLA "Shapes and Layout"; text as in ``bf16[8,1,1280]{2,1,0:T(8,128)(2,1)S(1)}`` (``dialect.shape_text``).
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from hloforge.dialect.element_types import ElementType, element_type
from hloforge.dialect.layouts import Layout, Tile
from hloforge.dialect.mlir import ir, stablehlo
from hloforge.dialect.mlir_elements import element_of, type_of

__all__ = ["Layout", "Shape", "Tile"]

# MLIR's ShapedType::kDynamic, the least 64-bit integer; a test asks MLIR.
_UNBOUNDED: int = -(2**63)


@dataclass(frozen=True, slots=True)
class Shape:
    """An array, tuple or token shape.

    Attributes:
        element: the element type; None for tuples and tokens.
        dimensions: sizes; for a bounded dynamic dimension its bound; -1 for an unbounded one.
        dynamic: one flag a dimension; left out, the negative sizes are the dynamic ones.
        layout: None means XLA's default (row-major).
        elements: the member shapes of a tuple, else None.

    Raises:
        ValueError: flags or layout for another number of dimensions, or a negative size that is not dynamic.
    """

    element: ElementType | None = None
    dimensions: tuple[int, ...] = ()
    dynamic: tuple[bool, ...] = ()
    layout: Layout | None = None
    elements: tuple[Shape, ...] | None = None

    def __post_init__(self) -> None:
        if self.layout is not None:
            self._check_layout(self.layout)
        sizes = self.dimensions
        if not sizes:
            return
        flags = self.dynamic or (False,) * len(sizes)
        if len(flags) != len(sizes):
            raise ValueError(f"{len(flags)} flags of dynamic dimensions for {len(sizes)} dimensions")
        # Sizes below zero are rare: most shapes pay one comparison here.
        if min(sizes) < 0:
            sizes = tuple(-1 if size < 0 else size for size in sizes)
            if self.dynamic and any(size < 0 and not flag for size, flag in zip(sizes, flags, strict=True)):
                raise ValueError(f"sizes {list(sizes)}: a static size is not negative")
            flags = tuple(size < 0 or flag for size, flag in zip(sizes, flags, strict=True))
            object.__setattr__(self, "dimensions", sizes)
        if flags is not self.dynamic:
            object.__setattr__(self, "dynamic", flags)

    def _check_layout(self, layout: Layout) -> None:
        if self.element is None:
            raise ValueError(f"the layout {layout} belongs to an array, not to a tuple or token")
        if layout.rank != len(self.dimensions):
            raise ValueError(f"the layout {layout} is none of {len(self.dimensions)} dimensions")
        layout.padded(self.dimensions)

    def __hash__(self) -> int:
        # The name represents the whole element type, whose dtype is slow to hash.
        name = self.element.name if self.element is not None else None
        return hash((name, self.dimensions, self.dynamic, self.layout, self.elements))

    @classmethod
    def array(
        cls,
        element: Any,
        *dimensions: int,
        layout: Sequence[int] | Layout | None = None,
        dynamic: Sequence[bool] = (),
    ) -> Shape:
        """``Shape.array("f32", 2, 3)`` is ``f32[2,3]``.

        Args:
            element: anything that ``element_type`` takes.
            dimensions: sizes; -1 is an unbounded dynamic dimension.
            layout: a layout, or its minor-to-major order.
            dynamic: flags; the size of a flagged dimension is its bound (``f32[<=5]``).
        """
        if layout is not None and not isinstance(layout, Layout):
            layout = Layout(tuple(layout))
        return cls(element_type(element), dimensions, tuple(dynamic), layout)

    @classmethod
    def tuple_of(cls, *elements: Shape) -> Shape:
        return cls(elements=elements)

    @classmethod
    def token(cls) -> Shape:
        return cls()

    @classmethod
    def parse(cls, text: str) -> Shape:
        """Read XLA's text. Raises ValueError with the position of the first character that does not fit."""
        from hloforge.dialect.shape_text import parse_shape

        return parse_shape(text)

    @classmethod
    def of_type(cls, type_: ir.Type) -> Shape:
        """The shape of an MLIR ranked tensor, tuple or token type. Raises ValueError for any other type.

        The bound of ``tensor<?xf32, #stablehlo.bounds<5>>`` is read: ``f32[<=5]``.
        """
        known = _memory.shapes
        if known is None:
            return cls._of_type(type_)
        shape = known.get(type_)
        if shape is None:
            shape = known[type_] = cls._of_type(type_)
        return shape

    @classmethod
    def _of_type(cls, type_: ir.Type) -> Shape:
        if isinstance(type_, ir.RankedTensorType):
            sizes = tuple(type_.shape)
            if not sizes or min(sizes) >= 0:
                return cls(element_of(type_.element_type), sizes)
            bounds = _bounds(type_.encoding, len(sizes))
            bounded = tuple(bound if size < 0 else size for size, bound in zip(sizes, bounds, strict=True))
            return cls(element_of(type_.element_type), bounded, tuple(size < 0 for size in sizes))
        if isinstance(type_, ir.TupleType):
            return cls.tuple_of(*(cls.of_type(type_.get_type(i)) for i in range(type_.num_types)))
        if "token" in str(type_):
            return cls.token()
        raise ValueError(f"no XLA shape for {type_}")

    @property
    def is_tuple(self) -> bool:
        return self.elements is not None

    @property
    def is_token(self) -> bool:
        return self.element is None and self.elements is None

    @property
    def is_array(self) -> bool:
        return self.element is not None

    @property
    def is_static(self) -> bool:
        if self.elements is not None:
            return all(member.is_static for member in self.elements)
        return True not in self.dynamic

    @property
    def rank(self) -> int:
        return len(self.dimensions)

    @property
    def true_rank(self) -> int:
        """The number of dimensions of a size greater than 1; an unbounded one counts."""
        return sum(size > 1 or size < 0 for size in self.dimensions)

    @property
    def element_count(self) -> int:
        """The number of elements; with the bounds as sizes where dimensions are dynamic.

        Raises ValueError if a dimension has no bound.
        """
        if self.dimensions and min(self.dimensions) < 0:
            raise ValueError(f"{self}: an unbounded dimension has no size")
        return prod(self.dimensions)

    @property
    def byte_size(self) -> int:
        """Bytes of an array's buffer, its padding and tiles included; 0 for a token; the leaves' sum for a tuple.

        Raises ValueError if a dimension has no bound.
        """
        if self.elements is not None:
            return sum(member.byte_size for member in self.elements)
        if self.element is None:
            return 0
        self.element_count  # noqa: B018 - refuses an unbounded dimension
        width = self.element.dtype.itemsize * 8
        if self.layout is None:
            return prod(self.dimensions) * width // 8
        return -(-self.layout.buffer_elements(self.dimensions) * (self.layout.element_size_in_bits or width) // 8)

    def dimension_number(self, number: int) -> int:
        """A dimension's number from 0, where -1 is the last one. Raises ValueError if there is no such dimension."""
        rank = len(self.dimensions)
        if not -rank <= number < rank:
            raise ValueError(f"{self} has {rank} dimensions, none is number {number}")
        return number % rank

    def dimension(self, number: int) -> int:
        """The size of a dimension; negative numbers count from the last. Raises ValueError as ``dimension_number``."""
        return self.dimensions[self.dimension_number(number)]

    @property
    def layout_or_default(self) -> Layout:
        """The layout, row-major where none is given."""
        return self.layout if self.layout is not None else Layout.default(self.rank)

    def leaves(self) -> Iterator[Shape]:
        """The array and token shapes in order, tuples flattened."""
        if self.elements is None:
            yield self
            return
        for member in self.elements:
            yield from member.leaves()

    def with_layout(self, layout: Layout | Sequence[int] | None) -> Shape:
        """The same array in another layout (or minor-to-major order)."""
        if layout is not None and not isinstance(layout, Layout):
            layout = Layout(tuple(layout))
        return replace(self, layout=layout)

    def without_layout(self) -> Shape:
        if self.elements is not None:
            return replace(self, elements=tuple(member.without_layout() for member in self.elements))
        return self if self.layout is None else replace(self, layout=None)

    def mlir_type(self) -> Any:
        """The MLIR tensor type of an array shape, in the current context; layouts are not part of it."""
        element = self.element
        if element is None:
            raise ValueError(f"{self} is not an array")
        if True not in self.dynamic:
            return ir.RankedTensorType.get_unchecked(self.dimensions, type_of(element))
        return self._dynamic_type(element)

    def _dynamic_type(self, element: ElementType) -> ir.Type:
        pairs = list(zip(self.dimensions, self.dynamic, strict=True))
        sizes = [_UNBOUNDED if flag else size for size, flag in pairs]
        bounds = [size if flag and size >= 0 else _UNBOUNDED for size, flag in pairs]
        encoding = stablehlo.TypeExtensions.get(bounds) if max(bounds) >= 0 else None
        return ir.RankedTensorType.get(sizes, type_of(element), encoding, loc=ir.Location.unknown())

    def __str__(self) -> str:
        if self.elements is not None:
            return "(" + ", ".join(map(str, self.elements)) + ")"
        if self.element is None:
            return "token[]"
        sizes = ",".join(map(_size_text, self.dimensions, self.dynamic))
        layout = "" if self.layout is None else str(self.layout)
        return f"{self.element.name}[{sizes}]" + (layout if layout != "{}" else "")


class _Memory(threading.local):
    """The shapes of types that this thread has asked for; None while they are not remembered."""

    shapes: dict[ir.Type, Shape] | None = None


_memory = _Memory()


@contextmanager
def remembered_shapes() -> Iterator[None]:
    """Remember the shapes of types, and so the types' context, until the block ends."""
    before = _memory.shapes
    _memory.shapes = {} if before is None else before
    try:
        yield
    finally:
        _memory.shapes = before


def _size_text(size: int, dynamic: bool) -> str:
    if not dynamic:
        return str(size)
    return "?" if size < 0 else f"<={size}"


def _bounds(encoding: ir.Attribute | None, rank: int) -> Sequence[int]:
    """One bound a dimension; negative where there is none."""
    if encoding is None or not stablehlo.TypeExtensions.isinstance(encoding):
        return [-1] * rank
    bounds: Sequence[int] = stablehlo.TypeExtensions(encoding).bounds
    return bounds
