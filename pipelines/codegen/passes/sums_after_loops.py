"""``legalize-sums-after-loops``: products that the turns of a loop only add up are one product after the loop.

Before, the gradient of a recurrent layer's weights, as ``scan`` differentiates it::

    %r:2 = stablehlo.while(%i = %zero, %sum = %start, ...) cond { %i < 50 } do {
      %p = stablehlo.dot_general %dy, %x, contracting_dims = [0] x [0] : (tensor<16x1024xf32>, tensor<16x256xf32>) -> …
      %t = stablehlo.transpose %p, dims = [1, 0]
      %next = stablehlo.add %sum, %t
      ...
    }

After: the loop keeps the factors of all turns, %dys and %xs, and behind it::

    %p = stablehlo.dot_general %dys, %xs, contracting_dims = [0, 1] x [0, 1] : (tensor<50x16x1024xf32>, …) -> …
    %t = stablehlo.transpose %p, dims = [1, 0]
    %r = stablehlo.add %start, %t

A turn's product has few terms, and its sum is as large as the weights: each turn read and wrote all of it. Sums over a
dimension of factors that are kept anyway (a bias's gradient) go along. Without both, rows of a loop may be independent
(``independent_rows.py``). Source: loop fission; StableHLO spec "dot_general", "while".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from hloforge.dialect import ops
from hloforge.dialect.idioms import zeros
from hloforge.dialect.mlir import SSAValue, in_context, ir, stablehlo
from hloforge.dialect.operations import defining_op, integers, operations
from hloforge.dialect.regions import clone_with
from hloforge.dialect.values import Value
from hloforge.pipelines.analysis.forms import is_static
from hloforge.pipelines.codegen.passes.known_divisors import known_number
from hloforge.pipelines.framework.facts import NORMALIZED, Facts
from hloforge.pipelines.framework.passes import Pass, register

_WHILE, _DOT, _REDUCE, _ADD = "stablehlo.while", "stablehlo.dot_general", "stablehlo.reduce", "stablehlo.add"
_MOVES = frozenset({"stablehlo.transpose", "stablehlo.reshape"})
_FLOATS = frozenset({"f32", "f64"})
# How many times as large as its factors a product is at least, and bytes of all factors that a loop keeps.
_GAIN, _MOST_BYTES = 1, 64 << 20


@dataclass
class _Sum:
    """A carry that turns add to.

    Attributes:
        number: of the carry.
        source: the product or reduction that is added, and the moves between it and the sum, in their order.
        kept: the arrays of a turn that it reads.
    """

    number: int
    source: ir.Operation
    moves: list[ir.Operation]
    kept: list[SSAValue]


@dataclass
class _Loop:
    """A loop of a known number of turns, which a carry counts from 0."""

    op: ir.Operation
    turns: int
    counter: int
    sums: list[_Sum] = field(default_factory=list)

    @property
    def condition(self) -> ir.Block:
        block: ir.Block = self.op.regions[0].blocks[0]
        return block

    @property
    def body(self) -> ir.Block:
        block: ir.Block = self.op.regions[1].blocks[0]
        return block

    @property
    def kept(self) -> list[SSAValue]:
        """The arrays of a turn that are kept, each once."""
        return list(dict.fromkeys(value for one in self.sums for value in one.kept))


def _counted(op: ir.Operation) -> _Loop | None:
    condition, body = (region.blocks[0] for region in op.regions)
    test = defining_op(_last(condition).operands[0], "stablehlo.compare")
    if test is None or "LT" not in str(test.attributes["comparison_direction"]):
        return None
    counter, bound = test.operands
    if not isinstance(counter, ir.BlockArgument) or counter.owner != condition:
        return None
    number = counter.arg_number
    step = defining_op(_last(body).operands[number], _ADD)
    if step is None or step.operands[0] != body.arguments[number] or known_number(step.operands[1]) != 1:
        return None
    turns = known_number(bound)
    if known_number(op.operands[number]) != 0 or turns is None or turns < 2 or not turns.is_integer():
        return None
    return _Loop(op, int(turns), number)


def _last(block: ir.Block) -> ir.Operation:
    return list(block.operations)[-1].operation


def _find(loop: _Loop) -> None:
    """Find the sums of a loop that are worth it, products first, because reductions go along with what they keep."""
    returned = list(_last(loop.body).operands)
    added = {n: found for n, value in enumerate(returned) if (found := _added(loop, n, value)) is not None}
    for number, value in added.items():
        moves, source = _source(value, loop.body)
        if source is not None and source.name == _DOT and _is_worth(source, loop):
            one = _Sum(number, source, moves, list(source.operands))
            if sum(map(_bytes, {*loop.kept, *one.kept})) * loop.turns <= _MOST_BYTES:
                loop.sums.append(one)
    kept = set(loop.kept)
    for number, value in added.items():
        moves, source = _source(value, loop.body)
        if source is not None and source.name == _REDUCE and source.operands[0] in kept and _adds(source):
            loop.sums.append(_Sum(number, source, moves, [source.operands[0]]))


def _added(loop: _Loop, number: int, value: SSAValue) -> SSAValue | None:
    """What a turn adds to a carry that nothing else reads."""
    argument = loop.body.arguments[number]
    add = defining_op(value, _ADD)
    if add is None or add.block != loop.body or not is_static(add) or Value(value).element_type.name not in _FLOATS:
        return None
    if _uses(argument) != 1 or _uses(value) != 1 or _uses(loop.condition.arguments[number]):
        return None
    one, other = add.operands
    if argument not in (one, other):
        return None
    return other if one == argument else one


def _source(value: SSAValue, body: ir.Block) -> tuple[list[ir.Operation], ir.Operation | None]:
    """The moves that make a value that is read once, and what they move."""
    moves: list[ir.Operation] = []
    while True:
        op = defining_op(value)
        if op is None or op.block != body or _uses(value) != 1:
            return moves, None
        if op.name not in _MOVES:
            return moves, op
        moves.insert(0, op)
        value = op.operands[0]


def _is_worth(product: ir.Operation, loop: _Loop) -> bool:
    factors = list(product.operands)
    if not is_static(product) or not all(_is_of_turn(factor, loop.body) for factor in factors):
        return False
    types = {Value(value).element_type.name for value in (*factors, product.results[0])}
    if len(types) > 1 or "algorithm" in product.attributes:
        return False
    return _elements(product.results[0]) >= _GAIN * sum(map(_elements, factors))


def _is_of_turn(value: SSAValue, body: ir.Block) -> bool:
    """Whether a turn has a value of its own."""
    op = defining_op(value)
    return value.owner == body if op is None else op.block == body


def _adds(reduce: ir.Operation) -> bool:
    (result,) = reduce.results if len(reduce.results) == 1 else (None,)
    first, *others = reduce.regions[0].blocks[0].operations
    is_sum = len(others) == 1 and first.operation.name == _ADD
    return result is not None and is_sum and known_number(reduce.operands[1]) == 0


def _elements(value: SSAValue) -> int:
    return math.prod(Value(value).dims)


def _bytes(value: SSAValue) -> int:
    return _elements(value) * Value(value).element_type.bits // 8


def _uses(value: SSAValue) -> int:
    return sum(1 for _ in value.uses)


def _rewrite(loop: _Loop) -> None:
    op, kept = loop.op, loop.kept
    with ir.InsertionPoint(op), op.location:
        stacks = [zeros(Value(v).element_type, [loop.turns, *Value(v).dims]) for v in kept]
        made = ir.Operation.create(
            _WHILE,
            results=[*(result.type for result in op.results), *(stack.ir.type for stack in stacks)],
            operands=[*op.operands, *(stack.ir for stack in stacks)],
            attributes={name: op.attributes[name] for name in op.attributes},
            regions=2,
        )
        for block, region in zip((loop.condition, loop.body), made.regions, strict=True):
            arguments = [block.add_argument(stack.ir.type, op.location) for stack in stacks]
            block.append_to(region)
    whole = dict(zip(kept, map(Value, list(made.results)[len(op.results) :]), strict=True))
    sums = {one.number: one for one in loop.sums}
    with ir.InsertionPoint.after(made), op.location:
        for number, result in enumerate(op.results):
            one = sums.get(number)
            total = None if one is None else Value(op.operands[number]) + _total(one, whole)
            result.replace_all_uses_with(made.results[number] if total is None else total.ir)
    op.erase()
    _keep(made, loop, kept, [Value(argument) for argument in arguments])


def _keep(made: ir.Operation, loop: _Loop, kept: Sequence[SSAValue], stacks: Sequence[Value]) -> None:
    """Let each turn put what is kept into its place of a stack, and add nothing."""
    body = made.regions[1].blocks[0]
    end = _last(body)
    returned: list[Any] = list(end.operands)
    for one in loop.sums:
        returned[one.number] = body.arguments[one.number]
    with ir.InsertionPoint(end), end.location:
        place = Value(body.arguments[loop.counter])
        for value, stack in zip(map(Value, kept), stacks, strict=True):
            first = zeros(place.element_type)
            starts = [place, *[first] * value.rank]
            returned.append(ops.dynamic_update_slice(stack, value.reshape(1, *value.dims), starts).ir)
        ir.Operation.create("stablehlo.return", operands=returned)
    added = [defining_op(end.operands[one.number]) for one in loop.sums]
    end.erase()
    # What reads nothing any more would still mix rows for the passes that follow.
    for add, one in zip(added, loop.sums, strict=True):
        for op in filter(None, (add, *one.moves[::-1], one.source)):
            op.erase()


def _total(one: _Sum, whole: dict[SSAValue, Value]) -> Value:
    """The sum over all turns, built of the factors of all."""
    stacks = [whole[value] for value in one.kept]
    if one.source.name == _DOT:
        found = _product(one.source, *stacks)
    else:
        dims = [0, *(d + 1 for d in integers(one.source, "dimensions"))]
        found = ops.reduce(stacks[0], 0, ops.add, dims)
    for move in one.moves:
        found = Value(clone_with(move, {move.operands[0]: found.ir}).results[0])
    return found


def _product(op: ir.Operation, left: Value, right: Value) -> Value:
    numbers = stablehlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
    attributes = {name: op.attributes[name] for name in op.attributes}
    attributes["dot_dimension_numbers"] = stablehlo.DotDimensionNumbers.get(
        lhs_batching_dimensions=[d + 1 for d in numbers.lhs_batching_dimensions],
        rhs_batching_dimensions=[d + 1 for d in numbers.rhs_batching_dimensions],
        lhs_contracting_dimensions=[0, *(d + 1 for d in numbers.lhs_contracting_dimensions)],
        rhs_contracting_dimensions=[0, *(d + 1 for d in numbers.rhs_contracting_dimensions)],
    )
    return Value(ir.Operation.create(_DOT, [op.results[0].type], [left.ir, right.ir], attributes).result)


@register
@dataclass(frozen=True)
class LegalizeSumsAfterLoops(Pass):
    """Products that turns of a loop add up are one product of the factors of all turns."""

    name: ClassVar[str] = "legalize-sums-after-loops"
    needs: ClassVar[frozenset[str]] = frozenset({_WHILE})
    requires: ClassVar[Facts] = NORMALIZED

    def run(self, module: ir.Module) -> None:
        with in_context(module):
            for op in operations(module, {_WHILE}):
                loop = _counted(op)
                if loop is None:
                    continue
                _find(loop)
                if loop.sums:
                    _rewrite(loop)
