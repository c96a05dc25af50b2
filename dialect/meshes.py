"""Meshes of devices: named axes, and the groups and shards that they make.

Source: Shardy "SDY dialect" (mesh, axis_ref, sub_axis_info); StableHLO specification "replica_group_mesh_axes".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np

from hloforge.dialect.emission import i64_matrix
from hloforge.dialect.mlir import in_context, ir, sdy, stablehlo
from hloforge.dialect.operations import operations, string_attribute


@dataclass(frozen=True)
class Axis:
    """An axis of a mesh, or the part of one that ``size`` devices at a distance of what follows it are.

    Attributes:
        before: the product of the parts before it.
        size: how many devices it has; 0 for the whole axis.
    """

    name: str
    before: int = 1
    size: int = 0


@dataclass(frozen=True)
class Mesh:
    """Devices in a grid of named axes.

    Attributes:
        axes: their names and sizes, the major one first.
        devices: the number of each device, in the order of the axes.
    """

    axes: tuple[tuple[str, int], ...]
    devices: tuple[int, ...]

    @classmethod
    def of(cls, attribute: Any, dialect: Any = sdy) -> Mesh:
        """Read a mesh of Shardy or StableHLO."""
        mesh = dialect.MeshAttr(attribute)
        members = [dialect.MeshAxisAttr(axis) for axis in mesh.axes]
        axes = tuple((str(axis.name), int(axis.size)) for axis in members)
        return cls(axes, tuple(map(int, mesh.device_ids or ())) or tuple(range(prod(size for _, size in axes))))

    def groups(self, axes: Sequence[Axis]) -> list[list[int]]:
        """The devices that differ along the given axes alone, one group a row, the last axis fastest."""
        cuts = {name: self._cuts(name, size, axes) for name, size in self.axes}
        parts = [(name, low, high) for name, _ in self.axes for low, high in pairwise(cuts[name])]
        grid = np.array(self.devices).reshape([high // low for _, low, high in parts])
        asked = [
            number
            for axis in axes
            for number, part in enumerate(parts)
            if self._covers(axis, *part, cuts[axis.name][-1])
        ]
        others = [number for number in range(len(parts)) if number not in asked]
        size = prod(grid.shape[number] for number in asked)
        groups: list[list[int]] = grid.transpose([*others, *asked]).reshape(-1, size).tolist()
        return groups

    @staticmethod
    def _cuts(name: str, size: int, axes: Sequence[Axis]) -> list[int]:
        """Where an axis is cut into parts, as products of what is before each cut."""
        mine = [axis for axis in axes if axis.name == name and axis.size]
        return sorted({1, size, *(axis.before for axis in mine), *(axis.before * axis.size for axis in mine)})

    @staticmethod
    def _covers(axis: Axis, name: str, low: int, high: int, whole: int) -> bool:
        end = axis.before * axis.size if axis.size else whole
        return name == axis.name and axis.before <= low and high <= end


def meshes_of(module: ir.Module) -> dict[str, Mesh]:
    """The meshes of a module by their symbols."""
    return {
        string_attribute(op, "sym_name"): Mesh.of(op.operation.attributes["mesh"])
        for op in module.body.operations
        if op.operation.name == "sdy.mesh"
    }


def list_groups(module: ir.Module) -> None:
    """Write groups that are named by axes of a mesh as lists of devices."""
    meshes = meshes_of(module)
    for op in operations(module):
        if "replica_groups" not in op.attributes:
            continue
        attribute = op.attributes["replica_groups"]
        if stablehlo.ReplicaGroupMeshAxesAttr.isinstance(attribute):
            named = stablehlo.ReplicaGroupMeshAxesAttr(attribute)
            symbol = isinstance(named.mesh, ir.FlatSymbolRefAttr)
            mesh = meshes[ir.FlatSymbolRefAttr(named.mesh).value] if symbol else Mesh.of(named.mesh, stablehlo)
            # Typed as one attribute, and an array of them.
            axes: Any = named.axes
            groups = mesh.groups([_axis(ref, stablehlo) for ref in axes])
            with in_context(module):
                op.attributes["replica_groups"] = i64_matrix(groups, len(groups[0]))


def _axis(reference: Any, dialect: Any) -> Axis:
    """Read an ``axis_ref`` of StableHLO or Shardy."""
    ref = dialect.AxisRefAttr(reference)
    if ref.sub_axis_info is None:
        return Axis(str(ref.name))
    part = dialect.SubAxisInfoAttr(ref.sub_axis_info)
    return Axis(str(ref.name), int(part.pre_size), int(part.size))
