"""What one process of the tests of MPI does: ``mpiexec -n 2 python -m tests.runtime.mpi_rank NAME``."""

from __future__ import annotations

import os
import signal
import sys

import numpy as np

import hloforge
from hloforge import ops
from hloforge.runtime.replicas.communicator import Combination
from hloforge.runtime.replicas.communicator_mpi import Mpi, world
from hloforge.runtime.replicas.mpi import Rank
from tests.runtime.compile.test_partition import PROGRAMS
from tests.runtime.large_collectives import PROGRAM, inputs
from tests.runtime.replicas.test_replicas import BATCH, INPUTS, OUTPUTS, single_device, training


def trains(ranks: int) -> None:
    """A data-parallel training gives what one device computes."""
    random = np.random.default_rng(7)
    w, x, y = (random.normal(size=sizes) for sizes in ((INPUTS, OUTPUTS), (BATCH, INPUTS), (BATCH, OUTPUTS)))
    device = Rank(hloforge.compile(training(ranks), replicas=ranks), ranks, timeout=30)
    parts = (np.split(array.astype(np.float32), ranks)[device.rank] for array in (x, y))
    np.testing.assert_allclose(device.own(w.astype(np.float32), *parts), single_device(w, x, y), rtol=1e-5, atol=1e-6)


def cut(ranks: int) -> None:
    """Each process takes its part of whole arrays, and the first one has the whole result."""
    device = Rank(hloforge.compile(PROGRAMS / "contraction.gspmd.mlir", partitions=ranks), 1, ranks, timeout=30)
    x, w = hloforge.random_inputs(device.signature)
    product = device(x, w)
    assert (product is None) is (device.rank > 0)
    if product is not None:
        np.testing.assert_allclose(product, x @ w, rtol=1e-5, atol=1e-5)


def exchanges(ranks: int) -> None:
    """Arrays of many sizes and types arrive whole, in order, beside each other."""
    builder = hloforge.Builder("exchange")
    with builder:
        large = builder.parameter(0, "f32[300000]", "large")
        narrow = builder.parameter(1, "s4[5]", "narrow")
        empty = builder.parameter(2, "bf16[0,3]", "empty")

        def turn(number: ops.Value, x: ops.Value) -> list[ops.Value]:
            return [number + 1, ops.collective_permute(x, [(0, 1), (1, 0)]) + 1.0]

        start = [ops.constant(np.int32(0)), large]
        moved = ops.while_(lambda number, _: number < 5, turn, start)[1]
        program = builder.build([moved, ops.all_gather(narrow, 0, 2, [[1, 0]]), ops.all_gather(empty, 1, 2, [[0, 1]])])
    device = Rank(hloforge.compile(program, replicas=ranks), ranks, timeout=30)
    large, narrow, empty = (hloforge.Shape.parse(text) for text in ("f32[300000]", "s4[5]", "bf16[0,3]"))
    every = [np.arange(300000, dtype=np.float32) + rank for rank in range(ranks)]
    codes = [(np.arange(5) - rank).astype(narrow.element.dtype) for rank in range(ranks)]
    moved, gathered, nothing = device.own(every[device.rank], codes[device.rank], np.empty((0, 3), empty.element.dtype))
    np.testing.assert_array_equal(moved, every[1 - device.rank] + 5)
    np.testing.assert_array_equal(gathered, np.concatenate([codes[1], codes[0]]))
    assert nothing.shape == (0, 6)


def combines(ranks: int) -> None:
    """Collectives of large arrays, which are MPI's own, give what threads compute."""
    program = hloforge.compile(PROGRAM, replicas=ranks)
    expected = hloforge.Replicas(program, ranks)(*inputs())
    device = Rank(program, ranks, timeout=30)
    for own, every in zip(device.own(*(array[device.rank] for array in inputs())), expected, strict=True):
        np.testing.assert_array_equal(own, every[device.rank])


def uneven(ranks: int) -> None:
    """One device comes once less than the other, which is told so."""
    from tests.runtime.replicas.test_replicas import uneven as program

    device = Rank(program(), ranks, timeout=30)
    try:
        device.own(np.int32(3 - device.rank), np.ones(2, np.float32))
    except hloforge.ExecutionError as error:
        text = str(error)
        assert "replica 0 waits in all_reduce" in text and "for replica 1" in text and "replica 1 has ended" in text
        print("told so")


def killed(ranks: int) -> None:
    """One device is killed while the other waits for it."""
    from tests.runtime.replicas.test_replicas import uneven as program

    device = Rank(program(), ranks, timeout=5)
    if device.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    device.own(np.int32(1), np.ones(2, np.float32))


def early(ranks: int) -> None:
    """One process fails before it has a device."""
    from tests.runtime.replicas.test_replicas import uneven as program

    if world().rank == 1:
        raise SystemExit("failed early")
    Rank(program(), ranks, timeout=1)


def stuck(ranks: int) -> None:
    """One device says that it is there, and does not begin the collective."""
    communicator = Mpi(world(), 1.0)
    ones = np.ones(3, np.float32)
    if communicator.rank == 1:
        communicator.give(0, "all_reduce number 0", [])
        communicator.take([0], "what never comes")
    communicator.combine(Combination("all_reduce", (0, 1), "add"), "all_reduce number 0", [ones], [ones.copy()])


if __name__ == "__main__":
    {one.__name__: one for one in (trains, cut, exchanges, combines, uneven, killed, early, stuck)}[sys.argv[1]](
        world().size
    )
    print("well")
