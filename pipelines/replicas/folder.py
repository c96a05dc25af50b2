"""Copying the program of one device for all devices of a grid, which makes plain operations of collectives.

Each device's value is a value of its own: an operation is copied once for each device, or once for all where it reads
the same values on all and has no effects.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from hloforge.dialect.constants import constant
from hloforge.dialect.emission import emit, i64
from hloforge.dialect.errors import UnsupportedError
from hloforge.dialect.idioms import zeros
from hloforge.dialect.marks import DEVICE
from hloforge.dialect.mlir import AnyOp, ir
from hloforge.dialect.operations import location_of, operations
from hloforge.dialect.regions import clone_with, read_values
from hloforge.dialect.shapes import Shape
from hloforge.dialect.values import Value
from hloforge.pipelines.replicas.combine import COLLECTIVES, PERMUTE, PLACED, combined, share
from hloforge.pipelines.replicas.grid import (
    Grid,
    channel_of,
    groups_of,
    is_host_transfer,
    sources_of,
    transfers_of,
)

IDS = {"stablehlo.replica_id": Grid.replica_of, "stablehlo.partition_id": Grid.partition_of}
_FEEDS = frozenset({"stablehlo.infeed", "stablehlo.outfeed", "stablehlo.send", "stablehlo.recv"})
# Operations of which each device runs its own.
_OWN = frozenset({*IDS, *_FEEDS, "stablehlo.rng", "stablehlo.custom_call"})
_BRANCHING = frozenset({"stablehlo.case", "stablehlo.if"})
# A value of the program of one device, on each of the devices.
Spread: TypeAlias = list[Any]


def is_same(spread: Spread) -> bool:
    """Whether all devices have the value, as one value of the folded program."""
    return all(one == spread[0] for one in spread)


class Folder:
    """Copies operations of the program of one device to the insertion point, for all devices.

    Attributes:
        values: what is known so far of each value of the old program.
    """

    def __init__(self, grid: Grid) -> None:
        self.grid = grid
        self.values: dict[Any, Spread] = {}
        self._done: set[Any] = set()
        self._active: list[Any] = []

    def block(self, block: ir.Block) -> list[Spread]:
        """Copy the operations of a block whose arguments are known; returns the operands of its terminator."""
        *body, terminator = [op.operation for op in block.operations]
        # A block may be copied a second time, after a guess about its arguments was wrong.
        self._done.difference_update(body)
        for op in body:
            self._visit(op)
        return [self.values[operand] for operand in terminator.operands]

    def _visit(self, op: AnyOp) -> None:
        """Copy an operation, and those before that it reads of and that a ``recv`` has to come after."""
        if op in self._done:
            return
        if op in self._active:
            raise _deadlock(op)
        self._active.append(op)
        read = read_values(op)
        for value in read:
            self._require(value)
        with op.location:
            self._copy(op, read)
        self._active.pop()
        self._done.add(op)

    def _require(self, value: Any) -> None:
        """Copy the operation that gives a value, if that has still to be done."""
        if not isinstance(value.owner, ir.Block) and value.owner.operation not in self._done:
            self._visit(value.owner.operation)

    def _copy(self, op: AnyOp, read: Sequence[Any]) -> None:
        if op.name in IDS:
            self._number(op)
        elif op.name in COLLECTIVES:
            self._collective(op)
        elif _is_transfer(op):
            self._transfer(op)
        elif op.name == "stablehlo.while" and _communicates(op):
            self._loop(op)
        elif op.name in _BRANCHING and _communicates(op):
            self._branches(op)
        else:
            self._copies(op, read)

    def _copies(self, op: AnyOp, read: Sequence[Any]) -> None:
        """One copy for each device, or one for all if they read the same and have no effects of their own."""
        shared = not _has_own(op) and all(is_same(self.values[value]) for value in read)
        copies = []
        for device in range(1 if shared else self.grid.devices):
            copy = clone_with(op, {value: self.values[value][device] for value in read})
            copies.append(copy)
            if not shared:
                self._settle(copy, device)
        for number, result in enumerate(op.results):
            spread = [copy.results[number] for copy in copies]
            self.values[result] = spread * self.grid.devices if shared else spread

    def _settle(self, copy: Any, device: int) -> None:
        """Tell a copy, and what is inside of it, on which device it is."""
        for inner in [*operations(copy, {*IDS, *_FEEDS}), copy]:
            if inner.name in _FEEDS:
                inner.attributes[DEVICE] = i64(device)
            elif inner.name in IDS:
                with ir.InsertionPoint(inner), inner.location:
                    inner.results[0].replace_all_uses_with(constant(IDS[inner.name](self.grid, device), "u32").ir)
                inner.erase()

    def _number(self, op: AnyOp) -> None:
        numbers = [IDS[op.name](self.grid, device) for device in range(self.grid.devices)]
        known = {number: constant(number, "u32").ir for number in dict.fromkeys(numbers)}
        self.values[op.results[0]] = [known[number] for number in numbers]

    def _collective(self, op: AnyOp) -> None:
        if op.name == PERMUTE:
            self._moved(op, self.values[op.operands[0]], sources_of(op, self.grid))
            return
        found: dict[int, list[Value]] = {}
        for group in groups_of(op, self.grid):
            arrays = combined(
                op, [[Value(self.values[operand][device]) for operand in op.operands] for device in group]
            )
            if op.name not in PLACED:
                found |= dict.fromkeys(group, share(op, arrays, 0))
                continue
            found |= {device: share(op, arrays, place) for place, device in enumerate(group)}
        nothing = [] if len(found) == self.grid.devices else [_zeros(result) for result in op.results]
        for number, result in enumerate(op.results):
            self.values[result] = [found.get(device, nothing)[number].ir for device in range(self.grid.devices)]

    def _moved(self, op: AnyOp, sent: Spread, sources: dict[int, int]) -> None:
        """The first result of ``op`` on each device: what its source sends, or zeros."""
        every = range(self.grid.devices)
        nothing = None if len(sources) == len(every) else _zeros(op.results[0]).ir
        self.values[op.results[0]] = [sent[sources[device]] if device in sources else nothing for device in every]

    def _transfer(self, op: AnyOp) -> None:
        """A send or recv between devices: the pair is known, so that the data are just there."""
        sends, recvs = _transfers(op)
        own = sends if op.name == "stablehlo.send" else recvs
        number = own.index(op)
        if number >= min(len(sends), len(recvs)):
            raise _unmatched(op)
        if op.name == "stablehlo.recv":
            sent = sends[number].operands[0]
            self._require(sent)
            self._moved(op, self.values[sent], transfers_of(sends[number], self.grid))
        token = op.results[len(op.results) - 1]
        self.values[token] = [emit("stablehlo.after_all", [], Shape.token()).ir] * self.grid.devices

    def _loop(self, op: AnyOp) -> None:
        """One loop for all devices. It carries a value once while all devices have the same, which its body tells."""
        first = [self.values[operand] for operand in op.operands]
        apart = {number for number, spread in enumerate(first) if not is_same(spread)}
        while True:
            loop, differing = self._try_loop(op, first, apart)
            if not differing:
                break
            loop.erase()
            apart |= differing
        for result, spread in zip(op.results, self._spread(list(loop.results), len(first), apart), strict=True):
            self.values[result] = spread

    def _try_loop(self, op: AnyOp, first: Sequence[Spread], apart: set[int]) -> tuple[Any, set[int]]:
        """A loop in which each device has its own of the values ``apart``, and which others would have to be so."""
        flat = self._flat(first, apart)
        loop = ir.Operation.create(op.name, results=[one.type for one in flat], operands=flat, regions=2)
        self._region(op, 0, loop, flat, apart, lambda returned: [_agreed(op, returned[0])])
        differing: set[int] = set()

        def next_values(returned: list[Spread]) -> list[Any]:
            differing.update(n for n, spread in enumerate(returned) if n not in apart and not is_same(spread))
            return self._flat(returned, apart)

        self._region(op, 1, loop, flat, apart, next_values)
        return loop, differing

    def _region(
        self,
        op: AnyOp,
        number: int,
        copy: Any,
        flat: Sequence[Any],
        apart: set[int],
        returning: Callable[[list[Spread]], list[Any]],
    ) -> None:
        """Copy a region of a loop, whose arguments are ``flat``; ``returning`` tells what its terminator returns."""
        old = op.regions[number].blocks[0]
        new = copy.regions[number].blocks.append(*[one.type for one in flat], arg_locs=[op.location] * len(flat))
        spreads = self._spread(list(new.arguments), len(old.arguments), apart)
        self.values.update(zip(old.arguments, spreads, strict=True))
        with ir.InsertionPoint(new):
            ir.Operation.create("stablehlo.return", operands=returning(self.block(old)))

    def _flat(self, spreads: Sequence[Spread], apart: set[int]) -> list[Any]:
        return [one for n, spread in enumerate(spreads) for one in (spread if n in apart else spread[:1])]

    def _spread(self, flat: list[Any], count: int, apart: set[int]) -> list[Spread]:
        """What ``_flat`` made flat, again by devices."""
        left = iter(flat)
        devices = range(self.grid.devices)
        return [[next(left) for _ in devices] if n in apart else [next(left)] * len(devices) for n in range(count)]

    def _branches(self, op: AnyOp) -> None:
        """One conditional for all devices."""
        index = _agreed(op, self.values[op.operands[0]])
        types = [result.type for result in op.results for _ in range(self.grid.devices)]
        copy = ir.Operation.create(op.name, results=types, operands=[index], regions=len(op.regions))
        same = [True] * len(op.results)
        for old, new in zip(op.regions, copy.regions, strict=True):
            with ir.InsertionPoint(new.blocks.append()):
                returned = self.block(old.blocks[0])
                same = [known and is_same(spread) for known, spread in zip(same, returned, strict=True)]
                ir.Operation.create("stablehlo.return", operands=[one for spread in returned for one in spread])
        spreads = self._spread(list(copy.results), len(op.results), set(range(len(op.results))))
        for result, spread, alike in zip(op.results, spreads, same, strict=True):
            self.values[result] = spread[:1] * len(spread) if alike else spread


def _has_own(op: AnyOp) -> bool:
    return op.name in _OWN or bool(operations(op, _OWN))


def _is_transfer(op: AnyOp) -> bool:
    return op.name in ("stablehlo.send", "stablehlo.recv") and not is_host_transfer(op)


def _communicates(op: AnyOp) -> bool:
    """Whether devices exchange data inside of it."""
    return any(inner.name in COLLECTIVES or _is_transfer(inner) for inner in operations(op))


def _transfers(op: Any) -> tuple[list[Any], list[Any]]:
    """The sends and the recvs of an operation's channel in its block, in order."""
    channel = channel_of(op)
    found = [other.operation for other in op.block.operations if _is_transfer(other.operation)]
    on_channel = [other for other in found if channel_of(other) == channel]
    sends = [other for other in on_channel if other.name == "stablehlo.send"]
    return sends, [other for other in on_channel if other.name == "stablehlo.recv"]


def _zeros(result: Any) -> Value:
    value = Value(result)
    return zeros(value.element_type, value.dims)


def _agreed(op: AnyOp, condition: Spread) -> Any:
    """A condition that all devices share."""
    if not is_same(condition):
        raise UnsupportedError(
            f"the condition of this {op.name.removeprefix('stablehlo.')} around communication may differ between "
            "devices, and one program cannot go two ways",
            location=location_of(op),
            hint="compute it from constants, or from an all_reduce over all devices; or run the replicas in threads",
        )
    return condition[0]


def _deadlock(op: AnyOp) -> UnsupportedError:
    return UnsupportedError(
        f"channel {channel_of(op)} waits for itself: what is sent depends on what is received",
        location=location_of(op),
        hint="send first what the other device needs first",
    )


def _unmatched(op: AnyOp) -> UnsupportedError:
    other = "recv" if op.name == "stablehlo.send" else "send"
    return UnsupportedError(
        f"{op.name} on channel {channel_of(op)} has no {other} beside it",
        location=location_of(op),
        hint="a folded program needs both sides in one computation; run programs that only send or receive in threads",
    )
