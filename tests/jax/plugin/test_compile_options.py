"""Protos that the plugin reads and writes, against jaxlib's own."""

from __future__ import annotations

import numpy as np
import pytest
from jax._src.lib import xla_client

from hloforge.jax.plugin.compile_options import Placement, op_sharding, placement
from hloforge.pipelines.replicas.shards import Sharding


def serialized(assignment: list[list[int]]) -> bytes:
    """Compile options for devices by replica and partition."""
    options = xla_client.CompileOptions()
    options.num_replicas, options.num_partitions = np.shape(assignment)
    options.device_assignment = xla_client.DeviceAssignment.create(np.array(assignment))
    return bytes(options.SerializeAsString())


@pytest.mark.parametrize("assignment", [[[0]], [[3]], [[0, 1]], [[1], [0]], [[4, 2, 0], [5, 300, 1]]], ids=str)
def test_devices_are_read_by_replica_and_partition(assignment: list[list[int]]) -> None:
    shape = np.shape(assignment)
    assert placement(serialized(assignment)) == Placement(shape[0], shape[1], tuple(np.ravel(assignment).tolist()))


def test_without_an_assignment_programs_run_on_the_first_devices() -> None:
    options = xla_client.CompileOptions()
    options.num_partitions = 2
    assert placement(options.SerializeAsString()) == Placement(1, 2, (0, 1))
    assert placement(b"") == Placement()


SHARDINGS = {
    "replicated": Sharding((4, 6), (1, 1), (0, 0, 0, 0)),
    "rows": Sharding((4, 6), (4, 1), (0, 1, 2, 3)),
    "rows of pairs": Sharding((4, 6), (2, 1), (0, 1, 0, 1)),
    "columns in another order": Sharding((4, 6), (1, 4), (2, 0, 3, 1)),
    "blocks": Sharding((4, 6), (2, 2), (0, 2, 1, 3)),
}


@pytest.mark.parametrize("sharding", SHARDINGS.values(), ids=SHARDINGS)
def test_shardings_are_written_as_xla_reads_them(sharding: Sharding) -> None:
    proto = xla_client.OpSharding()
    proto.ParseFromString(op_sharding(sharding))
    read = xla_client.HloSharding.from_proto(proto)
    if read.is_replicated():
        assert sharding.tiles == (1, 1)
        return
    tiles = read.tile_assignment_dimensions()
    devices = np.reshape(read.tile_assignment_devices(), (int(np.prod(sharding.tiles)), -1))
    assert tuple(tiles[:2]) == sharding.tiles
    assert [int(np.flatnonzero((devices == device).any(1))[0]) for device in range(4)] == list(sharding.places)
