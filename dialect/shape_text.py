"""XLA's text of shapes and layouts, read by recursive descent.

::

    shape  = "(" [shape {"," shape}] ")" | "token[]" | type "[" [size {"," size}] "]" [layout]
    size   = number | "<=" number | "?"
    layout = "{" [number {"," number}] [":" items] "}"
    items  = ["D(" … ")"] ["T" tile {tile}] ["L(" n ")"] ["#(" type ")"] ["*(" type ")"] ["E(" n ")"] ["S(" n ")"]
             ["SC" split {split}] ["P(" shape ")"] ["M(" n ")"]
    tile   = "(" [(number | "*") {"," (number | "*")}] ")"

Spaces and ``/*comments*/`` may be between any two of these. Source: XLA's ``hlo_parser.cc``, ``layout.cc``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import TypeVar

from hloforge.dialect.element_types import element_type
from hloforge.dialect.layouts import COMBINE, ITEMS, Layout, Tile
from hloforge.dialect.shapes import Shape

_Item = TypeVar("_Item")

# A comment that does not end reaches to the end, so that each character is looked at once.
_SPACE = re.compile(r"(?:\s++|/\*(?:.*?\*/|.*))*+", re.DOTALL)
_STARTS_SPACE = frozenset(" \t\r\n/")
_NAME = re.compile(r"[a-z][a-z0-9]*")
_NUMBER = re.compile(r"\d+")
_STRUCTURED = frozenset("TLES")
_KEY = re.compile(r"[A-Z]+|#|\*")


@lru_cache(maxsize=1024)
def parse_shape(text: str) -> Shape:
    """The shape of XLA's text. Raises ValueError with the position of the first character that does not fit."""
    return _whole(text, _Reader.shape, "shape")


def parse_layout(text: str) -> Layout:
    """The layout of XLA's text. Raises ValueError with the position of the first character that does not fit."""
    return _whole(text, _Reader.layout, "layout")


