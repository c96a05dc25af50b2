"""``fold-replicas``: the programs of all devices as one program on one device.

Before, for 2 replicas::

    func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
      %s = "stablehlo.all_reduce"(%x) ({ add }) {replica_groups = dense<[[0, 1]]>}
      return %s }

After::

    func.func @main(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
      %x0, %x1 = the rows of %x
      %s = stablehlo.map(%x0, %x1) ({ add })
      return %s and %s as the rows of one array }

Arguments and results have a leading dimension of the devices (``replica * partitions + partition``), row-major; nothing
is donated. Inside, each device's value is a value of its own: an operation is copied once for each device, or once for
all where it reads the same values. So every operation is right as it is, and none needs a batched form, which
StableHLO lacks for many (loops of unequal counts, dynamic slices, custom calls). The program grows with the number of
devices, which is small where programs are tested and debugged.

A loop or conditional around communication runs once for all devices, for the data of all have to be there; its
condition must be the same value on all, as XLA demands of programs that do not hang. Other loops run once a device.
A transfer between devices is the value that the source sends, wherever in the block its ``send`` is.

Source: XLA "ReplicaId", "AllReduce" and the other collectives; StableHLO specification "Parallel execution".
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from hloforge.dialect import ops
from hloforge.dialect.emission import mlir_type_of
from hloforge.dialect.errors import UnsupportedError
from hloforge.dialect.marks import NUM_PARTITIONS, NUM_REPLICAS
from hloforge.dialect.mlir import in_context, ir
from hloforge.dialect.operations import location_of
from hloforge.dialect.program import Program, Signature, entry_function
from hloforge.dialect.values import Value
from hloforge.pipelines.framework.passes import Pass, register
from hloforge.pipelines.normalize.normalization import normalize
from hloforge.pipelines.replicas.combine import COLLECTIVES
from hloforge.pipelines.replicas.folded_signature import folded_signature
from hloforge.pipelines.replicas.folder import IDS, Folder, Spread, is_same
from hloforge.pipelines.replicas.grid import Grid, name_members, set_grid

_REPLICATION = (NUM_REPLICAS, NUM_PARTITIONS)


@register
@dataclass(frozen=True)
class FoldReplicas(Pass):
    """Fold the programs of ``replicas`` times ``partitions`` devices into one; after ``normalize``, on static shapes.

    Raises (on run):
        UnsupportedError: communication does not fit the devices, waits for itself, or is in a loop or conditional
            whose condition may differ between devices; an array of dynamic size.
    """

    name: ClassVar[str] = "fold-replicas"
    removes: ClassVar[frozenset[str]] = frozenset({*COLLECTIVES, *IDS})
    replicas: int = 1
    partitions: int = 1

    def run(self, module: ir.Module) -> None:
        grid = Grid(self.replicas, self.partitions)
        signature = Signature.of(module)
        with in_context(module):
            name_members(module, grid)
            entry = entry_function(module).operation
            _check_static(signature, entry)
            folded = folded_signature(signature, grid.devices)
            _fold_entry(entry, folded, grid)
            for name in _REPLICATION:
                if name in module.operation.attributes:
                    del module.operation.attributes[name]
            folded.attach(module)


def fold_replicas(program: Program, replicas: int, partitions: int = 1) -> Program:
    """A program whose arguments and results have a leading dimension of the devices; the given one stays as it was.

    Raises:
        OptionError: a count is not positive.
        UnsupportedError: as ``FoldReplicas``.
    """
    entry = FoldReplicas(replicas, partitions)
    copy = program.clone()
    normalize(copy.module)
    entry.run(copy.module)
    return replace(copy, signature=Signature.of(copy.module))


def for_grid(program: Program, grid: Grid, *, folded: bool = False) -> Program:
    """The program as it is compiled for a grid; errors as of ``fold_replicas``."""
    if folded:
        return fold_replicas(program, grid.replicas, grid.partitions)
    if grid.devices == 1:
        return program
    copy = program.clone()
    set_grid(copy.module, grid)
    return copy


def _check_static(signature: Signature, entry: Any) -> None:
    for leaf in (*(parameter.shape for parameter in signature.flat_parameters), *signature.flat_results):
        if leaf.is_array and not leaf.is_static:
            raise UnsupportedError(
                f"an argument or result of dynamic shape {leaf} cannot be folded",
                location=location_of(entry),
                hint="name the sizes of the arguments (shapes=…), or run the replicas in threads",
            )


def _fold_entry(entry: Any, signature: Signature, grid: Grid) -> None:
    """Put a function of the folded signature in the place of ``main``."""
    old = entry.regions[0].blocks[0]
    types = [mlir_type_of(parameter.shape) for parameter in signature.flat_parameters]
    kept = {name: entry.attributes[name] for name in entry.attributes if name not in ("arg_attrs", "res_attrs")}
    function = ir.Operation.create("func.func", attributes=kept, regions=1, ip=ir.InsertionPoint(entry))
    new = function.regions[0].blocks.append(*types, arg_locs=[argument.location for argument in old.arguments])
    folder = Folder(grid)
    with ir.InsertionPoint(new), entry.location:
        for argument, stacked in zip(old.arguments, new.arguments, strict=True):
            folder.values[argument] = _rows(stacked, grid.devices)
        results = [_joined(value) for value in folder.block(old)]
        ir.Operation.create("func.return", operands=results)
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(types, [one.type for one in results]))
    entry.erase()


def _rows(stacked: Any, devices: int) -> Spread:
    """The parts of an argument of the folded program; a token is everybody's."""
    if not isinstance(stacked.type, ir.RankedTensorType):
        return [stacked] * devices
    value = Value(stacked)
    _, *dims = value.dims
    rows = [ops.slice(value, [d] + [0] * len(dims), [d + 1, *dims]) for d in range(devices)]
    return [ops.reshape(row, dims).ir for row in rows]


def _joined(spread: Spread) -> Any:
    """A result of the folded program. All effects are in its text in order, so that any token will do."""
    if not isinstance(spread[0].type, ir.RankedTensorType):
        return spread[0]
    first = Value(spread[0])
    if is_same(spread):
        return ops.broadcast(first, [len(spread)]).ir
    return ops.concat_in_dim([ops.reshape(Value(one), [1, *first.dims]) for one in spread], 0).ir
