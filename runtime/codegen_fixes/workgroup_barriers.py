"""Add the barriers that IREE's compiler omits between uses of a workgroup's memory in Vulkan's programs.

IREE 3.13 gives each of a dispatch's operations to the invocations of a workgroup in its own way, and puts what one of
them hands to the next into the workgroup's memory. Where sizes do not divide evenly (its pipeline ``BaseDistribute``),
no barrier is between the two: invocations read numbers that others have not written yet. ``x - x.max(0)`` of
9 x 33 floats came out wrong.

Here each function is read as a tree of structured control flow. Accesses of shared memory that follow each other with
one write among them get a barrier, unless both are of the same place of one invocation. A barrier must be reached by
all: where both are in a selection in which invocations part, that becomes two. Source: SPIR-V,
"OpControlBarrier", "Uniform Control Flow".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TypeAlias

__all__ = ["with_barriers"]

_BARRIER = b"spirv.ControlBarrier <Workgroup>, <Workgroup>, <AcquireRelease|WorkgroupMemory>"
_MODULE = re.compile(rb"^( *)spirv\.module .*?^\1\}", re.MULTILINE | re.DOTALL)
_NAME = re.compile(rb"%[\w$.-]+")
_RESULT = re.compile(rb"^ *(%[\w$.-]+)(?::\d+)? = ")
_OPERATION = re.compile(rb"\bspirv\.([\w.]+)")
_LABEL = re.compile(rb"^ *(\^\w+)(?:\((.*)\))?:")
_TARGETS = re.compile(rb"(\^\w+)(?:\(([^)]*)\))?")
_INPUT = re.compile(rb"@(__builtin__\w+?__|\S+) built_in\(\"(\w+)\"\)")

# What is the same in all invocations of a workgroup.
_UNIFORM_INPUTS = (b"WorkgroupId", b"NumWorkgroups", b"WorkgroupSize")
_BRANCHES = (b"Branch", b"BranchConditional", b"Switch")
_ADDRESSES = (b"mlir.addressof", b"AccessChain", b"InBoundsPtrAccessChain", b"PtrAccessChain", b"Bitcast")

# A position in shared memory: the variable's number, and those of the values that choose an element of it.
Place: TypeAlias = tuple[int, ...]


@dataclass(frozen=True)
class _Access:
    """A load or store of shared memory.

    Attributes:
        is_own: every invocation makes it, at a position of its own.
    """

    place: Place
    writes: bool
    is_own: bool = False


@dataclass
class _Node:
    """A line of text; with the lines of its region, if it opens one."""

    line: int
    text: bytes
    inner: list[_Node] = field(default_factory=list)

    @property
    def operation(self) -> bytes:
        found = _OPERATION.search(self.text)
        return found[1] if found else b""

    def texts(self) -> Iterator[bytes]:
        """Its line and those of its region."""
        yield self.text
        for node in self.inner:
            yield from node.texts()

    def names(self) -> Iterator[bytes]:
        """The values in these lines."""
        for text in self.texts():
            yield from _NAME.findall(text)

    def is_repeatable(self, is_stored: bool) -> bool:
        """Whether it gives the same again, after invocations have waited for each other.

        Args:
            is_stored: whether something was written into the program's arrays before.
        """
        if self.operation != b"Load":
            return not self.operation.startswith((b"Atomic", b"GroupNonUniform", b"KHR"))
        is_of_array = b'"StorageBuffer"' in self.text and not is_stored
        return is_of_array or b'"Input"' in self.text or b'"PushConstant"' in self.text


@dataclass(frozen=True)
class _Split:
    """A position in a selection in which invocations part where a barrier is missing, before line ``number``."""

    selection: _Node
    number: int


def with_barriers(code: bytes) -> bytes:
    """The text of IREE's module, where it has written SPIR-V, with the barriers that are missing."""
    return _MODULE.sub(lambda found: _in_module(found[0]), code)


def _in_module(text: bytes) -> bytes:
    if b", Workgroup>" not in text:
        return text
    lines = text.split(b"\n")
    inputs = {name for name, kind in _INPUT.findall(text) if kind in _UNIFORM_INPUTS}
    marks: set[int] = set()
    at = 0
    while (function := next(_functions(lines, at), None)) is not None:
        found = _Function(function, inputs)
        missing = found.marks()
        parted = next((parted for split in found.splits() if (parted := _parted(lines, split))), None)
        if parted:
            lines = parted
            continue
        marks |= missing
        at = function.line + 1
    return b"\n".join(part for number, line in enumerate(lines) for part in _marked(line, number in marks))


