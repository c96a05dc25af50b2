"""Writes fused steps: a loop over blocks of rows, in which each step runs for the rows of a block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from hloforge.pipelines.codegen import index as places
from hloforge.pipelines.codegen.contractions import LINE, product_of, scratch_of
from hloforge.pipelines.codegen.elements.memory import size as element_size
from hloforge.pipelines.codegen.emit import Emitter, Memory, accessing
from hloforge.pipelines.codegen.epilogues import EpilogueWriter
from hloforge.pipelines.codegen.fused_rows import FusedRows, Rows
from hloforge.pipelines.codegen.graph import Array
from hloforge.pipelines.codegen.index import Index, Symbol
from hloforge.pipelines.codegen.kernel_program import ENTRY
from hloforge.pipelines.codegen.lang.outlining import Cut, outline
from hloforge.pipelines.codegen.lang.values import I8, Value
from hloforge.pipelines.codegen.loops import NestWriter
from hloforge.pipelines.codegen.nest_loops import Share
from hloforge.pipelines.codegen.products.gemm import Gemm
from hloforge.pipelines.codegen.products.loops import each
from hloforge.pipelines.codegen.products.operands import strided
from hloforge.pipelines.codegen.products.work import Work
from hloforge.pipelines.codegen.slots import Slot
from hloforge.pipelines.codegen.steps import Nest, Single

if TYPE_CHECKING:
    from hloforge.pipelines.codegen.blocks import Generator


def write_fused_rows(generator: Generator, fused: FusedRows, share: Share | None) -> None:
    """The code of fused steps, or a workgroup's part of their blocks. Arrays that others read have slots already."""
    _Writer(generator, fused, share).write()


