"""Which programs a partitioner has still to cut: those that say how arrays lie on devices, and have whole arrays.

Annotations are Shardy's (a mesh, ``sdy.sharding``) or those of GSPMD (``mhlo.sharding``, from HLO's ``sharding=``). A
program that a partitioner has been through may have them as well, on parts of arrays; what tells it is communication
outside of manual regions, or the name that XLA gives its entry computation.
"""

from __future__ import annotations

import re
from math import prod

from hloforge.dialect.errors import Location, OptionError
from hloforge.dialect.marks import PARTITIONED
from hloforge.dialect.meshes import Mesh
from hloforge.dialect.mlir import AnyOp, entries, in_context, ir
from hloforge.dialect.operations import location_of, operations, string_attribute
from hloforge.pipelines.replicas.combine import COLLECTIVES
from hloforge.pipelines.replicas.grid import Grid

# A module of parts: an importer has seen XLA's partitioner in it.
_SHARDING, _FRONTEND = "mhlo.sharding", "mhlo.frontend_attributes"
_PER_VALUE = ("arg_attrs", "res_attrs")
_MESH, _MANUAL = "sdy.mesh", "sdy.manual_computation"
# Custom calls around a manual region, in GSPMD's form and in Shardy's for HLO.
_BORDERS = frozenset({"SPMDFullToShardShape", "xla.sdy.GlobalToLocalShape"})
_COMMUNICATION = frozenset({*COLLECTIVES, "stablehlo.partition_id"})
# How many parts each dimension has in the text of a sharding, after them how many devices share each.
_TILES = re.compile(r"devices=\[([\d,]+)\]")


def uses_shardy(module: ir.Module) -> bool:
    """Whether the annotations are Shardy's, as operations or as HLO has them."""
    return bool(operations(module, {_MESH})) or _FRONTEND in module.operation.attributes


def is_sharded(module: ir.Module) -> bool:
    """Whether a program of whole arrays says how they lie on several devices."""
    if PARTITIONED in module.operation.attributes or not _device_counts(module):
        return False
    found = operations(module, {*_COMMUNICATION, _MANUAL, "stablehlo.custom_call"})
    manual = any(op.name == _MANUAL or string_attribute(op, "call_target_name") in _BORDERS for op in found)
    return manual or not any(op.name in _COMMUNICATION for op in found)


def drop_gspmd(module: ir.Module) -> None:
    """Leave Shardy's annotations alone of those that HLO has in both forms: XLA would take the others."""
    with in_context(module):
        for op in operations(module):
            if _SHARDING in op.attributes:
                del op.attributes[_SHARDING]
            for name in _PER_VALUE:
                if name in op.attributes:
                    kept = [entries(entry) for entry in ir.ArrayAttr(op.attributes[name])]
                    for entry in kept:
                        entry.pop(_SHARDING, None)
                    op.attributes[name] = ir.ArrayAttr.get([ir.DictAttr.get(entry) for entry in kept])


def check_devices(module: ir.Module, grid: Grid) -> None:
    """Raises OptionError if a sharded program is for another number of devices than a grid has, or for replicas."""
    if grid.replicas > 1:
        raise OptionError(
            "a sharded program runs on the partitions of one replica",
            hint="leave out --replicas, or run it unsharded: with one partition",
        )
    for count, (what, where) in _device_counts(module).items():
        if count != grid.partitions:
            raise OptionError(
                f"{what} names {count} devices, and the program is to run on {grid.partitions} partitions",
                location=where,
                hint=f"--partitions={count}, or one partition for the whole program on one device",
            )


def _device_counts(module: ir.Module) -> dict[int, tuple[str, Location | None]]:
    """How many devices its annotations are for, where they are several; with an annotation and its position."""
    found: dict[int, tuple[str, Location | None]] = {}
    for op in operations(module):
        if op.name == _MESH:
            count = prod(size for _, size in Mesh.of(op.attributes["mesh"]).axes)
            found.setdefault(count, (f"the mesh @{string_attribute(op, 'sym_name')}", location_of(op)))
        for text in sorted(_shardings(op)):
            for tiles in _TILES.findall(text):
                count = prod(map(int, tiles.split(",")))
                found.setdefault(count, (f"the sharding {text}", location_of(op)))
    return {count: where for count, where in found.items() if count > 1}


def _shardings(op: AnyOp) -> set[str]:
    """The texts of GSPMD's shardings of an operation, and of a function's arguments and results."""
    texts = {string_attribute(op, _SHARDING)}
    for name in _PER_VALUE:
        if name in op.attributes:
            texts |= {
                one[_SHARDING].value for one in map(entries, ir.ArrayAttr(op.attributes[name])) if _SHARDING in one
            }
    return texts - {""}
