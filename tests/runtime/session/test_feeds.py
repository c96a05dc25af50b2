"""Queues between a program and its host, and programs that use them."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np
import pytest

import hloforge
from hloforge import ops
from hloforge.dialect.errors import ExecutionError
from hloforge.runtime.session.feeds import ClosedError, Feeds, Queue


def test_a_full_queue_makes_who_puts_wait() -> None:
    queue = Queue("line", capacity=2, timeout=20)
    with ThreadPoolExecutor(1) as pool:
        putting = pool.submit(lambda: [queue.put(number) for number in range(20)])
        assert [queue.get() for _ in range(20)] == list(range(20))
        putting.result()
    queue.put(1)
    queue.put(2)
    with pytest.raises(ExecutionError, match=r"line: it is full, and no items are taken for 0.01 s"):
        queue.put(3, timeout=0.01)
    assert len(queue) == 2


def test_an_empty_queue_says_so_in_time() -> None:
    with pytest.raises(ExecutionError, match=r"channel 7 of replica 1: nothing is put into it for 0.01 s"):
        Feeds(timeout=0.01, name="replica 1").channel(7).get()


def test_a_closed_queue_gives_what_it_has_and_ends() -> None:
    queue = Queue("line")
    queue.put("a")
    queue.extend(["b", "c"])
    queue.close()
    assert list(queue) == ["a", "b", "c"]
    for act in (lambda: queue.put("d"), lambda: queue.extend(["d"]), queue.get):
        with pytest.raises(ClosedError, match="line is closed"):
            act()


def test_closing_wakes_who_waits() -> None:
    feeds = Feeds(timeout=None)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(feeds.infeed.get)
        feeds.close()
        assert isinstance(waiting.exception(), ClosedError)


def test_a_failure_ends_waiting_until_it_is_taken_back() -> None:
    feeds = Feeds(timeout=None)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(feeds.infeed.get)
        feeds.stop("replica 1 failed: out of luck")
        assert "infeed: nothing is put into it, and replica 1 failed: out of luck" in str(waiting.exception())
    feeds.stop("")
    feeds.infeed.put(1)
    assert feeds.infeed.get() == 1


def test_an_iterable_is_asked_when_the_program_asks() -> None:
    queue, numbers = Queue("line"), itertools.count()
    queue.extend(numbers)
    assert [queue.get() for _ in range(3)] == [0, 1, 2]
    assert next(numbers) == 3


@cache
def summing() -> hloforge.Executable:
    """Adds up what it is fed, one item a turn, and shows each sum."""
    builder = hloforge.Builder("summing")
    with builder:
        steps = builder.parameter(0, "s32[]", "steps")

        def turn(number: ops.Value, total: ops.Value, token: ops.Value) -> list[ops.Value]:
            item, token = ops.infeed("f32[3]", token)
            return [number + 1, total + item, ops.outfeed((number, total + item), token)]

        start = [ops.constant(np.int32(0)), ops.constant(np.zeros(3, np.float32)), ops.create_token()]
        _, total, _ = ops.while_(lambda number, *_: number < steps, turn, start)
        return hloforge.compile(builder.build(total), cache=False)


def test_a_loop_is_fed_item_by_item() -> None:
    session = summing().load(feeds=Feeds(timeout=20))
    items = np.arange(12, dtype=np.float32).reshape(4, 3)
    session.infeed.extend(items)
    np.testing.assert_array_equal(session(np.int32(4)), items.sum(axis=0))
    session.feeds.close()
    numbers, sums = zip(*session.outfeed, strict=True)
    np.testing.assert_array_equal(numbers, range(4))
    np.testing.assert_array_equal(sums, items.cumsum(axis=0))


def test_a_program_that_is_not_fed_says_so_and_can_be_called_again() -> None:
    session = summing().load(feeds=Feeds(timeout=0.01))
    with pytest.raises(ExecutionError, match="infeed: nothing is put into it"):
        session(np.int32(1))
    session.infeed.put(np.ones((2, 2), np.float32))
    with pytest.raises(ExecutionError, match=r"returned what it did not declare: .*f32\[3\]"):
        session(np.int32(1))
    session.infeed.put(np.ones(3, np.float32))
    np.testing.assert_array_equal(session(np.int32(1)), np.ones(3))


def test_the_host_answers_a_program_on_its_channels() -> None:
    builder = hloforge.Builder("dialogue")
    with builder:
        x = builder.parameter(0, "f32[2]", "x")
        question = ops.send_done(ops.send(x, 3, is_host_transfer=True))
        answer, _ = ops.recv_done(ops.recv("bf16[2]", 4, question, is_host_transfer=True))
        program = builder.build(ops.convert_element_type(answer, "f32"))
    session = hloforge.compile(program, cache=False).load(feeds=Feeds(timeout=20))

    def answer_once() -> None:
        asked = session.feeds.channel(3).get()
        session.feeds.channel(4).put((2 * asked).astype(hloforge.Shape.parse("bf16[]").element.dtype))

    with ThreadPoolExecutor(1) as pool:
        pool.submit(answer_once)
        np.testing.assert_array_equal(session(np.array([1.5, -4], np.float32)), [3, -8])