class _Writer:
    def __init__(self, generator: Generator, fused: FusedRows, share: Share | None) -> None:
        self._generator, self._fused, self._share = generator, fused, share
        self._function = generator.writer.function
        self._rooms: dict[Slot, tuple[Array, Memory]] = {}
        for array, room in fused.local.items():
            self._put(array, room)
        self._products = {
            step.operation: _part(
                product_of(step.operation, generator.extensions), fused.block, keeps=fused.blocks > fused.rows.outer
            )
            for step in fused.steps
            if isinstance(step, Single)
        }
        # Each has memory of its own: packed factors stay there until the next matrix.
        sizes = {op: part.scratch(generator.machine) for op, part in self._products.items()}
        self._scratch = {op: scratch_of(generator, size, share) if size else None for op, size in sizes.items()}
        self._packs: Value | None = None

    def _put(self, array: Array, room: Array) -> None:
        """Let an array that nobody else reads have memory for a block of rows, of this workgroup."""
        generator, share = self._generator, self._share
        if room is not array:
            generator.slots[array] = generator.slots[room]
            return
        size = -(-self._row_bytes(array) * self._fused.block // LINE) * LINE
        slot = generator.slots[array] = generator.room(array.element, size * (share.count if share else 1))
        memory = generator.writer.memory(slot)
        if share is not None:
            pointer = self._function.offset(memory.pointer, I8, share.number * size)
            memory = Memory(pointer, memory.element, memory.access)
        self._rooms[slot] = array, memory

    def _row_bytes(self, array: Array) -> int:
        return array.elements // self._fused.rows.count * element_size(array.element)

    def write(self) -> None:
        fused, function = self._fused, self._function
        rows, block = fused.rows, fused.block
        first, last = function.index(0), function.index(fused.blocks)
        if self._share is not None:
            number, count = self._share.number, self._share.count
            first, last = ((number + more) * fused.blocks for more in (0, 1))
            first, last = first.udiv(count), last.udiv(count)
        across = fused.blocks // rows.outer
        with each(function, first, last) as number:
            outer, inner = (number.udiv(across), number.urem(across)) if across > 1 else (number, function.index(0))
            self._packs = inner.equals(0) | number.equals(first) if across > 1 else None
            begin = inner * block
            if rows.size % block:
                # The last block begins early enough to be whole.
                begin = begin.minimum(rows.size - block)
            start = places.counter(rows.outer, outer) * rows.size
            if rows.size > block:
                start = start + Index(((Symbol(rows.size - block, value=begin), 1),))
            self._place_rooms(outer * rows.size + begin)
            for step in fused.steps:
                if isinstance(step, Nest):
                    self._write_nest(step, start)
                else:
                    self._write_product(step, start)

    def _place_rooms(self, first: Value) -> None:
        """Let rows of arrays that have memory for a block be found by their own numbers."""
        for slot, (array, memory) in self._rooms.items():
            back = first * -self._row_bytes(array)
            self._generator.writer.let(slot, replace(memory, pointer=self._function.moved(memory.pointer, back)))

    def _origin(self, start: Index, shape: Sequence[int]) -> tuple[Index, ...]:
        """The place in an array, whose rows these are, of a block's first row."""
        dims = self._fused.rows.dims(shape)
        assert dims is not None
        return places.delinear(start, tuple(shape[:dims])) + (places.ZERO,) * (len(shape) - dims)

    def _write_nest(self, nest: Nest, start: Index) -> None:
        generator = self._generator
        own = set(nest.makes)
        in_memory = lambda array: generator.in_memory(array) and array not in own  # noqa: E731
        shape = _block_shape(self._fused.rows, nest.shape, self._fused.block)
        part = replace(nest, shape=shape, origin=self._origin(start, nest.shape), known=None)
        NestWriter(generator.writer, part, generator.memory, in_memory).write()

    def _write_product(self, step: Single, start: Index) -> None:
        generator, function, op = self._generator, self._function, step.operation
        whole, part = product_of(op, generator.extensions), self._products[op]
        emitter = Emitter(function, generator.memory)
        matrix, row = start.over(whole.m), emitter.value(start.modulo(whole.m))
        batch = [emitter.value(index) for index in places.delinear(matrix, whole.batch)] if whole.batch else []
        after = EpilogueWriter(generator, op, step.epilogue) if step.epilogue else None
        lhs, rhs = (generator.pointer(operand) for operand in op.operands)
        left = strided(function, lhs, whole.lhs.kind, [*batch, row], [*whole.lhs.batch, whole.lhs.row])
        right = strided(function, rhs, whole.rhs.kind, batch, whole.rhs.batch)
        # Nobody stores where sums would be.
        out = left
        if after is None:
            out = generator.pointer(op.result)
            out = strided(function, out, whole.out.kind, [*batch, row], [*whole.out.batch, whole.out.row])
        number = emitter.value(matrix)

        def store(sums: Value, told: Sequence[Value]) -> None:
            assert after is not None
            after.store(sums, [number, told[1] + row, told[2]])

        begin = Cut(len(function.lines), function.block)
        before, function.has_scalar_loops = function.has_scalar_loops, False
        with accessing(function, ""):
            part.emit(
                Work(
                    *(function, left, right, out, self._scratch[op], None, generator.machine),
                    store=store if after else None,
                    packs=self._packs if part.keeps else None,
                )
            )
        has_vectors = not function.has_scalar_loops
        function.has_scalar_loops |= before
        if has_vectors:
            outline(function, [begin], ENTRY, has_vectors=True, apart={left.text, right.text, out.text})


def _part(whole: Gemm, rows: int, *, keeps: bool) -> Gemm:
    """A product's rows of one block.

    Args:
        keeps: whether blocks that follow read the same right factor.
    """
    lhs, rhs, out = (replace(matrix, batch=()) for matrix in (whole.lhs, whole.rhs, whole.out))
    return replace(whole, batch=(), m=rows, lhs=lhs, rhs=rhs, out=out, keeps=keeps)


def _block_shape(rows: Rows, shape: Sequence[int], block: int) -> tuple[int, ...]:
    """The shape of so many rows."""
    dims = rows.dims(shape)
    assert dims is not None
    last = max((d for d in range(dims) if shape[d] != 1), default=0)
    return tuple((block if d == last else 1) if d < dims else size for d, size in enumerate(shape))
