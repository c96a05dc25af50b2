"""XLA shapes and layouts, read from and printed to XLA's own text.

Source: XLA "Shapes and Layout", "Tiled layout"; text as in ``bf16[8,1,1280]{2,1,0:T(8,128)(2,1)S(1)}``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from hloforge.dialect.element_types import ElementType, element_type, mlir_type
from hloforge.dialect.mlir import ir


@dataclass(frozen=True)
class Layout:
    """How the elements of an array lie in memory.

    Attributes:
        minor_to_major: dimension numbers, fastest varying first.
        attributes: XLA's text after the colon (tiles, element size, memory space), kept verbatim.
    """

    minor_to_major: tuple[int, ...]
    attributes: str = ""

    def __str__(self) -> str:
        tail = f":{self.attributes}" if self.attributes else ""
        return "{" + ",".join(map(str, self.minor_to_major)) + tail + "}"

    @property
    def is_default(self) -> bool:
        """Row-major: the last dimension varies fastest."""
        return self.minor_to_major == tuple(reversed(range(len(self.minor_to_major))))

    @classmethod
    def default(cls, rank: int) -> Layout:
        return cls(tuple(reversed(range(rank))))


@dataclass(frozen=True)
class Shape:
    """An array, tuple or token shape.

    Attributes:
        element: the element type; None for tuples and tokens.
        dimensions: sizes; for a bounded dynamic dimension its bound; -1 for an unbounded one.
        dynamic: one flag a dimension.
        layout: None means XLA's default (row-major).
        elements: the member shapes of a tuple, else None.
    """

    element: ElementType | None = None
    dimensions: tuple[int, ...] = ()
    dynamic: tuple[bool, ...] = ()
    layout: Layout | None = None
    elements: tuple[Shape, ...] | None = None

    @classmethod
    def array(cls, element: Any, *dimensions: int, layout: tuple[int, ...] | Layout | None = None) -> Shape:
        """``Shape.array("f32", 2, 3)`` is ``f32[2,3]``; a negative size is an unbounded dynamic dimension."""
        if isinstance(layout, tuple):
            layout = Layout(layout)
        dynamic = tuple(size < 0 for size in dimensions)
        return cls(element_type(element), dimensions, dynamic, layout)

    @classmethod
    def tuple_of(cls, *elements: Shape) -> Shape:
        return cls(elements=elements)

    @classmethod
    def token(cls) -> Shape:
        return cls()

    @classmethod
    def parse(cls, text: str) -> Shape:
        """Read XLA's text. Raises ValueError with the position of the first character that does not fit."""
        return _Parser(text).whole()

    @classmethod
    def of_type(cls, type_: Any) -> Shape:
        """The shape of an MLIR ranked tensor, tuple or token type. Raises ValueError for any other type."""
        if isinstance(type_, ir.RankedTensorType):
            sizes = [-1 if type_.is_dynamic_dim(d) else type_.get_dim_size(d) for d in range(type_.rank)]
            return cls.array(type_.element_type, *sizes)
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
        return not any(self.dynamic)

    @property
    def rank(self) -> int:
        return len(self.dimensions)

    @property
    def element_count(self) -> int:
        return prod(self.dimensions)

    def leaves(self) -> Iterator[Shape]:
        """The array and token shapes in order, tuples flattened."""
        if self.elements is None:
            yield self
            return
        for member in self.elements:
            yield from member.leaves()

    def without_layout(self) -> Shape:
        if self.elements is not None:
            return replace(self, elements=tuple(member.without_layout() for member in self.elements))
        return replace(self, layout=None)

    def mlir_type(self) -> Any:
        """The MLIR tensor type of an array shape, in the current context; layouts are not part of it."""
        if self.element is None:
            raise ValueError(f"{self} is not an array")
        dynamic = ir.ShapedType.get_dynamic_size()
        sizes = [dynamic if size < 0 else size for size in self.dimensions]
        return ir.RankedTensorType.get(sizes, mlir_type(self.element), loc=ir.Location.unknown())

    def __str__(self) -> str:
        if self.elements is not None:
            return "(" + ", ".join(map(str, self.elements)) + ")"
        if self.element is None:
            return "token[]"
        sizes = ",".join(map(_size_text, self.dimensions, self.dynamic))
        return f"{self.element}[{sizes}]" + (str(self.layout) if self.layout and self.rank else "")


def _size_text(size: int, dynamic: bool) -> str:
    if not dynamic:
        return str(size)
    return "?" if size < 0 else f"<={size}"


class _Parser:
    """Recursive descent over XLA's shape text."""

    _ARRAY = re.compile(r"([a-z][a-z0-9]*)\[([^\]]*)\]")
    _LAYOUT = re.compile(r"\{([0-9, ]*)(?::([^}]*))?\}")
    _COMMENT = re.compile(r"/\*.*?\*/")

    def __init__(self, text: str) -> None:
        self.text = self._COMMENT.sub("", text).strip()
        self.position = 0

    def whole(self) -> Shape:
        shape = self.shape()
        if self.position != len(self.text):
            raise self.error("end of shape")
        return shape

    def error(self, expected: str) -> ValueError:
        found = self.text[self.position :][:12] or "the end"
        return ValueError(f"shape {self.text!r}: expected {expected} at {self.position}, found {found!r}")

    def skip_space(self) -> None:
        while self.position < len(self.text) and self.text[self.position].isspace():
            self.position += 1

    def shape(self) -> Shape:
        self.skip_space()
        return self.members() if self.text.startswith("(", self.position) else self.array()

    def members(self) -> Shape:
        self.position += 1
        members: list[Shape] = []
        self.skip_space()
        while not self.text.startswith(")", self.position):
            if members:
                if not self.text.startswith(",", self.position):
                    raise self.error("',' or ')'")
                self.position += 1
            members.append(self.shape())
            self.skip_space()
        self.position += 1
        return Shape.tuple_of(*members)

    def array(self) -> Shape:
        match = self._ARRAY.match(self.text, self.position)
        if match is None:
            raise self.error("an element type and '['")
        if match[1] == "token":
            self.position = match.end()
            return Shape.token()
        try:
            element = element_type(match[1])
            sizes = [self.size(part) for part in match[2].split(",") if part.strip()]
        except ValueError as error:
            raise ValueError(f"shape {self.text!r}: {error}") from None
        self.position = match.end()
        dimensions = tuple(size for size, _ in sizes)
        return Shape(element, dimensions, tuple(flag for _, flag in sizes), self.layout(len(sizes)))

    @staticmethod
    def size(text: str) -> tuple[int, bool]:
        text = text.strip()
        if text == "?":
            return -1, True
        if text.startswith("<="):
            return int(text[2:]), True
        return int(text), False

    def layout(self, rank: int) -> Layout | None:
        match = self._LAYOUT.match(self.text, self.position)
        if match is None:
            return None
        order = tuple(int(part) for part in match[1].split(",") if part.strip())
        if sorted(order) != list(range(rank)):
            raise self.error(f"a permutation of {rank} dimensions")
        self.position = match.end()
        return Layout(order, match[2] or "")
