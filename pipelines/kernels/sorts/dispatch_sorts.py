"""``dispatch-sorts``: sorts of rows of integers as machine code, one workgroup per row.

Before, with the keys first (``decompose-sort``)::

    %r:2 = "stablehlo.sort"(%keys, %values) <{dimension = 1, is_stable = true}> ({...}) {hloforge.keys = 1}

After, for long rows: by digits of eight bits, the least significant first, each digit one dispatch::

    for shift in 0, 8, ..., bits - 8:                                           unrolled
      keys, values = dispatch { count how often each digit occurs, sum up where its elements start, move each there }

and for short rows, or the few first elements of longer ones, by insertion::

    dispatch { for each element: move those that are greater up by one place, put it into the gap }

Both are stable. What is in the dispatches is loops over single numbers, whose compilation costs the same for any n.
IREE's own code for a sort is quadratic, and a network of elementwise passes takes log2(n)² / 2 of them.
Source: D. E. Knuth, "The Art of Computer Programming", volume 3, 5.2.1 and 5.2.5.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from typing import Any, ClassVar

from hloforge.dialect.marks import KEYS
from hloforge.dialect.mlir import AnyOp, SSAValue, arith, in_context, ir
from hloforge.dialect.operations import operations
from hloforge.dialect.values import Value
from hloforge.pipelines.decompose.sort import is_iota, prefix_length, replace_prefix
from hloforge.pipelines.framework.builders import create, empty, index
from hloforge.pipelines.framework.facts import REWRITES, Fact, Facts
from hloforge.pipelines.framework.machine import Machine
from hloforge.pipelines.framework.passes import CPU, MachinePass, register
from hloforge.pipelines.kernels.lang import loops as code
from hloforge.pipelines.kernels.sorts.sort_borders import Ending, Source

_DIGIT_BITS = 8
_DIGITS = 1 << _DIGIT_BITS
# Elements whose least is compared with the last of the chosen ones before any of them is looked at.
_BLOCK = 16
# Nanoseconds, measured on a Zen 3: the table of digits of a row; a step of an insertion, which moves one number;
# reading the digit of an element twice. Moving a number there takes as long as a step.
_TABLE, _STEP, _DIGIT = 300, 1, 2


@register
@dataclass(frozen=True)
class DispatchSorts(MachinePass):
    """Make dispatches of the sorts that ``decompose-sort`` leaves; they are in IREE's dialects, which no pass reads."""

    name: ClassVar[str] = "dispatch-sorts"
    targets: ClassVar[frozenset[str]] = CPU
    breaks: ClassVar[Facts] = REWRITES | frozenset({Fact.SHARED_DISPATCHES})

    def run(self, module: ir.Module) -> None:
        with in_context(module):
            for op in operations(module, {"stablehlo.sort"}):
                if KEYS in op.attributes:
                    with ir.InsertionPoint(op), op.location:
                        replace_prefix(op, list(map(Value, _dispatched(op, self.machine))))


def _dispatched(op: Any, machine: Machine) -> list[SSAValue]:
    count = prefix_length(op)
    records = _Records(list(op.operands), op.attributes[KEYS].value, machine.computed_elements)
    if _is_better_inserted(records, count, machine.dispatch_ns):
        return _by_insertion(op, records, count)
    for key in reversed(range(records.keys)):
        records = _Records(_by_digits(records, key), records.keys, records.at_once)
    return list(records.arrays)


