"""The control flow of a kernel: where threads of a block diverge, and where all of them pass.

Nodes are the kernel's blocks, and an empty one on each edge from a branch to where several edges meet.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hloforge.runtime.codegen_fixes.kernel_text import Block, Kernel, Operation
from hloforge.runtime.codegen_fixes.thread_indices import Values

__all__ = ["Node", "Paths"]

# What gives each thread another value, whatever it is given.
_PARTING = (b"nvvm.read.ptx.sreg.tid", b"nvvm.read.ptx.sreg.laneid", b"nvvm.read.ptx.sreg.warpid", b"llvm.alloca")
_LOADS = (b"llvm.load", b"llvm.intr.masked.load", b"llvm.intr.masked.gather")


@dataclass
class Node:
    """A block, or the edge to ``block`` that is the ``edge``-th of the node ``source``."""

    number: int
    block: Block
    source: int = -1
    edge: int = -1
    before: list[int] = field(default_factory=list)
    behind: list[int] = field(default_factory=list)

    @property
    def operations(self) -> list[Operation]:
        return self.block.operations if self.edge < 0 else []


class Paths:
    """A kernel's control flow.

    Attributes:
        nodes: the blocks in their order, then the edges.
        parted: the nodes that threads of a block may reach apart.
    """

    def __init__(self, kernel: Kernel, values: Values) -> None:
        self._kernel = kernel
        self._values = values
        self.nodes = _nodes(kernel)
        self._all = (1 << len(self.nodes)) - 1
        self._dominators = self._fixed([node.before for node in self.nodes], [0])
        exits = [node.number for node in self.nodes if not node.behind]
        self._postdominators = self._fixed([node.behind for node in self.nodes], exits)
        self._loops = [self._loop(node, head) for node in self.nodes for head in node.behind if self._leads(head, node)]
        self.parted: set[int] = set()
        self._varying: set[bytes] = set()
        self._part()
        self.parts = self._joined()

    def depth(self, node: int) -> int:
        """How many loops a node is in."""
        return len({head for head, body in self._loops if node in body})

    def reached(self, starts: list[int], stop: int = -1) -> set[int]:
        """The nodes after some, by ways that do not come by ``stop``."""
        found: set[int] = set()
        waiting = [behind for start in starts for behind in self.nodes[start].behind]
        while waiting:
            number = waiting.pop()
            if number != stop and number not in found:
                found.add(number)
                waiting += self.nodes[number].behind
        return found

    def _fixed(self, neighbours: list[list[int]], roots: list[int]) -> list[int]:
        """The nodes that are on every way from a root to each, as bits."""
        found = [1 << one.number if one.number in roots else self._all for one in self.nodes]
        changed = True
        while changed:
            changed = False
            for node in self.nodes:
                if node.number in roots:
                    continue
                common = self._all
                for other in neighbours[node.number]:
                    common &= found[other]
                common |= 1 << node.number
                changed |= common != found[node.number]
                found[node.number] = common
        return found

    def _leads(self, head: int, node: Node) -> bool:
        return bool(self._dominators[node.number] >> head & 1)

    def _loop(self, latch: Node, head: int) -> tuple[int, set[int]]:
        body, waiting = {head}, [latch.number]
        while waiting:
            number = waiting.pop()
            if number not in body:
                body.add(number)
                waiting += self.nodes[number].before
        return head, body

    def _meeting(self, number: int) -> int:
        """The first node that all ways from a node lead to; -1 if there is none."""
        others = self._postdominators[number] & ~(1 << number)
        nearest = [one.number for one in self.nodes if others >> one.number & 1]
        # The nearest one has the most after it.
        return max(nearest, key=lambda one: self._postdominators[one].bit_count(), default=-1)

    def _part(self) -> None:
        known = -1
        while known != len(self._varying):
            known = len(self._varying)
            for block in self._kernel.blocks:
                for operation in block.operations:
                    if operation.result and self._is_apart(operation):
                        self._varying.add(operation.result)
                for to in block.successors():
                    target = next(one for one in self._kernel.blocks if one.label == to.label)
                    pairs = zip(target.arguments, to.given, strict=True)
                    self._varying |= {argument for argument, given in pairs if self.varies(given)}
            for node in self.nodes:
                if node.edge < 0 and len(node.behind) > 1 and self.varies(node.block.end.operands[0]):
                    self._part_at(node.number)

    def varies(self, name: bytes) -> bool:
        """Whether threads of a block may hold different values by this name."""
        return name in self._varying and not self._values.number(name).is_shared

    def _is_apart(self, operation: Operation) -> bool:
        name = operation.name
        if any(self.varies(one) for one in operation.operands) or name.startswith(_PARTING):
            return True
        if name in _LOADS:
            pointer = self._values.pointer(operation.operands[0])
            read_only = pointer and b"llvm.readonly" in self._kernel.arguments.get(pointer.object, b"")
            return not read_only and b"!llvm.ptr<4>" not in operation.body
        if name == b"llvm.call":
            return b"@__nv_" not in operation.body
        return not name.startswith((b"llvm.", b"nvvm.read.ptx.sreg.")) or b"atomic" in name or b"cmpxchg" in name

    def _part_at(self, number: int) -> None:
        meeting = self._meeting(number)
        region = self.reached([number], stop=meeting)
        self.parted |= region
        for one in region | {meeting} - {-1}:
            block = self.nodes[one].block
            if self.nodes[one].edge >= 0 or not block.arguments or len(self.nodes[one].before) < 2:
                continue
            inside = [before for before in self.nodes[one].before if before in region or before == number]
            given = {self._given(before, one) for before in inside}
            whole = one not in region or len(inside) == len(self.nodes[one].before)
            for place, argument in enumerate(block.arguments):
                if not whole or len({names[place] for names in given}) > 1:
                    self._varying.add(argument)

    def _given(self, before: int, number: int) -> tuple[bytes, ...]:
        """What a node gives the one after it."""
        node = self.nodes[before]
        if node.edge >= 0:
            return self.nodes[node.source].block.successors()[node.edge].given
        label = self.nodes[number].block.label
        return next(to.given for to in node.block.successors() if to.label == label)

    def _joined(self) -> dict[int, int]:
        """The parted nodes, by the number of the connected part that they are in."""
        parts: dict[int, int] = {}
        for first in sorted(self.parted):
            waiting = [first] if first not in parts else []
            while waiting:
                number = waiting.pop()
                if number in self.parted and number not in parts:
                    parts[number] = first
                    waiting += self.nodes[number].behind + self.nodes[number].before
        return parts


def _nodes(kernel: Kernel) -> list[Node]:
    nodes = [Node(number, block) for number, block in enumerate(kernel.blocks)]
    numbers = {block.label: number for number, block in enumerate(kernel.blocks)}
    counts = dict.fromkeys(numbers, 0)
    for block in kernel.blocks:
        for to in block.successors():
            counts[to.label] += 1
    for number, block in enumerate(kernel.blocks):
        targets = block.successors()
        for edge, to in enumerate(targets):
            at, target = number, numbers[to.label]
            if len(targets) > 1 and counts[to.label] > 1:
                nodes.append(Node(len(nodes), kernel.blocks[target], number, edge))
                _connect(nodes, at, len(nodes) - 1)
                at = len(nodes) - 1
            _connect(nodes, at, target)
    return nodes


def _connect(nodes: list[Node], source: int, target: int) -> None:
    nodes[source].behind.append(target)
    nodes[target].before.append(source)
