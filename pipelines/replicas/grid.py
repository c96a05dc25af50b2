"""Who takes part in a collective: the grid of devices, and the groups and pairs that operations name.

A device is numbered ``replica * partitions + partition``, as XLA flattens the grid. What the numbers in
``replica_groups`` mean is told by ``channel_handle`` and ``use_global_device_ids``:

| channel | global ids | all_gather, all_reduce, reduce_scatter | all_to_all, collective_broadcast, collective_permute |
|---|---|---|---|
| none | no | replicas, each partition for itself | replicas, each partition for itself |
| yes | no | replicas, with all partitions of each | partitions, each replica for itself |
| yes | yes | devices | - |

Source: StableHLO specification "Parallel execution"; XLA "AllReduce" (replica_groups, channel_id).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hloforge.dialect.emission import i64, i64_matrix, i64s
from hloforge.dialect.errors import OptionError, UnsupportedError
from hloforge.dialect.marks import AMONG_ALL, GRID
from hloforge.dialect.mlir import AnyOp, in_context, ir, mhlo, stablehlo
from hloforge.dialect.operations import integer, integers, location_of, operations

_CROSSING_BOTH = frozenset({"stablehlo.all_gather", "stablehlo.all_reduce", "stablehlo.reduce_scatter"})
# Operations in which a device may be outside of all groups.
_PARTIAL = frozenset({"stablehlo.collective_broadcast", "stablehlo.collective_permute"})


@dataclass(frozen=True)
class Grid:
    """The devices that run one program: ``replicas`` times ``partitions`` of them.

    Raises:
        OptionError: one of the counts is not positive.
    """

    replicas: int = 1
    partitions: int = 1

    def __post_init__(self) -> None:
        for what in ("replicas", "partitions"):
            if getattr(self, what) < 1:
                raise OptionError(f"{what} must be positive, not {getattr(self, what)}")

    @property
    def devices(self) -> int:
        return self.replicas * self.partitions

    def device(self, replica: int, partition: int) -> int:
        return replica * self.partitions + partition

    def replica_of(self, device: int) -> int:
        return device // self.partitions

    def partition_of(self, device: int) -> int:
        return device % self.partitions

    def name(self, device: int) -> str:
        """What to call a device: by its replica, and its partition where there are several."""
        replica = f"replica {self.replica_of(device)}"
        return replica if self.partitions == 1 else f"{replica} partition {self.partition_of(device)}"

    def __str__(self) -> str:
        return f"{self.replicas} replicas x {self.partitions} partitions"


def set_grid(module: ir.Module, grid: Grid) -> None:
    """Write the grid that it is compiled for onto a module.

    Raises:
        UnsupportedError: as ``name_members``.
    """
    name_members(module, grid)
    with in_context(module):
        module.operation.attributes[GRID] = i64s([grid.replicas, grid.partitions])


def name_members(module: ir.Module, grid: Grid) -> None:
    """Name the members of collectives among all that there are, whose groups an importer could not know.

    Raises:
        UnsupportedError: an array cannot be split into as many parts.
    """
    with in_context(module):
        for op in operations(module, {"stablehlo.all_to_all"}):
            if AMONG_ALL in op.attributes:
                members = grid.partitions if channel_of(op) > 0 else grid.replicas
                size = op.operands[0].type.shape[integer(op, "split_dimension")]
                if size % members:
                    raise mismatch(op, f"it splits {size} rows among {members} members", grid)
                op.attributes["replica_groups"] = i64_matrix([list(range(members))], members)
                op.attributes["split_count"] = i64(members)
                del op.attributes[AMONG_ALL]


def grid_of(module: ir.Module) -> Grid:
    """The grid that a module is compiled for; one device if it says nothing."""
    attributes = module.operation.attributes
    if GRID not in attributes:
        return Grid()
    replicas, partitions = ir.DenseI64ArrayAttr(attributes[GRID])
    return Grid(int(replicas), int(partitions))


def channel_of(op: AnyOp) -> int:
    """The number of an operation's channel; 0 if it has none."""
    if "channel_handle" not in op.attributes:
        return 0
    handles = mhlo if op.name.startswith("mhlo.") else stablehlo
    return int(handles.ChannelHandle(op.attributes["channel_handle"]).handle)


