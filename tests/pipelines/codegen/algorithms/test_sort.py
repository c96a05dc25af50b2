"""Sorts by keys and by comparators, against numpy's stable ones."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from hloforge.pipelines.codegen.algorithms.arrays import Elements
from hloforge.pipelines.codegen.algorithms.sort import Sort
from hloforge.pipelines.codegen.algorithms.sort_keys import Key, Keys
from hloforge.pipelines.codegen.elements.comparisons import compare
from hloforge.pipelines.codegen.lang.functions import Function
from hloforge.pipelines.codegen.lang.values import Value
from tests.pipelines.codegen.jit import address_room, compiled

_TYPES: dict[str, Any] = {
    "i1": np.bool_,
    "i8": np.int8,
    "ui8": np.uint8,
    "i16": np.int16,
    "i32": np.int32,
    "ui32": np.uint32,
    "i64": np.int64,
    "ui64": np.uint64,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "f64": np.float64,
}
_SIZES = st.one_of(st.integers(0, 40), st.integers(180, 300), st.sampled_from([31, 32, 33, 1000, 3000]))


def _array(random: Any, element: str, shape: tuple[int, ...], few: bool) -> Any:
    """Random elements, few of them different or with all special ones."""
    dtype = np.dtype(_TYPES[element])
    if few or dtype == np.bool_:
        return random.integers(0, 2 if dtype == np.bool_ else 5, shape).astype(dtype)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return random.integers(info.min, info.max, shape, dtype, endpoint=True)
    special = np.array([np.nan, -np.nan, 0.0, -0.0, np.inf, -np.inf, 1.0, -1.0]).astype(dtype)
    chosen = random.choice(special, shape)
    return np.where(random.random(shape) < 0.3, chosen, random.standard_normal(shape).astype(dtype))


def _order(array: Any, total: bool) -> Any:
    """Integers in the order of an array's numbers."""
    if array.dtype == np.bool_ or array.dtype.kind == "u":
        return array.astype(np.uint64).astype(object)
    if array.dtype.kind == "i":
        return array.astype(object)
    if not total:
        return np.where(np.isnan(array), np.inf, array).astype(np.float64), np.isnan(array)
    bits = array.view(f"u{array.dtype.itemsize}").astype(object)
    top = 1 << (8 * array.dtype.itemsize - 1)
    return np.where(bits >= top, top - 1 - bits, bits)


def _sorted_places(arrays: list[Any], keys: list[Key]) -> Any:
    """The stable order of each row [outer, n, inner] as places along n."""
    outer, n, inner = arrays[0].shape
    found = np.zeros((outer, n, inner), np.int64)
    for o in range(outer):
        for i in range(inner):
            places = list(range(n))
            for key in reversed(keys):
                order = _order(arrays[key.operand][o, :, i], key.total_order)
                rank = list(zip(*order, strict=True)) if isinstance(order, tuple) else list(order)
                if isinstance(order, tuple):
                    rank = [(is_nan, 0 if is_nan else number) for number, is_nan in rank]
                places.sort(key=lambda p: rank[p], reverse=key.descending)
            found[o, :, i] = places
    return found


def _bits(array: Any) -> Any:
    return array.view(f"u{array.dtype.itemsize}")


