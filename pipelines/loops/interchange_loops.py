"""``interchange-loops``: lower a loop of elementwise iterations to one dispatch: all iterations of an element at once.

Before::

    %y:2 = stablehlo.while(%i = %zero, %v = %x) : tensor<i32>, tensor<512x512xf32>
      cond { %i < 50 } do { return %i + 1, (%v + %a / %v) * 0.5 }

After::

    %y = dispatch { for each vector v of x, and a of a: while (i < 50) { i, v = i + 1, (v + a / v) * 0.5 }; store v }

IREE runs a dispatch over whole arrays for each iteration. If an element of the next iteration depends on the elements
at its position alone, and the condition on single numbers, the loop over iterations can as well be the inner one:
values stay in registers, and memory is read and written once. What an iteration computes from nothing that changes
moves before the loop.
Source: J. R. Allen and K. Kennedy, "Automatic Loop Interchange", 1984.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

from hloforge.dialect import ops
from hloforge.dialect.element_types import ElementType, Kind
from hloforge.dialect.mlir import AnyOp, arith, in_context, ir
from hloforge.dialect.operations import is_made_by, operations
from hloforge.dialect.values import Value
from hloforge.pipelines.framework.builders import (
    empty,
    full_vector,
    index,
    read_vector,
    stands_in_dispatch,
    write_vector,
)
from hloforge.pipelines.framework.facts import REWRITES, Fact, Facts
from hloforge.pipelines.framework.machine import Machine
from hloforge.pipelines.framework.passes import CPU, MachinePass, register
from hloforge.pipelines.framework.patterns import replace
from hloforge.pipelines.kernels.lang import loops as code
from hloforge.pipelines.kernels.lang.elementwise import NUMBERS, constant_number, has_code, number_type, on_numbers

# The smallest arrays take one part in so many of the nearest cache: fewer elements stay there in any order of loops.
_LEAST_PART = 8
# The most workgroups of a worker, of which IREE hands out eight at a time.
_GROUPS_OF_WORKER = 32
# Multiplications that this kernel counts for an operation on an element, and iterations for a loop whose count is not
# known; they decide about threads alone.
_WORK, _TURNS = 2, 16
_BROADCAST = "stablehlo.broadcast_in_dim"
# Operations that rearrange arrays: what they make of values that stay the same is computed before the loop.
_REARRANGING = frozenset(
    f"stablehlo.{name}"
    for name in ("broadcast_in_dim", "concatenate", "constant", "iota", "pad", "reshape", "slice", "transpose")
)


@register
@dataclass(frozen=True)
class InterchangeLoops(MachinePass):
    """Make a dispatch of each loop of elementwise iterations; they are in IREE's dialects, which no pass reads."""

    name: ClassVar[str] = "interchange-loops"
    targets: ClassVar[frozenset[str]] = CPU
    breaks: ClassVar[Facts] = REWRITES | frozenset({Fact.SHARED_DISPATCHES})

    def run(self, module: ir.Module) -> None:
        with in_context(module):
            for loop in operations(module, {"stablehlo.while"}):
                roles = None if stands_in_dispatch(loop) else _roles_of(loop, self.machine)
                if roles is not None:
                    with ir.InsertionPoint(loop), loop.location:
                        _move_invariants(loop, roles)
                        replace(loop, _Interchanged(loop, roles, self.machine).run())


class _Role(enum.Enum):
    """The role of a loop's value for one element: the same in all iterations, a scalar, or a value of its own."""

    FIXED = "fixed"
    NUMBER = "number"
    ELEMENT = "element"


_Roles = dict[Any, _Role]


def _roles_of(loop: ir.Operation, machine: Machine) -> _Roles | None:
    """The roles of all values in the regions of a loop; None if its iterations are not elementwise."""
    if not all(isinstance(v.type, ir.RankedTensorType) and v.type.has_static_shape for v in loop.operands):
        return None
    blocks = [region.blocks[0] for region in loop.regions]
    condition, body = (list(list(block.operations)[-1].operation.operands) for block in blocks)
    changed = [n for n, argument in enumerate(blocks[1].arguments) if body[n] != argument]
    shapes = {Value(loop.operands[n]).dims for n in changed} - {()}
    if len(shapes) != 1 or any(Value(loop.operands[n]).element_type.name not in (*NUMBERS, "pred") for n in changed):
        return None
    dims = shapes.pop()
    if prod(dims) * 4 * _LEAST_PART < machine.l1_bytes:
        return None
    roles: _Roles = {}
    for block in blocks:
        for number, argument in enumerate(block.arguments):
            varying = _Role.ELEMENT if Value(argument).dims else _Role.NUMBER
            roles[argument] = varying if number in changed else _Role.FIXED
        for op in list(block.operations)[:-1]:
            role = _role_of(op.operation, roles, dims)
            if role is None:
                return None
            roles[op.operation.results[0]] = role
    return roles if roles.get(condition[0]) is _Role.NUMBER else None


