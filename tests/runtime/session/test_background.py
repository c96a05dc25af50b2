"""Calls in the background: results in order, errors in their place, and as many at once as there are cores."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import hloforge
from hloforge.dialect.errors import ArgumentError
from hloforge.runtime.session.background import Background

X = np.arange(4, dtype=np.float32)


@pytest.fixture
def session(add: Any) -> hloforge.Session:
    return add.load()


def test_a_submitted_call_gives_its_result_and_its_error(session: hloforge.Session) -> None:
    future, wrong = session.submit(X, X), session.submit(X, X[:2])
    np.testing.assert_array_equal(future.result(), 2 * X)
    with pytest.raises(ArgumentError, match=r"f32\[4\]"):
        wrong.result()


def test_many_calls_have_their_results_in_order(session: hloforge.Session) -> None:
    results = session.map((X, np.full_like(X, number)) for number in range(200))
    for number, result in enumerate(results):
        np.testing.assert_array_equal(result, X + number)
    assert number == 199


def test_calls_run_at_once_and_are_taken_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    taken: list[int] = []
    together = threading.Barrier(2, timeout=30)

    class Meeting(Background):
        def __call__(self, *arguments: Any, **named: Any) -> Any:
            together.wait()
            return arguments[0]

    def calls() -> Iterator[list[int]]:
        for number in range(10):
            taken.append(number)
            yield [number]

    results = Meeting().map(calls())
    assert taken == []
    # Neither of two calls ends before the other one has begun.
    assert next(results) == 0
    assert len(taken) == 5
    assert list(results) == list(range(1, 10))


def test_a_failing_call_ends_the_row_of_calls(session: hloforge.Session) -> None:
    results = session.map([(X, X), (X,), (X, X)])
    np.testing.assert_array_equal(next(results), 2 * X)
    with pytest.raises(ArgumentError):
        next(results)
    assert list(results) == []
