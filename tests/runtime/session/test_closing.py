"""Sessions that are closed, shown and awaited."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from concurrent.futures import CancelledError
from typing import Any

import numpy as np
import pytest

import hloforge
from hloforge.runtime.session import background

TEXT = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.add %x, %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""
DYNAMIC = TEXT.replace("4xf32", "?xf32")
X = np.float32([1, 2, 3, 4])


@pytest.fixture(scope="module")
def executable() -> hloforge.Executable:
    return hloforge.compile(TEXT, name="twice")


@pytest.mark.parametrize("device", [None, "local-sync", "local-task"])
def test_a_closed_session_is_no_longer_called(executable: hloforge.Executable, device: str | None) -> None:
    with executable.load(device=device) as session:
        result = session(X)
        on_device = session.call_device(X)
    assert session.closed
    for call in (session, session.call_device, lambda x: session.submit(x).result()):
        with pytest.raises(hloforge.ExecutionError, match="the session of twice is closed"):
            call(X)
    session.close()
    np.testing.assert_array_equal(result, 2 * X)
    np.testing.assert_array_equal(np.asarray(on_device), 2 * X)


def test_what_a_closed_session_held_is_freed(executable: hloforge.Executable) -> None:
    session = executable.load()
    held = [weakref.ref(session._small)] if session._small is not None else []
    held += [weakref.ref(session._native)] if session._native is not None else []
    session.close()
    gc.collect()
    assert held and [one() for one in held] == [None] * len(held)


def test_a_specializing_session_closes_its_forms() -> None:
    session = hloforge.compile(DYNAMIC, dynamic_shapes="specialize").load()
    session(X)
    (form,) = session._forms.values()
    session.close()
    assert session.closed and form.closed
    with pytest.raises(hloforge.ExecutionError, match="is closed"):
        session(X)


def test_a_session_shows_what_it_is(executable: hloforge.Executable) -> None:
    session = executable.load(device="local-sync")
    assert repr(session) == "<Session twice (arg0: f32[4]) -> f32[4], on local-sync>"
    session.close()
    assert repr(session).endswith(", closed>")


def test_calls_are_awaited(executable: hloforge.Executable) -> None:
    session = executable.load()

    async def all_of(count: int) -> list[Any]:
        return await asyncio.gather(*(session.submit(X + number) for number in range(count)))

    for number, result in enumerate(asyncio.run(all_of(5))):
        np.testing.assert_array_equal(result, 2 * (X + number))

    async def wrong() -> None:
        await session.submit(X[:2])

    with pytest.raises(hloforge.ArgumentError):
        asyncio.run(wrong())


def test_a_call_that_waits_is_cancelled(executable: hloforge.Executable) -> None:
    """The pool is busy; what has not begun never does."""
    session = executable.load()
    gate = threading.Event()
    pool = background._pool()
    busy = [pool.submit(gate.wait) for _ in range(pool._max_workers)]
    waiting = session.submit(X)
    assert waiting.cancel()
    gate.set()
    with pytest.raises(CancelledError):
        waiting.result()
    assert all(one.result(60) for one in busy)


def test_programs_that_are_compiled_at_their_calls_are_loaded_like_others() -> None:
    session = hloforge.load(hloforge.compile(DYNAMIC, dynamic_shapes="specialize"), device="local-sync")
    assert session.is_specializing
    assert session.device == "local-sync"
