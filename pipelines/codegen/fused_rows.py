"""Steps over the same rows as one loop over blocks of rows, so that what they hand on stays in a cache (tile and fuse).

Attention multiplies, takes a softmax, and multiplies again; each of its steps makes a row of its result of one row of
what the step before made. Written step by step, all scores go to memory and come back three times. Fused, some
rows at a time go through all steps::

    for block of rows:
        scores = q[block] k^T; largest = max(scores); weights = exp(scores - largest); ... out[block] = weights v

A row is a place in the first dimensions of an array. Arrays that only these steps read have memory for a block of rows.
A block that multiplies fills a part of the second-level cache, because each block reads the whole right factor. Others,
such as softmax and norms, fill the first-level cache, and pay from as many bytes on as it does not hold: what a row is
divided by comes from there, and all steps are shared out to threads at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from math import prod
from operator import mul

from hloforge.dialect.mlir import stablehlo
from hloforge.pipelines.codegen import index as places
from hloforge.pipelines.codegen.access import Accesses
from hloforge.pipelines.codegen.elements.kinds import is_complex
from hloforge.pipelines.codegen.elements.memory import size as element_size
from hloforge.pipelines.codegen.epilogues import is_bordered, keeps_order, read_with_sums
from hloforge.pipelines.codegen.graph import Array, Block, Op
from hloforge.pipelines.codegen.index import Index
from hloforge.pipelines.codegen.parts import base_of
from hloforge.pipelines.codegen.steps import Nest, Single, Step, changed_by
from hloforge.pipelines.framework.machine import Machine

InMemory = Callable[[Array], bool]

# How many steps after the first one are looked at, and how many are fused at most.
_REACH, _MOST_STEPS = 24, 12
# Arrays of fused steps, because a kernel has so many bindings.
_MOST_ARRAYS = 20
# Of the second-level cache: what a block of rows fills, and what the right factor of a product may fill beside it.
_BLOCK, _FACTOR = 2, 1
# Of the first-level cache: what a block without products fills.
_NEAR = 3 / 4
# Rows that follow each other whose numbers are vectors.
_VECTOR_ROWS = 16
# What a block goes over at least, because each of its loops begins anew.
_LEAST_BYTES = 1 << 13
# Rows that a block with a product has at least, because each block reads the whole right factor.
_LEAST_ROWS = 32
# Rows of a tile of a product's sums, or of several.
_TILE_ROWS = 32
# What a block takes beside its rows, in rows.
_BLOCK_ROWS = 8
# Columns of a row that make good vectors; numbers of one for each row do as well.
_LEAST_COLUMNS = 32


@dataclass(frozen=True)
class Rows:
    """The rows of fused steps.

    Attributes:
        outer: how many times there are ``size`` of them.
        size: rows that no block crosses.
    """

    outer: int
    size: int

    @property
    def count(self) -> int:
        return self.outer * self.size

    def dims(self, shape: Sequence[int]) -> int | None:
        """How many first dimensions of a shape are the rows; None where its rows are others."""
        counts = list(accumulate(shape, mul, initial=1))
        if self.count not in counts:
            return None
        d = counts.index(self.count)
        last = next((size for size in reversed(shape[:d]) if size != 1), 1)
        return d if last % self.size == 0 else None


@dataclass(eq=False, repr=False)
class FusedRows(Step):
    """Steps over the same rows.

    Attributes:
        steps: loops and products, in order.
        rows: of all of them.
        block: rows that are taken through all steps at a time.
        local: arrays that only these steps read, each with the array whose memory it takes: itself, or one that is
            read for the last time where it is made, element by element.
    """

    steps: list[Nest | Single] = field(default_factory=list)
    rows: Rows = Rows(1, 1)
    block: int = 1
    local: dict[Array, Array] = field(default_factory=dict)

    @property
    def makes(self) -> Sequence[Array]:
        return [array for step in self.steps for array in stored_by(step) if array not in self.local]

    @property
    def signature(self) -> str:
        return " ".join(step.signature for step in self.steps)

    @property
    def blocks(self) -> int:
        """Blocks of all rows."""
        return self.rows.outer * -(-self.rows.size // self.block)


def stored_by(step: Nest | Single) -> list[Array]:
    """Arrays that are in memory after a step."""
    return [array for array in step.makes if array not in step.unstored]


def with_fused_rows(steps: list[Step], block: Block, in_memory: InMemory, machine: Machine) -> list[Step]:
    """The steps of a block, those that gain by it fused.

    Args:
        in_memory: whether an array is in memory in the block's code.
    """
    done: list[Step] = []
    waiting = list(steps)
    while waiting:
        found = _fused_from_first(waiting, block, in_memory, machine)
        if found is None:
            done.append(waiting.pop(0))
            continue
        grown, fused = found
        taken = {*grown.before, *grown.steps}
        # Others may begin with a step before it.
        waiting = [*grown.before, fused, *(step for step in waiting if step not in taken)]
    return done


def _fused_from_first(
    steps: Sequence[Step], block: Block, in_memory: InMemory, machine: Machine
) -> tuple[_Grown, FusedRows] | None:
    """What grows from the first of some steps, without products if it does not pay with them; None if neither does."""
    first = steps[0]
    if not _is_large(first, machine):
        return None
    for takes_products in (True, False):
        if isinstance(first, Single) and not takes_products:
            return None
        grown = _Grown.of(steps, in_memory, machine, takes_products=takes_products)
        fused = grown.fused(steps, block) if grown is not None else None
        if grown is not None and fused is not None:
            return grown, fused
        if grown is None or not grown.has_products:
            return None
    return None


def _is_large(step: Step, machine: Machine) -> bool:
    """Whether a step goes over so many elements that a closer look may pay: a few bytes of each fill a cache."""
    if isinstance(step, FusedRows):
        return False
    if isinstance(step, Nest):
        return prod(step.shape) > machine.l1_bytes // 16
    return max((array.elements for array in step.makes), default=0) > machine.l2_bytes // 16


def _bytes(array: Array) -> int:
    return array.elements * element_size(array.element)


@dataclass
class _Grown:
    """Steps over the same rows, from the first one on.

    Attributes:
        steps: so far.
        before: steps that were after its first one and do not wait for it.
        made: arrays in memory that it makes.
        touched: arrays that it reads or makes.
        moved: arrays that it makes in another order, as of heads after rows: nothing of it reads them.
    """

    rows: Rows
    in_memory: InMemory
    machine: Machine
    takes_products: bool = True
    steps: list[Nest | Single] = field(default_factory=list)
    before: list[Step] = field(default_factory=list)
    made: set[Array] = field(default_factory=set)
    touched: set[Array] = field(default_factory=set)
    moved: set[Array] = field(default_factory=set)

    @staticmethod
    def of(
        steps: Sequence[Step], in_memory: InMemory, machine: Machine, *, takes_products: bool = True
    ) -> _Grown | None:
        """What grows from the first of some steps; None where it has no rows."""
        rows = _rows_of(steps[0])
        if rows is None:
            return None
        grown = _Grown(rows, in_memory, machine, takes_products)
        if not grown._take(steps[0]):
            return None
        later: set[Array] = set()
        for step in steps[1 : _REACH + 1]:
            if isinstance(step, Single) and (changed_by(step.operation) or step.operation.has_effects):
                break
            if step.reads & later:
                later |= set(step.makes)
            elif len(grown.steps) == _MOST_STEPS or not grown._take(step):
                if step.reads & grown.made:
                    later |= set(step.makes)
                else:
                    grown.before.append(step)
        return grown

    def _take(self, step: Step) -> bool:
        """Let a step be one of them, if it can be."""
        if not isinstance(step, Nest | Single):
            return False
        touched = self._touched(step)
        own = {array for array in touched if array in self.made or self.rows.dims(array.shape) is not None}
        if (self.steps and not own & self.touched) or step.reads & self.moved:
            return False
        if not (self._fits_nest(step) if isinstance(step, Nest) else self._fits_product(step)):
            return False
        self.steps.append(step)
        self.made.update(stored_by(step))
        if isinstance(step, Single) and step.epilogue and not self._keeps_order(step):
            self.moved.update(stored_by(step))
        self.touched |= own
        return True

    @property
    def has_products(self) -> bool:
        return any(isinstance(step, Single) for step in self.steps)

    def _fits_nest(self, nest: Nest) -> bool:
        if nest.parts is not None or nest.origin is not None or nest.into is not None or 0 in nest.shape:
            return False
        dims = self.rows.dims(nest.shape)
        if dims is None or any(d < dims for d in nest.dims) or nest.starts(self.in_memory) & self.made:
            return False
        columns = prod(nest.shape[dims:])
        if 1 < columns < _LEAST_COLUMNS:
            return False
        place, found = nest.analysis(self.in_memory)
        counters = {symbol for index in place[:dims] for symbol, _ in index.terms}
        if any(symbol in counters for one in found.conditions for symbol, _ in one.index.terms):
            return False
        return self._reads_own_rows(place[:dims], nest.shape[:dims], found)

    def _reads_own_rows(self, place: Sequence[Index], shape: Sequence[int], found: Accesses) -> bool:
        """Whether of what these steps make only the place's own row is read."""
        return self._are_own_rows(places.linear(place, shape), found.loads)

    def _are_own_rows(self, row: Index, loads: Sequence[tuple[Array, Index]]) -> bool:
        for array, number in loads:
            if array in self.made:
                dims = self.rows.dims(array.shape)
                if dims is None or number.over(prod(array.shape[dims:])) != row:
                    return False
        return True

    def _fits_product(self, step: Single) -> bool:
        op = step.operation
        if (
            not self.takes_products
            or op.name != "dot_general"
            or op.panel is not None
            or op.packed is not None
            or op.strips is not None
            or is_complex(op.result.element)
        ):
            return False
        result = op.result
        first = _row_dims(op)
        if self.rows.dims(result.shape) != first or prod(result.shape[first:]) < _LEAST_COLUMNS:
            return False
        if not _has_rows_of_a_matrix(op, first):
            return False
        lhs, rhs = (base_of(operand, self.in_memory) for operand in op.operands)
        if lhs in self.made and lhs.elements != op.operands[0].elements:
            return False
        if step.epilogue and not self._fits_epilogue(step, first):
            return False
        matrices = prod(op.operands[1].shape[d] for d in _numbers(op).rhs_batching_dimensions)
        factor = _bytes(op.operands[1]) // max(matrices, 1)
        if rhs in self.made or factor > self.machine.l2_bytes // _FACTOR or self.rows.size < _LEAST_ROWS:
            return False
        return lhs not in self.made or _has_rows_first(op)

    def _keeps_order(self, step: Single) -> bool:
        return keeps_order(step.operation, step.epilogue, self.in_memory)

    def _fits_epilogue(self, step: Single, rows: int) -> bool:
        """Whether what a product stores of its sums reads its own row of what these steps make.

        Args:
            rows: how many first dimensions of the product's result they are.
        """
        op = step.operation
        if is_bordered(op, step.epilogue, self.in_memory):
            return False
        place, loads = read_with_sums(op, step.epilogue, self.in_memory)
        return self._are_own_rows(places.linear(place[:rows], op.result.shape[:rows]), loads)

    def fused(self, steps: Sequence[Step], block: Block) -> FusedRows | None:
        """The steps as one, if that gains."""
        if len(self.steps) < 2:
            return None
        given = set(block.results)
        others = [step for step in steps if step not in set(self.steps)]
        read = {array for step in others for array in step.reads} | given
        captured = {array for op in block.ops for array in op.captured}
        local = self._rooms({array for array in self.made if array not in read | captured})
        if _overwrites(self.steps, block, self.in_memory):
            return None
        uses = [array for step in self.steps for array in self._touched(step)]
        arrays = set(uses)
        if len(arrays) > _MOST_ARRAYS:
            return None
        again = sum(_bytes(array) for array in arrays if uses.count(array) > 1)
        own = [
            array for array in arrays if self.rows.dims(array.shape) is not None and local.get(array, array) is array
        ]
        row = sum(map(_bytes, own)) // self.rows.count
        count = self._near_block(again, row) or self._block(again, row, self._alive(own, local) // self.rows.count)
        if not count or row * count < _LEAST_BYTES:
            return None
        reads = {array for step in self.steps for array in step.reads} - self.made
        return FusedRows(reads, list(self.steps), self.rows, count, local)

    def _alive(self, arrays: Sequence[Array], local: Mapping[Array, Array]) -> int:
        """Bytes of the arrays that a step or one before it touches, and it or one after it."""
        touched = [{local.get(array, array) for array in self._touched(step)} for step in self.steps]
        most = 0
        for number in range(len(touched)):
            before, after = set().union(*touched[: number + 1]), set().union(*touched[number:])
            most = max(most, sum(_bytes(array) for array in arrays if array in before and array in after))
        return most

    def _block(self, again: int, row: int, alive: int) -> int:
        """Rows of a block that the second-level cache holds; 0 where that gains nothing.

        Args:
            again: bytes of arrays that steps read after others.
            row: bytes of a row.
            alive: those that are read again, or made, at once: a long row alone may take the whole cache.
        """
        if again <= self.machine.l2_bytes:
            return 0
        room = self.machine.l2_bytes // _BLOCK
        most = max(room // max(row, 1), _LEAST_ROWS if self.has_products else 1)
        held = row if self.has_products else alive
        if held * min(most, self.rows.size) > 2 * room:
            return 0
        count = self._even(most)
        return self._whole_tiles(count, most) if self.has_products and count > 2 * _TILE_ROWS else count

    def _whole_tiles(self, count: int, most: int) -> int:
        """About so many rows of a block with a product: those of whole tiles where all blocks together take no longer
        by them, because the last tile, and the last block, begin earlier and compute rows again."""
        least, half = _TILE_ROWS, _TILE_ROWS // 2
        tried = [count, count - count % least, *(-(-count // tile) * tile for tile in (least, half))]

        def cost(rows: int) -> tuple[int, int]:
            each = -(-rows // half) * half + _BLOCK_ROWS
            return -(-self.rows.size // rows) * each, min(rows % least, half)

        return min((rows for rows in tried if rows <= min(most, self.rows.size)), key=cost)

    def _near_block(self, again: int, row: int) -> int:
        """As ``_block``, of the first-level cache."""
        if self.has_products or again <= self.machine.l1_bytes:
            return 0
        fixed: set[Array] = set()
        for step in self.steps:
            assert isinstance(step, Nest)
            found = self._read_for_each_block(step)
            if found is None:
                return 0
            fixed |= found
        most = (int(self.machine.l1_bytes * _NEAR) - sum(map(_bytes, fixed))) // max(row, 1)
        if most < 1:
            return 0
        count = self._even(most)
        whole = -(-count // _VECTOR_ROWS) * _VECTOR_ROWS
        return whole if whole <= min(most, self.rows.size) else count

    def _even(self, most: int) -> int:
        """Rows of as few blocks as hold so many at most, all alike."""
        return -(-self.rows.size // -(-self.rows.size // most))

    def _read_for_each_block(self, nest: Nest) -> set[Array] | None:
        """Arrays of which each row reads the same; None where rows lie across the order of an array, so that a few of
        them would read a few numbers of each line."""
        place, found = nest.analysis(self.in_memory)
        dims = self.rows.dims(nest.shape) or 0
        rows, columns = (
            {symbol for index in part for symbol, _ in index.terms} for part in (place[:dims], place[dims:])
        )
        fixed: set[Array] = set()
        for array, number in found.loads:
            factors = dict(number.terms)
            along = [abs(factors[symbol]) for symbol in rows if factors.get(symbol)]
            if not along:
                fixed.add(array)
            across = [abs(factors[symbol]) for symbol in columns if factors.get(symbol)]
            if along and across and min(along) < min(across):
                return None
        return fixed

    def _rooms(self, local: set[Array]) -> dict[Array, Array]:
        """Arrays that only these steps read, with those whose memory they take."""
        last = {array: step for step in self.steps for array in self._touched(step)}
        rooms: dict[Array, Array] = {}
        for step in self.steps:
            free = [array for array in rooms if last[array] is step and _reads_in_place(step, array, self.in_memory)]
            for array in stored_by(step):
                if array in local:
                    like = (other for other in free if isinstance(step, Nest) and array in step.maps)
                    old = next((other for other in like if _is_alike(array, other)), None)
                    rooms[array] = rooms[old] if old is not None else array
                    if old is not None:
                        free.remove(old)
        return rooms

    def _touched(self, step: Nest | Single) -> set[Array]:
        if isinstance(step, Nest):
            return {array for array, _ in step.loads(self.in_memory)} | set(stored_by(step))
        return {*(base_of(one, self.in_memory) for one in step.operation.operands), *step.reads, *stored_by(step)}


def _reads_in_place(step: Nest | Single, array: Array, in_memory: InMemory) -> bool:
    """Whether a loop reads an array at its own place alone, so that what it makes there may take its place."""
    if not isinstance(step, Nest) or array in step.makes:
        return False
    place, found = step.analysis(in_memory)
    own = places.linear(place, step.shape)
    return all(number == own for loaded, number in found.loads if loaded is array)


def _is_alike(array: Array, other: Array) -> bool:
    # Memory says which elements lie in it: loads have their type.
    return array.elements == other.elements and array.element == other.element


def _rows_of(step: Step) -> Rows | None:
    """The rows of a step with which fused steps may begin: a product, or sums of rows."""
    if isinstance(step, Single):
        if step.operation.name != "dot_general" or is_complex(step.operation.result.element):
            return None
        shape = step.operation.result.shape[: _row_dims(step.operation)]
    elif isinstance(step, Nest) and step.reductions and step.dims:
        shape = step.shape[: min(step.dims)]
    else:
        return None
    count = prod(shape)
    size = next((size for size in reversed(shape) if size != 1), 1)
    return Rows(count // size, size) if count > 1 else None


def _numbers(op: Op) -> stablehlo.DotDimensionNumbers:
    return stablehlo.DotDimensionNumbers(op.attribute("dot_dimension_numbers"))


def _row_dims(op: Op) -> int:
    """How many first dimensions of a product's result are its batch and the left factor's own."""
    return op.operands[0].rank - len(_numbers(op).lhs_contracting_dimensions)


def _has_rows_of_a_matrix(op: Op, first: int) -> bool:
    """Whether rows that follow each other are of one matrix: those of a batch of single rows have factors of their own.

    Args:
        first: how many first dimensions of the result are rows.
    """
    batch = len(_numbers(op).lhs_batching_dimensions)
    return prod(op.result.shape[batch:first]) > 1


def _has_rows_first(op: Op) -> bool:
    """Whether the left factor's rows are in its first dimensions, in the result's order."""
    numbers, lhs = _numbers(op), op.operands[0]
    batch, summed = list(numbers.lhs_batching_dimensions), list(numbers.lhs_contracting_dimensions)
    first = lhs.rank - len(summed)
    return batch == list(range(len(batch))) and sorted(summed) == list(range(first, lhs.rank))


def _overwrites(steps: Sequence[Nest | Single], block: Block, in_memory: InMemory) -> bool:
    """Whether a loop writes a carry where it reads it: a block, whose rows may be computed twice, would need a copy."""
    if block.owner is None or block.owner.name != "while":
        return False
    made = {array for step in steps for array in step.makes}
    read: set[Array] = set()
    for step in steps:
        read |= (
            {array for array, _ in step.loads(in_memory)}
            if isinstance(step, Nest)
            else {base_of(one, in_memory) for one in step.operation.operands}
        )
    carries = zip(block.results, block.arguments, strict=False)
    return any(result in made and argument in read for result, argument in carries)