def _parted(lines: list[bytes], split: _Split) -> list[bytes]:
    """The lines with a selection in two, so that a barrier has a place between them; none if it cannot be parted.

    What the second half needs of the first is computed again, which may not read what others write.
    """
    body = split.selection.inner
    labels = [number for number, node in enumerate(body) if _LABEL.match(node.text)]
    if split.selection.operation != b"mlir.selection" or _RESULT.match(split.selection.text) or len(labels) != 2:
        return []
    begin, end = labels[0] + 1, labels[1] - 1
    first, second = body[begin : split.number], body[split.number : end]
    needed: set[bytes] = {name for node in second for name in node.names()}
    again: list[_Node] = []
    is_stored = any(b'Store "StorageBuffer"' in text for node in first for text in node.texts())
    for node in reversed(first):
        result = _RESULT.match(node.text)
        if result is None or result[1] not in needed:
            continue
        if node.inner or not node.is_repeatable(is_stored):
            return []
        again.insert(0, node)
        needed |= set(node.names())
    last = body[-1].line
    head = lines[split.selection.line : body[begin - 1].line + 1]
    tail = lines[body[end].line : last + 2]
    at = body[split.number].line
    repeated = [node.text for node in again]
    return [*lines[:at], *tail, *head, *repeated, *lines[at:]]


def _marked(line: bytes, is_marked: bool) -> Iterator[bytes]:
    if is_marked:
        yield line[: len(line) - len(line.lstrip())] + _BARRIER
    yield line


def _functions(lines: list[bytes], start: int) -> Iterator[_Node]:
    """The functions of a module from a line on, as trees."""
    stack: list[_Node] = []
    for number in range(start, len(lines)):
        line = lines[number]
        body = line.strip()
        if body.startswith(b"spirv.func") and body.endswith(b"{"):
            stack = [_Node(number, line)]
        elif stack and body == b"}":
            done = stack.pop()
            if not stack:
                yield done
        elif stack:
            node = _Node(number, line)
            stack[-1].inner.append(node)
            if body.endswith(b"{"):
                stack.append(node)