@dataclass(frozen=True)
class _Records:
    """Rows of records.

    Attributes:
        arrays: [rows, n] integers each, the keys first.
        keys: how many of the arrays are keys.
        at_once: about how many elements a workgroup takes.
    """

    arrays: Sequence[Any]
    keys: int
    at_once: int

    @property
    def rows(self) -> int:
        return int(self.arrays[0].type.shape[0])

    @property
    def size(self) -> int:
        return int(self.arrays[0].type.shape[1])

    @property
    def group(self) -> int:
        """How many rows a workgroup takes: a divisor of their number."""
        most = max(1, min(self.rows, self.at_once // self.size))
        return max(divisor for divisor in range(1, most + 1) if self.rows % divisor == 0)

    def counts(self, number: int) -> bool:
        """Whether an array that is no key holds positions in the row, which a dispatch counts instead of reading."""
        return number >= self.keys and is_iota(self.arrays[number], 1)

    @property
    def stored(self) -> list[SSAValue]:
        """The arrays that a dispatch reads, the keys first."""
        return [array for number, array in enumerate(self.arrays) if not self.counts(number)]

    def read(self, stored: Sequence[Any], at: Any) -> list[SSAValue]:
        """One record, from its numbers in ``stored``."""
        found = iter(stored)
        return [
            code.cast(arith.index_cast, at, array.type.element_type) if self.counts(number) else next(found)
            for number, array in enumerate(self.arrays)
        ]


def _is_better_inserted(records: _Records, count: int, dispatch_ns: int) -> bool:
    """Whether inserting each element takes less time than moving it by all of its digits."""
    rows, size, step = records.rows, records.size, _STEP * len(records.arrays)
    # In random order, half of the chosen ones are moved by each element that is among the first ones of those before.
    steps = count * count * (1 + 2 * log(size / count)) / 4
    inserting = dispatch_ns + rows * (steps * step + size * _STEP / 2)
    passes = sum(array.type.element_type.width for array in records.arrays[: records.keys]) // _DIGIT_BITS
    return bool(inserting < passes * (dispatch_ns + rows * (_TABLE + size * (_DIGIT + step))))


def _by_insertion(op: AnyOp, records: _Records, count: int) -> list[SSAValue]:
    """The first ``count`` elements of each row in order, keys as what is made of them."""
    size, keys = records.size, records.keys
    # What comes too late is written after the last place, which saves the question.
    width = count if count == size else count + 1
    endings = [Ending.of(result, count) for result in op.results]
    sources = [Source.of(array) for array in records.stored]
    own = [ir.RankedTensorType.get([1, width], array.type.element_type) for array in records.arrays]
    types = [
        ir.RankedTensorType.get([records.rows, count], ending.element if ending else type_.element_type)
        for ending, type_ in zip(endings, own, strict=True)
    ]

    def insert(row: SSAValue, at: SSAValue, parts: Sequence[SSAValue], chosen: Sequence[SSAValue]) -> list[SSAValue]:
        element = records.read([s.number(part, row, at) for s, part in zip(sources, parts, strict=True)], at)

        def goes_before(place: SSAValue, *current: SSAValue) -> Any:
            # The position below exists where it counts.
            lower = code.combine(arith.maxsi, code.combine(arith.subi, place, 1), 0)
            other = [code.read(array, index(0), lower) for array in current[:keys]]
            return code.combine(arith.andi, code.compare("slt", index(0), place), _before(element[:keys], other))

        def move_up(place: SSAValue, *current: SSAValue) -> list[SSAValue]:
            lower = code.combine(arith.subi, place, 1)
            moved = [code.write(code.read(array, index(0), lower), array, index(0), place) for array in current]
            return [lower, *moved]

        start = code.combine(arith.minsi, at, count)
        place, *moved = code.while_([start, *chosen], goes_before, move_up)
        return [code.write(one, array, index(0), place) for one, array in zip(element, moved, strict=True)]

    def insert_block(row: Any, at: Any, parts: Sequence[Any], chosen: Sequence[Any]) -> list[Any]:
        least = code.least(sources[0].vector(parts[0], row, at, _BLOCK))
        last = code.read(chosen[0], index(0), index(count - 1))
        # Equal first keys leave the decision to the next ones.
        none = code.compare("slt" if keys > 1 else "sle", last, least)
        stop = code.choose(none, at, code.combine(arith.addi, at, _BLOCK))
        return code.for_each(stop, chosen, lambda at, *chosen: insert(row, at, parts, chosen), start=at)

    # The first elements one by one, the others in whole blocks of which most hold none of the first elements.
    single = size - (size - count) // _BLOCK * _BLOCK

    def sort_row(row: SSAValue, parts: Sequence[SSAValue]) -> list[SSAValue]:
        first = [empty(type_) for type_ in own]
        chosen = code.for_each(single, first, lambda at, *chosen: insert(row, at, parts, chosen))
        if single == size:
            return chosen
        return code.for_each(
            size, chosen, lambda at, *chosen: insert_block(row, at, parts, chosen), start=single, step=_BLOCK
        )

    def hand_out(row: SSAValue, parts: Sequence[SSAValue], targets: Sequence[SSAValue]) -> list[SSAValue]:
        chosen = sort_row(row, parts)

        def copy(at: SSAValue, *into: SSAValue) -> list[Any]:
            numbers = [code.read(array, index(0), at) for array in chosen]
            made = [e.number(n) if e else n for e, n in zip(endings, numbers, strict=True)]
            return [code.write(number, array, row, at) for number, array in zip(made, into, strict=True)]

        return code.for_each(count, targets, copy)

    def body(*values: SSAValue) -> list[SSAValue]:
        parts, buffers = values[: len(sources)], values[len(sources) :]
        return code.for_each(records.group, buffers, lambda row, *targets: hand_out(row, parts, targets))

    found = code.over_rows([source.array for source in sources], [], types, records.group, body)
    return [e.replaced(array) if e else array for e, array in zip(endings, found, strict=True)]


def _before(keys: Sequence[SSAValue], others: Sequence[SSAValue]) -> Any:
    """Whether a record is before another, by keys of which the first counts most."""
    *first, last = zip(keys, others, strict=True)
    flag = code.compare("slt", *last)
    for one, other in reversed(first):
        tie = code.combine(arith.andi, code.compare("eq", one, other), flag)
        flag = code.combine(arith.ori, code.compare("slt", one, other), tie)
    return flag


def _by_digits(records: _Records, key: int) -> list[Any]:
    """The rows in the order of one of their keys; equal elements keep theirs."""
    i32 = ir.IntegerType.get_signless(32)
    arrays: Sequence[Any] = records.arrays
    for lowest in range(0, arrays[key].type.element_type.width, _DIGIT_BITS):
        # A number that IREE does not know, so that one piece of code does for all digits. A loop would do as well, if
        # IREE did not fail to order what is around one ("circular dependency").
        shift = create("util.optimization_barrier", [code.number(lowest, i32)], [i32]).results[0]
        arrays = _by_digit(_Records(arrays, records.keys, records.at_once), key, shift)
    return list(arrays)


def _by_digit(records: _Records, key: int, shift: Any) -> list[Any]:
    """One dispatch: the rows in the order of a digit of a key, given its lowest bit (i32)."""
    i32 = ir.IntegerType.get_signless(32)
    stored = records.stored

    def body(*values: Any) -> list[Any]:
        parts, lowest, buffers = values[: len(stored)], values[len(stored)], values[len(stored) + 1 :]

        def digit(row: Any, at: Any) -> Any:
            return _digit(code.read(parts[key], row, at), lowest)

        def count(row: Any, at: Any, table: Any) -> list[Any]:
            place = digit(row, at)
            return [code.write(code.combine(arith.addi, code.read(table, place), 1), table, place)]

        def move(row: Any, at: Any, table: Any, *targets: Any) -> list[Any]:
            own = digit(row, at)
            start = code.read(table, own)
            table = code.write(code.combine(arith.addi, start, 1), table, own)
            place = code.cast(arith.index_castui, start, ir.IndexType.get())
            record = records.read([code.read(part, row, at) for part in parts], at)
            moved = zip(record, targets, strict=True)
            return [table, *(code.write(element, target, row, place) for element, target in moved)]

        def sort_row(row: Any, *targets: Any) -> list[Any]:
            zero = code.number(0, i32)
            table = empty(ir.RankedTensorType.get([_DIGITS], i32))
            (table,) = code.for_each(_DIGITS, [table], lambda at, table: [code.write(zero, table, at)])
            (table,) = code.for_each(records.size, [table], lambda at, table: count(row, at, table))
            table, _ = code.for_each(_DIGITS, [table, zero], _sum_up)
            _, *found = code.for_each(records.size, [table, *targets], lambda at, *carried: move(row, at, *carried))
            return found

        return code.for_each(records.group, buffers, sort_row)

    return code.over_rows(stored, [shift], [array.type for array in records.arrays], records.group, body)


def _digit(key: Any, shift: Any) -> Any:
    """A digit of a key as an ``index``, in an order of unsigned numbers that is that of signed keys."""
    width = key.type.width
    bits = code.combine(arith.xori, key, -(2 ** (width - 1)))
    if width > _DIGIT_BITS:
        bits = code.combine(arith.shrui, bits, _resized(shift, key.type))
        bits = code.combine(arith.andi, bits, _DIGITS - 1)
    return code.cast(arith.index_castui, bits, ir.IndexType.get())


def _sum_up(at: Any, table: Any, before: Any) -> list[Any]:
    """Replace a count by the sum of those before it."""
    count = code.read(table, at)
    return [code.write(before, table, at), code.combine(arith.addi, before, count)]


def _resized(value: Any, type_: Any) -> Any:
    """A small positive number in another integer type."""
    return code.cast(arith.extui if type_.width > value.type.width else arith.trunci, value, type_)
