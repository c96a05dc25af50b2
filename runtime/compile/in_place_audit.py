"""Audit IREE's updates in place: no array that is still read may share memory with one that is written.

IREE runs an update in the buffer of its operand where it believes that nothing reads the operand afterwards. It decides
so in several passes (copy elision, emplacement, scheduling), and is wrong at times: it does not see that an
optimization barrier copies nothing, moves readers after updates, and trusts what it found out before it removed other
copies. So its own text is read after the last of these decisions (``iree-stream-schedule-concurrency``), where the
order of all operations is known, and each decision is proved again.

The proof is over buffers and contents. A *buffer* is what an operation allocates, an argument of the caller, or a
global (``buffer_flow.py``). A *write* makes new contents in the buffers of its operand. A read is right if no write to
one of its value's buffers, of which the value is not made itself, may run before it:

- operations in ``stream.async.execute`` run in order, those in ``stream.async.concurrent`` at any time;
- a ``stream.async.execute`` waits for those alone on whose results or timepoints it depends;
- a loop reads what it hands to its next iteration at its end, and what it takes from outside in each iteration;
- arguments that were not donated, and globals that are not stored again, are read after the program.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hloforge.dialect.errors import CompileError, ImporterError
from hloforge.dialect.mlir import ir, parse_module
from hloforge.runtime.compile.buffer_flow import CONCURRENT, EXECUTE, LOOPS, Flow, Operation, Write

# After this pass nothing changes of what is overwritten, and when, but that IREE merges equal fills of 64 bits, which
# ``Flow`` takes for one buffer.
PASS = "iree-stream-schedule-concurrency"

# Operations that the host only begins, and operations with such ones in them.
_ASYNCHRONOUS = frozenset({EXECUTE, "scf.for", "scf.if", "scf.index_switch", "scf.while"})
# What any operation that writes into an operand says of itself; -1 is no operand.
_WRITES = re.compile(r"tied_operands = \[[^\]]*?(?<!-)\b\d|\"stream\.async\.(?:collective|copy|fill|store|update)\"")
_POSITION = re.compile(r'"((?:[^"\\]|\\.)*)":(\d+):(\d+)')


@dataclass(frozen=True)
class Clash:
    """A read of what another operation may have overwritten before.

    Attributes:
        read: the line of the user's program, as ``file:line:column``; of a caller's array that of the function.
        write: the line of the operation that overwrites.
        in_one_operation: whether it is the operation that reads.
    """

    read: str
    write: str
    in_one_operation: bool = False


class OverwrittenError(CompileError):
    """IREE would overwrite an array that is still read.

    Attributes:
        in_one_operation: whether one operation reads an array and writes a part of it.
    """

    in_one_operation = False


def flags(folder: Path) -> tuple[str, ...]:
    """Flags by which IREE's compiler leaves in a folder what ``check`` reads."""
    return (
        f"--mlir-print-ir-after={PASS}",
        f"--mlir-print-ir-tree-dir={folder}",
        "--mlir-print-op-generic",
        "--mlir-print-debuginfo",
        "--mlir-elide-elementsattrs-if-larger=16",
        "--mlir-elide-resource-strings-if-larger=16",
    )


def check(folder: Path, donated: frozenset[int]) -> None:
    """Prove what IREE's compiler left in a folder.

    Args:
        donated: as of ``clashes``.

    Raises:
        OverwrittenError: a read cannot be proved right, by its line; or there is nothing to read.
    """
    paths = sorted(folder.rglob(f"*_{PASS}.mlir"))
    if not paths:
        raise OverwrittenError(
            "IREE printed no text that shows its updates in place", hint="reinstall iree-base-compiler"
        )
    for path in paths:
        try:
            found = clashes(path.read_text(), donated)
        except ImporterError as error:
            raise OverwrittenError(f"IREE's text of its updates in place cannot be parsed: {error.message}") from None
        for clash in found:
            refusal = OverwrittenError(
                f"IREE would overwrite at {clash.write} what is read at {clash.read}",
                hint="copying every updated array did not help: this is a defect of hloforge, please report it",
            )
            refusal.in_one_operation = clash.in_one_operation
            raise refusal


def clashes(text: str, donated: frozenset[int] = frozenset()) -> list[Clash]:
    """The reads of a function, in IREE's generic form after ``PASS``, that cannot be proved right; one for each write.

    Args:
        text: one function or initializer, with locations.
        donated: the numbers of the arguments that the program may overwrite.

    Raises:
        ImporterError: the text cannot be parsed.
    """
    if not _WRITES.search(text):
        return []
    module = parse_module(text, _context())
    with module.context:
        return [
            found
            for function in module.body.operations
            if any(len(region.blocks) for region in function.operation.regions)
            for found in _Proof(Flow(function.operation, donated)).clashes()
        ]


def _context() -> ir.Context:
    """A context in which every operation is read as it is: none of IREE's dialects is known here."""
    found = ir.Context()
    found.allow_unregistered_dialects = True
    return found


