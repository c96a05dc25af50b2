"""Collectives, feeds and channels of StableHLO's interpreter tests, in threads and folded."""

from __future__ import annotations

import threading
import zlib

import numpy as np
import pytest

import hloforge
from hloforge.importers.reader import read
from hloforge.runtime.replicas.replicas import Replicas
from hloforge.runtime.session.feeds import Feeds
from tests.conformance.replicated_suite import GRIDS, inputs, texts
from tests.support import needs_shared

pytestmark = needs_shared
_SAMPLE = 6


def _parameters() -> list[object]:
    names = [name for name in texts() if name in GRIDS]
    sampled = {name for name in names if zlib.crc32(name.encode()) % _SAMPLE == 0}
    return [pytest.param(name, id=name, marks=[] if name in sampled else [pytest.mark.slow]) for name in names]


def session(name: str, **options: object) -> hloforge.Session:
    return hloforge.compile(texts()[name], cache=False).load(**options)


@pytest.mark.parametrize("folded", [False, True], ids=["threads", "folded"])
@pytest.mark.parametrize("name", _parameters())
def test_collectives(name: str, folded: bool) -> None:
    grid = GRIDS[name]
    shapes = [parameter.shape for parameter in read(texts()[name]).signature.parameters]
    given = inputs(shapes, grid.replicas * grid.partitions)
    executable = hloforge.compile(
        texts()[name], replicas=grid.replicas, partitions=grid.partitions, fold_replicas=folded, cache=False
    )
    results = Replicas(executable, grid.replicas, grid.partitions, folded=folded, timeout=20)(*given)
    flat = results if isinstance(results, tuple) else (results,)
    for actual, expected in zip(flat, grid.expected(*given), strict=True):
        np.testing.assert_array_equal(actual, expected, strict=True)


def test_every_program_is_run() -> None:
    others = {name.partition(":")[0] for name in texts() if name not in GRIDS}
    assert others == {"infeed.mlir#0", "outfeed.mlir#0", "send_recv.mlir#0", "send_recv.mlir#1"}
    assert GRIDS.keys() <= texts().keys()


def test_infeed_takes_items_in_order() -> None:
    first, second = (session(f"infeed.mlir#0:infeed_queue{number}")() for number in range(2))
    program = session("infeed.mlir#0:infeed")
    program.infeed.put(first)
    program.infeed.put(second)
    one, _, other, _ = program(None)
    np.testing.assert_array_equal(one, [[1, 2], [3, 4]])
    np.testing.assert_array_equal(other, [[5, 6], [7, 8]])


def test_outfeed_gives_its_operand() -> None:
    program = session("outfeed.mlir#0:outfeed")
    x = np.arange(8).reshape(2, 2, 2)
    assert program(x, None) is None
    np.testing.assert_array_equal(program.outfeed.get(), x)
    assert len(program.outfeed) == 0


def test_sends_and_receives_of_one_channel_keep_their_order() -> None:
    feeds = Feeds(timeout=20)
    sending, receiving = session("send_recv.mlir#0:send", feeds=feeds), session("send_recv.mlir#0:recv", feeds=feeds)
    received: list[object] = []
    # The receiver comes first, and waits.
    thread = threading.Thread(target=lambda: received.extend(receiving(None)))
    thread.start()
    x = np.array([[1, 2], [3, 4]])
    sending(x, None)
    thread.join(20)
    np.testing.assert_array_equal(received[0], x)
    np.testing.assert_array_equal(received[2], [[5, 6], [7, 8]])


def test_channels_are_apart() -> None:
    feeds = Feeds(timeout=20)
    x, y = np.array([[1, 2], [3, 4]]), np.array([[5, 6], [7, 8]])
    session("send_recv.mlir#1:send1", feeds=feeds)(y, None)
    session("send_recv.mlir#1:send0", feeds=feeds)(x, None)
    np.testing.assert_array_equal(session("send_recv.mlir#1:recv0", feeds=feeds)(None)[0], x)
    np.testing.assert_array_equal(session("send_recv.mlir#1:recv1", feeds=feeds)(None)[0], y)


def test_feeds_of_a_folded_program_belong_to_its_devices() -> None:
    executable = hloforge.compile(texts()["infeed.mlir#0:infeed"], replicas=2, fold_replicas=True, cache=False)
    program = Replicas(executable, 2, folded=True, timeout=20)
    for device, feeds in enumerate(program.feeds):
        feeds.infeed.extend([np.full((2, 2), 10 * device + item) for item in range(2)])
    one, _, other, _ = program(None)
    np.testing.assert_array_equal(one[:, 0, 0], [0, 10])
    np.testing.assert_array_equal(other[:, 1, 1], [1, 11])
