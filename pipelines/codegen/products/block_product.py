"""Products of rows and columns of bytes in blocks, each of which has a scale in either factor, as language models have.

    out[r, c] = sum over blocks b of left[r, b] * right[c, b] * (start[r, b] + sum over t of x[r, b, t] * w[c, b, t])

Terms lie next to each other in both factors. Sums of a block are integers, of which a vector has some for each block;
they are converted and scaled once a block, and added in f32::

    for group of columns:
        for tile of rows:
            for vector of bytes of the columns:
                read each column's bytes once, and take them apart where a byte has several codes
                sums[row, column] += left[row] * right[column] * float(dots of the row's and the column's bytes)
            store the sum of each register

Where a byte of a column has several codes, there are as many arrays of rows: the terms that belong to the first codes
of all bytes, then those that belong to the second ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hloforge.pipelines.codegen.chains import Terms, add_up
from hloforge.pipelines.codegen.lang.functions import Function
from hloforge.pipelines.codegen.lang.values import FLOAT, I8, I16, I32, Value, lanes_of, vector_of
from hloforge.pipelines.codegen.products.arithmetic import AVX2, VNNI, Arithmetic
from hloforge.pipelines.codegen.products.blocking import pieces_for
from hloforge.pipelines.codegen.products.dot_products import terms_at
from hloforge.pipelines.codegen.products.loops import each, piece_of
from hloforge.pipelines.codegen.products.operands import Matrix, clamped
from hloforge.pipelines.codegen.products.shuffles import sums_of
from hloforge.pipelines.framework.machine import Machine

# Bytes that an instruction adds up in a lane.
GROUP = 4
# Rows of codes and scales end at multiples of so many bytes, whatever vectors a processor has.
WHOLE = 64
# How many times as many terms as floats the instructions for bytes take.
_FASTER = 4
# LLVM's names of the instruction that adds up two products of bytes, by the bytes of a vector.
_PAIRS = {32: "avx2.pmadd.ub.sw", 64: "avx512.pmaddubs.w.512"}


@dataclass(frozen=True)
class Codes:
    """Where codes are in bytes: ``byte >> shift & mask``; the highest bit is turned over if they are flipped."""

    shift: int = 0
    mask: int = 255
    is_flipped: bool = False


@dataclass(frozen=True)
class Factors:
    """The addresses of all operands.

    Attributes:
        rows: of bytes, ``[m, whole]``, for each place of codes in a column's bytes.
        left: scales of rows, ``[m, whole / 4]``, each as often as its block has lanes.
        starts: what sums of blocks begin with in each lane, s32, ``[m, whole / 4]``; None for 0.
        columns: bytes, ``[n, depth]``.
        right: scales of columns, ``[n, blocks]``.
    """

    rows: Sequence[Value]
    left: Value
    starts: Value | None
    columns: Value
    right: Value


@dataclass(frozen=True)
class BlockProduct:
    """A product of bytes in blocks.

    Attributes:
        m, n: rows and columns of the result.
        blocks: of a column.
        size: bytes of a column's block: 4, 8, 16, 32, or a multiple of 64.
        codes: of a byte of a column.
        is_unsigned: whether these have no sign; rows have one then, else rows have none.
        extensions: of the processor, by LLVM's names.
    """

    m: int
    n: int
    blocks: int
    size: int
    codes: tuple[Codes, ...]
    is_unsigned: bool
    extensions: frozenset[str] = frozenset()

    @property
    def depth(self) -> int:
        """Bytes of a column."""
        return self.blocks * self.size

    @property
    def whole(self) -> int:
        """Bytes of a row in memory, which are whole vectors."""
        return -(-self.depth // WHOLE) * WHOLE

    def tile(self, machine: Machine) -> tuple[int, int]:
        """Rows and columns whose sums are in registers at once."""
        is_large = machine.vector_count >= 32
        rows = min(self.m, 4 if is_large else 2)
        columns = 8 if rows == 1 and is_large else 4 if is_large else 2
        return rows, min(columns, 1 << (self.n.bit_length() - 1))

    def units(self, machine: Machine) -> int:
        return -(-self.n // self.tile(machine)[1])

    def workgroups(self, machine: Machine) -> int:
        """Into how many pieces of about equal work it pays to cut the columns."""
        work = self.m * self.n * self.depth * len(self.codes) // (_FASTER if VNNI in self.extensions else 1)
        read = self.n * (self.depth + 4 * self.blocks)
        return min(pieces_for(work, read, machine.vector_bytes // GROUP, machine), self.units(machine))

    def emit(self, function: Function, given: Factors, out: Value, workgroup: Value | None, machine: Machine) -> None:
        """Write the product, or a piece of it."""
        rows, columns = self.tile(machine)
        first, last = piece_of(function, self.units(machine), workgroup, self.workgroups(machine))
        with each(function, first, last) as unit, each(function, 0, -(-self.m // rows)) as number:
            column = clamped(function, unit * columns, self.n - columns)
            row = clamped(function, number * rows, self.m - rows)
            tile = _Tile(function, self, given, row, column, (rows, columns), machine)
            sums = tile.sums()
            for place in range(rows):
                group = sums_of(function, sums[place * columns : (place + 1) * columns])
                function.store(group, function.offset(out, FLOAT, (row + place) * self.n + column))


@dataclass(frozen=True)
class _Tile:
    """Some rows and columns of the result."""

    function: Function
    product: BlockProduct
    given: Factors
    row: Value
    column: Value
    shape: tuple[int, int]
    machine: Machine

    @property
    def is_ahead(self) -> bool:
        """Whether the next columns are prefetched: what is read once, and comes from memory."""
        product = self.product
        return self.shape[0] == product.m and product.n * product.depth > self.machine.l2_bytes

    @property
    def vector(self) -> int:
        return self.machine.vector_bytes

    @property
    def step(self) -> int:
        """Bytes of whole blocks and whole vectors."""
        return max(self.vector, self.product.size)

    def sums(self) -> list[Value]:
        """Of each row and column, in lanes that are still to be added up."""
        product, function = self.product, self.function
        zeros = [function.constant(0.0, vector_of(FLOAT, self.vector // GROUP))] * (self.shape[0] * self.shape[1])
        count = product.depth // self.step
        if count:
            terms = [Terms(count, count, (self.step,))]
            zeros = add_up(
                function, terms, [function.index(0)], zeros, lambda at, sums: self._add(at[0], sums, self.step)
            )
        rest = product.depth % self.step
        return self._add(function.index(count * self.step), zeros, rest) if rest else zeros

    def _add(self, at: Value, sums: Sequence[Value], some: int) -> list[Value]:
        """Add a step's terms, or the first ``some`` bytes of one.

        Args:
            at: in bytes of a column.
        """
        product, function, vectors = self.product, self.function, self.step // self.vector
        columns = [self._column(self.column + place, at, some) for place in range(self.shape[1])]
        following = list(sums)
        for place in range(self.shape[0]):
            row = self.row + place
            start = row * product.whole + at
            # Lanes of 4 bytes belong to 4 bytes of codes each, so that both lie as far from a row's beginning.
            left = function.load(function.offset(self.given.left, I8, start), vector_of(FLOAT, self.vector // GROUP))
            starts = self._starts(start)
            bytes_ = [
                [
                    function.load(function.offset(one, I8, start + part * self.vector), vector_of(I8, self.vector))
                    for one in self.given.rows
                ]
                for part in range(vectors)
            ]
            for number, (codes, right) in enumerate(columns):
                both = [
                    pair
                    for some_bytes, some_codes in zip(bytes_, codes, strict=True)
                    for pair in zip(some_bytes, some_codes, strict=True)
                ]
                total = self._of_pairs(both, starts) if self._adds_pairs else starts
                for one, other in both if not self._adds_pairs else ():
                    total = self._dots(one, other, total)
                slot = place * self.shape[1] + number
                scaled = total.as_(FLOAT)
                following[slot] = function.intrinsic("fmuladd", left.kind, scaled, left * right, following[slot])
        return following

    def _starts(self, start: Value) -> Value:
        kind = vector_of(I32, self.vector // GROUP)
        if self.given.starts is None:
            return self.function.constant(0, kind)
        return self.function.load(self.function.offset(self.given.starts, I8, start), kind)

    def _column(self, column: Value, at: Value, some: int) -> tuple[list[list[Value]], Value]:
        """The codes of each vector of a column's bytes, and the scale of each lane."""
        product, function = self.product, self.function
        memory = Matrix(I8, (), product.depth, 1)
        start = function.offset(self.given.columns, I8, column * product.depth + at)
        found = []
        for part in range(0, self.step, self.vector):
            if self.is_ahead:
                function.prefetch(function.offset(start, I8, self.shape[1] * product.depth + part))
            count = max(min(some - part, self.vector), 0)
            stored = terms_at(function, memory, start, part, self.vector, count, I8)
            found.append([_codes(stored, one) for one in product.codes])
        blocks, lanes = max(self.vector // product.size, 1), self.vector // GROUP
        place = column * product.blocks + (at.udiv(product.size) if product.size > 1 else at)
        scales = function.offset(self.given.right, FLOAT, place)
        if blocks == 1:
            return found, function.spread(function.load(scales, FLOAT), lanes)
        count = min(some // product.size, blocks)
        each_block = terms_at(function, Matrix(FLOAT, (), 1, 1), scales, 0, blocks, count, FLOAT)
        return found, function.shuffle(each_block, None, [lane * GROUP // product.size for lane in range(lanes)])

    @property
    def _adds_pairs(self) -> int:
        """How many sums of two products fit in 16 bits, which AVX2 multiplies and adds by one instruction; 0 for none.

        It takes numbers without signs and numbers with signs, and saturates, which small codes never do.
        """
        product = self.product
        if VNNI in product.extensions or AVX2 not in product.extensions or not product.is_unsigned:
            return 0
        largest = max(255 if one.is_flipped else one.mask & 255 >> one.shift for one in product.codes)
        return ((1 << 15) - 1) // (2 * largest * 128) if self.vector in _PAIRS else 0

    def _of_pairs(self, both: Sequence[tuple[Value, Value]], total: Value) -> Value:
        """Sums of four products each of rows' bytes and codes, added to those of before."""
        function, kind = self.function, vector_of(I16, self.vector // 2)
        ones = function.constant(1, kind)
        for first in range(0, len(both), self._adds_pairs):
            pairs: Value | None = None
            for row, codes in both[first : first + self._adds_pairs]:
                found = function.emit(f"call {kind} @llvm.x86.{_PAIRS[self.vector]}({codes}, {row})", kind)
                pairs = found if pairs is None else pairs + found
            assert pairs is not None
            total = Arithmetic(I32, I16, 2, "pmaddwd").multiply_add(pairs, ones, total)
        return total

    def _dots(self, row: Value, codes: Value, total: Value) -> Value:
        """Sums of four products each, added to those of before."""
        product = self.product
        if VNNI in product.extensions:
            arithmetic = Arithmetic(I32, I8, GROUP, "avx512.vpdpbusd", unsigned_right=product.is_unsigned)
            return arithmetic.multiply_add(row, codes, total)
        function, pairs = self.function, vector_of(I16, self.vector // 2)
        arithmetic = Arithmetic(I32, I16, 2, "pmaddwd")
        sides = []
        for side, signed in ((row, product.is_unsigned), (codes, not product.is_unsigned)):
            both = function.emit(f"bitcast {side} to {pairs}", pairs)
            low = (both << 8).shifted_right(8, signed=signed)
            sides.append((low, both.shifted_right(8, signed=signed)))
        for left, right in zip(*sides, strict=True):
            if AVX2 in product.extensions:
                total = arithmetic.multiply_add(left, right, total)
            else:
                total = total + _sums_of_pairs(function, left, right)
        return total


def _codes(stored: Value, codes: Codes) -> Value:
    moved = stored.shifted_right(codes.shift) if codes.shift else stored
    if codes.mask & 255 >> codes.shift != 255 >> codes.shift:
        moved = moved & codes.mask
    return moved ^ -128 if codes.is_flipped else moved


def _sums_of_pairs(function: Function, left: Value, right: Value) -> Value:
    """Of the products of 16 bits, without an instruction for it."""
    lanes = lanes_of(left.kind) // 2
    products = left.as_(I32) * right.as_(I32)
    even, odd = (function.shuffle(products, None, [2 * lane + part for lane in range(lanes)]) for part in (0, 1))
    return even + odd
