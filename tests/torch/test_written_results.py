"""Calls that give a program the addresses of tensors, and those that cannot."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra `torch`")
pytest.importorskip("jax", reason="needs the extra `torch`")

from hloforge.runtime.session.session import Session  # noqa: E402

pytestmark = pytest.mark.usefixtures("fresh_dynamo")


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bool]]:
    """Whether each call wrote into its results."""
    calls: list[bool] = []
    write = Session.write

    def noted(self: Session, *arguments: Any) -> bool:
        calls.append(write(self, *arguments))
        return calls[-1]

    monkeypatch.setattr(Session, "write", noted)
    yield calls


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.bfloat16, torch.float16, torch.int8, torch.bool, torch.complex64]
)
def test_each_type(dtype: Any, written: list[bool]) -> None:
    x = (
        torch.arange(24).reshape(2, 3, 4) % 5 > 1
        if dtype is torch.bool
        else torch.arange(24.0).reshape(2, 3, 4).to(dtype)
    )
    f = torch.compile(lambda x: (x.transpose(0, 2), x | x if dtype is torch.bool else x * x), backend="hloforge")
    for _ in range(2):
        for found, wanted in zip(f(x), (x.transpose(0, 2), x if dtype is torch.bool else x * x), strict=True):
            torch.testing.assert_close(found, wanted)
    assert written == [True, True]


def test_where_tensors_lie(written: list[bool]) -> None:
    """Addresses that 64 does not divide, orders of dimensions, gaps, and conjugates."""
    f = torch.compile(lambda x: x * 2 + 1, backend="hloforge", dynamic=False)
    memory = torch.randn(1000)
    for x in (memory[1:13].view(3, 4), memory[:24].view(3, 8)[:, ::2], memory[:12].view(4, 3).T):
        torch.testing.assert_close(f(x), x * 2 + 1)
    z = torch.randn(3, 4, dtype=torch.complex64).conj()
    torch.testing.assert_close(f(z), z * 2 + 1)
    assert written == [True] * 4


def test_results_stay(written: list[bool]) -> None:
    f = torch.compile(lambda x: (x + 1, x.T * 2), backend="hloforge")
    kept = []
    for number in range(10):
        x = torch.full((300, 200), float(number))
        results = f(x)
        if number % 2:
            kept.append((number, results))
    for number, (one, two) in kept:
        assert (one == number + 1).all() and (two == number * 2).all() and two.shape == (200, 300)
    assert all(written)


def test_random_numbers_are_drawn_once_a_call(written: list[bool]) -> None:
    f = torch.compile(lambda x: torch.nn.functional.dropout(x, 0.5), backend="hloforge")
    x = torch.ones(100)
    torch.manual_seed(3)
    first = f(x), f(x)
    torch.manual_seed(3)
    again = f(x), f(x)
    assert not torch.equal(*first) and all(map(torch.equal, first, again))
    assert written == [True] * 4


def test_memory_of_the_last_call_holds_other_tensors(written: list[bool]) -> None:
    """New numbers, other strides, and conjugates at the address of the last call are what they are."""
    f = torch.compile(lambda x: x * 2 + 1, backend="hloforge", dynamic=False)
    memory = torch.randn(9, dtype=torch.complex64)
    square = memory.view(3, 3)
    for x in (square, square, square.T, square.conj(), square.neg(), square):
        torch.testing.assert_close(f(x), x * 2 + 1)
        memory += 1
    assert all(written)


def test_arguments_are_not_kept() -> None:
    """What shows their memory to a program is no reference to them."""
    freed: list[int] = []
    array = np.ones((64, 64), np.float32)
    weakref.finalize(array, freed.append, 1)
    x = torch.from_numpy(array)
    f = torch.compile(lambda x: x * 2 + 1, backend="hloforge", dynamic=False)
    torch.testing.assert_close(f(x), x * 2 + 1)
    del x, array
    gc.collect()
    assert freed == [1]
