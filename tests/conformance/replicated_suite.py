"""The programs of StableHLO's interpreter tests that need several devices or a host: grids, inputs and what they give.

The data hold the programs alone. Grids are those that the programs' groups and shapes ask for; expected values are
worked out here by the specification, in numpy, from inputs that are all different.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

import numpy as np

from hloforge.dialect.shapes import Shape
from tests.conformance.interpret_suite import _cases_module
from tests.support import SHARED

Array: TypeAlias = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Grid:
    """How a program runs.

    Attributes:
        expected: from the inputs, each with a leading dimension of the devices, to the results likewise.
    """

    replicas: int
    partitions: int
    expected: Callable[..., Sequence[Array]]


def every(count: int, value: Array) -> list[Array]:
    """The same result on all devices."""
    return [np.stack([value] * count)]


def joined(x: Array, order: Sequence[int]) -> Array:
    """Operands of some devices side by side."""
    return np.concatenate([x[device] for device in order], axis=1)


def exchanged(x: Array, order: Sequence[int], axis: int = 1) -> Array:
    """all_to_all of two: the halves along an axis that stand at each member's place, one below the other."""
    blocks = [np.split(x[device], 2, axis=axis) for device in order]
    by_place = [np.concatenate([halves[place] for halves in blocks]) for place in range(2)]
    return np.stack([by_place[order.index(device)] for device in range(2)])


def scattered(x: Array) -> list[Array]:
    """reduce_scatter of two along the columns."""
    return [np.stack(np.split(x.sum(axis=0), 2, axis=1))]


def moved(x: Array, sources: Sequence[int | None]) -> list[Array]:
    """What each device receives: another's operand, or zeros."""
    return [np.stack([np.zeros_like(x[0]) if source is None else x[source] for source in sources])]


GRIDS: dict[str, Grid] = {
    "all_gather.mlir#0": Grid(2, 1, lambda x: every(2, joined(x, [0, 1]))),
    "all_gather.mlir#1": Grid(2, 1, lambda x: every(2, joined(x, [0, 1]))),
    # Device 1 is replica 0, partition 1: the replicas of a partition stand together.
    "all_gather.mlir#2": Grid(2, 2, lambda x: every(4, joined(x, [0, 2, 1, 3]))),
    "all_gather.mlir#3": Grid(2, 1, lambda x: every(2, joined(x, [0, 1]))),
    "all_gather.mlir#4": Grid(2, 1, lambda x, y: [*every(2, joined(x, [0, 1])), *every(2, joined(y, [0, 1]))]),
    "all_reduce.mlir#0": Grid(2, 1, lambda x: every(2, x[0] + x[1])),
    "all_reduce.mlir#1": Grid(2, 2, lambda x: every(4, x.sum(axis=0))),
    "all_reduce.mlir#2": Grid(1, 2, lambda x: every(2, x[0] + x[1])),
    "all_reduce.mlir#3": Grid(3, 1, lambda x: [np.stack([x[0] + x[1], x[0] + x[1], x[2]])]),
    "all_reduce.mlir#4": Grid(2, 1, lambda x, y: [*every(2, x[0] + x[1]), *every(2, y[0] + y[1])]),
    "all_to_all.mlir#0": Grid(2, 1, lambda x: [exchanged(x, [0, 1])]),
    "all_to_all.mlir#1": Grid(2, 1, lambda x: [exchanged(x, [1, 0])]),
    "all_to_all.mlir#2": Grid(1, 2, lambda x: [exchanged(x, [0, 1])]),
    "all_to_all.mlir#3": Grid(2, 1, lambda x: [exchanged(x, [0, 1], axis=0)]),
    "all_to_all.mlir#4": Grid(2, 1, lambda x, y: [exchanged(x, [0, 1]), exchanged(y, [0, 1])]),
    "collective_broadcast.mlir#0": Grid(4, 1, lambda x: moved(x, [None, 2, 2, None])),
    "collective_broadcast.mlir#1": Grid(4, 1, lambda x: moved(x, [2, 2, 2, None])),
    "collective_broadcast.mlir#2": Grid(1, 1, lambda x: moved(x, [0])),
    "collective_broadcast.mlir#3": Grid(2, 2, lambda x: moved(x, [2, 3, 2, 3])),
    "collective_broadcast.mlir#4": Grid(1, 4, lambda x: moved(x, [None, 2, 2, None])),
    "collective_broadcast.mlir#5": Grid(1, 4, lambda x: moved(x, [2, 2, 2, None])),
    "collective_broadcast.mlir#6": Grid(1, 1, lambda x: moved(x, [0])),
    "collective_broadcast.mlir#7": Grid(2, 2, lambda x: moved(x, [1, 1, 3, 3])),
    "collective_permute.mlir#0": Grid(5, 1, lambda x: moved(x, [None, 0, 1, 3, 4])),
    "collective_permute.mlir#1": Grid(1, 5, lambda x: moved(x, [None, 0, 1, 3, 4])),
    "partition_id.mlir#0": Grid(2, 3, lambda: [np.array([0, 1, 2] * 2, np.uint32)]),
    "reduce_scatter.mlir#0": Grid(2, 1, scattered),
    "reduce_scatter.mlir#1": Grid(2, 1, scattered),
    "reduce_scatter.mlir#2": Grid(1, 2, scattered),
    "replica_id.mlir#0": Grid(3, 2, lambda: [np.array([0, 0, 1, 1, 2, 2], np.uint32)]),
}


@cache
def texts() -> dict[str, str]:
    """The programs by name; those of a test that is one program by the test's name."""
    if not (SHARED / "conformance" / "cases.py").is_file():
        return {}
    found = {case.name: case.mlir for case in _cases_module().load() if case.inputs is None}
    return {name.partition(":")[0] if name.partition(":")[0] in GRIDS else name: text for name, text in found.items()}


def inputs(shapes: Sequence[Shape], devices: int) -> list[Array]:
    """An input for each parameter of one device's program: numbers that are all different."""
    made, start = [], 1
    for shape in shapes:
        assert shape.element is not None
        sizes = (devices, *shape.dimensions)
        count = int(np.prod(sizes))
        made.append(np.arange(start, start + count).reshape(sizes).astype(shape.element.dtype))
        start += count
    return made
