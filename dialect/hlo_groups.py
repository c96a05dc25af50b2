"""Groups of devices in an HLO proto as lists, where it names them by the axes of a mesh.

Before: ``replica_groups=mesh['a'=2,'b'=2], device_ids=([2,2]T(1,0)) {'a'}``; after: ``replica_groups={{0,1},{2,3}}``.

XLA's converter to StableHLO keeps the axes and forgets in which order the devices are in the mesh, so that members of
other groups would exchange their data. Field numbers as found in jaxlib 0.10.2's protos: HloInstructionProto,
CollectiveDeviceListProto, MeshAxesReplicaGroupListProto, MeshProto.
"""

from __future__ import annotations

from math import prod

import numpy as np

from hloforge.dialect.meshes import Axis, Mesh
from hloforge.dialect.protobuf import encode, fields, first, pack, rewrite, unpack

_COMPUTATIONS, _INSTRUCTIONS = 3, 2
_LISTED_GROUPS, _MESH_GROUPS = 87, 93
# The bytes that a field of groups by a mesh begins with; few modules have them.
_KEY = encode(_MESH_GROUPS, b"")[:-1]
_GROUP, _MEMBERS = 1, 1
_MESH, _GROUP_AXES = 1, 2
_AXIS, _DEVICES, _ORDER = 1, 2, 3
_AXIS_NAME, _AXIS_SIZE = 1, 2
_AXIS_INDEX, _PART, _PART_BEFORE, _PART_SIZE = 1, 2, 1, 2
_RESHAPED, _PERMUTED = 1, 2


def with_listed_groups(module: bytes) -> bytes:
    """The ``HloModuleProto`` without groups that are named by axes.

    Raises:
        ValueError: the bytes are not a module.
    """
    if _KEY not in module:
        return module
    return rewrite(memoryview(module), _COMPUTATIONS, lambda one: rewrite(one, _INSTRUCTIONS, _listed))


def _listed(instruction: memoryview) -> bytes | memoryview:
    entry = first(instruction, _MESH_GROUPS)
    if entry is None:
        return instruction
    mesh = _mesh(_payload(entry.payload, _MESH))
    axes = [_axis(one.payload, mesh) for one in fields(entry.payload) if one.number == _GROUP_AXES]
    groups = b"".join(encode(_GROUP, encode(_MEMBERS, pack(group))) for group in mesh.groups(axes))
    kept = [instruction[one.start : one.end] for one in fields(instruction) if one.number != _MESH_GROUPS]
    return b"".join([*kept, encode(_LISTED_GROUPS, groups)])


def _mesh(message: memoryview) -> Mesh:
    axes = [one.payload for one in fields(message) if one.number == _AXIS]
    sizes = [_number(axis, _AXIS_SIZE) for axis in axes]
    devices = np.arange(prod(sizes))
    if given := _payload(message, _DEVICES):
        devices = np.array(unpack(given))
    elif order := _payload(message, _ORDER):
        devices = devices.reshape(unpack(_payload(order, _RESHAPED))).transpose(unpack(_payload(order, _PERMUTED)))
    names = [bytes(_payload(axis, _AXIS_NAME)).decode() for axis in axes]
    return Mesh(tuple(zip(names, sizes, strict=True)), tuple(devices.flatten().tolist()))


def _axis(message: memoryview, mesh: Mesh) -> Axis:
    name, _ = mesh.axes[_number(message, _AXIS_INDEX)]
    part = _payload(message, _PART)
    return Axis(name, _number(part, _PART_BEFORE) or 1, _number(part, _PART_SIZE)) if part else Axis(name)


def _payload(message: memoryview, number: int) -> memoryview:
    entry = first(message, number)
    return entry.payload if entry else memoryview(b"")


def _number(message: memoryview, number: int) -> int:
    """A number, which protos leave out where it is 0."""
    entry = first(message, number)
    return entry.value if entry and isinstance(entry.value, int) else 0
