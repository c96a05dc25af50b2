"""Threads: what one device gives, others take; a wait that nothing can end is an error."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from hloforge.dialect.errors import ExecutionError
from hloforge.runtime.replicas.communicator import Threads


def array(number: int) -> np.ndarray:
    return np.array([number])


def test_messages_of_a_key_keep_their_order_and_keys_are_apart() -> None:
    group = Threads(2)
    first, second = group.member(0), group.member(1)
    for number in (1, 2):
        first.give(1, "a", [array(number)])
    first.give(1, "b", [array(3)])
    taken = [second.take([0], key)[0][0].item() for key in ("b", "a", "a")]
    assert taken == [3, 1, 2]


def test_a_member_waits_for_all_its_sources() -> None:
    group = Threads(3, timeout=20)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(group.member(0).take, [1, 2], "k")
        group.member(2).give(0, "k", [array(2)])
        group.member(1).give(0, "k", [array(1)])
        assert [arrays[0].item() for arrays in waiting.result()] == [1, 2]


def test_a_source_that_has_ended_is_named() -> None:
    group = Threads(2, timeout=None, name="replica {}".format)
    group.end(1)
    with pytest.raises(ExecutionError, match="replica 0 waits in all_reduce number 0 for replica 1") as caught:
        group.member(0).take([1], "all_reduce number 0")
    assert "replica 1 has ended" in str(caught.value)


def test_a_failure_ends_who_waits_for_it() -> None:
    group = Threads(2, timeout=None)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(group.member(0).take, [1], "k")
        group.end(1, "failed: out of luck")
        with pytest.raises(ExecutionError, match="waits in k for device 1") as caught:
            waiting.result()
    assert "device 1 failed: out of luck" in str(caught.value)


def test_members_that_wait_for_each_other_are_told_so_at_once() -> None:
    group = Threads(3, timeout=None)
    keys = ("all_reduce number 0", "all_gather number 1", "channel 5")
    with ThreadPoolExecutor(3) as pool:
        waits = [pool.submit(group.member(rank).take, [(rank + 1) % 3], key) for rank, key in enumerate(keys)]
        errors = [str(wait.exception()) for wait in waits]
    for rank, error in enumerate(errors):
        other = (rank + 1) % 3
        assert f"device {rank} waits in {keys[rank]} for device {other}" in error
        assert f"device {other} waits in {keys[other]}" in error


def test_who_computes_is_waited_for_until_the_time_is_up() -> None:
    group = Threads(2, timeout=0.01)
    with pytest.raises(ExecutionError, match=r"after 0.01 s for device 1") as caught:
        group.member(0).take([1], "k")
    assert "device 1 computes" in str(caught.value)


def test_a_message_on_its_way_is_no_deadlock() -> None:
    """Each of many rounds has a moment in which all wait and one has been given what it waits for."""
    group = Threads(2, timeout=20)

    def play(rank: int) -> int:
        member, other = group.member(rank), 1 - rank
        total = 0
        for number in range(200):
            if number % 2 == rank:
                member.give(other, "ball", [array(number)])
            else:
                total += member.take([other], "ball")[0][0].item()
        return total

    with ThreadPoolExecutor(2) as pool:
        totals = list(pool.map(play, range(2)))
    assert totals == [sum(range(1, 200, 2)), sum(range(0, 200, 2))]
