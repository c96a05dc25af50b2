"""Sums of few terms along several dimensions, which are written out inside of loops over the others, beside XLA."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from hloforge.pipelines.codegen.sums import SumLoops
from tests.pipelines.codegen.jax_programs import check

_PROGRAMS: dict[str, Callable[..., Any]] = {
    "pixels of three colors": lambda x: x[:18, :14].reshape(9, 2, 7, 2, 3).sum((1, 3)),
    "two colors of three": lambda x: (x[:18, :14, 1:] >> 2).reshape(9, 2, 7, 2, 2).sum((1, 3), dtype=jnp.int32),
    "three by three": lambda x: x.reshape(6, 3, 5, 3, 3).max((1, 3)),
    "three dimensions": lambda x: x[:16, :14].reshape(2, 8, 2, 7, 3).sum((0, 2), dtype=jnp.int32),
}


@pytest.mark.parametrize("name", _PROGRAMS)
def test_few_terms_have_no_line_of_sums(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(SumLoops, "_by_lines")
    check(_PROGRAMS[name], np.random.default_rng(1).integers(0, 255, (18, 15, 3)).astype(np.uint8))