def groups_of(op: AnyOp, grid: Grid) -> list[list[int]]:
    """The groups of devices in which a collective combines, in the order of its members.

    Raises:
        UnsupportedError: a group names what is not in the grid, or leaves out a device that has to take part.
    """
    groups = _expanded(op, _rows(op, "replica_groups"), grid)
    members = {device for group in groups for device in group}
    left_out = sorted(set(range(grid.devices)) - members)
    if left_out and op.name not in _PARTIAL:
        raise mismatch(op, f"its groups leave out {grid.name(left_out[0])}", grid)
    return groups


def largest_group(op: AnyOp) -> int:
    """How many members the largest group that a collective names has; 0 if it names none."""
    return max(map(len, _rows(op, "replica_groups")), default=0)


def sources_of(op: AnyOp, grid: Grid) -> dict[int, int]:
    """Whose data each device receives by a collective_permute; devices that receive nothing are left out.

    Raises:
        UnsupportedError: a pair names what is not in the grid.
    """
    rows = _rows(op, "source_target_pairs")
    if not any(rows):
        # No pair is nobody, where no group would be everybody.
        return {}
    return {target: source for source, target in _expanded(op, rows, grid)}


def transfers_of(op: AnyOp, grid: Grid) -> dict[int, int]:
    """The source by target of a send or recv between devices. Its pairs name devices; a grid of one needs none.

    Raises:
        UnsupportedError: it names no pairs, or what is not in the grid.
    """
    rows = _rows(op, "source_target_pairs")
    if not rows and grid.devices == 1:
        return {0: 0}
    if not rows:
        raise UnsupportedError(
            f"{op.name} on channel {channel_of(op)} does not say which device receives what which other one sends",
            location=location_of(op),
            hint="give it source_target_pairs, or run sender and receiver as two programs that share their feeds",
        )
    _check_numbers(op, rows, grid.devices, "device", grid)
    return {target: source for source, target in rows}


def is_host_transfer(op: AnyOp) -> bool:
    """Whether the other side of a send or recv is the host."""
    return "is_host_transfer" in op.attributes and bool(ir.BoolAttr(op.attributes["is_host_transfer"]).value)


def _rows(op: AnyOp, name: str) -> list[list[int]]:
    """The rows of a matrix attribute, without the -1 that fill short rows up."""
    if name not in op.attributes:
        return []
    numbers, shape = integers(op, name), ir.ShapedType(op.attributes[name].type).shape
    width = shape[1] if len(shape) == 2 else 0
    rows = [numbers[start : start + width] for start in range(0, len(numbers), width)] if width else []
    return [[number for number in row if number >= 0] for row in rows]


def _expanded(op: AnyOp, rows: list[list[int]], grid: Grid) -> list[list[int]]:
    replicas, partitions = range(grid.replicas), range(grid.partitions)
    channel = channel_of(op) > 0
    if "use_global_device_ids" in op.attributes:
        _check_numbers(op, rows, grid.devices, "device", grid)
        return rows
    if channel and op.name not in _CROSSING_BOTH:
        groups = rows or [list(partitions)]
        _check_numbers(op, groups, grid.partitions, "partition", grid)
        return [[grid.device(replica, member) for member in group] for group in groups for replica in replicas]
    groups = rows or [list(replicas)]
    _check_numbers(op, groups, grid.replicas, "replica", grid)
    if channel:
        # StableHLO's order; XLA's own takes the partitions of a replica together.
        return [[grid.device(member, partition) for partition in partitions for member in group] for group in groups]
    return [[grid.device(member, partition) for member in group] for group in groups for partition in partitions]


def _check_numbers(op: AnyOp, rows: Iterable[Sequence[int]], count: int, what: str, grid: Grid) -> None:
    for number in (number for row in rows for number in row):
        if number >= count:
            raise mismatch(op, f"it names {what} {number}", grid)


def mismatch(op: AnyOp, message: str, grid: Grid) -> UnsupportedError:
    """The error for a collective that does not fit the grid; ``message`` says why."""
    return UnsupportedError(
        f"{op.name} does not fit {grid if grid.devices > 1 else 'one device'}: {message}",
        location=location_of(op),
        hint="run the program with the replicas and partitions that it was made for: --replicas, --partitions",
    )