def _role_of(op: AnyOp, roles: _Roles, dims: tuple[int, ...]) -> _Role | None:
    """The role of an operation's result; None if an iteration of an element cannot compute it."""
    parts = {roles.get(operand, _Role.FIXED) for operand in op.operands}
    if parts <= {_Role.FIXED}:
        return _Role.FIXED if op.name in _REARRANGING or has_code(op) else None
    made = Value(op.results[0]).dims if len(op.results) == 1 else None
    if op.name == _BROADCAST:
        return _Role.ELEMENT if parts == {_Role.NUMBER} and made == dims and _is_numeric(op.results[0]) else None
    if made not in ((), dims) or not has_code(op):
        return None
    return _Role.ELEMENT if made else _Role.NUMBER


def _is_numeric(value: Any) -> bool:
    return Value(value).element_type.name in (*NUMBERS, "pred")


def _move_invariants(loop: Any, roles: _Roles) -> None:
    """Move what stays the same before the loop, whose regions then take it from outside."""
    for region in loop.regions:
        block = region.blocks[0]
        for argument, first in zip(block.arguments, loop.operands, strict=True):
            if roles[argument] is _Role.FIXED:
                argument.replace_all_uses_with(first)
        for op in list(block.operations)[:-1]:
            if roles[op.operation.results[0]] is _Role.FIXED:
                op.operation.move_before(loop)


@dataclass(frozen=True)
class _Source:
    """A value from outside the loop, as its dispatch reads it.

    Attributes:
        value: in StableHLO.
        array: ``[n]``, signless; of one element where all are equal.
    """

    value: Any
    array: Any

    @classmethod
    def of(cls, value: Any) -> _Source:
        is_spread = is_made_by(value, _BROADCAST)
        if is_spread and Value(value.owner.operands[0]).shape.element_count == 1:
            return cls(value, _stored(Value(value.owner.operands[0])))
        return cls(value, _stored(Value(value)))

    def read(self, contents: Any, place: Any, length: int) -> Any:
        """A number, or the vector at a position of the array's contents."""
        if not Value(self.value).dims:
            return code.read(contents, index(0))
        if int(self.array.type.shape[0]) == 1:
            return full_vector(code.read(contents, index(0)), length)
        return read_vector(contents, [place], length)


def _stored(array: Value) -> Any:
    """``[n]`` as dispatches keep it: unsigned numbers by their bits, flags as numbers of 32 bits."""
    row = array.element_type
    if row.kind is Kind.PRED:
        array = ops.convert_element_type(array, "s32")
    elif row.kind is Kind.UNSIGNED:
        array = ops.bitcast_convert_type(array, f"s{row.bits}")
    return ops.reshape(array, [array.shape.element_count]).ir


def _restored(array: Any, row: ElementType, dims: Sequence[int]) -> Value:
    """The array of which ``_stored`` has the contents."""
    value = ops.reshape(Value(array), dims)
    if row.kind is Kind.PRED:
        return ops.ne(value, 0)
    return ops.bitcast_convert_type(value, row) if row.kind is Kind.UNSIGNED else value


def _is_splat(value: Any) -> bool:
    is_constant = is_made_by(value, "stablehlo.constant")
    return is_constant and has_code(value.owner)


