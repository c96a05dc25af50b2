"""XLA's CPU client over several devices, for tests of replicas and partitions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np

from hloforge.dialect.mlir import _hlo, _jax, parse_module

_MOST_DEVICES = 8


class _Rows(_jax.GSPMDSharding):  # type: ignore[misc]
    """A device a row, with the members that jax adds in Python."""

    memory_kind = None

    def _to_xla_hlo_sharding(self, rank: int) -> Any:
        return self._hlo_sharding


@cache
def _client() -> Any:
    return _jax.get_tfrt_cpu_client(num_devices=_MOST_DEVICES)


def run_on_grid(
    mlir: str, replicas: int, partitions: int, inputs: Sequence[np.ndarray[Any, Any]]
) -> list[np.ndarray[Any, Any]]:
    """The results of a program on a grid of devices: a leading dimension of the devices in arguments and results.

    Arguments need a dimension of their own. Collectives that devices reach unevenly hang.
    """
    count = replicas * partitions
    devices = tuple(_client().local_devices()[:count])
    placed = _jax.DeviceList(devices)
    executable = _client().compile_and_load(parse_module(mlir), placed, _options(replicas, partitions))
    results = executable.execute_sharded([_placed(array, devices, placed) for array in inputs])
    shards = results.disassemble_into_single_device_arrays()
    return [np.stack([np.array(one._single_device_array_to_np_array_did_copy()[0]) for one in row]) for row in shards]


def _options(replicas: int, partitions: int) -> Any:
    options = _jax.CompileOptions()
    building = options.executable_build_options
    for holder in (options, building):
        holder.num_replicas, holder.num_partitions = replicas, partitions
    # The partitioner has nothing to do in a program without shardings, and XLA takes no partitions without it.
    building.use_spmd_partitioning = partitions > 1
    numbers = np.arange(replicas * partitions).reshape(replicas, partitions)
    building.device_assignment = _jax.DeviceAssignment.create(numbers)
    return options


def _placed(array: np.ndarray[Any, Any], devices: Sequence[Any], placed: Any) -> Any:
    count, first, *others = array.shape
    whole = SimpleNamespace(shape=(count * first, *others), dtype=array.dtype, weak_type=False)
    sharding = _Rows(placed, _hlo.HloSharding.iota_tile([count, *[1] * len(others)]))
    semantics = _jax.HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL
    return _jax.batched_device_put(
        whole, sharding, list(array), list(devices), host_buffer_semantics=semantics, enable_x64=True
    )
