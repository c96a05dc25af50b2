"""Memory of results is used again once no array shows it, and never before."""

from __future__ import annotations

import gc
import threading

import numpy as np

import hloforge
from hloforge.runtime.native.result_memory import LEAST, ResultMemory

_F32 = np.dtype(np.float32)


def _address(array: np.ndarray) -> int:
    return int(array.__array_interface__["data"][0])


def test_an_array_gives_its_memory_back() -> None:
    memory = ResultMemory(1 << 20)
    first = memory.empty((10, 100), _F32)
    place = _address(first)
    assert place % 64 == 0 and first.flags.writeable and first.flags.c_contiguous
    assert memory.waiting == 0
    del first
    assert memory.waiting == 4000
    again = memory.empty((1000,), _F32)
    assert _address(again) == place and memory.waiting == 0


def test_views_keep_it() -> None:
    memory = ResultMemory(1 << 20)
    whole = memory.empty((1000,), _F32)
    whole[:] = np.arange(1000)
    part = whole.reshape(10, 100)[3, ::2].view()
    del whole
    gc.collect()
    assert memory.waiting == 0
    memory.empty((1000,), _F32)[:] = 7
    np.testing.assert_array_equal(part, np.arange(300, 400, 2))
    del part
    assert memory.waiting == 8000


def test_no_more_waits_than_is_allowed() -> None:
    memory = ResultMemory(10_000)
    held = [memory.empty((size,), _F32) for size in (500, 600, 700, 800, 5000)]
    while held:
        held.pop(0)
    assert memory.waiting <= 10_000
    assert [memory.empty((size,), _F32).size for size in (500, 5000)] == [500, 5000]


def test_empty_shapes() -> None:
    assert ResultMemory(100).empty((0, 3), _F32).shape == (0, 3)


def test_threads_share_it_and_no_array() -> None:
    memory, wrong = ResultMemory(1 << 16), []

    def work(number: int) -> None:
        for turn in range(300):
            arrays = [memory.empty((256,), _F32) for _ in range(3)]
            for n, array in enumerate(arrays):
                array[:] = number * 10 + n
            if any((array != number * 10 + n).any() for n, array in enumerate(arrays)):
                wrong.append((number, turn))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_results_of_a_session_stay_as_they_were() -> None:
    """A result that is kept is not overwritten by later calls, whose results take memory of those that were dropped."""
    count = LEAST // 4
    text = f"""func.func @main(%x: tensor<{count}xf32>) -> tensor<{count}xf32> {{
      %r = stablehlo.add %x, %x : tensor<{count}xf32>
      return %r : tensor<{count}xf32>
    }}"""
    session = hloforge.load(hloforge.compile(text))
    kept, places = [], set()
    for number in range(12):
        found = session(np.full(count, number, np.float32))
        places.add(_address(found))
        if number % 3 == 0:
            kept.append((number, found))
        del found
    assert len(places) < 12
    for number, array in kept:
        assert (array == 2 * number).all()
