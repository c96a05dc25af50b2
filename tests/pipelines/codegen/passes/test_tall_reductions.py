"""legalize-tall-reductions: what rows are reduced to, in parts, beside XLA."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hloforge
from tests.pipelines.codegen.jax_programs import check, normal
from tests.pipelines.codegen.whole_programs import compiled

_PROGRAMS: dict[str, Callable[..., Any]] = {
    "sums and extremes": lambda x: (x.sum(0), x.max(0), x.min(0)),
    "stored as well": lambda x: ((y := jnp.where(x > 0, x, 0)), y.sum(0), x.var(0)),
    "from a start": lambda x: jax.lax.reduce(x, np.float32(3), jax.lax.add, (0,)),
    "two dimensions": lambda x: x.reshape(x.shape[0], -1, 2).sum((0, 2)),
    "integers": lambda x: (x * 100).astype(np.int8).sum(0, dtype=np.int8),
}


@pytest.mark.parametrize("shape", [(1000, 132), (1003, 140)])
@pytest.mark.parametrize("name", _PROGRAMS)
def test_programs(name: str, shape: tuple[int, ...]) -> None:
    check(_PROGRAMS[name], normal(*shape))


def test_extremes_of_nan() -> None:
    x = normal(2000, 80)
    x[1234, 5] = np.nan
    session = compiled(hloforge.as_program(jax.jit(lambda x: x.max(0)).lower(x))).load()
    np.testing.assert_array_equal(session(x), x.max(0))
