"""Products of which one factor is computed of narrower memory: weights of few bits with scales, as models are shipped.

Such a factor is no array in memory. Some of its columns at a time, a panel, are computed by a nest as any array is,
into memory that the second-level cache holds, and multiplied by all rows of the other factor::

    for panel in piece:
        panel = columns of the factor        # each element once
        results of these columns = other factor * panel

An element costs a few operations, however many rows there are, and what is read of memory is the weights as they are
stored.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING

from hloforge.pipelines.codegen import index as places
from hloforge.pipelines.codegen.contractions import LINE, product_of, scratch_of, storage_kind
from hloforge.pipelines.codegen.elements.memory import size as element_size
from hloforge.pipelines.codegen.emit import Memory, accessing
from hloforge.pipelines.codegen.graph import Array, Op
from hloforge.pipelines.codegen.index import Index, Symbol
from hloforge.pipelines.codegen.lang.values import I8
from hloforge.pipelines.codegen.loops import NestWriter
from hloforge.pipelines.codegen.narrow_factors import free_dims
from hloforge.pipelines.codegen.nest_loops import Share
from hloforge.pipelines.codegen.parts import strides
from hloforge.pipelines.codegen.products.gemm import Gemm
from hloforge.pipelines.codegen.products.loops import each
from hloforge.pipelines.codegen.products.work import Work
from hloforge.pipelines.codegen.steps import Nest
from hloforge.pipelines.framework.machine import Machine

if TYPE_CHECKING:
    from hloforge.pipelines.codegen.blocks import Generator

# Of the second-level cache, what a panel fills: the other factor's rows go by.
_SHARE = 4
# Columns are taken in such numbers, which fill vectors.
_COLUMNS = 16


@dataclass(frozen=True)
class Panels:
    """How a product is cut.

    Attributes:
        factor: the array that is computed.
        other: the other one.
        along: the factor's dimension whose parts are panels.
        gemm: the product with the factor as its right one.
        width: columns of a panel.
    """

    factor: Array
    other: Array
    along: int
    gemm: Gemm
    width: int

    @property
    def count(self) -> int:
        return -(-self.gemm.n // self.width)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.width if d == self.along else size for d, size in enumerate(self.factor.shape))

    @property
    def bytes(self) -> int:
        return prod(self.shape) * element_size(self.factor.element)

    @property
    def part(self) -> Gemm:
        """The product with a panel."""
        steps = strides(self.shape)
        summed = [d for d in range(self.factor.rank) if d != self.along and self.factor.shape[d] != 1]
        row = steps[summed[-1]] if summed else 1
        right = replace(self.gemm.rhs, row=row, column=steps[self.along])
        return replace(self.gemm, n=self.width, rhs=right)

    def pieces(self, machine: Machine) -> int:
        """Into how many workgroups it is cut."""
        return min(self.gemm.pieces(machine), self.count)


def panels_of(op: Op, extensions: frozenset[str], machine: Machine) -> Panels:
    """The panels of a product with a factor that is computed (``Op.panel``)."""
    assert op.panel is not None
    gemm = product_of(op, extensions)
    factor, other = op.operands[op.panel], op.operands[1 - op.panel]
    if op.panel == 0:
        gemm = gemm.transposed()
    (along,) = free_dims(op, op.panel)
    column = gemm.k * element_size(factor.element)
    width = max(machine.l2_bytes // _SHARE // column // _COLUMNS, 1) * _COLUMNS
    # Equal panels overlap least.
    count = max(-(-gemm.n // width), min(gemm.pieces(machine), gemm.n // _COLUMNS), 1)
    width = -(-gemm.n // count)
    return Panels(factor, other, along, gemm, min(-(-width // _COLUMNS) * _COLUMNS, gemm.n))


def write(generator: Generator, op: Op, share: Share | None) -> None:
    """The code of a product with panels."""
    found = panels_of(op, generator.extensions, generator.machine)
    function, machine, part = generator.writer.function, generator.machine, found.part
    size = -(-found.bytes // LINE) * LINE
    room = generator.scratch_memory(size * (share.count if share else 1))
    panel = room.pointer if share is None else function.offset(room.pointer, I8, share.number * size)
    kept = Memory(panel, found.factor.element, room.access)
    work = scratch_of(generator, part.scratch(machine), share)
    first, last = function.index(0), function.index(found.count)
    if share is not None:
        first, last = ((share.number + more) * found.count for more in (0, 1))
        first, last = first.udiv(share.count), last.udiv(share.count)
    pointers = generator.pointer(found.other), generator.pointer(op.result)
    with each(function, first, last) as number:
        begin = number * found.width
        if found.gemm.n % found.width:
            begin = begin.minimum(found.gemm.n - found.width)
        _fill(generator, found, kept, begin)
        out = function.offset(pointers[1], storage_kind(op.result.element), begin * found.gemm.out.column)
        with accessing(function, ""):
            part.emit(Work(function, pointers[0], panel, out, work, None, machine))


def _fill(generator: Generator, found: Panels, kept: Memory, begin: object) -> None:
    """Compute a panel from a column on."""
    room = found.gemm.n - found.width
    start = Index(((Symbol(room, value=begin), 1),)) if room else places.ZERO
    origin = tuple(start if d == found.along else places.ZERO for d in range(found.factor.rank))
    nest = Nest(
        shape=found.shape,
        maps=[found.factor],
        origin=origin,
        into=(tuple(index * -1 for index in origin), found.shape),
    )

    def in_memory(array: Array) -> bool:
        return array is not found.factor and generator.in_memory(array)

    nest.split(in_memory)
    NestWriter(
        generator.writer,
        nest,
        lambda array: kept if array is found.factor else generator.memory(array),
        in_memory,
    ).write()
