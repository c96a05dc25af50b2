"""Numbers instead of locations: what tells, after all passes and IREE's compiler, which operations a dispatch computes.

Locations survive compilation better than anything else: whatever makes one operation of another hands its location on,
and fusions list those of their parts. A copy of the program has a number in the place of each operation's location,
and this module keeps what the numbers represent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hloforge.dialect.dense_values import constant_of
from hloforge.dialect.errors import Location
from hloforge.dialect.marks import PROFILE_LABEL
from hloforge.dialect.mlir import AnyOp, in_context, ir
from hloforge.dialect.operations import (
    blocks,
    drop_argument_locations,
    file_location,
    location_of,
    operations,
    scope_names,
    string_attribute,
)
from hloforge.dialect.program import Program, entry_function
from hloforge.pipelines.normalize.inline_calls import InlineCalls
from hloforge.pipelines.normalize.inline_fusions import InlineFusions
from hloforge.runtime.profiling.costs import COUNTED_WITH_REGIONS, Cost, cost_of, traffic
from hloforge.runtime.profiling.result import ProfiledOperation

_COMPOSITE = "stablehlo.composite"
_WHILE = "stablehlo.while"
_CONSTANT = "stablehlo.constant"


@dataclass(frozen=True)
class Labels:
    """What the numbers represent.

    Attributes:
        operations: by number, in the order of the program.
        users: for each operation, those that read its results.
        reads: for each, the values that it reads with their bytes; a value is the number of the operation that makes it
            and of the result, or -1 and one of its own.
        writes: for each, the values that it makes, with their bytes.
        around: for each, the loop or branch that it is in; -1 for none.
        turns: for each, how often the loops around it run it in a call; 0 if only a call knows.
        returned: the values that the program returns.
    """

    operations: tuple[ProfiledOperation, ...]
    users: tuple[frozenset[int], ...]
    reads: tuple[Mapping[tuple[int, int], float], ...]
    writes: tuple[Mapping[tuple[int, int], float], ...]
    around: tuple[int, ...]
    turns: tuple[int, ...]
    returned: frozenset[tuple[int, int]]

    def cost(self, group: Iterable[int]) -> Cost:
        """Counts of one execution of operations that are computed together: what only they see is not moved."""
        members = frozenset(group)
        moved: dict[tuple[int, int], float] = {}
        for number in members:
            for value, size in self.reads[number].items():
                if value[0] not in members:
                    moved[value] = max(size, moved.get(value, 0))
            for value, size in self.writes[number].items():
                if value in self.returned or not self.users[number] <= members:
                    moved[value] = size
        work = sum((self.operations[number].cost for number in members), Cost())
        return Cost(work.flops, work.transcendentals, sum(moved.values()))


def labelled(program: Program) -> tuple[Program, Labels]:
    """A copy of a program with numbers for locations, calls and fusions inlined, and what the numbers represent."""
    copy = program.clone()
    InlineFusions().run(copy.module)
    InlineCalls().run(copy.module)
    with in_context(copy.module):
        entry = entry_function(copy.module)
        found = list(_outer(entry.operation))
        labels = _labels(copy.module, entry, found)
        nowhere = ir.Location.unknown()
        for op in operations(copy.module):
            op.location = nowhere
        # A file may have called its arguments by numbers of ours.
        drop_argument_locations(copy.module)
        for number, op in enumerate(found):
            place = ir.Location.name(f"{PROFILE_LABEL}{number}")
            op.location = place
            for inner in operations(op) if op.name in COUNTED_WITH_REGIONS else ():
                inner.location = place
    return copy, labels


def _outer(op: AnyOp) -> Iterable[Any]:
    """The operations inside, those before their regions' own; computations over scalars are parts of theirs."""
    for block in blocks(op):
        for inner in block.operations:
            found = inner.operation
            yield found
            if found.name not in COUNTED_WITH_REGIONS:
                yield from _outer(found)


def _labels(module: ir.Module, entry: Any, found: Sequence[Any]) -> Labels:
    numbers = {op: number for number, op in enumerate(found)}
    loose: dict[Any, int] = {}

    def value_of(value: Any) -> tuple[int, int]:
        owner = value.owner
        if isinstance(owner, ir.Block) or owner not in numbers:
            return -1, loose.setdefault(value, len(loose))
        return numbers[owner], ir.OpResult(value).result_number

    users: list[set[int]] = [set() for _ in found]
    reads: list[dict[tuple[int, int], float]] = []
    returned: set[tuple[int, int]] = set()
    for number, op in enumerate(found):
        sizes, _ = traffic(op)
        mine: dict[tuple[int, int], float] = {}
        for value, size in zip(op.operands, sizes, strict=True):
            key = value_of(value)
            if key[0] >= 0:
                users[key[0]].add(number)
                size = 0 if _is_splat(found[key[0]]) else size
            mine[key] = max(size, mine.get(key, 0))
            if op.name == "func.return":
                returned.add(key)
        reads.append(mine)
    bodies = {
        string_attribute(function, "sym_name"): function
        for function in operations(module, ["func.func"])
        if function.operation != entry.operation
    }
    return Labels(
        tuple(ProfiledOperation(_name(op), _location(op), scope_of(op.location), _cost(op, bodies)) for op in found),
        tuple(map(frozenset, users)),
        tuple(reads),
        tuple(
            {(number, result): size for result, size in enumerate(traffic(op)[1])} for number, op in enumerate(found)
        ),
        tuple(numbers.get(op.parent.operation, -1) for op in found),
        tuple(_turns_around(op) for op in found),
        frozenset(returned),
    )