class _Function:
    """What a function does with shared memory.

    Args:
        root: its tree.
        uniform_inputs: names of the built-in variables that are the same in all invocations of a workgroup.
    """

    def __init__(self, root: _Node, uniform_inputs: set[bytes]) -> None:
        self._root = root
        self._uniform_inputs = uniform_inputs
        self._variables: dict[bytes, int] = {}
        # Arguments of blocks that vary between invocations: the line of their region, their block and number.
        self._apart: set[tuple[int, bytes]] = set()
        self._marks: set[int] = set()
        self._forget()

    def _forget(self) -> None:
        self._count = 0
        self._names: dict[bytes, int] = {}
        self._varying: set[int] = set()
        self._addresses: dict[int, Place] = {}
        self._accesses: dict[int, _Access] = {}
        # The lines of selections and loops in which invocations part.
        self._parting: set[int] = set()

    def marks(self) -> set[int]:
        """The lines before which a barrier is missing."""
        known = -1
        while known != len(self._apart):
            # A loop's end tells what its begin gets.
            known = len(self._apart)
            self._forget()
            self._read(self._root)
        self._follow(self._root.inner, [])
        return self._marks

    def _read(self, region: _Node) -> None:
        """Number the values in the order of the text, and find which vary and what accesses shared memory."""
        for node in region.inner:
            label = _LABEL.match(node.text)
            if label:
                for place, name in enumerate(_NAME.findall(label[2] or b"")):
                    self._define(name, (region.line, label[1] + b" %d" % place) in self._apart)
                continue
            if node.inner:
                self._read(node)
            elif node.operation in _BRANCHES:
                self._branch(region, node)
            else:
                self._access(node)
            self._result(node)

    def _branch(self, region: _Node, node: _Node) -> None:
        condition = _NAME.search(node.text.partition(b"^")[0])
        parts = condition is not None and self._varies(condition[0])
        if parts:
            self._parting.add(region.line)
        for label, given in _TARGETS.findall(node.text):
            for place, name in enumerate(_NAME.findall(given)):
                if parts or self._varies(name):
                    self._apart.add((region.line, label + b" %d" % place))

    def _access(self, node: _Node) -> None:
        _, mark, after = node.text.partition(b'"Workgroup"')
        if mark and node.operation in (b"Load", b"Store"):
            address = _NAME.findall(after)[0]
            place = self._addresses.get(self._names.get(address, -1), (-node.line,))
            is_own = any(number in self._varying for number in place)
            self._accesses[node.line] = _Access(place, node.operation == b"Store", is_own)
        elif b", Workgroup>" in node.text and node.operation not in _ADDRESSES:
            self._accesses[node.line] = _Access((), writes=True)

    def _result(self, node: _Node) -> None:
        found = _RESULT.match(node.text)
        if found is None:
            return
        operation = node.operation
        used = [self._names[name] for name in _NAME.findall(node.text[found.end() :]) if name in self._names]
        if operation == b"mlir.addressof":
            symbol = node.text.partition(b"@")[2].split(b" ", 1)[0]
            varies = b", Input>" in node.text and symbol not in self._uniform_inputs
            place: Place = (self._variables.setdefault(symbol, -len(self._variables) - 1),)
        else:
            varies = node.inner != [] or self._is_apart(operation, node.text, used)
            place = tuple(number for value in used for number in self._addresses.get(value, (value,)))
        number = self._define(found[1], varies)
        if operation in _ADDRESSES:
            self._addresses[number] = place

    def _is_apart(self, operation: bytes, text: bytes, used: list[int]) -> bool:
        """Whether invocations get different results of an operation."""
        varies = any(value in self._varying for value in used)
        if operation == b"Load":
            return varies or not (b'"Input"' in text or b'"PushConstant"' in text)
        return varies or operation.startswith((b"GroupNonUniform", b"Atomic", b"FunctionCall"))

    def _varies(self, name: bytes) -> bool:
        return self._names.get(name, -1) in self._varying

    def _define(self, name: bytes, varies: bool) -> int:
        self._count += 1
        self._names[name] = self._count
        if varies:
            self._varying.add(self._count)
        return self._count

    def _follow(self, nodes: list[_Node], waiting: list[_Access]) -> list[_Access]:
        """Mark where barriers are missing among lines that all invocations reach.

        Args:
            waiting: the accesses before them since the last barrier. Returned are those at their end.
        """
        for node in nodes:
            if node.operation == b"ControlBarrier":
                waiting = []
            elif node.inner and node.line not in self._parting:
                taken = self._follow(node.inner, waiting)
                if node.operation == b"mlir.loop":
                    taken = self._follow(node.inner, taken)
                waiting = list(dict.fromkeys([*waiting, *taken]))
            elif found := self._within(node):
                if node.line in self._marks or any(_clash(one, other) for one in waiting for other in found):
                    self._marks.add(node.line)
                    waiting = []
                waiting = list(dict.fromkeys([*waiting, *found]))
        return waiting

    def splits(self) -> Iterator[_Split]:
        """Where a barrier is missing and not all invocations come by; inner positions first."""
        yield from self._splits(self._root, is_parting=False)

    def _splits(self, node: _Node, is_parting: bool) -> Iterator[_Split]:
        is_parting = is_parting or node.line in self._parting
        waiting: list[_Access] = []
        for number, inner in enumerate(node.inner):
            yield from self._splits(inner, is_parting)
            found = self._made(inner)
            if is_parting and any(_clash(one, other) for one in waiting for other in found):
                yield _Split(node, number)
            waiting = list(dict.fromkeys([*waiting, *found]))

    def _made(self, node: _Node) -> list[_Access]:
        """All accesses of a line and its region."""
        own = [self._accesses[node.line]] if node.line in self._accesses else []
        return [*own, *(access for inner in node.inner for access in self._made(inner))]

    def _within(self, node: _Node) -> list[_Access]:
        """The accesses of a line, or of a selection or loop in which invocations part."""
        return [replace(access, is_own=False) for access in self._made(node)] if node.inner else self._made(node)


def _clash(one: _Access, other: _Access) -> bool:
    """Whether one of two accesses writes what another invocation may see by the other."""
    if not (one.writes or other.writes):
        return False
    if one.place and other.place and one.place[0] != other.place[0]:
        return False
    return not (one.is_own and other.is_own and one.place == other.place)
