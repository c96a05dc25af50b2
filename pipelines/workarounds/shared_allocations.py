"""Which conditionals are met while an array that a dispatch made is still to be read.

IREE packs the results of dispatches that run together into one allocation, which has one register in its VM. What a
conditional does with a register that a later operation reads, ``keep-loop-buffers`` prevents; this says where that is.
One walk over the program finds for each block where the arrays that are made in it, and those that are made around it,
are read last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from hloforge.dialect.mlir import ir


@dataclass
class _Block:
    """What is read where, by the positions of operations in a block; one within a loop or branch counts as that.

    Attributes:
        position: of the operation that the walk is at.
        made: of each position the arrays that are made there.
        last: the last position that reads an array of the block.
        last_outer: the last position that reads an array of any block around this one; -1 if none does.
    """

    position: int = -1
    made: list[list[Any]] = field(default_factory=list)
    last: dict[Any, int] = field(default_factory=dict)
    last_outer: int = -1
    _reach: list[int] = field(default_factory=list)

    def is_read_from(self, first: int, position: int) -> bool:
        """Whether an array that is made before a position is read at ``first`` or later. Once the walk is over."""
        if not self._reach:
            ends = (max((self.last.get(one, -1) for one in made), default=-1) for made in self.made)
            self._reach = [-1, *accumulate(ends, max)]
        return max(self.last_outer, self._reach[position]) >= first


@dataclass
class Conditional:
    """A conditional with the blocks that it is in, from the innermost one on."""

    operation: Any
    places: list[tuple[_Block, int, bool]]

    @property
    def is_met_before_reads(self) -> bool:
        """Whether an array of a dispatch before it is read after it, or after or again in what is around it."""
        return any(
            # What a loop reads, and does not carry, it reads again in its next turn.
            block.is_read_from(position if is_loop else position + 1, position)
            for block, position, is_loop in self.places
        )


def conditionals(
    module: ir.Module, names: frozenset[str], loops: frozenset[str], is_made_by_dispatch: Callable[[Any], bool]
) -> list[Conditional]:
    """All conditionals of a module, inner ones first.

    Args:
        names: of conditionals.
        loops: the names of loops.
        is_made_by_dispatch: whether a value may be a part of an allocation.
    """
    found: list[Conditional] = []
    depth_of: dict[Any, int] = {}

    def walk(operations: Iterator[Any], around: list[tuple[_Block, bool]]) -> None:
        block = _Block()
        depth = len(around)
        for position, view in enumerate(operations):
            op = view.operation
            block.position = position
            path = [*around, (block, op.name in loops)]
            for operand in op.operands:
                _note_read(operand, depth_of.get(operand), path)
            for region in op.regions:
                for inner in region.blocks:
                    walk(iter(inner.operations), path)
            if op.name in names:
                places = [(one, one.position, is_loop) for one, is_loop in reversed(path)]
                found.append(Conditional(op, places))
            block.made.append([result for result in op.results if is_made_by_dispatch(result)])
            depth_of.update(dict.fromkeys(block.made[-1], depth))

    walk(iter(module.body.operations), [])
    return found


def _note_read(value: Any, depth: int | None, path: list[tuple[_Block, bool]]) -> None:
    """Note where a value is read in its own block, and in those between it and the reader."""
    if depth is None:
        return
    path[depth][0].last[value] = path[depth][0].position
    for block, _ in path[depth + 1 :]:
        block.last_outer = block.position
