"""Garbage is collected seldom while programs are compiled, and as before afterwards."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator

import pytest

import hloforge
from hloforge.dialect.garbage import seldom_collecting
from hloforge.pipelines.framework.manager import PassManager


@pytest.fixture(autouse=True)
def usual() -> Iterator[tuple[int, int, int]]:
    before = gc.get_threshold()
    yield before
    gc.set_threshold(*before)


def test_blocks_restore_what_was_set(usual: tuple[int, int, int]) -> None:
    with pytest.raises(KeyError), seldom_collecting():
        with seldom_collecting():
            assert gc.get_threshold()[0] >= 100_000
        assert gc.get_threshold()[0] >= 100_000
        raise KeyError
    assert gc.get_threshold() == usual


def test_blocks_of_threads_end_in_any_order(usual: tuple[int, int, int]) -> None:
    entered, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with seldom_collecting():
            entered.set()
            leave.wait()

    other = threading.Thread(target=hold)
    with seldom_collecting():
        other.start()
        entered.wait()
    assert gc.get_threshold()[0] >= 100_000
    leave.set()
    other.join()
    assert gc.get_threshold() == usual


@pytest.mark.parametrize("chosen", [0, 500_000])
def test_what_is_rarer_stays(chosen: int) -> None:
    gc.set_threshold(chosen, 10, 10)
    with seldom_collecting():
        assert gc.get_threshold()[0] == chosen


def test_passes_run_in_such_a_block(monkeypatch: pytest.MonkeyPatch, usual: tuple[int, int, int]) -> None:
    seen = []
    run = PassManager.run
    monkeypatch.setattr(PassManager, "run", lambda self, module: seen.append(gc.get_threshold()) or run(self, module))
    hloforge.compile("func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }", cache=False)
    assert seen and all(threshold[0] >= 100_000 for threshold in seen)
    assert gc.get_threshold() == usual