def _whole(text: str, rule: Callable[[_Reader], _Item], what: str) -> _Item:
    reader = _Reader(text)
    try:
        return reader.to_end(rule(reader), what)
    except RecursionError:
        raise ValueError(f"{text[:40]!r}…: its brackets are nested too deep") from None


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0

    def error(self, expected: str, position: int | None = None) -> ValueError:
        position = self.position if position is None else position
        found = repr(self.text[position:][:12]) if self.text[position:] else "the end"
        return ValueError(f"{self.text!r}: expected {expected} at {position}, found {found}")

    def refuse(self, reason: object, position: int) -> ValueError:
        return ValueError(f"{self.text!r}: {reason} (at {position})")

    def skip_space(self) -> None:
        if self.text[self.position : self.position + 1] not in _STARTS_SPACE:
            return
        match = _SPACE.match(self.text, self.position)
        assert match is not None  # the pattern matches nothing, too
        self.position = match.end()

    def at(self, literal: str) -> bool:
        self.skip_space()
        return self.text.startswith(literal, self.position)

    def take(self, literal: str) -> bool:
        if not self.at(literal):
            return False
        self.position += len(literal)
        return True

    def expect(self, literal: str) -> None:
        if not self.take(literal):
            raise self.error(repr(literal))

    def match(self, pattern: re.Pattern[str], expected: str) -> str:
        self.skip_space()
        match = pattern.match(self.text, self.position)
        if match is None:
            raise self.error(expected)
        self.position = match.end()
        return match[0]

    def number(self) -> int:
        return int(self.match(_NUMBER, "a number"))

    def sequence(self, one: Callable[[], _Item], close: str) -> list[_Item]:
        """What is up to ``close``, separated by commas."""
        items: list[_Item] = []
        if self.take(close):
            return items
        items.append(one())
        while not self.take(close):
            if not self.take(","):
                raise self.error(f"',' or {close!r}")
            items.append(one())
        return items

    def to_end(self, value: _Item, what: str) -> _Item:
        self.skip_space()
        if self.position != len(self.text):
            raise self.error(f"the end of the {what}")
        return value

    def shape(self) -> Shape:
        if self.take("("):
            return Shape.tuple_of(*self.sequence(self.shape, ")"))
        return self.array()

    def array(self) -> Shape:
        self.skip_space()
        start = self.position
        name = self.match(_NAME, "an element type and '['")
        if name == "b" and self.at("("):
            raise self.refuse("buffers b(...) are no values of a program that hloforge compiles", start)
        if not self.take("["):
            raise self.error("an element type and '['", start)
        if name in ("token", "opaque"):
            self.expect("]")
            if name == "opaque":
                raise self.refuse("opaque[] has no elements that hloforge could pass", start)
            return Shape.token()
        try:
            element = element_type(name)
        except ValueError as error:
            raise self.refuse(error, start) from None
        sizes = self.sequence(self.size, "]")
        layout = self.layout(len(sizes)) if self.at("{") else None
        return Shape(element, tuple(size for size, _ in sizes), tuple(flag for _, flag in sizes), layout)

    def size(self) -> tuple[int, bool]:
        if self.take("?"):
            return -1, True
        dynamic = self.take("<=")
        return int(self.match(_NUMBER, "a dimension's size: a number, '<=' and a number, or '?'")), dynamic

    def layout(self, rank: int | None = None) -> Layout:
        self.expect("{")
        start = self.position
        order = []
        if not (self.at(":") or self.at("}")):
            order.append(self.number())
            while self.take(","):
                order.append(self.number())
        if sorted(order) != list(range(len(order) if rank is None else rank)):
            raise self.error(f"a permutation of {len(order) if rank is None else rank} dimensions", start)
        items = self.items() if self.take(":") else {}
        self.expect("}")
        try:
            return _layout(tuple(order), items)
        except ValueError as error:
            raise self.refuse(error, start) from None

    def items(self) -> dict[str, str]:
        """The items by their letters, without space, as they are in parentheses."""
        items: dict[str, str] = {}
        allowed: tuple[str, ...] = ITEMS
        while not self.at("}"):
            start = self.position
            key = self.match(_KEY, f"one of {' '.join(allowed)} or '}}'")
            if key not in allowed:
                raise self.error(f"one of {' '.join(allowed)} in XLA's order", start)
            allowed = allowed[allowed.index(key) + 1 :]
            items[key] = self.parenthesized()
            while key in ("T", "SC") and self.at("("):
                items[key] += self.parenthesized()
        return items

    def parenthesized(self) -> str:
        """The text from '(' to its match, without space and comments."""
        if not self.at("("):
            raise self.error("'('")
        start = self.position
        depth = 0
        for position in range(start, len(self.text)):
            depth += {"(": 1, ")": -1}.get(self.text[position], 0)
            if depth == 0:
                self.position = position + 1
                return _SPACE.sub("", self.text[start : position + 1])
        raise self.error("a matching ')'", len(self.text))


def _layout(order: tuple[int, ...], items: dict[str, str]) -> Layout:
    structured = {key: text for key, text in items.items() if key in _STRUCTURED}
    return Layout(
        order,
        tiles=_tiles(structured.get("T", "")),
        tail_padding_alignment_in_elements=_integer(structured, "L", 1),
        element_size_in_bits=_integer(structured, "E", 0),
        memory_space=_integer(structured, "S", 0),
        extras=tuple(key + text for key, text in items.items() if key not in _STRUCTURED),
    )


def _integer(items: dict[str, str], key: str, default: int) -> int:
    text = items.get(key, f"({default})")[1:-1]
    if not _NUMBER.fullmatch(text):
        raise ValueError(f"{key}({text}) is not {key}(number)")
    return int(text)


def _tiles(text: str) -> tuple[Tile, ...]:
    return tuple(_tile(part) for part in text[1:-1].split(")(")) if text else ()


def _tile(text: str) -> Tile:
    sizes = text.split(",") if text else []
    if not all(size == "*" or _NUMBER.fullmatch(size) for size in sizes):
        raise ValueError(f"a tile holds numbers and '*', not {text!r}")
    return Tile(tuple(COMBINE if size == "*" else int(size) for size in sizes))
