"""Views that are read: each view, of one or two moves of elements, by each reader that sums, multiplies or windows.

Seed 0, 1, 2 … are all pairs of views and readers, far apart ones first; later turns have other element types and
sizes. A compiler that shares such a reader out among threads computes anew where each element lies, and may forget a
move: ``x[::2].sum(0)`` added the first rows up, silently.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from random import Random
from typing import Any

import numpy as np

import hloforge
from hloforge.dialect import ops
from hloforge.dialect.element_types import element_type
from hloforge.dialect.values import Value
from tests.fuzz.generator import Case

_TYPES = ("f32", "f32", "f32", "s32", "bf16", "f16", "f64", "u8", "pred", "c64", "s64", "s8", "u32")
_SHAPES = ((16, 3), (5, 7), (33, 40), (12, 64), (2, 130), (1, 12), (9, 1), (24,), (129,), (4, 6, 5), (8, 3, 32),
           (2, 9, 2), (3, 1, 8), (2, 4, 3, 6))  # fmt: skip
_Move = Callable[[Value], Value | None]
_Reader = Callable[[Value], Sequence[Value] | None]


def _part(x: Value, begins: dict[int, int], steps: dict[int, int]) -> Value | None:
    """``x[begin::step]`` along some dimensions; None if nothing would be left, or all."""
    starts = [begins.get(d, 0) for d in range(x.rank)]
    if not x.rank or any(start >= size for start, size in zip(starts, x.dims, strict=True)):
        return None
    return ops.slice(x, starts, x.dims, [steps.get(d, 1) for d in range(x.rank)])


def _row(x: Value) -> Value | None:
    if x.rank < 2 or x.dims[0] < 2:
        return None
    return ops.slice(x, [1] + [0] * (x.rank - 1), [2, *x.dims[1:]]).reshape(*x.dims[1:])


def _column(x: Value) -> Value | None:
    if x.rank < 2 or x.dims[-1] < 2:
        return None
    return ops.slice(x, [0] * (x.rank - 1) + [1], [*x.dims[:-1], 2]).reshape(*x.dims[:-1])


def _split(x: Value) -> Value | None:
    return x.reshape(*x.dims[:-1], x.dims[-1] // 2, 2) if x.dims[-1] % 2 == 0 else None


def _padded(x: Value) -> Value:
    return ops.pad(x, ops.constant(0, x.element_type.name), [(0, 0, 0)] * (x.rank - 1) + [(1, 0, 1)])


def _cut(x: Value) -> Value | None:
    return ops.slice(x, [1] * x.rank, x.dims) if min(x.dims) > 1 else None


def _widened(x: Value) -> Value | None:
    wide = {"f32": "f64", "s32": "s64", "bf16": "f32", "f16": "f32", "u8": "u32", "s8": "s32", "pred": "s32"}
    name = wide.get(x.element_type.name)
    return ops.convert_element_type(x, name) if name else None


def _sum_of(x: Value, y: Value) -> Value:
    return ops.or_(x, y) if x.element_type.name == "pred" else x + y


_MOVES: dict[str, _Move] = {
    "steps": lambda x: _part(x, {}, {0: 2}),
    "later steps": lambda x: _part(x, {0: 1}, {0: 3}),
    "steps inside": lambda x: _part(x, {}, {x.rank - 1: 2}),
    "steps of all": lambda x: _part(x, {x.rank - 1: 1}, dict.fromkeys(range(x.rank), 2)),
    "transposed": lambda x: ops.transpose(x, range(x.rank)[::-1]) if x.rank > 1 else None,
    "turned": lambda x: ops.transpose(x, [*range(1, x.rank), 0]) if x.rank > 2 else None,
    "reversed": lambda x: ops.rev(x, [0]),
    "reversed inside": lambda x: ops.rev(x, [x.rank - 1]),
    "reversed all": lambda x: ops.rev(x, range(x.rank)),
    "row": _row,
    "column": _column,
    "cut": _cut,
    "flat": lambda x: x.reshape(-1) if x.rank > 1 else None,
    "split": _split,
    "doubled": lambda x: _sum_of(x, x),
    "joined": lambda x: ops.concat_in_dim([x, _sum_of(x, x)], 0),
    "padded": _padded,
    "widened": _widened,
}
_VIEWS = (*((name,) for name in _MOVES), *((one, other) for one in _MOVES for other in _MOVES))


def _reduced(x: Value, dims: Sequence[int], kind: str = "sum") -> list[Value] | None:
    if not dims or max(dims) >= x.rank:
        return None
    element = x.element_type
    if kind == "max" and element.is_complex:
        return None
    is_or = element.name == "pred"
    return [ops.reduce(x, ops.constant(0, element.name), _Combine.of(kind, is_or), dims)]


class _Combine:
    """What elements are combined by."""

    @staticmethod
    def of(kind: str, is_or: bool) -> Callable[[Value, Value], Value]:
        if kind == "max":
            return ops.max
        return ops.or_ if is_or else ops.add


def _product(x: Value, y: Value, along: tuple[int, ...], batch: tuple[int, ...] = ()) -> list[Value] | None:
    if x.element_type.name == "pred" or x.dims[along[0]] != y.dims[along[1]]:
        return None
    return [ops.dot_general(x, y, ops.DotDimensionNumbers(along[:1], along[1:], batch, batch))]


def _windows(x: Value, along: int, size: int, **attributes: Any) -> list[Value] | None:
    if not x.rank or x.dims[along] < size:
        return None
    row = [1] * x.rank
    row[along] = size
    spread = {name: [value if d == along % x.rank else 1 for d in range(x.rank)] for name, value in attributes.items()}
    if "padding" in attributes:
        spread["padding"] = [attributes["padding"] if d == along % x.rank else (0, 0) for d in range(x.rank)]
    combine = _Combine.of("sum", x.element_type.name == "pred")
    return [ops.reduce_window(x, ops.constant(0, x.element_type.name), combine, row, **spread)]


def _running(x: Value, along: int) -> list[Value] | None:
    size = x.dims[along] if x.rank else 0
    return _windows(x, along, size, padding=(size - 1, 0)) if size > 1 else None


def _centered(x: Value) -> list[Value] | None:
    found = _reduced(x, [0])
    if not found or x.element_type.name == "pred":
        return None
    return [x - ops.broadcast_in_dim(found[0], x.dims, range(1, x.rank))]


def _by_row(x: Value) -> list[Value] | None:
    """The sum of an array times one of its own rows."""
    if x.rank < 2 or x.element_type.name == "pred":
        return None
    row = ops.slice(x, [0] * x.rank, [1, *x.dims[1:]]).reshape(*x.dims[1:])
    return _reduced(x * ops.broadcast_in_dim(row, x.dims, range(1, x.rank)), range(x.rank))


def _outer(x: Value) -> list[Value] | None:
    if x.element_type.name == "pred" or x.dims[0] < 1 or prod(x.dims) > 100:
        return None
    flat = x.reshape(-1)
    size = flat.dims[0]
    return [ops.broadcast_in_dim(flat, (size, size), [0]) * ops.broadcast_in_dim(flat, (size, size), [1])]


def _halves(x: Value) -> list[Value] | None:
    """The sum of the even places times the odd ones."""
    if x.element_type.name == "pred" or x.dims[0] < 2:
        return None
    cut = ops.slice(x, [0] * x.rank, [x.dims[0] // 2 * 2, *x.dims[1:]])
    even, odd = _part(cut, {}, {0: 2}), _part(cut, {0: 1}, {0: 2})
    return _reduced(even * odd, [0]) if even is not None and odd is not None else None


_READERS: dict[str, _Reader] = {
    "sum": lambda x: _reduced(x, [0]),
    "sum inside": lambda x: _reduced(x, [x.rank - 1]),
    "sum of all": lambda x: _reduced(x, range(x.rank)),
    "sum outside": lambda x: _reduced(x, range(x.rank - 1)),
    "sum of ends": lambda x: _reduced(x, [0, x.rank - 1]) if x.rank > 2 else None,
    "max": lambda x: _reduced(x, [0], "max"),
    "max inside": lambda x: _reduced(x, [x.rank - 1], "max"),
    "sums and all": lambda x: [*(_reduced(x, [0]) or []), x],
    "centered": _centered,
    "by its row": _by_row,
    "halves": _halves,
    "outer": _outer,
    "product": lambda x: _product(x, x, (x.rank - 1, x.rank - 1)),
    "product outside": lambda x: _product(x, x, (0, 0)),
    "batches": lambda x: _product(x, x, (x.rank - 1, x.rank - 1), (0,)) if x.rank > 1 else None,
    "product with columns": lambda x: _product(x, ops.transpose(x, range(x.rank)[::-1]), (x.rank - 1, 0)),
    "windows": lambda x: _windows(x, 0, 2),
    "windows inside": lambda x: _windows(x, x.rank - 1, 2),
    "windows with steps": lambda x: _windows(x, 0, 2, window_strides=2),
    "windows at the edges": lambda x: _windows(x, x.rank - 1, 3, padding=(1, 2)),
    "windows apart": lambda x: _windows(x, 0, 2, window_dilations=2) if x.rank and x.dims[0] > 2 else None,
    "windows of all": lambda x: _windows(x, 0, x.dims[0]) if x.rank else None,
    "running sums": lambda x: _running(x, 0),
    "running sums inside": lambda x: _running(x, x.rank - 1),
}
PAIRS = len(_VIEWS) * len(_READERS)
# No divisor of PAIRS, and about the golden section of it: neighbours are far apart.
_STRIDE = next(n for n in range(int(PAIRS * 0.618), PAIRS) if np.gcd(n, PAIRS) == 1)


def pair(seed: int) -> tuple[tuple[str, ...], str]:
    """The names of a seed's moves and of its reader."""
    number = seed * _STRIDE % PAIRS
    return _VIEWS[number // len(_READERS)], [*_READERS][number % len(_READERS)]


def case_of(seed: int) -> Case:
    """The program of a seed. What no size lets a reader or move do is done by another reader, or without the move."""
    moves, reader = pair(seed)
    random = Random(f"views {seed}")
    for names, last in ((moves, reader), (moves, "sums and all"), (moves[:1], "sums and all")):
        for _ in range(40):
            element, dims = random.choice(_TYPES), random.choice(_SHAPES)
            with hloforge.Builder(f"views_{seed}") as builder:
                viewed: Value | None = builder.parameter(0, hloforge.Shape.array(element, *dims), "x")
                for name in names:
                    viewed = _MOVES[name](viewed) if viewed is not None and viewed.rank else None
                found = _READERS[last](viewed) if viewed is not None and viewed.rank else None
                if found:
                    return Case(seed, builder.build(tuple(found)), (_numbers(random, element, dims),))
    raise ValueError(f"no size fits {moves[:1]}")


def _numbers(random: Random, element: str, dims: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Small integers, whose sums and products are exact in most types."""
    row, generator = element_type(element), np.random.default_rng(random.getrandbits(64))
    if row.name == "pred":
        return np.asarray(generator.random(dims) < 0.3)
    least = 0 if row.name.startswith("u") else -2
    numbers = generator.integers(least, 3, dims)
    if row.is_complex:
        return np.asarray(numbers + 1j * generator.integers(-2, 3, dims)).astype(row.dtype)
    return np.asarray(numbers).astype(row.dtype)
