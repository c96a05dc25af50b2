"""Loops over the places of a nest: counters, what is stored, and reductions' numbers so far."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from hloforge.pipelines.codegen import index as places
from hloforge.pipelines.codegen.choices import place_of
from hloforge.pipelines.codegen.elements import memory as elements
from hloforge.pipelines.codegen.elements.comparisons import select
from hloforge.pipelines.codegen.elements.kinds import single
from hloforge.pipelines.codegen.elements.memory import Element
from hloforge.pipelines.codegen.emit import Emitter, Memory, parts
from hloforge.pipelines.codegen.evaluate import Place
from hloforge.pipelines.codegen.extremes import Keys
from hloforge.pipelines.codegen.graph import Array, Op
from hloforge.pipelines.codegen.groups import Group, groups_of
from hloforge.pipelines.codegen.index import Index, Symbol
from hloforge.pipelines.codegen.kernel_writer import KernelWriter
from hloforge.pipelines.codegen.lang.functions import UNROLLED, Function
from hloforge.pipelines.codegen.lang.values import I8, Value, is_float
from hloforge.pipelines.codegen.row_blocks import is_extreme, is_float_sum
from hloforge.pipelines.codegen.scalars import combine
from hloforge.pipelines.codegen.segments import Segment, segments_of, whole
from hloforge.pipelines.codegen.steps import Nest

# Loops of so few iterations are written out: LLVM is asked for it, because by itself it would write out others, which
# takes most of its time.
_FEW = 4


@dataclass(frozen=True)
class Share:
    """A part of the iterations: those of one workgroup.

    Attributes:
        number: of the workgroup.
        count: of workgroups.
    """

    number: Value
    count: int


class NestLoops:
    """Writes a nest.

    Args:
        memory: where an array in memory is, in the kernel's code.
        share: the iterations of the outermost loop that run; None for all.
    """

    def __init__(
        self,
        writer: KernelWriter,
        nest: Nest,
        memory: Callable[[Array], Memory | None],
        in_memory: Callable[[Array], bool],
        share: Share | None = None,
    ) -> None:
        self._writer, self._nest, self._memory, self._share = writer, nest, memory, share
        self._function: Function = writer.function
        self._emitter = Emitter(self._function, memory)
        self._emitter.hides_infinity = any(is_extreme(op) for op in nest.reductions)
        self._in_memory = in_memory
        self._groups = [] if 0 in nest.shape else groups_of(nest, in_memory)
        self._counters: dict[int, Index] = {}
        self._pieces = self._cut()
        self._is_cutting = True
        # What a register holds of reductions is a float, where the loops do not say otherwise.
        self._keys = Keys()

    def _cut(self) -> dict[Group, list[Segment]]:
        """The pieces of loops, where these are cut."""
        nest = self._nest
        if not self._groups:
            return {}
        place, found = nest.analysis(self._in_memory)
        if not found.conditions:
            return {}
        kept = [group for group in self._groups if not nest.reductions or group.dims[0] in nest.dims]
        loops = [(symbol_of(place, group), group.size) for group in kept]

        def cost_of(loop: int, segment: Segment) -> int:
            (d,) = kept[loop].dims
            inside = places.counter(segment.size) + segment.start
            return nest.accesses((*place[:d], inside, *place[d + 1 :]), self._in_memory).cost

        return dict(zip(kept, segments_of(loops, found.conditions, found.cost, cost_of), strict=True))

    def _over(self, groups: Sequence[Group], body: Callable[[], None]) -> None:
        """Loops over groups, the first of which is shared out."""
        if not groups:
            body()
            return
        group, *rest = groups
        start, stop = self._bounds(group.size)
        for segment in self._segments(group):
            with (
                self._cutting(self._is_cutting and not segment.is_border),
                self._iterations(segment, group, start, stop),
            ):
                self._over(rest, body)

    @contextmanager
    def _iterations(self, segment: Segment, group: Group, start: Value | int, stop: Value | int) -> Iterator[None]:
        """A loop over a piece of a group, as far as it lies between two bounds."""
        function, size = self._function, segment.size
        is_shared = isinstance(start, Value)
        if size == 1 and not is_shared:
            with self._emitter.scope():
                self._enter(group, places.constant(segment.start))
                yield
            return
        first: Value | int = segment.start
        last: Value | int = segment.stop
        if is_shared:
            first, last = function.index(start).maximum(segment.start), function.index(stop).minimum(segment.stop)
        hints = UNROLLED if size <= _FEW and not is_shared else ""
        with function.loop(first, last, hints=hints) as counter, self._emitter.scope():
            self._enter(group, segment_index(counter, segment))
            yield

    def _segments(self, group: Group) -> list[Segment]:
        return self._pieces.get(group, whole(group.size)) if self._is_cutting else whole(group.size)

    @contextmanager
    def _cutting(self, is_cutting: bool) -> Iterator[None]:
        """Whether loops inside are cut."""
        before, self._is_cutting = self._is_cutting, is_cutting
        yield
        self._is_cutting = before

    def _bounds(self, size: int) -> tuple[Value | int, Value | int]:
        share, self._share = self._share, None
        if share is None:
            return 0, size
        function = self._function
        start = (share.number * size).udiv(share.count)
        stop = ((share.number + 1) * size).udiv(share.count)
        return function.index(start), function.index(stop)

    def _enter(self, group: Group, counter: Value | Index) -> None:
        """Let the places of a group be those of a counter."""
        index = counter if isinstance(counter, Index) else places.counter(group.size, counter)
        for d, part in zip(group.dims, places.delinear(index, group.sizes), strict=True):
            self._counters[d] = part

    def _place(self) -> Place:
        return tuple(self._counters[d] if size > 1 else places.ZERO for d, size in enumerate(self._nest.shape))

    def _here(self, number: Index) -> Index:
        """A number of an element in the counters of the loops that are being written."""
        place, accesses = self._nest.analysis(self._in_memory)
        counters = {index.terms[0][0]: d for d, index in enumerate(place) if index.terms}
        found = places.constant(number.offset)
        for symbol, factor in number.terms:
            if symbol in counters:
                here = self._counters[counters[symbol]]
            elif symbol in accesses.fixed:
                here = self._emitter.start(*accesses.fixed[symbol])
            else:
                # Of the place where the loops begin.
                here = Index(((symbol, 1),))
            found = found + here * factor
        return found

    @property
    def _lanes(self) -> int:
        """Of vectors of the sums."""
        widest = max(elements.size(result.element) for op in self._nest.reductions for result in op.results)
        return max(1, self._writer.vector_bytes // widest)

    def _store_maps(self) -> None:
        place = self._nest.at(self._place())
        made = [self._emitter.made(array, place) for array in self._nest.maps]
        for op in self._nest.reductions:
            # All is read before anything is written, because maps may be stored where a loop's carries are.
            self._terms(op)
        for array, value in zip(self._nest.maps, made, strict=True):
            if array in self._nest.unstored:
                continue
            memory = self._memory(array)
            assert memory is not None
            memory.store(value, self._emitter.value(self._nest.stored(array, place)))

    def _starts(self, op: Op) -> list[Element]:
        half = len(op.operands) // 2
        return [self._emitter.element(start, ()) for start in op.operands[half:]]

    def _terms(self, op: Op) -> list[Element]:
        half = len(op.operands) // 2
        place = self._nest.at(self._place())
        return [self._emitter.element(operand, place) for operand in op.operands[:half]]

    def _combined(self, carried: Sequence[Value]) -> list[Value]:
        given = iter(carried)
        found: list[Value] = []
        for op in self._nest.reductions:
            terms = self._terms(op)
            if op in self._keys:
                found.append(self._keys.joined(op, next(given), single(terms[0])))
                continue
            so_far = [element_of(result.element, given) for result in op.results]
            for element in combine(self._emitter, op.inner[0], so_far, terms):
                found += parts(element)
        return found

    def _joined(self, values: Sequence[Value], others: Sequence[Element]) -> list[Value]:
        """Sums so far, as parts, with others; of choices in the order of their places."""
        given, more = iter(values), iter(others)
        found: list[Value] = []
        for op in self._nest.reductions:
            so_far = [element_of(result.element, given) for result in op.results]
            own = [next(more) for _ in op.results]
            if (number := place_of(op)) is not None:
                new, old = single(own[number]), single(so_far[number])
                is_before = new < old if is_float(new.kind) else new.compare("ult", old)
                so_far, own = (
                    [select(is_before, *pair) for pair in zip(*pairs, strict=True)]
                    for pairs in ((own, so_far), (so_far, own))
                )
            found += [part for one in combine(self._emitter, op.inner[0], so_far, own) for part in parts(one)]
        return found

    def _begun(self, carried: Sequence[Value]) -> list[Value]:
        """What parts of a reduction begin with: sums of floats anew, with what changes no number, and others go on."""
        given, found = iter(carried), []
        for op in self._nest.reductions:
            for result in op.results:
                so_far = [next(given) for _ in range(2 if result.element.startswith("complex") else 1)]
                is_anew = is_float_sum(op)
                found += [self._function.constant(-0.0, one.kind) if is_anew else one for one in so_far]
        return found

    def _with_parts(self, carried: Sequence[Value], made: Sequence[Value]) -> list[Value]:
        """Sums so far with those of a part; of other reductions what the part gave."""
        before, after = iter(carried), iter(made)
        found: list[Value] = []
        for op in self._nest.reductions:
            so_far = [element_of(result.element, before) for result in op.results]
            part = [element_of(result.element, after) for result in op.results]
            joined = combine(self._emitter, op.inner[0], so_far, part) if is_float_sum(op) else part
            found += [one for element in joined for one in parts(element)]
        return found

    def _add_to(self, lines: Sequence[Memory], column: Value) -> None:
        """Combine the elements of a place with those of a column of lines."""
        self._store_maps()
        given = iter(lines)
        for op in self._nest.reductions:
            own = [next(given) for _ in op.results]
            so_far = [line.load(column) for line in own]
            made = combine(self._emitter, op.inner[0], so_far, self._terms(op))
            for line, element in zip(own, made, strict=True):
                line.store(element, column)

    def _begun_lines(self, lines: Sequence[Memory], stop: Value | int, length: int) -> list[Memory]:
        """Lines for parts of sums of floats; those of other reductions are the same."""
        found, anew, given = [], [], iter(lines)
        for op in self._nest.reductions:
            for result in op.results:
                line = next(given)
                if is_float_sum(op):
                    line = self._line(result, length)
                    anew.append(line)
                found.append(line)
        with self._function.loop(0, stop) as column:
            for line in anew:
                zero = complex(-0.0, -0.0) if line.element.startswith("complex") else -0.0
                line.store(elements.constant(self._function, line.element, zero), column)
        return found

    def _add_parts(self, lines: Sequence[Memory], made: Sequence[Memory], stop: Value | int) -> None:
        """Add lines of parts to those of all."""
        with self._function.loop(0, stop) as column, self._emitter.scope():
            given = iter(zip(lines, made, strict=True))
            for op in self._nest.reductions:
                own = [next(given) for _ in op.results]
                if not is_float_sum(op):
                    continue
                so_far, part = ([one[number].load(column) for one in own] for number in range(2))
                for (line, _), element in zip(own, combine(self._emitter, op.inner[0], so_far, part), strict=True):
                    line.store(element, column)

    def _line(self, result: Array, length: int) -> Memory:
        size = elements.size(result.element) * length
        self._writer.stack += size
        pointer = self._function.stack(f"[{elements.size(result.element)} x {I8}]", length)
        return Memory(pointer, result.element, "")

    def _result_number(self) -> Value:
        nest, whole = self._nest, self._place()
        shape: Sequence[int] = [size for d, size in enumerate(nest.shape) if d not in nest.dims]
        if nest.origin is not None:
            whole, shape = nest.at(whole), nest.reductions[0].results[0].shape
        place = [index for d, index in enumerate(whole) if d not in nest.dims]
        return self._emitter.value(places.linear(place, shape))

    def _store(self, result: Array, value: Element, number: Value) -> None:
        memory = self._memory(result)
        assert memory is not None
        memory.store(value, number)


def symbol_of(place: Place, group: Group) -> Symbol | None:
    """The counter of a group in a place of counters, if it is one dimension's."""
    return place[group.dims[0]].terms[0][0] if len(group.dims) == 1 else None


def segment_index(counter: Value, segment: Segment) -> Index:
    """The place of a counter that is known to lie in a segment."""
    if segment.start == 0:
        return Index(((Symbol(segment.stop - 1, value=counter), 1),))
    return Index(((Symbol(segment.size - 1, value=counter - segment.start), 1),), segment.start)


def element_of(element: str, values: Iterable[Value]) -> Element:
    """The next element of its parts."""
    given = iter(values)
    first = next(given)
    return (first, next(given)) if element.startswith("complex") else first


def sum_of(start: Value, size: int, counter: Value) -> Index:
    """The place of a counter after a start; both together are below the size."""
    first = places.constant(int(start.text)) if start.is_constant else Index(((Symbol(size - 1, value=start), 1),))
    return first + Index(((Symbol(size - 1, value=counter), 1),))
