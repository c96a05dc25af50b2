"""Processes joined by TCP; here each is a thread with connections of its own."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from hloforge.dialect.errors import ExecutionError
from hloforge.runtime.replicas.communicator import Combination
from hloforge.runtime.replicas.communicator_tcp import Peers, Run

# Whose each of the devices is.
OWNERS = (0, 1, 1, 2)
EVERYBODY = tuple(range(len(OWNERS)))


@pytest.fixture
def peers() -> Iterator[list[Peers]]:
    made = [Peers(process, "127.0.0.1") for process in range(3)]
    for one in made:
        one.connect({other.process: other.address for other in made if other is not one})
    yield made
    end(made)


def end(peers: list[Peers]) -> None:
    """Each waits for the others."""
    with ThreadPoolExecutor(len(peers)) as pool:
        list(pool.map(Peers.end, peers))


def begun(peers: Peers, program: str = "jit_f") -> Run:
    return Run(peers, program, EVERYBODY, OWNERS, 30.0, "device {}".format)


def on_all(runs: list[Run], function: Callable[[int, Any], Any]) -> list[Any]:
    """The results of the devices, each in a thread."""
    with ThreadPoolExecutor(len(OWNERS)) as pool:
        return list(pool.map(lambda rank: function(rank, runs[OWNERS[rank]].member(rank)), EVERYBODY))


@pytest.mark.parametrize("kind", ["all_gather", "all_to_all", "reduce_scatter", "all_reduce"])
def test_collectives(kind: str, peers: list[Peers]) -> None:
    given = np.random.default_rng(0).integers(-9, 9, (4, 4, 5, 3)).astype(np.int16)
    expected = {
        "all_gather": np.stack([given] * 4),
        "all_to_all": given.swapaxes(0, 1),
        "reduce_scatter": given.sum(0, dtype=np.int16),
        "all_reduce": np.stack([given.sum(0, dtype=np.int16)] * 4),
    }[kind]

    def combined(rank: int, member: Any) -> Any:
        result = np.empty_like(expected[rank])
        member.combine(Combination(kind, EVERYBODY, "add"), "here", [given[rank]], [result])
        return result

    runs = [begun(one) for one in peers]
    np.testing.assert_array_equal(on_all(runs, combined), expected)


def test_what_comes_early_waits_for_its_run(peers: list[Peers]) -> None:
    values = [np.float32(1.5), np.zeros((2, 0)), np.arange(6).reshape(2, 3).T]
    for turn in range(2):
        first = begun(peers[0])
        # The same line stands in another folder there.
        first.member(0).give(2, 'all_reduce number 0 at "a.py"', [value + turn for value in values])
        first.end(0)
        first.close()
    for turn in range(2):
        run = begun(peers[1])
        (taken,) = run.member(2).take([0], 'all_reduce number 0 at "b.py"')
        for one, value in zip(taken, values, strict=True):
            np.testing.assert_array_equal(one, value + turn)
        with pytest.raises(ExecutionError, match="device 2 waits in more for device 0") as error:
            run.member(2).take([0], "more")
        assert error.value.notes == ("device 0 has ended",)
        run.close()


def test_another_program_and_a_lost_process(peers: list[Peers]) -> None:
    run, other = begun(peers[0]), begun(peers[2], "jit_g")
    other.member(3).give(0, "all_reduce", [np.ones(3)])
    with pytest.raises(ExecutionError, match="waits in all_reduce for device 3") as error:
        run.member(0).take([3], "all_reduce")
    assert "process 2 runs jit_g, and this process jit_f" in str(error.value)
    for connection in peers[1]._connections.values():
        connection.shutdown(socket.SHUT_RDWR)
    with pytest.raises(ExecutionError, match="waits in all_reduce for device 1") as error:
        run.member(0).take([1], "all_reduce")
    assert "process 1 has ended, was killed" in str(error.value)


def test_strangers_are_sent_away() -> None:
    one, two = Peers(0, "127.0.0.1"), Peers(1, "127.0.0.1")
    one.connect({1: two.address})
    with socket.create_connection((one.address.host, one.address.port)) as stranger:
        stranger.sendall(b"0" * 40)
        assert stranger.recv(1) == b""
    two.connect({0: one.address})
    run = Run(one, "jit_f", (0, 1), (0, 1), 30.0, str)
    Run(two, "jit_f", (0, 1), (0, 1), 30.0, str).member(1).give(0, "well", [])
    assert run.member(0).take([1], "well") == [[]]
    end([one, two])
