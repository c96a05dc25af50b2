"""Protos that the plugin reads and writes, against jaxlib's own."""

from __future__ import annotations

import numpy as np
import pytest
from jax._src.lib import xla_client

from hloforge.dialect.mlir import _hlo
from hloforge.jax.plugin.compile_options import Placement, op_sharding, placement
from hloforge.pipelines.replicas.shards import Sharding
from hloforge.runtime.compile.partition_worker import tiling


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


UNREDUCED = {
    "{unreduced}": Sharding((4, 6), (1, 1), (0,) * 8, tuple(range(8))),
    "{devices=[2,1,2,2]<=[2,2,2]T(0,2,1) last_tile_dims={unreduced, replicated}}": Sharding(
        (4, 6), (2, 1), (0, 0, 0, 0, 1, 1, 1, 1), (0, 1, 0, 1, 0, 1, 0, 1)
    ),
    "{devices=[2,2,2]<=[8] last_tile_dims={unreduced}}": Sharding(
        (4, 6), (2, 2), (0, 0, 1, 1, 2, 2, 3, 3), (0, 1, 0, 1, 0, 1, 0, 1)
    ),
    "{devices=[1,1,2,4]<=[8] last_tile_dims={unreduced, replicated}}": Sharding(
        (4, 6), (1, 1), (0,) * 8, (0, 0, 0, 0, 1, 1, 1, 1)
    ),
}


@pytest.mark.parametrize("text", UNREDUCED)
def test_unreduced_arrays_are_written_and_read_as_xla_has_them(text: str) -> None:
    """The names are those that XLA gives what JAX makes of ``P(…, unreduced={"x"})``."""
    proto = xla_client.OpSharding()
    proto.ParseFromString(op_sharding(UNREDUCED[text]))
    of_xla = _hlo.HloSharding.from_string(text)
    assert xla_client.HloSharding.from_proto(proto) == of_xla
    assert Sharding((4, 6), *map(tuple, tiling(of_xla, 2, 8))) == UNREDUCED[text]


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("{manual}", Sharding((4, 6), (1, 1), (0,) * 8)),
        ("{devices=[2,1,4]<=[8] last_tile_dims={manual}}", Sharding((4, 6), (2, 1), (0, 0, 0, 0, 1, 1, 1, 1))),
    ],
)
def test_manual_arrays_are_read_as_replicated_ones(text: str, read: Sharding) -> None:
    assert Sharding((4, 6), *map(tuple, tiling(_hlo.HloSharding.from_string(text), 2, 8))) == read


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
