"""Equal code of our own dispatches stands in a module once, and each operation in it."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import hloforge
from hloforge.dialect.operations import operations
from hloforge.importers.reader import read
from hloforge.pipelines.named import lower

RANDOM = np.random.default_rng(27)


def test_embeddings_of_equal_tables_run_one_code_in_a_loop_too() -> None:
    tables = RANDOM.standard_normal((3, 50, 40)).astype(np.float32)
    other = RANDOM.standard_normal((60, 40)).astype(np.float32)
    rows = RANDOM.integers(0, 50, (3, 129)).astype(np.int32)

    def taken(rows: Any, other: Any, *tables: Any) -> Any:
        def step(total: Any, at: Any) -> Any:
            return total + jnp.take(tables[0], at, axis=0, mode="clip"), at.sum()

        found = [jnp.take(table, at, axis=0, mode="clip") for table, at in zip(tables, rows, strict=True)]
        return *found, jnp.take(other, rows[0], axis=0, mode="clip"), jax.lax.scan(step, 0 * found[0], rows)

    text = str(jax.jit(taken).lower(rows, other, *tables).as_text())
    program = read(text)
    lower(program.module)
    names = [op.name for op in operations(program.module)]
    assert names.count("flow.executable") == 1
    assert names.count("flow.dispatch") == 4
    assert names.count("flow.dispatch.workgroups") == 1
    session = hloforge.compile(text, cache=False).load()
    found = jax.tree.leaves(session(rows, other, *tables))
    expected = [table[at] for table, at in zip(tables, rows, strict=True)]
    expected += [other[rows[0]], sum(tables[0][at] for at in rows), rows.sum(axis=1)]
    for actual, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(actual, wanted, rtol=1e-6)


def test_code_says_each_number_once() -> None:
    text = str(jax.jit(lambda x: x[:, ::-1].T @ x).lower(np.zeros((256, 256), np.float32)).as_text())
    program = read(text)
    lower(program.module)
    (code,) = operations(program.module, {"flow.executable"})
    entry = operations(code, {"func.func"})[0].regions[0].blocks[0]
    numbers = [str(op.attributes["value"]) for op in entry.operations if op.operation.name == "arith.constant"]
    assert len(numbers) == len(set(numbers)) > 0
