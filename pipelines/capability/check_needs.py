"""``check-needs``: what a program needs from outside is there, before any other pass runs.

A call of a function that nobody has, and a collective whose members the devices lack, are known as soon as a program is
read; the passes of a large one take minutes. So both are refused here, all at once: the first is the error, and the
others are its notes.

Only what a run certainly reaches is refused (``pipelines/analysis/reached.py``); the audit refuses what is left of the
rest. A program for several platforms has each platform's calls in a branch of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar, TypeAlias

from hloforge.dialect.errors import UnsupportedError
from hloforge.dialect.marks import NUM_PARTITIONS, NUM_REPLICAS, PREFIX
from hloforge.dialect.mlir import ir
from hloforge.dialect.operations import integer, integers, location_of, operations
from hloforge.dialect.shapes import Shape
from hloforge.pipelines.analysis.reached import Reached
from hloforge.pipelines.capability.audit import Finding, refusal
from hloforge.pipelines.capability.capabilities import Capability, Verdict, table
from hloforge.pipelines.framework.facts import NOTHING, Facts
from hloforge.pipelines.framework.passes import Pass, register
from hloforge.pipelines.host_calls import is_host_call
from hloforge.pipelines.library_calls.registry import is_registered, target_of
from hloforge.pipelines.normalize.drop_bounds import FORMS
from hloforge.pipelines.normalize.drop_identity_calls import IDENTITIES
from hloforge.pipelines.normalize.lower_mhlo import RNG_SEED
from hloforge.pipelines.replicas.combine import GROUPED, PERMUTE
from hloforge.pipelines.replicas.grid import Grid, grid_of, groups_of, largest_group, mismatch, sources_of

_CALL = "stablehlo.custom_call"
# Calls that represent operations: the passes that know these say which ones they do not know.
_OPERATIONS = ("stablehlo.", "mhlo.", "chlo.", PREFIX)
_OTHERS = IDENTITIES | FORMS | {RNG_SEED, "shape_assertion", "CustomSPMDPartitioning"}
_MANUAL = "sdy.manual_computation"
# As XLA's converter leaves it, with an operand for each member.
_ALL_TO_ALL = "mhlo.all_to_all"
_COLLECTIVES = GROUPED | {PERMUTE, _ALL_TO_ALL}
# So many notes name calls; functions that are called more often have one note each.
_MOST = 12
_COUNTS = {"--replicas": NUM_REPLICAS, "--partitions": NUM_PARTITIONS}
_GROUPS, _PAIRS = "replica_groups", "source_target_pairs"
_Unfit: TypeAlias = tuple[ir.Operation, UnsupportedError]


@register
@dataclass(frozen=True)
class CheckNeeds(Pass):
    """Refuse calls of functions that nobody has, and collectives of devices that the program does not run on.

    Raises (on run):
        UnregisteredError: names the first such call; others, and collectives, are notes.
        UnsupportedError: names the first such collective.
    """

    name: ClassVar[str] = "check-needs"
    requires: ClassVar[Facts] = NOTHING
    breaks: ClassVar[Facts] = NOTHING
    target: str = "cpu"

    def run(self, module: ir.Module) -> None:
        calls, unfit = _unknown_calls(module), _unfit_collectives(module)
        if calls:
            raise _of_calls(calls, self.target, _notes_of_devices(unfit))
        if unfit:
            error = unfit[0][1]
            error.hint, error.notes = _way_out(module, unfit), tuple(_notes_of_devices(unfit, error))
            raise error


def check_calls(module: ir.Module, target: str) -> None:
    """Refuse the calls alone: XLA's partitioner is still to write the collectives.

    Raises:
        UnregisteredError: as ``CheckNeeds``.
    """
    if calls := _unknown_calls(module):
        raise _of_calls(calls, target, [])


def _unknown_calls(module: ir.Module) -> list[ir.Operation]:
    found = [op for op in operations(module, {_CALL}) if not _is_known(op)]
    reached = Reached(module) if found else None
    return [op for op in found if reached is not None and reached.certainly(op)]


def _is_known(op: ir.Operation) -> bool:
    target = target_of(op)
    return target in _OTHERS or target.startswith(_OPERATIONS) or is_registered(op) or is_host_call(op)


def _unfit_collectives(module: ir.Module) -> list[_Unfit]:
    """Collectives among devices that the grid lacks, and why they are refused."""
    grid = grid_of(module)
    pairs = [(op, _why_unfit(op, grid)) for op in operations(module, _COLLECTIVES)]
    unfit = [(op, why) for op, why in pairs if why is not None]
    reached = Reached(module) if unfit else None
    return [(op, why) for op, why in unfit if reached is not None and reached.certainly(op)]


def _why_unfit(op: ir.Operation, grid: Grid) -> UnsupportedError | None:
    # A manual region is for its mesh.
    if _is_manual(op):
        return None
    # On one device groups of one are this device, whatever its number.
    if grid.devices == 1 and op.name != PERMUTE and largest_group(op) < 2:
        return _why_of_several(op, grid)
    try:
        if op.name == PERMUTE:
            sources_of(op, grid)
        else:
            groups_of(op, grid)
    except UnsupportedError as error:
        return error
    return None


def _why_of_several(op: ir.Operation, grid: Grid) -> UnsupportedError | None:
    """Why a collective that names no members is nevertheless one of several devices: its sizes say so."""
    if op.name == _ALL_TO_ALL and len(op.operands) > 1:
        return mismatch(op, f"it exchanges an array with each of {len(op.operands)} devices", grid)
    for operand, result in zip(op.operands, op.results, strict=True):
        own, made = Shape.of_type(operand.type), Shape.of_type(result.type)
        if own.dimensions != made.dimensions:
            return mismatch(op, f"it makes {made} of {own}, as {_members_by_size(own, made)} devices do", grid)
    return None


def _members_by_size(operand: Shape, result: Shape) -> str:
    """How many devices gather the result, or how many parts the operand has."""
    sizes = sorted((prod(operand.dimensions), prod(result.dimensions)))
    return str(sizes[1] // sizes[0]) if sizes[0] > 0 else "several"


def _is_manual(op: ir.Operation) -> bool:
    parent = op.parent
    while parent is not None and parent.name != _MANUAL:
        parent = parent.operation.parent
    return parent is not None


def _of_calls(calls: Sequence[ir.Operation], target: str, notes: Sequence[str]) -> UnsupportedError:
    return refusal(Finding(calls[0], _row(calls[0], target)), target, (*_notes_of_calls(calls), *notes))


def _row(call: ir.Operation, target: str) -> Capability:
    """What a target's table says of a function that the host does not have."""
    names = (f"{_CALL}@{target_of(call)}", _CALL)
    return next(row for row in table(target) if row.op in names and row.verdict is Verdict.REJECT)