class _Interchanged:
    """The dispatch of a loop that takes from outside what stays the same.

    Attributes:
        changed: the numbers of the carries that an iteration changes.
        sources: their first values, and what the regions take from outside.
        results: the numbers of the carries of which somebody reads the last value.
    """

    def __init__(self, loop: Any, roles: _Roles, machine: Machine) -> None:
        self.loop, self.roles, self.machine = loop, roles, machine
        self.blocks = [region.blocks[0] for region in loop.regions]
        arguments = self.blocks[1].arguments
        self.changed = [n for n, argument in enumerate(arguments) if roles[argument] is not _Role.FIXED]
        self.results = [n for n in self.changed if any(True for _ in loop.results[n].uses)]
        self.first = [_Source.of(loop.operands[n]) for n in self.changed]
        self.taken = [_Source.of(value) for value in dict.fromkeys(self._operands()) if self._is_taken(value)]
        arrays = [n for n in self.changed if Value(loop.operands[n]).dims]
        self.size = Value(loop.operands[arrays[0]]).shape.element_count
        widest = max(number_type(loop.operands[n]).width for n in arrays)
        # All arrays have an iteration's registers together.
        most = max(machine.half_line, machine.unrolled_bytes // _power_of_two(len(arrays)))
        self.length = most * 8 // max(32, widest)

    def _operands(self) -> list[Any]:
        return [operand for block in self.blocks for op in block.operations for operand in op.operation.operands]

    def _is_taken(self, value: Any) -> bool:
        return self.roles.get(value, _Role.FIXED) is _Role.FIXED and not _is_splat(value)

    def run(self) -> list[Value]:
        """The loop's results; those that nobody reads are the first values."""
        groups = _GROUPS_OF_WORKER * self.machine.workers
        group = self.length * -(-self.size // (groups * self.length))
        sources = [*self.first, *self.taken]
        stored = [self.first[self.changed.index(n)].array.type for n in self.results]
        sizes = [self.size if Value(self.loop.operands[n]).dims else 1 for n in self.results]
        types = [ir.RankedTensorType.get([s], t.element_type) for s, t in zip(sizes, stored, strict=True)]

        def run(places: Sequence[Any], memory: Sequence[Any], _: Sequence[Any], targets: Sequence[Any]) -> None:
            # The last group begins earlier, so that it has as many elements: some are computed twice.
            start = code.combine(arith.minsi, code.combine(arith.muli, places[0], group), self.size - group)
            begins = [start if int(s.array.type.shape[0]) > 1 else 0 for s in sources]
            parts = [
                code.load(m, _part(s.array.type, group), [at]) for m, s, at in zip(memory, sources, begins, strict=True)
            ]
            made = code.for_each(
                group,
                [empty(_part(type_, group)) for type_ in types],
                lambda at, *buffers: self._turned(sources, parts, at, buffers),
                step=self.length,
            )
            for part, target in zip(made, targets, strict=True):
                code.store(part, target, [start if int(part.type.shape[0]) > 1 else 0])

        operations = len(self._operands()) * _TURNS * _WORK
        count = -(-self.size // group)
        arrays = code.workgroups([count], [s.array for s in sources], (), types, run, work=self.size * operations)
        found = dict(zip(self.results, arrays, strict=True))
        return [
            _restored(found[n], Value(first).element_type, Value(first).dims) if n in found else Value(first)
            for n, first in enumerate(self.loop.operands)
        ]

    def _turned(self, sources: Sequence[_Source], parts: Sequence[Any], at: Any, buffers: Sequence[Any]) -> list[Any]:
        """All iterations of the elements of a vector; the buffers with their last values written into them."""
        read = [source.read(part, at, self.length) for source, part in zip(sources, parts, strict=True)]
        count = len(self.first)
        fixed = dict(zip((source.value for source in self.taken), read[count:], strict=True))

        def condition(*carried: Any) -> Any:
            return self._evaluated(0, carried, fixed)[0]

        def turn(*carried: Any) -> list[Any]:
            ends = self._evaluated(1, carried, fixed)
            return [_kept(ends[n], self.loop.operands[n]) for n in self.changed]

        last = dict(zip(self.changed, code.while_(read[:count], condition, turn), strict=True))
        return [
            write_vector(last[n], buffer, [at])
            if isinstance(last[n].type, ir.VectorType)
            else code.write(last[n], buffer, index(0))
            for n, buffer in zip(self.results, buffers, strict=True)
        ]

    def _evaluated(self, region: int, carried: Sequence[Any], fixed: dict[Any, Any]) -> list[Any]:
        """What a region returns, at the insertion point; None in the place of carries that stay the same."""
        block = self.blocks[region]
        known = {
            value: _flag(number) if Value(value).element_type.kind is Kind.PRED else number
            for value, number in [
                *fixed.items(),
                *zip((block.arguments[n] for n in self.changed), carried, strict=True),
            ]
        }

        def number(value: Any) -> Any:
            if value in known or not _is_splat(value):
                return known.get(value)
            return constant_number(value.owner, self.length if Value(value).dims else 0)

        *inner, end = (op.operation for op in block.operations)
        for op in inner:
            known[op.results[0]] = self._computed(op, [number(operand) for operand in op.operands])
        return [number(operand) for operand in end.operands]

    def _computed(self, op: AnyOp, operands: Sequence[Any]) -> Any:
        if op.name == _BROADCAST:
            return full_vector(operands[0], self.length)
        if op.name == "stablehlo.clamp" and Value(op.results[0]).dims:
            operands = [o if isinstance(o.type, ir.VectorType) else full_vector(o, self.length) for o in operands]
        return on_numbers(op, operands)


def _part(type_: Any, group: int) -> Any:
    """A workgroup's part of an array ``[n]``; all of an array of one element."""
    return ir.RankedTensorType.get([min(group, int(type_.shape[0]))], type_.element_type)


def _power_of_two(number: int) -> int:
    """The least power of two that is no less than a number."""
    return 1 << (number - 1).bit_length()


def _flag(number: Any) -> Any:
    """A flag, or a vector of flags, of numbers of 32 bits."""
    return code.compare("ne", number, code.combine(arith.xori, number, number))


def _kept(number: Any, first: Any) -> Any:
    """A number as an iteration hands it on: flags have 32 bits."""
    if Value(first).element_type.kind is not Kind.PRED:
        return number
    wide = ir.IntegerType.get_signless(32)
    is_vector = isinstance(number.type, ir.VectorType)
    return code.cast(arith.extui, number, ir.VectorType.get(number.type.shape, wide) if is_vector else wide)