class _Proof:
    """The proof that a function reads what it should."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow

    def clashes(self) -> Iterator[Clash]:
        if not self._flow.writes:
            return
        if not self._flow.is_structured:
            first = self._flow.writes[0].at
            yield Clash(_position(self._flow.function.op.location), _position(first.op.location))
            return
        by_buffer = self._writes_by_buffer()
        found: set[int] = set()
        for read, value in self._flow.reads:
            for write in _writes_to(self._flow.buffers[value], by_buffer):
                if write.number not in found and not self._is_right(read, value, write):
                    found.add(write.number)
                    yield Clash(_position(read.op.location), _position(write.at.op.location), read is write.at)
        for write in self._flow.writes:
            # An update reads what it overwrites in every iteration.
            loops = [parent for parent in write.at.parents if parent.name in LOOPS]
            if write.number not in found and any(self._comes_from_outside(write.before, loop) for loop in loops):
                yield Clash(_position(write.at.op.location), _position(write.at.op.location))

    def _writes_by_buffer(self) -> Mapping[int, list[Write]]:
        found: dict[int, list[Write]] = defaultdict(list)
        for write in self._flow.writes:
            for bit in _bits(self._flow.buffers[write.before]):
                found[bit].append(write)
        return found

    def _is_right(self, read: Operation, value: int, write: Write) -> bool:
        """Whether a read sees what it should beside a write into one of its buffers."""
        if read is self._flow.function:
            return False
        if read is write.at:
            return self._reads_elsewhere(value, write)
        loops = [parent for parent in read.parents if parent in write.at.parents and parent.name in LOOPS]
        if any(self._comes_from_outside(value, loop) for loop in loops):
            return False
        return not self._may_run_before(write.at, read) or self._is_made_of(value, write, frozenset(loops))

    def _comes_from_outside(self, value: int, loop: Operation) -> bool:
        """Whether a value in a loop is another name of one from outside that the loop does not carry."""
        pending, seen = [value], {value}
        while pending:
            current = pending.pop()
            if loop not in self._flow.home.get(current, ()):
                return True
            if current in self._flow.makers and self._flow.makers[current] is loop:
                continue
            if self._is_carried_by(current, loop):
                continue
            for source, _ in self._flow.names.get(current, ()):
                if source not in seen:
                    seen.add(source)
                    pending.append(source)
        return False

    def _is_carried_by(self, value: int, loop: Operation) -> bool:
        return value not in self._flow.makers and self._flow.home.get(value, ())[-1:] == (loop,)

    def _is_made_of(self, value: int, write: Write, loops: frozenset[Operation]) -> bool:
        """Whether a value is, or was written over, the result of a write; in the same iteration of some loops."""
        pending, seen = [value], {value}
        while pending:
            current = pending.pop()
            other = self._flow.made_by.get(current)
            if current == write.after or (other is not None and self._are_apart(write, other)):
                return True
            sources = [
                source for source, loop in self._flow.names.get(current, ()) if loop not in loops or loop is None
            ]
            if other is not None:
                sources.append(other.before)
            for source in sources:
                if source not in seen:
                    seen.add(source)
                    pending.append(source)
        return False

    def _may_run_before(self, first: Operation, second: Operation) -> bool:
        """Whether an operation may run before another one, in the same iteration of the loops around both."""
        for depth, (one, other) in enumerate(zip(first.path, second.path, strict=False)):
            if one == other:
                continue
            parent = first.parents[depth - 1] if depth else self._flow.function
            if one[0] != other[0]:
                # Regions of a loop run in their order, those of a conditional never both.
                return parent.name in LOOPS and one[0] < other[0]
            if parent.name == CONCURRENT or one[1] < other[1]:
                return True
            if parent.name == EXECUTE:
                return False
            waiting = first.parents[depth] if depth < len(first.parents) else first
            awaited = second.parents[depth] if depth < len(second.parents) else second
            return awaited.name in _ASYNCHRONOUS and not self._depends(waiting, awaited)
        return True

    def _depends(self, later: Operation, earlier: Operation) -> bool:
        """Whether an operation takes, by way of others, what another one of the same block returns."""
        results = set(earlier.results)
        pending, seen = list(later.needs), set(later.needs)
        while pending:
            value = pending.pop()
            if value in results:
                return True
            maker = self._flow.makers.get(value)
            for needed in maker.needs if maker else ():
                if needed not in seen:
                    seen.add(needed)
                    pending.append(needed)
        return False

    def _are_apart(self, write: Write, other: Write) -> bool:
        """Whether two writes of one operation are into different parts of a buffer."""
        if write.at is not other.at or write is other:
            return False
        ranges = self._flow.ranges(write.at)
        return _is_apart(ranges.get(write.place), ranges.get(other.place))

    def _reads_elsewhere(self, value: int, write: Write) -> bool:
        """Whether an operation reads a value in other parts of a buffer than the one that it writes."""
        ranges = self._flow.ranges(write.at)
        written = {other.place for other in self._flow.writes if other.at is write.at}
        places = [place for place, operand in enumerate(write.at.operands) if operand == value and place not in written]
        return all(_is_apart(ranges.get(place), ranges.get(write.place)) for place in places)


def _is_apart(one: tuple[int, int] | None, other: tuple[int, int] | None) -> bool:
    return one is not None and other is not None and (one[1] <= other[0] or other[1] <= one[0])


def _bits(number: int) -> Iterator[int]:
    while number:
        lowest = number & -number
        yield lowest
        number ^= lowest


def _writes_to(buffers: int, by_buffer: Mapping[int, list[Write]]) -> list[Write]:
    found = {write.number: write for bit in _bits(buffers) for write in by_buffer.get(bit, ())}
    return list(found.values())


def _position(location: Any) -> str:
    """The first line of a user's file in a location."""
    found = _POSITION.search(str(location))
    return f"{found[1]}:{found[2]}:{found[3]}" if found else "an unknown line"
