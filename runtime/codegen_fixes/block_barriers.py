"""Add the barriers that IREE's compiler omits between dependent parts of CUDA's kernels.

IREE 3.13 gives each of a dispatch's operations to the threads of a block in its own way. Where one operation writes
what the next one reads or updates, in the arrays of the program or in the memory of the block, no barrier may be
between them: ``argmax`` wrote all rows' first values by one thread, while others compared them with their numbers.

Accesses of one object that follow each other on any way through the kernel, with one write among them, get a barrier
unless they are of positions that no two threads share. All threads of a block must come by it equally often.
Source: PTX ISA, "bar, barrier"; CUDA C++ Programming Guide, "Synchronization Functions".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from hloforge.runtime.codegen_fixes.kernel_paths import Node, Paths
from hloforge.runtime.codegen_fixes.kernel_text import Kernel, Operation, kernels
from hloforge.runtime.codegen_fixes.thread_indices import Number, Values, may_meet, size_of

__all__ = ["with_block_barriers"]

_BARRIER = b"nvvm.barrier"
_BARRIERS = (b"nvvm.barrier", b"nvvm.barrier0", b"nvvm.barrier.arrive")
# What takes an address without using the memory there.
_HARMLESS = (b"llvm.getelementptr", b"llvm.addrspacecast", b"llvm.bitcast", b"llvm.select", b"llvm.ptrtoint")
_BRANCHES = (b"llvm.br", b"llvm.cond_br", b"llvm.intr.assume", b"llvm.icmp")
_READING = re.compile(rb"\b(load|ldmatrix|gather)\b")
_STORED = re.compile(rb": (.*?),(?: .*? into)? !llvm\.ptr")
_LOADED = re.compile(rb"-> (.*)$")
_KNOWN_SIZES = (b"llvm.load", b"llvm.store", b"llvm.intr.masked.load", b"llvm.intr.masked.store")
# More than any block's memory: of an unknown number of bytes.
_ANY = 1 << 30


@dataclass(frozen=True, eq=False)
class _Access:
    node: int
    at: int
    object: bytes
    place: Number
    size: int
    reads: bool
    writes: bool
    is_atomic: bool


def with_block_barriers(code: bytes) -> bytes:
    """The text of IREE's module, where it has written LLVM's dialect for CUDA, with the barriers that are missing."""
    lines = code.split(b"\n")
    changed: dict[int, bytes] = {}
    for kernel in kernels(lines):
        # One thread waits for nobody, and no kernel is wrong that writes nothing.
        if kernel.sizes != (1, 1, 1):
            changed |= _Missing(kernel).lines(lines)
    return b"\n".join(changed.get(number, line) for number, line in enumerate(lines)) if changed else code


class _Missing:
    """The barriers that a kernel lacks."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._values = Values(kernel)
        self._clashes: dict[tuple[int, int], bool] = {}
        self._done: set[tuple[int, int]] = set()
        # Where they are: a node's number, and that of the operation before which.
        self._places: set[tuple[int, int]] = set()

    @cached_property
    def _paths(self) -> Paths:
        return Paths(self._kernel, self._values)

    @cached_property
    def _accesses(self) -> list[_Access]:
        return [
            access
            for number, block in enumerate(self._kernel.blocks)
            for at, operation in enumerate(block.operations)
            for access in self._of(number, at, operation)
        ]

    def lines(self, lines: list[bytes]) -> dict[int, bytes]:
        """The lines of the kernel that change, by their numbers."""
        written = {access.object for access in self._accesses if access.writes}
        if not any(access.object in written or not access.object for access in self._accesses if access.reads):
            # Stores alone: of different operations, which may write one position one after the other.
            stores = [access for access in self._accesses if access.writes]
            if len(stores) == len({access.object for access in stores}):
                return {}
        while self._next():
            pass
        return self._written(lines) if self._places else {}

    def _of(self, number: int, at: int, operation: Operation) -> list[_Access]:
        if operation.name in _HARMLESS + _BRANCHES:
            return []
        found = []
        for name in operation.operands:
            pointer = self._values.pointer(name)
            if pointer is None or pointer.object.startswith(b"own ") or b"!llvm.ptr<4>" in operation.body:
                continue
            is_atomic = b"atomic" in operation.name or b"cmpxchg" in operation.name
            reads = bool(_READING.search(operation.name.replace(b"_", b"."))) or b"store" not in operation.name
            writes = not _READING.search(operation.name.replace(b"_", b"."))
            size = self._size(operation)
            place = pointer.place if size < _ANY else self._values.unknown
            found.append(_Access(number, at, pointer.object, place, size, reads, writes, is_atomic))
        return found

    def _size(self, operation: Operation) -> int:
        if operation.name not in _KNOWN_SIZES:
            return _ANY
        type_ = (_LOADED if b"load" in operation.name else _STORED).search(operation.body)
        return (size_of(type_[1]) if type_ else 0) or _ANY

    def _next(self) -> bool:
        """Place barriers for the first two accesses that lack one; False if none do."""
        for target, earlier in self._pairs():
            if (earlier, target) in self._done:
                continue
            self._done.add((earlier, target))
            places = self._between(self._accesses[earlier], self._accesses[target])
            if not places <= self._places:
                self._places |= places
                return True
        return False

    def _pairs(self) -> list[tuple[int, int]]:
        """Accesses with earlier ones that they clash with, of which a way without a barrier comes."""
        paths = self._paths
        into: list[set[int]] = [set() for _ in paths.nodes]
        changed, found = True, dict[tuple[int, int], None]()
        while changed:
            changed = False
            found.clear()
            for node in paths.nodes:
                waiting = set(into[node.number])
                self._through(node, waiting, found)
                for behind in node.behind:
                    changed |= not waiting <= into[behind]
                    into[behind] |= waiting
        return list(found)

    def _through(self, node: Node, waiting: set[int], found: dict[tuple[int, int], None]) -> None:
        accesses = self._by_place
        if not node.operations and (node.number, 0) in self._places:
            waiting.clear()
        for at, operation in enumerate(node.operations):
            if (node.number, at) in self._places or operation.name in _BARRIERS:
                waiting.clear()
            for target in accesses.get((node.number, at), ()):
                for earlier in sorted(waiting):
                    if self._clash(earlier, target):
                        found[target, earlier] = None
                waiting.add(target)

    @cached_property
    def _by_place(self) -> dict[tuple[int, int], list[int]]:
        found: dict[tuple[int, int], list[int]] = {}
        for number, access in enumerate(self._accesses):
            found.setdefault((access.node, access.at), []).append(number)
        return found

    def _clash(self, earlier: int, target: int) -> bool:
        """Whether one of two accesses writes what another thread may see by the other."""
        key = (min(earlier, target), max(earlier, target))
        if key not in self._clashes:
            one, other = self._accesses[key[0]], self._accesses[key[1]]
            # A store that follows itself gives what the last iteration gave, as far as that is said at all.
            self._clashes[key] = key[0] != key[1] and _clash(one, other)
        return self._clashes[key]

    def _between(self, earlier: _Access, target: _Access) -> set[tuple[int, int]]:
        """Where a barrier is between the two on every way, as far out of loops as can be."""
        before, after = self._after(earlier), self._before(target)
        if target.node in self._paths.parted and self._is_within(earlier, target):
            # Ways that stay among parted threads have no place for one; those that come back may.
            return after if self._comes_back(earlier) else set()
        depths = [max((self._paths.depth(node) for node, _ in places), default=99) for places in (before, after)]
        return before if depths[0] < depths[1] else after

    def _comes_back(self, access: _Access) -> bool:
        ends = [node for node, _ in self._after(access)]
        starts = {node for node, _ in self._before(access)}
        return any(end in starts or starts & self._paths.reached([end]) for end in ends)

    def _is_within(self, earlier: _Access, target: _Access) -> bool:
        return self._paths.parts.get(earlier.node) == self._paths.parts.get(target.node)

    def _after(self, access: _Access) -> set[tuple[int, int]]:
        paths = self._paths
        if access.node not in paths.parted:
            return {(access.node, access.at + 1)}
        part = {node for node, number in paths.parts.items() if number == paths.parts[access.node]}
        return {(behind, 0) for node in part for behind in paths.nodes[node].behind if behind not in part}

    def _before(self, access: _Access) -> set[tuple[int, int]]:
        paths = self._paths
        if access.node not in paths.parted:
            return {(access.node, access.at)}
        part = {node for node, number in paths.parts.items() if number == paths.parts[access.node]}
        sources = {before for node in part for before in paths.nodes[node].before if before not in part}
        return {(node, max(len(paths.nodes[node].operations) - 1, 0)) for node in sources}

    def _written(self, lines: list[bytes]) -> dict[int, bytes]:
        changed: dict[int, bytes] = {}
        added: list[bytes] = []
        for node, at in sorted(self._places):
            one = self._paths.nodes[node]
            if one.edge < 0:
                line = one.operations[at].line
                text = changed.get(line, lines[line])
                changed[line] = _indent(lines[line]) + _BARRIER + b"\n" + text
                continue
            # An edge gets a block of its own.
            end = self._paths.nodes[one.source].block.end
            to = self._paths.nodes[one.source].block.successors()[one.edge]
            label = b"^barrier%d" % node
            head, branch = changed.get(end.line, lines[end.line]).rpartition(b"\n")[::2]
            changed[end.line] = head + (b"\n" if head else b"") + _redirected(branch, one.edge, to.text, label)
            indent = _indent(lines[end.line])
            added += [indent[2:] + label + b":", indent + _BARRIER, indent + b"llvm.br " + to.text]
        changed[self._kernel.line] = _shared(lines[self._kernel.line])
        changed[self._kernel.end] = b"\n".join([*added, lines[self._kernel.end]])
        return changed


def _redirected(branch: bytes, edge: int, text: bytes, label: bytes) -> bytes:
    """A branch with another block as its ``edge``-th successor, which the text has as ``text``."""
    begin = [found.start() for found in re.finditer(rb"\^", branch)][edge]
    return branch[:begin] + label + branch[begin + len(text) :]


def _indent(line: bytes) -> bytes:
    return line[: len(line) - len(line.lstrip())]


def _shared(head: bytes) -> bytes:
    """A kernel's first line without a promise by which LLVM moves accesses across calls, which barriers are to it."""
    return re.sub(
        rb"\{[^{}]*llvm\.noalias[^{}]*\}",
        lambda found: found[0] if b"llvm.readonly" in found[0] else found[0].replace(b"llvm.noalias, ", b""),
        head,
    )


def _clash(one: _Access, other: _Access) -> bool:
    if not (one.writes or other.writes) or (one.is_atomic and other.is_atomic):
        return False
    if one.object and other.object and one.object != other.object:
        return False
    if not (one.object and other.object):
        return True
    return _ANY in (one.size, other.size) or may_meet(one.place, other.place, (one.size, other.size))
