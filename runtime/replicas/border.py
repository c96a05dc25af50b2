"""What a call of all devices takes and gives: arrays with a leading dimension of the devices, or whole arrays.

A program that was written for one of several devices has a part of everything, and says nothing of wholes: its callers
stack the parts. A program that was partitioned here knows how whole arrays lie on the devices.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from hloforge.dialect.errors import ArgumentError
from hloforge.dialect.program import Signature
from hloforge.dialect.shapes import Shape
from hloforge.pipelines.replicas.folded_signature import folded_signature
from hloforge.pipelines.replicas.shards import Sharded
from hloforge.runtime.session.convention import flatten_arguments, nest_results, result_leaves


class Border(Protocol):
    """Between a call of all devices and the calls of each.

    Attributes:
        signature: of the call of all.
    """

    signature: Signature

    def split(self, arguments: Sequence[Any]) -> list[tuple[Any, ...]]:
        """The arguments of each device. Raises ArgumentError for others than the signature's."""

    def join(self, results: Sequence[Any]) -> Any:
        """The result of a call, of the results of each device."""


class Stacked:
    """Arguments and results with a leading dimension of the devices."""

    def __init__(self, own: Signature, devices: int) -> None:
        self.signature = folded_signature(own, devices)
        self._own, self._devices = own, devices

    def split(self, arguments: Sequence[Any]) -> list[tuple[Any, ...]]:
        parts = [parts_of(argument, self._devices) for argument in arguments]
        return [tuple(part[device] for part in parts) for device in range(self._devices)]

    def join(self, results: Sequence[Any]) -> Any:
        leaves = [result_leaves(self._own.result, result) for result in results]
        return nest_results(self.signature.result, [np.stack(column) for column in zip(*leaves, strict=True)])


class Whole:
    """Arguments and results as the program has them that was partitioned."""

    def __init__(self, own: Signature, devices: int, sharded: Sharded) -> None:
        self.signature = sharded.whole(own)
        self._own, self._devices, self._sharded = own, devices, sharded

    def split(self, arguments: Sequence[Any]) -> list[tuple[Any, ...]]:
        leaves = list(zip(self._sharded.parameters, flatten_arguments(self.signature, arguments), strict=True))
        parameters = Shape.tuple_of(*(parameter.shape for parameter in self._own.parameters))
        return [
            nest_results(parameters, [array if array is None else s.part(array, device) for s, array in leaves])
            for device in range(self._devices)
        ]

    def join(self, results: Sequence[Any]) -> Any:
        leaves = zip(*(result_leaves(self._own.result, result) for result in results), strict=True)
        pairs = zip(self._sharded.results, leaves, strict=True)
        # A token is None on each device.
        wholes = [None if parts[0] is None else sharding.whole(parts) for sharding, parts in pairs]
        return nest_results(self.signature.result, wholes)


def border_of(own: Signature, sharded: Sharded | None, devices: int) -> Border:
    """The border of a program with this signature on each device."""
    return Stacked(own, devices) if sharded is None else Whole(own, devices, sharded)


def parts_of(argument: Any, devices: int) -> list[Any]:
    """An argument of each device, of one with a leading dimension of the devices. Raises ArgumentError."""
    if isinstance(argument, tuple):
        return list(zip(*(parts_of(member, devices) for member in argument), strict=True)) or [()] * devices
    if argument is None:
        return [None] * devices
    if len(argument) != devices:
        raise ArgumentError(
            f"an argument is for {len(argument)} devices, but {devices} run",
            hint="arguments have a leading dimension of replicas times partitions",
        )
    return list(argument)
