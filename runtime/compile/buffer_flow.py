"""The arrays of a function in IREE's stream dialect: which buffers each value may lie in, who writes and who reads.

A *buffer* is what an operation allocates, an argument of the caller, or a global. A value may lie in one of several,
by choices and loops; what a loop allocates in one iteration is another buffer than what it allocated in those before.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from hloforge.dialect.mlir import ir

_STORED = ("!stream.resource<", "!hal.buffer")
_FILL = "stream.async.splat"
CONCURRENT, EXECUTE = "stream.async.concurrent", "stream.async.execute"
_GLOBAL_LOAD, _GLOBAL_STORE = "util.global.load", "util.global.store"
# Operations whose results are other names of their operands.
_NAMES = frozenset(
    {
        "stream.async.cast",
        "stream.tensor.export",
        "stream.tensor.import",
        "stream.timepoint.await",
        "util.optimization_barrier",
    }
)
# Operations that write into their first array and return it.
_WRITE_FIRST = frozenset(
    f"stream.async.{name}" for name in ("collective", "copy", "fill", "store", "update", "parameter.read")
)
# Operations that return arrays of their own, whatever they read.
_ALLOCATE = frozenset(
    f"stream.async.{name}"
    for name in ("alloca", "clone", "constant", "load", "parameter.load", "slice", "splat", "transfer")
)
# Operations that write into the operands that an attribute names, counted from this segment of their operands.
_TIED = {"stream.async.dispatch": 1, "stream.async.call": 0}
# Operations that read a shape, a type or a size.
_METADATA = re.compile(r"hal\.buffer_view\.(assert|dim|rank|element_type|encoding_type)|stream\.resource\.size")
LOOPS = frozenset({"scf.for", "scf.while"})


class Operation:
    """An operation with its place: the blocks around it and the numbers in these, from the function inwards."""

    def __init__(self, op: Any, path: tuple[tuple[int, int], ...], parents: tuple[Operation, ...]) -> None:
        self.op, self.name = op, str(op.name)
        self.path, self.parents = path, parents
        self.operands: list[int] = []
        self.results: list[int] = []
        # Values that the operation or one inside it takes, which tell on what it waits.
        self.needs: set[int] = set()


@dataclass(frozen=True)
class Write:
    """What an operation writes into one of its operands.

    Attributes:
        before, after: the values of the operand and of the result.
        place: of the operand.
        number: of all writes.
    """

    at: Operation
    before: int
    after: int
    place: int
    number: int


class Flow:
    """The flow of arrays through a function, by numbers of its values.

    Attributes:
        function: the operation around all.
        buffers: of each value, as bits: one for a buffer, the next one for those of earlier iterations.
        names: what a value is another name of, with the loop if that is what the iteration before made.
        makers, home: the operation that returns a value, and those around it.
        writes, made_by: what operations write, also by the value that they return.
        reads: values, and who reads them; the function itself what its caller does.
        is_structured: whether loops and branches alone order the operations.
    """

    def __init__(self, function: Any, donated: frozenset[int]) -> None:
        self._numbers: dict[Any, int] = {}
        self._types: dict[Any, bool] = {}
        self._arrays: set[int] = set()
        self.makers: dict[int, Operation] = {}
        self.buffers: dict[int, int] = defaultdict(int)
        self.names: dict[int, list[tuple[int, Operation | None]]] = defaultdict(list)
        self.home: dict[int, tuple[Operation, ...]] = {}
        self._constants: dict[int, int] = {}
        self.writes: list[Write] = []
        self.reads: list[tuple[Operation, int]] = []
        self._made_in: dict[Operation, int] = defaultdict(int)
        self._fills: dict[tuple[int | str, ...], int] = {}
        self._globals: dict[str, int] = {}
        self._stored: set[str] = set()
        self.is_structured = True
        self._blocks = 0
        self._allocated = 0
        self.function = Operation(function, (), ())
        for number, argument in enumerate(function.regions[0].blocks[0].arguments):
            value = self._number(argument)
            if value in self._arrays:
                self.buffers[value] = self._allocate()
                if number not in donated:
                    self.reads.append((self.function, value))
        self._walk(function.regions[0], (), ())
        for symbol, value in self._globals.items():
            if symbol not in self._stored:
                self.reads.append((self.function, value))
        self.made_by = {write.after: write for write in self.writes}
        self._spread()

    def _number(self, value: Any) -> int:
        number = self._numbers.get(value)
        if number is None:
            number = self._numbers[value] = len(self._numbers)
            type_ = value.type
            is_array = self._types.get(type_)
            if is_array is None:
                is_array = self._types[type_] = str(type_).startswith(_STORED)
            if is_array:
                self._arrays.add(number)
        return number

    def _all(self, values: Sequence[Any]) -> list[int]:
        return list(map(self._number, values))

    def _allocate(self, parents: tuple[Operation, ...] = ()) -> int:
        """A new buffer: one bit, and the next one for the buffers of the same operation in earlier iterations."""
        bit = 1 << (2 * self._allocated)
        self._allocated += 1
        for parent in parents:
            if parent.name in LOOPS:
                self._made_in[parent] |= bit
        return bit

    def _walk(self, region: Any, path: tuple[tuple[int, int], ...], parents: tuple[Operation, ...]) -> set[int]:
        needed: set[int] = set()
        self.is_structured &= len(region.blocks) <= 1
        for block in region.blocks:
            self._blocks += 1
            number = self._blocks
            for argument in block.arguments:
                self.home[self._number(argument)] = parents
            for index, view in enumerate(block.operations):
                operation = Operation(view.operation, (*path, (number, index)), parents)
                self._read(operation)
                needed |= operation.needs
        return needed

    def _read(self, at: Operation) -> None:
        at.operands, at.results = self._all(at.op.operands), self._all(at.op.results)
        at.needs = set(at.operands)
        for result in at.results:
            self.makers[result], self.home[result] = at, at.parents
        for region in at.op.regions:
            at.needs |= self._walk(region, at.path, (*at.parents, at))
        if at.name == "arith.constant":
            # jaxlib has no class for the attributes of some arrays, which are no position anyway.
            if not isinstance(at.op.results[0].type, ir.ShapedType):
                value = at.op.attributes["value"]
                if isinstance(value, ir.IntegerAttr):
                    self._constants[at.results[0]] = int(value.value)
        elif at.op.regions:
            self._pass_regions(at)
        else:
            self._pass(at)

    def _pass_regions(self, at: Operation) -> None:
        """The ways of values into the regions of an operation, and out of them."""
        blocks = [region.blocks[0] for region in at.op.regions if len(region.blocks)]
        taken = [self._all(block.arguments) for block in blocks]
        ends = [self._all(list(block.operations)[-1].operation.operands) for block in blocks]
        if at.name == "scf.while":
            self._name(at.operands, taken[0])
            self._name(ends[0][1:], taken[1])
            self._name(ends[0][1:], at.results)
            self._name(ends[1], taken[0], loop=at)
        elif at.name == "scf.for":
            self._name(at.operands[3:], taken[0][1:])
            self._name(at.operands[3:], at.results)
            self._name(ends[0], taken[0][1:], loop=at)
            self._name(ends[0], at.results)
        else:
            for arguments, end in zip(taken, ends, strict=True):
                self._name(at.operands, arguments)
                self._name(end, at.results)

    def _pass(self, at: Operation) -> None:
        stored = [value for value in at.operands if value in self._arrays]
        returned = [value for value in at.results if value in self._arrays]
        if (not stored and not returned) or _METADATA.match(at.name):
            return
        if at.name == "arith.select":
            self._name(stored[:1], returned)
            self._name(stored[1:], returned)
            return
        if at.name in _NAMES:
            self._name(stored, returned)
            return
        written: list[Write] = []
        if at.name in _WRITE_FIRST:
            written = [self._write(at, at.operands.index(stored[0]), value) for value in returned[:1]]
        elif at.name in _TIED:
            written = list(self._write_tied(at))
        elif at.name in (_GLOBAL_LOAD, _GLOBAL_STORE):
            self._pass_global(at, returned)
        elif at.name not in _ALLOCATE:
            # What is not known may return what it takes, such as a function of the host.
            for value in stored:
                self._name([value] * len(returned), returned)
        made = {write.after for write in written}
        for value in returned:
            if value not in self.names and value not in made:
                self.buffers[value] |= self._fill(at) if at.name == _FILL else self._allocate(at.parents)
        # The end of a branch hands arrays on to those that read them, the end of a loop's body to later iterations.
        if at.name == "stream.yield" or (at.name == "scf.yield" and at.parents[-1].name not in LOOPS):
            return
        for write in written:
            # Once as what is overwritten; an operation may read the same array beside.
            stored.remove(write.before)
        self.reads += [(at, value) for value in stored]

    def _fill(self, at: Operation) -> int:
        """The buffer of a filled array: one for equal fills of 64 bits.

        IREE makes dispatches of these, because no command fills with so many bits, and merges equal ones afterwards.
        """
        if not at.operands or not str(at.op.operands[0].type).endswith("64"):
            return self._allocate(at.parents)
        key = tuple(self._constants.get(value, f"value {value}") for value in at.operands)
        if key not in self._fills:
            self._fills[key] = self._allocate(at.parents)
        return self._fills[key]

    def _pass_global(self, at: Operation, returned: Sequence[int]) -> None:
        symbol = str(at.op.attributes["global"])
        if at.name == _GLOBAL_STORE:
            self._stored.add(symbol)
        for value in returned:
            if symbol in self._globals:
                self.buffers[value] |= self.buffers[self._globals[symbol]]
            else:
                self.buffers[value] |= self._allocate()
                self._globals[symbol] = value

    def _name(self, sources: Sequence[int], targets: Sequence[int], loop: Operation | None = None) -> None:
        for source, target in zip(sources, targets, strict=False):
            if source in self._arrays and target in self._arrays:
                self.names[target].append((source, loop))

    def _write(self, at: Operation, place: int, after: int) -> Write:
        write = Write(at, at.operands[place], after, place, len(self.writes))
        self.writes.append(write)
        return write

    def _write_tied(self, at: Operation) -> Iterator[Write]:
        first = sum(list(at.op.attributes["operandSegmentSizes"])[: _TIED[at.name]])
        for result, tied in zip(at.results, at.op.attributes["tied_operands"], strict=False):
            number = ir.IntegerAttr(tied).value
            if number >= 0:
                yield self._write(at, first + number, result)

    def _spread(self) -> None:
        """Give each value the buffers of what it is another name of, or was written over."""
        onward: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for target, sources in self.names.items():
            for source, loop in sources:
                onward[source].append((target, self._made_in[loop] if loop else 0))
        for write in self.writes:
            onward[write.before].append((write.after, 0))
        pending = [value for value, buffers in self.buffers.items() if buffers]
        while pending:
            value = pending.pop()
            for target, made in onward[value]:
                buffers = self.buffers[value]
                # What this iteration has made is, in the next one, what an earlier iteration has made.
                joined = self.buffers[target] | (buffers & ~made) | (buffers & made) << 1
                if joined != self.buffers[target]:
                    self.buffers[target] = joined
                    pending.append(target)

    def ranges(self, at: Operation) -> dict[int, tuple[int, int]]:
        """The bytes that an operation reads and writes of its operands, where these are constants."""
        if at.name == "stream.async.copy":
            bounds = {0: (2, 3), 4: (6, 7)}
        elif at.name == "stream.async.dispatch":
            workload, count, sizes = list(at.op.attributes["operandSegmentSizes"])[:3]
            arrays = [n for n in range(workload, workload + count) if at.operands[n] in self._arrays]
            starts = workload + count + sizes
            bounds = {place: (starts + n, starts + n + len(arrays)) for n, place in enumerate(arrays)}
        else:
            return {}
        known: dict[int, tuple[int, int]] = {}
        for place, (start, end) in bounds.items():
            numbers = [self._constants.get(at.operands[n]) for n in (start, end) if n < len(at.operands)]
            if len(numbers) == 2 and numbers[0] is not None and numbers[1] is not None:
                known[place] = numbers[0], numbers[1]
        return known
