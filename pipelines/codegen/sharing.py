"""Algorithms over rows that do not depend on each other, shared out to workgroups."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hloforge.pipelines.codegen.lang.values import I8, Number, Value
from hloforge.pipelines.codegen.nest_loops import Share
from hloforge.pipelines.codegen.products.blocking import pieces_for
from hloforge.pipelines.framework.machine import Machine

if TYPE_CHECKING:
    from hloforge.pipelines.codegen.blocks import Generator

# Parts of scratch memory begin at multiples of it.
_LINE = 64


def pieces(rows: int, multiplications: float, lanes: int, machine: Machine) -> int:
    """To how many workgroups it pays to share out rows, which take so many multiplications together."""
    return max(1, min(rows, pieces_for(int(multiplications), 0, lanes, machine)))


def rows_of(share: Share | None, rows: int) -> tuple[Number, Number] | None:
    """A workgroup's first row and the one after its last; None for all."""
    if share is None:
        return None
    return (share.number * rows).udiv(share.count), ((share.number + 1) * rows).udiv(share.count)


def scratch(generator: Generator, size: int, share: Share | None) -> Value:
    """Memory that each workgroup works in."""
    if share is None:
        return generator.required_scratch(size)
    size = -(-max(size, 1) // _LINE) * _LINE
    memory = generator.required_scratch(size * share.count)
    return generator.writer.function.offset(memory, I8, share.number * size)
