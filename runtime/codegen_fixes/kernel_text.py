"""Parse kernels of IREE's module in LLVM's dialect into graphs of blocks.

Source: MLIR, "LLVM dialect"; the form in which IREE's compiler is at ``executable-targets`` for CUDA.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

__all__ = ["Block", "Kernel", "Operation", "Successor", "kernels"]

NAME = re.compile(rb"%[\w$.-]+")
_FUNCTION = re.compile(
    rb"^( *)llvm\.func @(\S+?)\((.*)\).*gpu\.known_block_size = array<i32: (\d+), (\d+), (\d+)>.*\{$"
)
_ARGUMENT = re.compile(rb"(%arg\d+): [^{%]*(?:\{([^}]*)\})?")
_LABEL = re.compile(rb"^ *(\^\w+)(?:\((.*)\))?:")
_RESULT = re.compile(rb"^ *(%[\w$.-]+)(?::\d+)? = ")
_OPERATION = re.compile(rb'^"?([a-z]\w*\.[\w.]+)')
_SUCCESSOR = re.compile(rb"(\^\w+)(?:\(([^)]*)\))?")
_BRANCHES = (b"llvm.br", b"llvm.cond_br")
_ENDS = (*_BRANCHES, b"llvm.return", b"llvm.unreachable")


@dataclass(frozen=True)
class Operation:
    """One line: ``body`` is what follows its result, ``line`` its number in the text."""

    line: int
    result: bytes
    name: bytes
    body: bytes
    operands: tuple[bytes, ...]


@dataclass(frozen=True)
class Successor:
    """Where a branch leads, what it gives the block there, and how the text has it."""

    label: bytes
    given: tuple[bytes, ...]
    text: bytes


@dataclass
class Block:
    label: bytes
    arguments: tuple[bytes, ...] = ()
    operations: list[Operation] = field(default_factory=list)

    @property
    def end(self) -> Operation:
        return self.operations[-1]

    def successors(self) -> list[Successor]:
        if self.end.name not in _BRANCHES:
            return []
        found = _SUCCESSOR.finditer(self.end.body)
        return [Successor(one[1], tuple(NAME.findall(one[2] or b"")), one[0]) for one in found]


@dataclass
class Kernel:
    """A function that threads run in blocks of ``sizes``.

    Attributes:
        line: the number of its first line; ``end`` is that of its last one.
        arguments: their attributes.
    """

    line: int
    end: int
    name: bytes
    sizes: tuple[int, int, int]
    arguments: dict[bytes, bytes]
    blocks: list[Block]

    def operations(self) -> Iterator[Operation]:
        for block in self.blocks:
            yield from block.operations


def kernels(lines: list[bytes]) -> Iterator[Kernel]:
    """The kernels of a module; those that are written in an unknown form are left out."""
    for number, line in enumerate(lines):
        head = _FUNCTION.match(line)
        if head is None:
            continue
        end = next((at for at in range(number, len(lines)) if lines[at] == head[1] + b"}"), None)
        blocks = _blocks(lines, number + 1, end) if end else None
        if end and blocks:
            arguments = {one[1]: one[2] or b"" for one in _ARGUMENT.finditer(head[3])}
            sizes = (int(head[4]), int(head[5]), int(head[6]))
            yield Kernel(number, end, head[2], sizes, arguments, blocks)


def _blocks(lines: list[bytes], start: int, end: int) -> list[Block] | None:
    blocks = [Block(b"^bb0")]
    for number in range(start, end):
        line = lines[number]
        if not line.strip():
            continue
        if label := _LABEL.match(line):
            names = tuple(part.split(b":")[0].strip() for part in (label[2] or b"").split(b", ") if b"%" in part)
            blocks.append(Block(label[1], names))
            continue
        operation = _operation(number, line)
        if operation is None:
            return None
        blocks[-1].operations.append(operation)
    labels = {block.label for block in blocks}
    whole = all(block.operations and block.end.name in _ENDS for block in blocks)
    return blocks if whole and all(to.label in labels for block in blocks for to in block.successors()) else None


def _operation(number: int, line: bytes) -> Operation | None:
    result = _RESULT.match(line)
    body = line[result.end() :] if result else line.strip()
    name = _OPERATION.match(body)
    if name is None or body.endswith((b"{", b"[")):
        return None
    return Operation(number, result[1] if result else b"", name[1], body, tuple(NAME.findall(body)))
