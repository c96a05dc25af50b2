"""A manual computation of Shardy on one device: its body for all devices of the mesh, on shards of global arrays.

Before::

    %r = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"d"}]>] out_shardings=[<@mesh, [{}]>] manual_axes={"d"}
      (%a: tensor<4xf32>) { %s = all_reduce of %a; sdy.return %s } : (tensor<8xf32>) -> tensor<4xf32>

After: both halves of ``%x``, the body folded over two devices, and the first one's result.

So a program of JAX's ``shard_map`` or ``pmap`` runs on its global arrays, with the collectives in it as plain
operations. Source: Shardy "SDY dialect", manual_computation.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

from hloforge.dialect import ops
from hloforge.dialect.errors import UnsupportedError
from hloforge.dialect.meshes import Mesh
from hloforge.dialect.mlir import AnyOp, ir, sdy
from hloforge.dialect.operations import location_of
from hloforge.dialect.values import Value
from hloforge.pipelines.replicas.folder import Folder
from hloforge.pipelines.replicas.grid import Grid

_WAY_OUT = "run the program on the devices of its mesh: --partitions"
# The axes by which each dimension of an array is cut, the major one first.
Cuts = list[list[str]]


def manual_axes(op: AnyOp) -> list[str]:
    """The names of the axes over which a computation is manual."""
    # The stubs do not say that the attribute can be iterated.
    axes: Any = sdy.ManualAxesAttr(op.attributes["manual_axes"])
    return [str(name) for name in axes]


def fold_manual(op: AnyOp, meshes: dict[str, Mesh]) -> None:
    """Replace a manual computation, whose body calls no functions.

    Raises:
        UnsupportedError: it is in another one, names several meshes or parts of axes, or communicates in a way that
            the folder refuses.
    """
    names = manual_axes(op)
    _check_outermost(op)
    mesh = _mesh(op, meshes)
    ins, outs = (_cuts(op, attribute, names) for attribute in ("in_shardings", "out_shardings"))
    folder = Folder(Grid(1, len(mesh.devices)))
    body = op.regions[0].blocks[0]
    with ir.InsertionPoint(op), op.location:
        for argument, operand, cuts in zip(body.arguments, op.operands, ins, strict=True):
            folder.values[argument] = _shards(Value(operand), cuts, mesh)
        returned = folder.block(body)
        results = [
            _whole([Value(one) for one in spread], cuts, mesh) for spread, cuts in zip(returned, outs, strict=True)
        ]
    for old, new in zip(op.results, results, strict=True):
        old.replace_all_uses_with(new.ir)
    op.erase()


def _shards(value: Value, cuts: Cuts, mesh: Mesh) -> list[Any]:
    """The part of an array that each device has, by its number. Devices of one part share a value."""
    sizes = [extent // _count(names, mesh) for extent, names in zip(value.dims, cuts, strict=True)]
    made: dict[tuple[int, ...], Any] = {}
    parts: list[Any] = [None] * len(mesh.devices)
    for device, place in _places(cuts, mesh):
        if place not in made:
            starts = [index * size for index, size in zip(place, sizes, strict=True)]
            made[place] = ops.slice(value, starts, [a + size for a, size in zip(starts, sizes, strict=True)]).ir
        parts[device] = made[place]
    return parts


def _whole(spread: Sequence[Value], cuts: Cuts, mesh: Mesh) -> Value:
    """The array of which each device has a part; of devices with one part the first."""
    parts: dict[tuple[int, ...], Value] = {}
    for device, place in _places(cuts, mesh):
        parts.setdefault(place, spread[device])
    for dimension in reversed(range(len(cuts))):
        rows: dict[tuple[int, ...], list[Value]] = {}
        for place in sorted(parts):
            rows.setdefault(place[:dimension], []).append(parts[place])
        parts = {place: ops.concat_in_dim(row, dimension) for place, row in rows.items()}
    return parts[()] if cuts else spread[0]


def _places(cuts: Cuts, mesh: Mesh) -> list[tuple[int, tuple[int, ...]]]:
    """Each device's number with the position of its part along every dimension."""
    sizes = dict(mesh.axes)
    found = []
    for device, position in zip(mesh.devices, product(*(range(size) for _, size in mesh.axes)), strict=True):
        at = dict(zip(sizes, position, strict=True))
        place = []
        for names in cuts:
            index = 0
            for name in names:
                index = index * sizes[name] + at[name]
            place.append(index)
        found.append((device, tuple(place)))
    return found


def _count(names: Sequence[str], mesh: Mesh) -> int:
    count = 1
    for name in names:
        count *= dict(mesh.axes)[name]
    return count


def _check_outermost(op: AnyOp) -> None:
    parent = op.parent
    while parent is not None:
        if parent.operation.name == "sdy.manual_computation":
            raise UnsupportedError(
                "a manual computation inside of another one, over several devices",
                location=location_of(op),
                hint=_WAY_OUT,
            )
        parent = parent.operation.parent


def _shardings(op: AnyOp, attribute: str) -> list[Any]:
    return [sdy.TensorShardingAttr(one) for one in sdy.TensorShardingPerValueAttr(op.attributes[attribute]).shardings]


def _mesh(op: AnyOp, meshes: dict[str, Mesh]) -> Mesh:
    found: list[Mesh] = []
    for sharding in (*_shardings(op, "in_shardings"), *_shardings(op, "out_shardings")):
        given = sharding.mesh_or_ref
        mesh = meshes[given.value] if isinstance(given, ir.FlatSymbolRefAttr) else Mesh.of(given)
        if mesh not in found:
            found.append(mesh)
    if len(found) != 1:
        raise UnsupportedError(f"a manual computation over {len(found)} meshes", location=location_of(op))
    return found[0]


def _cuts(op: AnyOp, attribute: str, names: Sequence[str]) -> list[Cuts]:
    """Of each value the manual axes by which its dimensions are cut; the body sees arrays that others cut whole."""
    found = []
    for sharding in _shardings(op, attribute):
        cuts = []
        for dimension in sharding.dimension_shardings:
            axes = [sdy.AxisRefAttr(axis) for axis in sdy.DimensionShardingAttr(dimension).axes]
            if any(axis.sub_axis_info is not None for axis in axes):
                raise UnsupportedError(
                    "a manual computation over parts of axes", location=location_of(op), hint=_WAY_OUT
                )
            cuts.append([str(axis.name) for axis in axes if axis.name in names])
        found.append(cuts)
    return found
