"""Sums over rows that do not follow each other in what is read, of which each column has a sum first, beside XLA."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hloforge.pipelines.codegen.loops import NestWriter
from tests.pipelines.codegen.jax_programs import check


def _reduced(operation: Any, start: int, *dims: int) -> Callable[..., Any]:
    return lambda x: jax.lax.reduce(x[..., 1:], np.asarray(start, x.dtype), operation, dims)


_FLOATS: dict[str, Callable[..., Any]] = {
    "squares": lambda x: ((x - x[:, :1]) ** 2).sum(),
    "two sums": lambda x: (jnp.exp(x[..., 1:]).sum((0, 2)), x[..., 1:].sum((0, 2))),
    "from a number": _reduced(jax.lax.add, 3, 0, 1, 2),
}
_INTEGERS: dict[str, Callable[..., Any]] = {
    "sums": _reduced(jax.lax.add, 3, 0, 1, 2),
    "products": _reduced(jax.lax.mul, 1, 1, 2),
    "largest": _reduced(jax.lax.max, 0, 1, 2),
    "smallest": _reduced(jax.lax.min, 9, 1, 2),
    "bits": lambda x: (_reduced(jax.lax.bitwise_and, 63, 1, 2)(x), _reduced(jax.lax.bitwise_xor, 0, 1, 2)(x)),
    "all and any": lambda x: ((x[..., 1:] > 3).all((1, 2)), (x[..., 1:] > 12).any((1, 2))),
}


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The loops that were written so."""
    found: list[Any] = []
    write = NestWriter._by_sums_apart
    monkeypatch.setattr(NestWriter, "_by_sums_apart", lambda self, *given: (found.append(given), write(self, *given)))
    return found


@pytest.mark.parametrize("element", [np.float32, np.complex64])
@pytest.mark.parametrize("name", _FLOATS)
def test_sums_of_floats(name: str, element: type, written: list[Any]) -> None:
    random = np.random.default_rng(1)
    x = (random.standard_normal((9, 5, 31)) + (1j if element is np.complex64 else 0)).astype(element)
    check(_FLOATS[name], x)
    assert written


@pytest.mark.parametrize("element", [np.int32, np.uint8])
@pytest.mark.parametrize("name", _INTEGERS)
def test_reductions_of_integers(name: str, element: type, written: list[Any]) -> None:
    check(_INTEGERS[name], np.random.default_rng(1).integers(2, 99, (3, 9, 13)).astype(element))
    assert written


def test_long_sums(written: list[Any]) -> None:
    """More rows than one accumulator adds."""
    check(lambda x: (x[..., 1:] * x[..., 1:]).sum(), np.random.default_rng(1).standard_normal((300, 7, 12)).astype("f"))
    assert written