@st.composite
def _sorts(draw: Any) -> dict[str, Any]:
    elements = [draw(st.sampled_from(sorted(_TYPES))) for _ in range(draw(st.integers(1, 3)))]
    count = draw(st.integers(1, min(2, len(elements))))
    keys = [
        Key(operand, draw(st.booleans()), draw(st.booleans()))
        for operand in list(draw(st.permutations(range(len(elements)))))[:count]
    ]
    n = draw(_SIZES)
    return {
        "elements": tuple(elements),
        "keys": keys,
        "n": n,
        "outer": draw(st.integers(1, 2)),
        "inner": draw(st.integers(1, 2)),
        "kept": draw(st.one_of(st.none(), st.integers(1, max(1, n)), st.integers(1, max(1, n // 8)))),
        "few": draw(st.booleans()),
        "seed": draw(st.integers(0, 1000)),
    }


@given(_sorts())
@settings(max_examples=80, deadline=None)
def test_sorts_by_keys_are_stable(found: dict[str, Any]) -> None:
    random = np.random.default_rng(found["seed"])
    elements, shape = found["elements"], (found["outer"], found["n"], found["inner"])
    arrays = [_array(random, element, shape, found["few"]) for element in elements]
    sort = Sort(*shape, elements, Keys.of(elements, found["keys"]), found["kept"])
    actual = _run(sort, arrays)
    order = _sorted_places(arrays, found["keys"])[:, : sort.count]
    for one, array in zip(actual, arrays, strict=True):
        np.testing.assert_array_equal(_bits(one), _bits(np.take_along_axis(array, order, 1)))


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("element", ["i8", "ui8", "i16", "f16", "bf16", "i32", "ui32", "f32", "i64", "ui64", "f64"])
@pytest.mark.parametrize(("n", "kept"), [(20, 3), (150, 4), (1000, 1), (1000, 30), (5000, 64), (270_000, 3)])
def test_the_first_of_equal_keys_and_of_the_greatest(n: int, kept: int, element: str, descending: bool) -> None:
    """Keys that come last of all are asked for: of integers all ones, as of those that a selection has taken."""
    random = np.random.default_rng(n)
    bits, others = np.dtype(_TYPES[element]).itemsize * 8, 2 * kept // 3
    ones = {"u": 0 if descending else -1, "i": 1 << (bits - 1) if descending else (1 << (bits - 1)) - 1}
    last = ones.get(np.dtype(_TYPES[element]).kind, -1 if descending else (1 << (bits - 1)) - 1) % (1 << bits)
    words = np.full((1, n, 1), last, f"u{bits // 8}")
    words[0, random.permutation(n)[:others], 0] = random.integers(1, 3, others)
    numbers, places = words.view(_TYPES[element]), np.arange(n, dtype=np.int32).reshape(1, n, 1)
    elements, keys = (element, "i32"), [Key(0, descending)]
    sort = Sort(1, n, 1, elements, Keys.of(elements, keys), kept)
    assert sort._is_selected or sort._is_extracted
    found = _run(sort, [numbers, places])
    order = _sorted_places([numbers], keys)[:, :kept]
    np.testing.assert_array_equal(found[1], order)
    np.testing.assert_array_equal(_bits(found[0]), np.take_along_axis(words, order, 1))


@pytest.mark.parametrize("elements", [("bf16", "f64"), ("f64", "f64", "i32"), ("i32", "i64")])
def test_keys_of_more_than_a_word(elements: tuple[str, ...]) -> None:
    random = np.random.default_rng(5)
    arrays = [_array(random, element, (2, 700, 1), True) for element in elements]
    keys = [Key(operand, operand == 1) for operand in range(len(elements))]
    actual = _run(Sort(2, 700, 1, elements, Keys.of(elements, keys)), arrays)
    order = _sorted_places(arrays, keys)
    for one, array in zip(actual, arrays, strict=True):
        np.testing.assert_array_equal(_bits(one), _bits(np.take_along_axis(array, order, 1)))


@given(_sorts())
@settings(max_examples=30, deadline=None)
def test_sorts_by_comparators_are_stable(found: dict[str, Any]) -> None:
    random = np.random.default_rng(found["seed"])
    elements, shape = found["elements"], (found["outer"], found["n"], found["inner"])
    arrays = [_array(random, element, shape, found["few"]) for element in elements]
    key = Key(found["keys"][0].operand, found["keys"][0].descending)

    def less(left: Any, right: Any) -> Value:
        direction = "GT" if key.descending else "LT"
        return compare(left[key.operand], right[key.operand], elements[key.operand], direction, "TOTALORDER")

    sort = Sort(*shape, elements, less, found["kept"])
    actual = _run(sort, arrays)
    order = _sorted_places(arrays, [key])[:, : sort.count]
    for one, array in zip(actual, arrays, strict=True):
        np.testing.assert_array_equal(_bits(one), _bits(np.take_along_axis(array, order, 1)))


@pytest.mark.parametrize("n", [20, 700])
def test_a_comparator_without_order_loses_nothing(n: int) -> None:
    array = np.random.default_rng(1).integers(0, 100, (1, n, 1)).astype(np.int32)
    (actual,) = _run(Sort(1, n, 1, ("i32",), _no_order), [array])
    np.testing.assert_array_equal(np.sort(actual.ravel()), np.sort(array.ravel()))


def _no_order(left: Any, right: Any) -> Value:
    found: Value = (left[0] ^ right[0]).compare("ult", left[0])
    return found


def test_operands_are_computed_and_results_left_out() -> None:
    n = 5000
    array = np.random.default_rng(2).standard_normal((2, n, 1)).astype(np.float32)
    sort = Sort(2, n, 1, ("f32", "i32"), Keys.of(("f32", "i32"), [Key(0)]))

    def write(function: Function, pointers: list[Value]) -> None:
        source, target = Elements(pointers[0], "f32"), Elements(pointers[1], "i32")
        places = lambda index: function.index(index[1]).as_("i32")  # noqa: E731
        sort.write(function, [source, places], [None, target], pointers[2])

    actual = np.zeros((2, n, 1), np.int32)
    compiled(write, 3)(array, actual, address_room(sort.scratch))
    np.testing.assert_array_equal(actual, np.argsort(array, axis=1, kind="stable"))


def _run(sort: Sort, arrays: list[Any]) -> list[Any]:
    def write(function: Function, pointers: list[Value]) -> None:
        *own, memory = pointers
        count = len(sort.elements)
        sources = [Elements(p, e) for p, e in zip(own, sort.elements, strict=False)]
        targets = [Elements(p, e) for p, e in zip(own[count:], sort.elements, strict=True)]
        sort.write(function, sources, targets, memory)

    shape = (sort.outer, sort.count, sort.inner)
    # One more of each, which stays as it is.
    results = [np.zeros(int(np.prod(shape)) + 1, array.dtype) for array in arrays]
    memory = address_room(sort.scratch + 64)
    compiled(write, 2 * len(arrays) + 1)(*arrays, *results, memory)
    assert all(not _bits(result)[-1] for result in results)
    assert (memory[sort.scratch :] == 0xA5).all()
    return [result[:-1].reshape(shape) for result in results]
