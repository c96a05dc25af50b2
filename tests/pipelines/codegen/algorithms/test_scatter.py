"""Scatters of random geometry, against loops that follow the specification's text."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from hloforge.pipelines.codegen.algorithms.arrays import Elements
from hloforge.pipelines.codegen.algorithms.places import flat, strides_of
from hloforge.pipelines.codegen.algorithms.scatter import Scatter
from hloforge.pipelines.codegen.lang.functions import Function
from hloforge.pipelines.codegen.lang.values import Value
from tests.pipelines.codegen.jit import compiled

_TYPES = {"i32": np.int32, "ui8": np.uint8, "i64": np.int64, "ui64": np.uint64, "i8": np.int8}


@st.composite
def _windows(draw: Any) -> dict[str, Any]:
    """Dimension numbers: batching, collapsed and window dimensions in any order."""
    rank = draw(st.integers(1, 4))
    operand = [draw(st.integers(1, 4)) for _ in range(rank)]
    batching = sorted(draw(st.sets(st.integers(0, rank - 1), max_size=1)))
    others = [dim for dim in range(rank) if dim not in batching]
    collapsed = sorted(draw(st.sets(st.sampled_from(others), max_size=2))) if others else []
    mapped = list(draw(st.permutations(others)))[: draw(st.integers(0, len(others)))] if others else []
    sizes = [1 if dim in (*batching, *collapsed) else draw(st.integers(1, operand[dim])) for dim in range(rank)]
    batch = [draw(st.integers(1, 3)) for _ in range(draw(st.integers(len(batching), 2)))]
    index_batching = list(draw(st.permutations(range(len(batch)))))[: len(batching)]
    for dim, place in zip(batching, index_batching, strict=True):
        batch[place] = operand[dim]
    implicit = len(mapped) == 1 and draw(st.booleans())
    vector = len(batch) if implicit else draw(st.integers(0, len(batch)))
    indices = list(batch)
    if not implicit:
        indices.insert(vector, len(mapped))
    index_batching = [place if implicit or place < vector else place + 1 for place in index_batching]
    windows = [dim for dim in range(rank) if dim not in (*batching, *collapsed)]
    total = len(windows) + len(batch)
    offsets = sorted(list(draw(st.permutations(range(total))))[: len(windows)])
    result, window, rest = [], iter(windows), iter(batch)
    for place in range(total):
        result.append(sizes[next(window)] if place in offsets else next(rest))
    return {
        "operand": tuple(operand),
        "batching": tuple(batching),
        "index_batching": tuple(index_batching),
        "collapsed": tuple(collapsed),
        "mapped": tuple(mapped),
        "sizes": tuple(sizes),
        "indices": tuple(indices),
        "vector": vector,
        "offsets": tuple(offsets),
        "result": tuple(result),
        "windows": windows,
        "type": draw(st.sampled_from(sorted(_TYPES))),
        "seed": draw(st.integers(0, 1000)),
    }


def _starts(found: dict[str, Any], index: tuple[int, ...], indices: Any) -> list[int]:
    """The start that the specification gives for an index of the result, not clamped."""
    batch = [number for place, number in enumerate(index) if place not in found["offsets"]]
    if found["vector"] < len(found["indices"]):
        where: list[Any] = list(batch)
        where.insert(found["vector"], slice(None))
        vector = indices[tuple(where)]
        full = list(batch)
        full.insert(found["vector"], None)
    else:
        vector, full = [indices[tuple(batch)]], list(batch)
    start = [0] * len(found["operand"])
    for component, dim in enumerate(found["mapped"]):
        start[dim] = int(vector[component])
    for dim, place in zip(found["batching"], found["index_batching"], strict=True):
        start[dim] = full[place]
    return start


def _offset(found: dict[str, Any], index: tuple[int, ...]) -> list[int]:
    offset = [0] * len(found["operand"])
    for dim, place in zip(found["windows"], found["offsets"], strict=True):
        offset[dim] = index[place]
    return offset


def _random_indices(found: dict[str, Any], random: Any) -> Any:
    type_ = _TYPES[found["type"]]
    indices = random.integers(-2, 6, found["indices"]).astype(type_)
    wild = random.random(found["indices"]) < 0.1
    info = np.iinfo(type_)
    return np.where(wild, random.choice(np.array([info.min, info.max], type_), found["indices"]), indices).astype(type_)


@given(_windows(), st.sampled_from(["add", "assign", "two"]), st.booleans())
@settings(max_examples=60, deadline=None)
def test_scatters_combine_whole_windows_in_order(found: dict[str, Any], how: str, computed: bool) -> None:
    random = np.random.default_rng(found["seed"])
    operands = [random.integers(0, 9, found["operand"]).astype(np.float32) for _ in range(2)]
    indices = _random_indices(found, random)
    updates = [random.integers(0, 9, found["result"]).astype(np.float32) for _ in range(2)]
    scatter = Scatter(
        found["operand"],
        found["indices"],
        found["result"],
        found["offsets"],
        found["collapsed"],
        found["mapped"],
        found["vector"],
        found["batching"],
        found["index_batching"],
        signed=not found["type"].startswith("u"),
    )

    def combine(old: Any, new: Any) -> list[Any]:
        if how == "two":
            return [old[0] * 2.0 + new[1], old[1] - new[0]]
        return [new[0], new[1]] if how == "assign" else [old[0] + new[0], old[1] + new[1]]

    def write(function: Function, pointers: list[Value]) -> None:
        places = Elements(pointers[0], found["type"])
        arrays = [Elements(pointer, "f32") for pointer in pointers[1:]]
        steps, own = strides_of(found["indices"]), strides_of(found["result"])
        scatter.write(
            function,
            arrays[:2],
            lambda at: places.number(flat(at, steps)),
            (lambda index: [array.at(flat(index, own)) for array in arrays[2:]]) if computed else arrays[2:],
            combine,
        )

    actual = [operand.copy() for operand in operands]
    compiled(write, 5)(indices, *actual, *updates)
    expected = [operand.copy() for operand in operands]
    # Window by window, in the order of the batches, whichever dimensions come first in the updates.
    batches = [dim for dim in range(len(found["result"])) if dim not in found["offsets"]]
    for index in sorted(product(*map(range, found["result"])), key=lambda index: [index[dim] for dim in batches]):
        start = _starts(found, index, indices)
        ranges = zip(start, found["operand"], found["sizes"], strict=True)
        if all(0 <= number <= size - part for number, size, part in ranges):
            at = tuple(a + b for a, b in zip(start, _offset(found, index), strict=True))
            new = combine([one[at] for one in expected], [update[index] for update in updates])
            for one, element in zip(expected, new, strict=True):
                one[at] = element
    for one, other in zip(actual, expected, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("columns", [1, 2, 7, 12, 16, 33, 47])
@pytest.mark.parametrize("computed", [False, True])
def test_windows_are_cut_into_vectors(columns: int, computed: bool) -> None:
    """Many rows are added to a few, each by loops without a rest."""
    random = np.random.default_rng(columns)
    indices = random.integers(-1, 5, (40, 1)).astype(np.int32)
    updates = random.integers(0, 9, (40, columns)).astype(np.float32)
    scatter = Scatter((4, columns), (40, 1), (40, columns), (1,), (0,), (0,), 1, lanes=4)

    def write(function: Function, pointers: list[Value]) -> None:
        places, target, source = (
            Elements(p, element) for p, element in zip(pointers, ("i32", "f32", "f32"), strict=True)
        )
        scatter.write(
            function,
            [target],
            lambda at: places.number(flat(at, (1, 1))),
            (lambda index: [source.at(flat(index, (columns, 1)))]) if computed else [source],
            lambda old, new: [old[0] + new[0]],
        )

    actual = np.zeros((4, columns), np.float32)
    compiled(write, 3)(indices, actual, updates)
    inside = (indices[:, 0] >= 0) & (indices[:, 0] < 4)
    expected = np.zeros_like(actual)
    np.add.at(expected, indices[inside, 0], updates[inside])
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("planes", [(2,), (9,), (17,), (3, 5), (2, 1), (1, 1)])
@pytest.mark.parametrize("row", [1, 3, 20])
@pytest.mark.parametrize("computed", [False, True])
def test_planes_have_their_updates_in_order(planes: tuple[int, ...], row: int, computed: bool) -> None:
    """Windows that lie across planes of an array, each of which is changed as if it were the only one."""
    random = np.random.default_rng(row)
    indices = random.integers(-1, 5, (6, 7, 1)).astype(np.int32)
    updates = random.integers(1, 9, (*planes, 6, 7, row)).astype(np.float32)
    rank = len(planes)
    scatter = Scatter(
        (*planes, 4, row), indices.shape, updates.shape, (*range(rank), rank + 2), (rank,), (rank,), 2, lanes=4
    )

    def write(function: Function, pointers: list[Value]) -> None:
        places, target, source = (
            Elements(p, element) for p, element in zip(pointers, ("i32", "f32", "f32"), strict=True)
        )
        own = strides_of(updates.shape)
        scatter.write(
            function,
            [target],
            lambda at: places.number(flat(at, (7, 1, 1))),
            (lambda index: [source.at(flat(index, own))]) if computed else [source],
            lambda old, new: [old[0] * 0.5 + new[0]],
        )

    actual = np.ones((*planes, 4, row), np.float32)
    compiled(write, 3)(indices, actual, updates)
    expected = np.ones_like(actual)
    for i, j in product(range(6), range(7)):
        if 0 <= (place := indices[i, j, 0]) < 4:
            expected[..., place, :] = expected[..., place, :] * np.float32(0.5) + updates[..., i, j, :]
    np.testing.assert_array_equal(actual, expected)
