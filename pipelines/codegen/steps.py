"""What a block's operations become: loops over places, and operations that need an algorithm of their own.

An array is in memory if an algorithm reads or makes it, if the block gives it back, or if it would be computed again
for several readers at more cost than memory takes. All others are computed where they are read. Loops over the same
places become one where no other step has to run between them, and arrays that only their own loop reads need no memory.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace

from hloforge.dialect.marks import OF_EXTREME
from hloforge.pipelines.codegen import index as places
from hloforge.pipelines.codegen.access import Accesses, cost_of, cost_up_to, places_read
from hloforge.pipelines.codegen.elements.kinds import is_complex
from hloforge.pipelines.codegen.elements.table import supports
from hloforge.pipelines.codegen.epilogues import fits, takes
from hloforge.pipelines.codegen.evaluate import MOVES, Place
from hloforge.pipelines.codegen.factor_strides import takes_strides
from hloforge.pipelines.codegen.graph import Array, Block, Op
from hloforge.pipelines.codegen.index import Index
from hloforge.pipelines.codegen.narrow_factors import free_dims, has_batch, reads_less
from hloforge.pipelines.codegen.parts import is_stored_anyway, part_of
from hloforge.pipelines.codegen.refusal import RefusedError
from hloforge.pipelines.codegen.splitting import Sizes, finer, is_simpler, joined
from hloforge.pipelines.codegen.step_order import MOST_SEEN, prerequisites, reaches, sorted_steps

# Computed again for each reader below this cost, in sums.
_CHEAP = 2
# What an element computed for many others may cost before it gets memory.
_SPREAD = 3
# What an element may cost that is computed where slices read it, some of them twice.
_SPLIT_COST = 40
# What an element costs that no two loops should compute: as much as a transcendental function.
_DEAR = 16
# Elements whose code is longer are in memory, because LLVM's time grows with it.
_LONG = 120
# Operations that an element may be computed through, because each is some calls deep in Python.
_DEEP = 60
# How far back a loop looks for one to join.
_REACH = 24
# What loops that are one may cost, in sums, and how many arrays they may make.
_LONGEST, _MOST_MADE = 600, 10
# Arrays of a loop, because a kernel has so many bindings, some of which are for what it works in.
_MOST_ARRAYS = 24
# What an element that a scatter reads once may cost: above it, a loop of vectors before the scatter is faster.
_READ_ONCE = 8
# Elements of a gather's window from which on its start costs each of them nothing.
_WINDOW = 4
# Elements that a factor has at least to be computed as it is multiplied, and what one may cost.
_LEAST_PANEL, _DEAR_PANEL = 1 << 14, 40
# How many times as large a result may be that computes no element of its operand twice.
_MARGINS = {"pad": 2}
# An update of so small a part is made in place.
_PART = 4
# What may read an element of an operand for many of its own.
_SPREADERS = frozenset(
    ["broadcast_in_dim", "gather", "dynamic_slice", "dynamic_update_slice", "clamp", "select", "pad"],
)
# Views of one array, whose elements are its own.
_REARRANGED = frozenset({"reshape", "transpose", "broadcast_in_dim", "slice", "reverse"})
ALGORITHMS = frozenset(
    [
        "dot_general",
        "convolution",
        "sort",
        "scatter",
        "while",
        "if",
        "case",
        "reduce_window",
        "select_and_scatter",
        "fft",
        "cholesky",
        "triangular_solve",
        "custom_call",
        "host_call",
        "util.call",
        "byte_table",
        "grouped_product",
        "block_product",
    ]
)


# A loop, and the place there that an array's element is computed for; None where that is not known.
Use = tuple[object, Place | None]


@dataclass(eq=False, repr=False)
class Step:
    """What runs as one piece.

    Attributes:
        reads: arrays in memory that it reads.
    """

    reads: set[Array] = field(default_factory=set)

    @property
    def makes(self) -> Sequence[Array]:
        """Arrays that are in memory after it, or in registers of its loop."""
        raise NotImplementedError

    @property
    def signature(self) -> str:
        """What equal steps of a program have in common: operations and shapes."""
        return " ".join(f"{array.op and array.op.name} {array.element} {array.shape}" for array in self.makes)


@dataclass(eq=False, repr=False)
class Nest(Step):
    """Loops over the places of a shape.

    Attributes:
        shape: of the places: the sizes of loops.
        parts: the loops of each dimension of ``maps`` where these are several; None where each has its own.
        origin: what places in arrays are from these; None for the loops' own.
        into: for a map that is stored in a part of a larger array: its first place there, and that array's shape.
        maps: arrays of this shape; each may read those before it at the same place.
        reductions: operations that reduce arrays of this shape along the same dimensions.
        dims: these.
        unstored: maps that nobody else reads.
        known: what ``analysis`` found.
    """

    shape: tuple[int, ...] = ()
    parts: Sizes | None = None
    origin: Place | None = None
    into: tuple[Place, tuple[int, ...]] | None = None
    maps: list[Array] = field(default_factory=list)
    reductions: list[Op] = field(default_factory=list)
    dims: tuple[int, ...] = ()
    unstored: set[Array] = field(default_factory=set)
    known: tuple[Place, Accesses] | None = None

    @property
    def makes(self) -> Sequence[Array]:
        return [*self.maps, *(result for op in self.reductions for result in op.results)]

    def analysis(self, memory: Callable[[Array], bool]) -> tuple[Place, Accesses]:
        """A place of counters without code, and what an iteration reads there.

        It is found once, until the loops become part of others: which arrays are in memory does not change what is
        read, because those that are not stored are only read where they are made.
        """
        if self.known is None:
            place = tuple(places.counter(size) for size in self.shape)
            self.known = place, self.accesses(place, memory)
        return self.known

    def at(self, place: Place) -> Place:
        """The place in arrays of the loops' place."""
        found = place if self.parts is None else joined(place, self.parts)
        if self.origin is None:
            return found
        return tuple(index + start for index, start in zip(found, self.origin, strict=True))

    def stored(self, array: Array, place: Place) -> Index:
        """The number of the element of a map's place, where the map is stored."""
        if self.into is None:
            return places.linear(place, array.shape)
        first, shape = self.into
        return places.linear([index + start for index, start in zip(place, first, strict=True)], shape)

    def split(self, memory: Callable[[Array], bool]) -> None:
        """Let dimensions be several loops where that leaves fewer quotients to compute."""
        if self.parts is not None or 0 in self.shape:
            return
        place, found = self.analysis(memory)
        parts = finer(place, self.shape, found)
        if parts is None:
            return
        firsts = [0, *itertools.accumulate(map(len, parts))]
        dims = tuple(loop for d in self.dims for loop in range(firsts[d], firsts[d + 1]))
        shape = tuple(size for sizes in parts for size in sizes)
        split = replace(self, shape=shape, parts=parts, dims=dims, known=None)
        if is_simpler(found, split.analysis(memory)[1]):
            self.shape, self.parts, self.dims, self.known = shape, parts, dims, split.known

    def loads(self, memory: Callable[[Array], bool]) -> list[tuple[Array, Index]]:
        """What an iteration reads: arrays and the numbers of elements."""
        return self.analysis(memory)[1].loads

    def starts(self, memory: Callable[[Array], bool]) -> set[Array]:
        """What its reductions read before the first place."""
        found = Accesses(memory)
        for op in self.reductions:
            for start in op.operands[len(op.operands) // 2 :]:
                found.element(start, ())
        return {array for array, _ in found.loads}

    def accesses(self, place: Place, memory: Callable[[Array], bool]) -> Accesses:
        """What an iteration reads at a place of the loops."""
        found = Accesses(memory)
        self.note(found, self.at(place))
        return found

    def note(self, found: Accesses, place: Place) -> None:
        """Add what an iteration reads at a place in arrays."""
        for array in self.maps:
            found.made(array, place)
            if self.into is not None:
                found.uses.append(self.stored(array, place))
        for op in self.reductions:
            half = len(op.operands) // 2
            for operand in op.operands[:half]:
                found.element(operand, place)
            for start in op.operands[half:]:
                found.element(start, ())
            found.cost += sum(cost_of(inner) for inner in op.inner[0].ops)


@dataclass(eq=False, repr=False)
class Single(Step):
    """One operation that needs an algorithm, control flow, or an update in place.

    Attributes:
        epilogue: arrays that are computed of a product's sums in place of these; empty for none.
        unstored: those of them that nobody else reads.
    """

    op: Op | None = None
    epilogue: Sequence[Array] = ()
    unstored: set[Array] = field(default_factory=set)

    @property
    def operation(self) -> Op:
        assert self.op is not None
        return self.op

    @property
    def makes(self) -> Sequence[Array]:
        return self.epilogue or self.operation.results


def check(block: Block) -> None:
    """Raises RefusedError where an operation has no code."""
    for op in block.ops:
        if not op.results and not op.has_effects:
            raise RefusedError(f"the operation {op.mlir.name}, which has no result")
        known = op.name in MOVES or op.name in ALGORITHMS or op.name == "reduce"
        elements = [operand.element for operand in op.operands]
        if not known and (len(op.results) > 1 or not supports(op.name, elements, op.result.element)):
            raise RefusedError(f"the operation {op.mlir.name} of {', '.join(elements)}")
        if op.name == "bitcast_convert" and op.operands[0].shape != op.result.shape:
            raise RefusedError("a change of width")
        for inner in op.inner:
            check(inner)


def is_update(op: Op) -> bool:
    """Whether an operation changes a part of its operand, which stays where it is if it can."""
    if op.name != "dynamic_update_slice":
        return False
    owner = op.block.owner
    is_small = op.operands[1].elements * _PART <= op.operands[0].elements
    return is_small or (owner is not None and owner.name == "while")


def changed_by(op: Op) -> Sequence[Array]:
    """Arrays that an operation changes in place, if nobody reads them afterwards."""
    if op.name == "while":
        return op.operands
    return op.operands[:1] if is_update(op) or op.name == "scatter" else ()


def is_root(op: Op) -> bool:
    """Whether an operation's results are in memory in any case."""
    return op.name in ALGORITHMS or op.name == "reduce" or is_update(op)


def reads_in_memory(op: Op) -> Iterable[Array]:
    """What a root reads that has to be in memory; other operands are computed as they are read."""
    if is_update(op):
        return op.operands[:1] if op.operands[0].op is not None and is_root(op.operands[0].op) else ()
    return tuple(home(one, op) for one in _taken(op))


def _taken(op: Op) -> Iterable[Array]:
    """The operands that a root's algorithm finds in memory, as they are or as parts of other arrays."""
    if op.name in ("reduce", "while", "if", "case", "scatter", "util.call") or is_update(op):
        return ()
    if op.panel is not None:
        return (op.operands[1 - op.panel],)
    return tuple(one for one in op.operands if one not in op.streamed)


def home(array: Array, reader: Op) -> Array:
    """The array in whose memory an algorithm finds one: that of which it is another shape, or a part of what is in
    memory anyway."""
    part = part_of(array, lambda one: is_stored_anyway(one, reader.block, is_root))
    if part is not None and (part.is_dense or takes_strides(reader, array, part)):
        return array if is_free(part.base) else part.base
    found = array
    while found.op is not None and found.op.name == "reshape":
        (found,) = found.op.operands
    return array if is_free(found) else found


def reads_once(op: Op) -> Iterable[Array]:
    """The operands of a scatter or a sort that it computes as it goes, one number after the other, if they cost
    little."""
    return op.operands[(len(op.operands) - 1) // 2 :] if op.name == "scatter" else op.streamed


def _compared(op: Op) -> Iterable[Array]:
    """What is compared with an extreme of its own, which is in memory: what is computed twice may be rounded twice."""
    if op.name != "compare" or OF_EXTREME not in op.mlir.attributes:
        return
    array = op.operands[0]
    while array.op is not None and array.op.name in _REARRANGED and not is_root(array.op):
        array = array.op.operands[0]
    if not is_free(array):
        yield array


def _is_split(array: Array, costs: dict[Array, int]) -> bool:
    """Whether slices alone read an array, which together have few more elements: parts of gates, of curves' points."""
    if array.is_result or costs[array] > _SPLIT_COST:
        return False
    if any(reader.name != "slice" or reader.block is not array.block for reader in array.readers):
        return False
    read = sum(reader.result.elements for reader in array.readers)
    return 3 * read <= 4 * array.elements


def _reads_once_each(op: Op, uses: Collection[Use]) -> bool:
    """Whether several elements of joined arrays are one of each, as the components of an index are."""
    if op.name != "concatenate" or len({loop for loop, _ in uses}) > 1 or any(place is None for _, place in uses):
        return False
    return all(
        len({read for _, place in uses if place is not None for read in places_read(op, place, operand)}) <= 1
        for operand in dict.fromkeys(op.operands)
    )


def is_free(array: Array) -> bool:
    """Whether an array is computed of nothing: places and repeated numbers."""
    op = array.op
    if op is None:
        return False
    if op.name == "iota" or (op.name == "constant" and op.is_splat):
        return True
    return op.name in ("broadcast_in_dim", "reshape") and is_free(op.operands[0])


class Planner:
    """The steps of a block.

    Args:
        stored: arrays in memory before the block begins.
    """

    def __init__(self, block: Block, stored: Callable[[Array], bool]) -> None:
        self._block, self._stored = block, stored
        self.memory: set[Array] = set()
        self._required: set[Array] = set()
        self._long: set[Array] = set()
        self._counters: dict[tuple[int, ...], Place] = {}
        # What the loops of one array, or of one reduction, read.
        self._alone: dict[Array, Accesses] = {}

    def in_memory(self, array: Array) -> bool:
        """Whether an array is in memory in the block's code."""
        return array in self.memory or self._stored(array)

    def steps(self) -> list[Step]:
        """In an order in which they can run."""
        costs = self._choose()
        self.memory |= self._not_found()
        steps = self._loops()
        if again := self._computed_again(steps, costs):
            self.memory |= again
            again |= self._not_found()
            self.memory |= again
            self._alone = {
                array: found for array, found in self._alone.items() if found.computed.isdisjoint(again - {array})
            }
            steps = self._loops()
        self._drop_stores(steps)
        steps = self._with_epilogues(steps)
        for step in steps:
            if isinstance(step, Nest):
                step.split(self.in_memory)
        for op in self._block.ops:
            if op.name == "dot_general":
                # A panel is dense, whatever it is computed of.
                op.parts = tuple(
                    None if side == op.panel or self.in_memory(one) else part_of(one, self.in_memory)
                    for side, one in enumerate(op.operands)
                )
        return steps

    def _loops(self) -> list[Step]:
        steps = self._first()
        for step in steps:
            self._note_reads(step)
        return self._joined(steps)

    def _computed_again(self, steps: list[Step], costs: dict[Array, int]) -> set[Array]:
        """Dear arrays that were to be computed in one loop, but whose readers are several: they get memory."""
        count: dict[Array, int] = defaultdict(int)
        for step in steps:
            if isinstance(step, Nest):
                for array in step.analysis(self.in_memory)[1].computed:
                    count[array] += 1
        shared = {
            array
            for array, loops in count.items()
            if loops > 1 and costs.get(array, 0) >= _DEAR and self._is_own(array) and not self.in_memory(array)
        }
        return {array for array in shared if any(reader.result not in shared for reader in array.readers)}

    def _choose(self) -> dict[Array, int]:
        """Which arrays are in memory; what an element of each costs."""
        costs = self._costs()
        for op in self._block.ops:
            if op.name == "dot_general":
                op.panel = next((side for side in (1, 0) if self._is_panel(op, side, costs)), None)
        required = self._required
        required |= {array for array in self._block.results if self._is_own(array) and not is_free(array)}
        for op in self._block.ops:
            required |= {array for array in _compared(op) if self._is_own(array)}
            required |= {array for array in op.captured if self._is_own(array) and self._is_kept(array)}
            if is_root(op):
                required |= {array for array in reads_in_memory(op) if self._is_own(array)}
                required |= {
                    array
                    for array in reads_once(op)
                    if self._is_own(array) and (costs[array] > _READ_ONCE or array in self._long)
                }
                required |= set(op.results)
                required |= self._read_before(op)
        self.memory |= required
        uses: dict[Array, Collection[Use]] = {}
        for op in reversed(self._block.ops):
            if is_root(op) or self._stored(op.result):
                continue
            array = op.result
            found = {use for reader in set(array.readers) for use in self._uses(array, reader, uses)}
            if array in required:
                uses[array] = [self._at_own_place("map", array.shape)]
            elif (len(found) <= 1 or _reads_once_each(op, found)) and not self._spreads(array, costs):
                uses[array] = found
            elif array not in self._long and (costs[array] <= _CHEAP or is_free(array) or _is_split(array, costs)):
                uses[array] = [(("many", array), None)]
            else:
                self.memory.add(array)
                uses[array] = [self._at_own_place("map", array.shape)]
        return costs

    def _not_found(self) -> set[Array]:
        """What algorithms read that is no part, as they take it, of what is in memory.

        It was one of what is in memory anyway (``home``). An array between the two that has got memory for another
        reader has its elements in another order, such as the transposition of a matrix whose transposition is the
        matrix itself.
        """
        found = set()
        for op in self._block.ops:
            for array in _taken(op) if is_root(op) else ():
                part = part_of(array, self.in_memory)
                is_found = part is not None and (part.is_dense or takes_strides(op, array, part))
                if not is_found and self._is_own(array):
                    found.add(array)
        return found

    def _is_panel(self, op: Op, side: int, costs: dict[Array, int]) -> bool:
        """Whether a product computes a factor as it goes, because what it is computed of is smaller."""
        array = op.operands[side]
        if (
            is_complex(array.element)
            or op.strips is not None
            or not self._is_own(array)
            or array.op is None
            or is_root(array.op)
            or array.is_result
            or len(array.readers) > 1
        ):
            return False
        if array.elements < _LEAST_PANEL or array in self._long or not 1 < costs[array] <= _DEAR_PANEL:
            return False
        if len(free_dims(op, side)) != 1 or has_batch(op):
            return False
        return reads_less(array, lambda one: self._stored(one) or one.op is None or is_root(one.op))

    def _read_before(self, op: Op) -> set[Array]:
        """What is computed of arrays that an operation may change in place: later, their old elements are gone.

        What only the operation itself waits for is computed before it anyway.
        """
        found = {
            reader.result
            for changed in changed_by(op)
            if self._stored(changed) or (changed.op is not None and is_root(changed.op))
            for reader in changed.readers
            if reader.block is self._block and not is_root(reader) and self._is_own(reader.result)
            if reader.result.elements <= changed.elements
        }
        if not found or op.name == "while":
            return found
        needed = self._needed_by(op)
        return {array for array in found if not self._is_only_read_by(needed, array)}

    def _needed_by(self, op: Op) -> set[Op]:
        """An operation and what it waits for."""
        needed, waiting = {op}, [op]
        while waiting and len(needed) < MOST_SEEN:
            top = waiting.pop()
            for array in (*top.operands, *top.captured):
                if array.op is not None and array.op.block is self._block and array.op not in needed:
                    needed.add(array.op)
                    waiting.append(array.op)
        return needed

    def _is_only_read_by(self, ops: set[Op], array: Array) -> bool:
        """Whether all that is computed of an array is computed for some operations."""
        seen, waiting = {array}, [array]
        while waiting:
            top = waiting.pop()
            if top.is_result or any(reader not in ops for reader in top.readers):
                return False
            more = {reader.result for reader in top.readers if not is_root(reader)} - seen
            seen |= more
            waiting += more
        return True

    def _is_own(self, array: Array) -> bool:
        """Whether the block makes an array that is not in memory before."""
        return array.op is not None and array.op.block is self._block and not self._stored(array)

    def _is_kept(self, array: Array) -> bool:
        """Whether an array that inner blocks read is in memory: it costs something, or an algorithm there takes it."""
        if not is_free(array):
            return True
        return any(is_root(reader) and array in reads_in_memory(reader) for reader in array.readers)

    def _uses(self, array: Array, reader: Op, uses: dict[Array, Collection[Use]]) -> Iterable[Use]:
        """Where a reader has an element computed: a loop and the place there, of which each is computed once."""
        if reader.block is not self._block:
            yield ("inner", reader), None
        elif reader.name == "reduce":
            half = len(reader.operands) // 2
            if array in reader.operands[:half]:
                yield self._at_own_place("reduce", array.shape, *reader.integers("dimensions"))
            if array in reader.operands[half:]:
                yield ("start", reader), None
        elif is_root(reader):
            yield ("root", reader), None
        elif reader.name in MOVES:
            for loop, place in uses[reader.result]:
                if place is None:
                    which = tuple(n for n, operand in enumerate(reader.operands) if operand is array)
                    yield ("view", reader, which), None
                else:
                    yield from ((loop, read) for read in places_read(reader, place, array))
        elif array.shape != reader.result.shape:
            yield ("scalar", reader), None
        else:
            yield from uses[reader.result]

    def _at_own_place(self, kind: str, shape: tuple[int, ...], *dims: int) -> Use:
        """Where loops over a shape compute the arrays of this shape; loops of a kind are taken for one."""
        return (kind, shape, dims), self._counters_of(shape)

    def _spreads(self, array: Array, costs: dict[Array, int]) -> bool:
        """Whether an element would be computed for many others."""
        if array in self._long:
            return True
        if costs[array] <= _SPREAD or is_free(array):
            return False
        return any(
            reader.name in _SPREADERS
            and any(result.elements > array.elements * _MARGINS.get(reader.name, 1) for result in reader.results)
            # An update in place computes each of its elements once.
            and not (is_update(reader) and array is reader.operands[1])
            for reader in array.readers
        )

    def _costs(self) -> dict[Array, int]:
        """Of an element of each array, with all that is not in memory for certain, in sums.

        Arrays whose code would be long or deep are in memory, and cost those that follow no more than a load; so do
        those that would be computed for many others.
        """
        costs: dict[Array, int] = {}
        # What an element costs those that read it.
        loads: dict[Array, int] = {}
        depths: dict[Array, int] = {}

        def is_kept(array: Array) -> bool:
            return array in loads or array in self._long or (array.op is not None and is_root(array.op))

        for op in self._block.ops:
            own = 1 if op.name == "gather" else 0 if op.name in MOVES else cost_of(op)
            is_shared = op.name == "gather" and math.prod(op.integers("slice_sizes")) >= _WINDOW
            read = op.operands[:1] if is_shared or op.name == "dynamic_slice" else op.operands
            total = own + sum(loads.get(operand, costs.get(operand, 1)) for operand in dict.fromkeys(read))
            depth = 1 + max((depths.get(operand, 0) for operand in op.operands), default=0)
            if total > _LONG and not is_root(op) and op.name not in MOVES:
                # Perhaps because several operands need the same, which is computed once.
                total = cost_up_to(_LONG, op, costs, lambda one: not self._is_own(one) or is_kept(one))
            for array in op.results:
                if is_root(op):
                    costs[array] = 1
                elif total > _LONG or depth > _DEEP:
                    self._long.add(array)
                    costs[array] = 1
                else:
                    costs[array], depths[array] = total, depth
                    if not self._stored(array) and self._spreads(array, costs):
                        loads[array], depths[array] = 1, 0
            if op.name == "constant":
                costs[op.result] = 0 if op.is_splat else 1
        return costs

    def _first(self) -> list[Step]:
        """A step for each operation whose result is in memory."""
        steps: list[Step] = []
        for op in self._block.ops:
            if op.name == "reduce":
                dims = tuple(sorted(op.integers("dimensions")))
                steps.append(Nest(shape=op.operands[0].shape, reductions=[op], dims=dims))
            elif is_root(op):
                steps.append(Single(op=op))
            elif op.result in self.memory:
                steps.append(Nest(shape=op.result.shape, maps=[op.result]))
        return steps

    def _note_reads(self, step: Step) -> None:
        if isinstance(step, Nest):
            self._analyse(step)
            step.reads = {array for array, _ in step.loads(self.in_memory) if array in self.memory}
            return
        assert isinstance(step, Single)
        op = step.operation
        found = Accesses(self.in_memory)
        for array in (*op.operands, *op.captured):
            if not self._stored(array) or array in self.memory:
                found.element(array, tuple(places.counter(size) for size in array.shape))
        step.reads = {array for array, _ in found.loads if array in self.memory}

    def _analyse(self, nest: Nest) -> None:
        """Find what loops of one array read, by the counters of all loops over their shape (``_join``)."""
        made, place = nest.makes[0], self._counters_of(nest.shape)
        if made not in self._alone:
            self._alone[made] = nest.accesses(place, self.in_memory)
        nest.known = place, self._alone[made]

    def _counters_of(self, shape: tuple[int, ...]) -> Place:
        return self._counters.setdefault(shape, tuple(places.counter(size) for size in shape))

    def _joined(self, steps: list[Step]) -> list[Step]:
        maker = {array: step for step in steps for array in step.makes}
        before: dict[Step, set[Step]] = {
            step: {maker[array] for array in step.reads if array in maker and maker[array] is not step}
            for step in steps
        }
        effects = [step for step in steps if isinstance(step, Single) and step.operation.has_effects]
        for one, following in itertools.pairwise(effects):
            before[following].add(one)
        self._order_updates(steps, before)
        order: list[Step] = []
        for step in steps:
            order.append(step)
            if not isinstance(step, Nest):
                continue
            needed: set[Step] | None = None
            for other in reversed(order[-_REACH - 1 : -1]):
                if not isinstance(other, Nest) or not self._fit(other, step):
                    continue
                if needed is None:
                    needed = prerequisites(before[step], before)
                if needed is None:
                    break
                if other not in needed and not reaches(other, step, before):
                    self._join(other, step, before, maker)
                    order.remove(other)
                    break
        return sorted_steps(order, before)

    def _order_updates(self, steps: list[Step], before: dict[Step, set[Step]]) -> None:
        """Let what reads an array run before the array is changed in place, where that is possible."""
        readers: dict[Array, list[Step]] = defaultdict(list)
        for step in steps:
            for array in self._all_reads(step):
                readers[array].append(step)
        for step in steps:
            if not isinstance(step, Single):
                continue
            for changed in changed_by(step.operation):
                for other in readers[changed]:
                    if other is not step and not reaches(other, step, before):
                        before[step].add(other)

    def _all_reads(self, step: Step) -> set[Array]:
        """The arrays in memory that a step reads, those of outer blocks as well."""
        if isinstance(step, Nest):
            return {array for array, _ in step.loads(self.in_memory)}
        assert isinstance(step, Single)
        op = step.operation
        waiting, seen = [*op.operands, *op.captured], {*op.operands, *op.captured}
        found: set[Array] = set()
        while waiting:
            top = waiting.pop()
            if self.in_memory(top) or top.op is None:
                found.add(top)
                continue
            more = [array for array in (*top.op.operands, *top.op.captured) if array not in seen]
            seen.update(more)
            waiting += more
        return found

    def _fit(self, first: Nest, second: Nest) -> bool:
        """Whether two loops may be one: the same places, and the second reads of the first at its own place alone."""
        if len(first.makes) + len(second.makes) > _MOST_MADE or self._is_long(first, second):
            return False
        if first.shape != second.shape or (first.reductions and second.reductions and first.dims != second.dims):
            return False
        if (first.dims or second.dims) and 0 in first.shape:
            return False
        reduced = {result for op in first.reductions for result in op.results}
        if second.reads & reduced:
            return False
        if len({*self._all_reads(first), *self._all_reads(second), *first.makes, *second.makes}) > _MOST_ARRAYS:
            return False
        if not second.reads & set(first.maps):
            return True
        if second.starts(self.in_memory) & set(first.maps):
            return False
        place, found = second.analysis(self.in_memory)
        own = places.linear(place, second.shape)
        return all(number == own for array, number in found.loads if array in first.maps)

    def _is_long(self, first: Nest, second: Nest) -> bool:
        """Whether the code of both together would take LLVM more time than two loops take."""
        return sum(one.analysis(self.in_memory)[1].cost for one in (first, second)) > _LONGEST

    def _join(self, first: Nest, second: Nest, before: dict[Step, set[Step]], maker: dict[Array, Step]) -> None:
        place, found = first.analysis(self.in_memory)
        # What both read is what the first reads and some more: it is not found anew for each loop that joins.
        second.note(found := found.copy(), place)
        second.known = place, found
        second.maps = [*first.maps, *second.maps]
        second.reductions = [*first.reductions, *second.reductions]
        second.dims = first.dims or second.dims
        second.reads = (first.reads | second.reads) - set(second.maps)
        before[second] = (before[second] | before.pop(first)) - {first, second}
        for step, needed in before.items():
            if first in needed:
                needed.discard(first)
                if step is not second:
                    needed.add(second)
        for array in first.makes:
            maker[array] = second

    def _drop_stores(self, steps: list[Step]) -> None:
        read = {array for step in steps for array in step.reads}
        for step in steps:
            if isinstance(step, Nest):
                step.unstored = {array for array in step.maps if array not in read and array not in self._required}
                # Known inside its own loop alone.
                self.memory -= step.unstored

    def _with_epilogues(self, steps: list[Step]) -> list[Step]:
        """Products that compute what a loop alone would compute of their sums."""
        order = list(steps)
        for product in steps:
            if not isinstance(product, Single) or not takes(product.operation):
                continue
            (sums,) = product.makes
            readers = [step for step in order if sums in step.reads]
            if sums.is_result or len(readers) != 1 or not isinstance(reader := readers[0], Nest):
                continue
            start, end = order.index(product), order.index(reader)
            changed = {
                array for step in order[start:end] if isinstance(step, Single) for array in changed_by(step.operation)
            }
            is_apart = reader.reductions or reader.into or changed & product.reads
            if is_apart or self._stays_in_place(reader) or not fits(product.operation, reader.maps, self.in_memory):
                continue
            reads = product.reads | (reader.reads - {sums})
            order[end] = Single(reads, product.operation, reader.maps, reader.unstored)
            order.remove(product)
            self.memory.discard(sums)
        return order

    def _stays_in_place(self, nest: Nest) -> bool:
        """Whether a loop writes a carry where it reads it, which a product, that computes some sums twice, must not."""
        owner = self._block.owner
        if owner is None or owner.name != "while":
            return False
        carries = zip(self._block.results, self._block.arguments, strict=False)
        read = self._all_reads(nest)
        return any(result in nest.maps and argument in read for result, argument in carries)