def _name(op: AnyOp) -> str:
    return string_attribute(op, "name") or op.name if op.name == _COMPOSITE else str(op.name)


def _cost(op: AnyOp, bodies: Mapping[str, Any]) -> Cost:
    """The counts of an operation; of a composite those of what it represents."""
    if op.name != _COMPOSITE:
        return cost_of(op)
    body = bodies.get(string_attribute(op, "decomposition"))
    inside = list(_outer(body.operation)) if body is not None else []
    return sum((_cost(inner, bodies) for inner in inside), Cost())


def _is_splat(op: AnyOp) -> bool:
    """Whether an operation makes one number, which is in the code of who reads it."""
    if op.name != _CONSTANT:
        return False
    try:
        value = op.attributes["value"]
        return isinstance(value, ir.DenseElementsAttr) and bool(value.is_splat)
    except TypeError:  # the bindings know no attribute of complex numbers
        elements = constant_of(op).reshape(-1)
        return bool(elements.size) and bool((elements == elements[0]).all())


def _location(op: AnyOp) -> Location | None:
    """The user's line, or a name where files have no lines."""
    place = file_location(op.location)
    if place is not None and place.line:
        return place
    names = _names(op.location)
    return Location(names[-1]) if names else place or location_of(op)


def scope_of(location: Any) -> str:
    """The names around an operation, outermost first, joined by ``/``, its own left out."""
    parts = [part for name in _names(location) for part in scope_names(name.strip("/:"))]
    return "/".join(parts[:-1])


def _names(location: Any) -> list[str]:
    """The names that a location has, outermost first; of several of one operation the one that is a path."""
    if isinstance(location, ir.NameLoc):
        return [location.name_str]
    if isinstance(location, ir.CallSiteLoc):
        return [*_names(location.caller), *_names(location.callee)]
    if isinstance(location, ir.FusedLoc):
        found = [names for part in location.locations if (names := _names(part))]
        return next((names for names in found if "/" in names[0]), found[0] if found else [])
    return []


def _turns_around(op: AnyOp) -> int:
    """How often the loops around an operation run it in a call of the program; 0 if only a call knows."""
    turns, outer = 1, op.parent
    while outer is not None and outer.operation.name != "func.func":
        if outer.operation.name == _WHILE:
            turns *= _turns(outer.operation)
        outer = outer.operation.parent
    return turns


def _turns(loop: Any) -> int:
    """The iterations of a loop that counts from one constant to another; 0 of any other."""
    condition, body = (region.blocks[0] for region in loop.regions)
    test = condition.operations[len(condition.operations) - 1].operation.operands[0].owner
    if isinstance(test, ir.Block) or test.name != "stablehlo.compare":
        return 0
    direction = str(test.attributes["comparison_direction"])
    counter, limit = test.operands
    if "LT" not in direction or not isinstance(counter.owner, ir.Block) or counter.owner != condition:
        return 0
    number = ir.BlockArgument(counter).arg_number
    step = body.operations[len(body.operations) - 1].operation.operands[number].owner
    if isinstance(step, ir.Block) or step.name != "stablehlo.add":
        return 0
    counts = [_integer(value) for value in (loop.operands[number], limit)]
    steps = [count for value in step.operands if (count := _integer(value)) is not None]
    if None in counts or len(steps) != 1 or steps[0] < 1 or body.arguments[number] not in list(step.operands):
        return 0
    first, last = (count or 0 for count in counts)
    return max(0, -(-(last - first) // steps[0]))


def _integer(value: Any) -> int | None:
    """The number of a constant scalar integer; a block's argument may be one that a loop hands through."""
    owner = value.owner
    if isinstance(owner, ir.Block):
        return None
    if owner.name != _CONSTANT or not isinstance(owner.attributes["value"], ir.DenseIntElementsAttr):
        return None
    attribute = ir.DenseIntElementsAttr(owner.attributes["value"])
    return int(attribute[0]) if len(attribute) == 1 else None