def _notes_of_calls(calls: Sequence[ir.Operation]) -> list[str]:
    """A line for each call but the first; of very many, for each function."""
    if len(calls) <= _MOST:
        return [f"{location_of(op) or ''}: custom_call @{target_of(op)}" for op in calls[1:]]
    by_target: dict[str, list[ir.Operation]] = {}
    for op in calls:
        by_target.setdefault(target_of(op), []).append(op)
    return [
        f"{location_of(found[0]) or ''}: custom_call @{target}" + (f", the first of {len(found)}" if found[1:] else "")
        for target, found in by_target.items()
    ]


def _notes_of_devices(unfit: Sequence[_Unfit], told: UnsupportedError | None = None) -> list[str]:
    """A line for each kind of collective; none for a single one that is told anyway."""
    kinds: dict[str, list[UnsupportedError]] = {}
    for op, error in unfit:
        kinds.setdefault(op.name, []).append(error)
    return [
        f"{found[0].location or ''}: {found[0].message}" + (f", the first of {len(found)}" if found[1:] else "")
        for found in kinds.values()
        if found != [told]
    ]


def _way_out(module: ir.Module, unfit: Sequence[_Unfit]) -> str:
    """How many devices the program says that it is for."""
    attributes = module.operation.attributes
    counts = {option: integer(module.operation, name) for option, name in _COUNTS.items() if name in attributes}
    options = " ".join(f"{option}={count}" for option, count in counts.items() if count > 1)
    if not options:
        rows = (integers(op, _PAIRS if op.name == PERMUTE else _GROUPS) for op, _ in unfit)
        last = max((number for row in rows for number in row), default=0)
        options = " and ".join(_COUNTS) + (f"; numbers of devices in it go up to {last}" if last else "")
    return f"run the program on as many devices as it was made for: {options}"
