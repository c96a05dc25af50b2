"""dispatch-gathers: gathers and scatters of rows by loops of our own give numpy's numbers, out of bounds as in XLA."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

import hloforge
from hloforge.dialect.operations import operations
from hloforge.importers.reader import read
from hloforge.pipelines.named import lower
from hloforge.pipelines.normalize.normalization import normalize

RANDOM = np.random.default_rng(0)
Array = np.ndarray[Any, Any]

TABLES = [
    ((700, 16), np.float32),
    ((700, 250), np.float32),
    ((20000,), np.float32),
    ((300, 5, 7), np.float64),
    ((300, 24), ml_dtypes.bfloat16),
    ((300, 33), np.int8),
    ((300, 8), np.int32),
]
COMBINERS = {
    "add": np.add,
    "multiply": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
}


def some(shape: tuple[int, ...], dtype: Any) -> Array:
    return RANDOM.integers(-100, 100, shape).astype(dtype)


def dispatches(text: str) -> int:
    program = read(text)
    normalize(program.module)
    lower(program.module)
    return len(operations(program.module, {"flow.dispatch.workgroups"}))


def text_of(function: Any, *arguments: Any) -> str:
    with jax.enable_x64(True):
        return str(jax.jit(function, keep_unused=True).lower(*arguments).as_text())


def test_gathers_of_rows() -> None:
    tables = [some(shape, dtype) for shape, dtype in TABLES]
    rows = RANDOM.integers(-400, 900, (40, 129)).astype(np.int32)

    def taken(rows: Any, *tables: Any) -> Any:
        return [jnp.take(table, rows, axis=0, mode="clip") for table in tables]

    text = text_of(taken, rows, *tables)
    assert dispatches(text) == len(TABLES)
    found = hloforge.compile(text, cache=False).load()(rows, *tables)
    for table, actual in zip(tables, found, strict=True):
        np.testing.assert_array_equal(actual, table[np.clip(rows, 0, len(table) - 1)])


@pytest.mark.parametrize("combiner", COMBINERS)
def test_scatters_of_rows_leave_out_those_out_of_bounds(combiner: str) -> None:
    shapes = [((50, 16), np.float32), ((50, 7), np.float64), ((3000,), np.int32), ((20, 3, 5), np.float32)]
    tables = [some(shape, dtype) for shape, dtype in shapes]
    # Products of whole numbers stay exact, as sums of them do.
    updates = [np.where(some((6000, *table.shape[1:]), table.dtype) > 0, 1, -1).astype(table.dtype) for table in tables]
    rows = RANDOM.integers(-5, 60, 6000)

    def scattered(rows: Any, tables: Any, updates: Any) -> Any:
        return [
            getattr(table.at[rows], combiner)(update, mode="drop", wrap_negative_indices=False)
            for table, update in zip(tables, updates, strict=True)
        ]

    text = text_of(scattered, rows, tables, updates)
    assert dispatches(text) == len(tables)
    given = [table.copy() for table in tables]
    found = hloforge.compile(text, cache=False).load()(rows, *given, *updates)
    for table, update, before, actual in zip(tables, updates, given, found, strict=True):
        good = (rows >= 0) & (rows < len(table))
        expected = table.copy()
        COMBINERS[combiner].at(expected, rows[good], update[good])
        np.testing.assert_array_equal(actual, expected)
        np.testing.assert_array_equal(before, table)


def test_scatters_in_loops_and_of_values_read_later() -> None:
    table, updates = some((600, 32), np.float32), some((500, 32), np.float32)
    rows = RANDOM.integers(0, 700, 500).astype(np.int32)

    def looped(table: Any, rows: Any, updates: Any) -> Any:
        doubled = table * 2
        once = doubled.at[rows].set(updates, mode="drop", unique_indices=True)

        def turn(number: Any, carried: Any) -> Any:
            return carried.at[rows].add(updates + number, mode="drop")

        return doubled, once, jax.lax.fori_loop(0, 5, turn, doubled)

    rows = RANDOM.permutation(700)[:500].astype(np.int32)
    found = hloforge.compile(text_of(looped, table, rows, updates), cache=False).load()(table, rows, updates)
    good = rows < len(table)
    once, added = table * 2, table * 2
    once[rows[good]] = updates[good]
    for number in range(5):
        np.add.at(added, rows[good], updates[good] + number)
    for actual, expected in zip(found, (table * 2, once, added), strict=True):
        np.testing.assert_array_equal(actual, expected)
