"""legalize-nested-updates: parts of arrays that are taken out, changed and put back, beside XLA's client."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hloforge
from hloforge.dialect.operations import operations
from hloforge.pipelines.codegen.lowering import lower
from tests.pipelines.codegen.jax_programs import check, normal


def _rows(cache: Any, place: Any, keys: Any, values: Any) -> tuple[Any, Any]:
    """Two layers of keys and values, each read after its row was written."""
    total = jnp.float32(0)
    for layer in range(2):
        for kind, row in enumerate((keys, values)):
            part = cache[layer]
            inner = part[kind].at[:, place].set(row * (1 + total))
            cache = cache.at[layer].set(part.at[kind].set(inner))
        total = total + jnp.sum(cache[layer, 0] * cache[layer, 1])
    return cache, total


def _added(cache: Any, place: Any, keys: Any, values: Any) -> Any:
    """The old part is read afterwards, and so is the changed one."""
    old = cache[1, 0]
    new = old.at[:, place].add(keys - values)
    return cache.at[1, 0].set(new), old.sum(), new.max()


@pytest.mark.wide(2)
@pytest.mark.parametrize("places", [[3], [0, 4], [7], [-1, 2]])
def test_places(places: list[int]) -> None:
    """Also such as lie outside of the part, which nothing is written to."""
    given = normal(2, 2, 3, 6, 8), np.asarray(places, np.int32), normal(3, len(places), 8), normal(3, len(places), 8)
    check(_rows, *given)
    check(_added, *given)


def test_no_part_is_copied() -> None:
    given = normal(2, 2, 3, 6, 8), np.asarray([3], np.int32), normal(3, 1, 8), normal(3, 1, 8)
    program = hloforge.as_program(jax.jit(_rows).lower(*given)).clone()
    lower(program.module)
    updates = operations(program.module, {"stablehlo.scatter", "stablehlo.dynamic_update_slice"})
    assert [list(op.results[0].type.shape) for op in updates] == [[2, 2, 3, 6, 8]] * 4
