"""``legalize-independent-rows``: a loop whose rows do not depend on each other is two loops, of half of the rows each.

Before, a recurrent layer of 32 sequences::

    %r:2 = stablehlo.while(%i = %zero, %state = %h, ...) cond { ... } do {
      %y = stablehlo.dot_general %state, %weights, contracting_dims = [1] x [0] -> tensor<32x640xf32>
      ...
      stablehlo.return %next, %new : tensor<i64>, tensor<32x160xf32>
    }

After::

    %a = stablehlo.slice %h [0:16, 0:160]
    %b = stablehlo.slice %h [16:32, 0:160]
    %p:2 = stablehlo.while(%i = %zero, %state = %a, ...) ... tensor<16x160xf32>
    %q:2 = stablehlo.while(%i = %zero, %state = %b, ...) ... tensor<16x160xf32>
    %r = stablehlo.concatenate %p#1, %q#1, dim = 0

Threads that share each step of a loop hand over what they made in each turn; these two run at once and never meet
(``loops_at_once.py``). Rows are a dimension of carries that goes through all products of the body and that nothing
mixes: what a value's dimension becomes in another value is a link, what mixes a dimension closes its set of links.
Source: the batch dimension of data parallelism; XLA's SPMD partitioner finds such dimensions alike.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from hloforge.dialect import ops
from hloforge.dialect.mlir import SSAValue, in_context, ir, stablehlo
from hloforge.dialect.operations import defining_op, integer, integers, operations
from hloforge.dialect.traits import ELEMENTWISE
from hloforge.dialect.values import Value
from hloforge.pipelines.framework.facts import NORMALIZED, Facts
from hloforge.pipelines.framework.passes import Pass, register

_WHILE, _DOT = "stablehlo.while", "stablehlo.dot_general"
# Loops that are made of one; rows that each has at least, so that tiles of products are full; multiplications of a turn
# from which on threads are worth it, and elements of the factors that both loops read, which each core's cache has to
# hold.
_PARTS, _ROWS, _WORK, _HELD = 2, 8, 1 << 17, 1 << 19

_Place = tuple[SSAValue, int]


def _dims(value: SSAValue) -> list[int]:
    return list(ir.RankedTensorType(value.type).shape)


@dataclass
class _Links:
    """Which dimensions of which values are the same rows, and which of these something mixes."""

    above: dict[_Place, _Place] = field(default_factory=dict)
    mixed: set[_Place] = field(default_factory=set)

    def top(self, place: _Place) -> _Place:
        while (parent := self.above.setdefault(place, place)) != place:
            self.above[place] = place = self.above[parent]
        return place

    def join(self, *places: _Place) -> None:
        for one in places[1:]:
            self.above[self.top(one)] = self.top(places[0])

    def mix(self, value: SSAValue, *dims: int) -> None:
        self.mixed |= {(value, d) for d in dims}

    def mix_all(self, op: ir.Operation) -> None:
        for value in (*op.operands, *op.results):
            self.mix(value, *range(len(_dims(value))))

    def sets(self) -> Iterator[set[_Place]]:
        """The sets of linked places that nothing mixes."""
        found: dict[_Place, set[_Place]] = {}
        for place in list(self.above):
            found.setdefault(self.top(place), set()).add(place)
        closed = {self.top(place) for place in self.mixed if place in self.above}
        yield from (places for top, places in found.items() if top not in closed)


def _link(op: ir.Operation, links: _Links) -> None:
    """Tell what an operation makes of the dimensions of its operands."""
    name = op.name
    if name == "stablehlo.constant" or (name in ELEMENTWISE and name != "stablehlo.bitcast_convert"):
        _link_elements(op, links)
    elif name == "stablehlo.broadcast_in_dim":
        (operand,), (result,) = op.operands, op.results
        for d, own in enumerate(integers(op, "broadcast_dimensions")):
            if _dims(operand)[d] == _dims(result)[own]:
                links.join((operand, d), (result, own))
            else:
                links.mix(operand, d)
    elif name == "stablehlo.transpose":
        for own, d in enumerate(integers(op, "permutation")):
            links.join((op.operands[0], d), (op.results[0], own))
    elif name == "stablehlo.reshape":
        _link_reshape(op, links)
    elif name in ("stablehlo.slice", "stablehlo.dynamic_slice", "stablehlo.pad"):
        operand, (result,) = op.operands[0], op.results
        for d, (before, after) in enumerate(zip(_dims(operand), _dims(result), strict=True)):
            _join_or_mix(links, before == after and _is_whole(op, d), (operand, d), (result, d))
    elif name == "stablehlo.dynamic_update_slice":
        (operand, update, *_), (result,) = op.operands, op.results
        for d, (before, part) in enumerate(zip(_dims(operand), _dims(update), strict=True)):
            links.join((operand, d), (result, d))
            _join_or_mix(links, before == part, (operand, d), (update, d))
    elif name == "stablehlo.concatenate":
        (result,), along = op.results, integer(op, "dimension")
        for operand in op.operands:
            for d in range(len(_dims(result))):
                _join_or_mix(links, d != along, (operand, d), (result, d))
    elif name == "stablehlo.reduce" and len(op.results) == 1:
        (operand, _), (result,) = op.operands, op.results
        summed = integers(op, "dimensions")
        links.mix(operand, *summed)
        for own, d in enumerate(d for d in range(len(_dims(operand))) if d not in summed):
            links.join((operand, d), (result, own))
    elif name == _DOT:
        _link_product(op, links)
    elif name == "stablehlo.iota":
        links.mix(op.results[0], integer(op, "iota_dimension"))
    else:
        links.mix_all(op)


def _link_elements(op: ir.Operation, links: _Links) -> None:
    (result,) = op.results
    if op.name == "stablehlo.constant" and not ir.DenseElementsAttr(op.attributes["value"]).is_splat:
        links.mix(result, *range(len(_dims(result))))
    for operand in op.operands:
        if _dims(operand):
            for d in range(len(_dims(result))):
                links.join((operand, d), (result, d))


def _join_or_mix(links: _Links, is_same: bool, one: _Place, other: _Place) -> None:
    if is_same:
        links.join(one, other)
    else:
        links.mix(*one)
        links.mix(*other)


def _is_whole(op: ir.Operation, d: int) -> bool:
    """Whether a part of an array, or one with a border, has all of a dimension in its order."""
    if op.name == "stablehlo.pad":
        return not any(integers(op, name)[d] for name in ("edge_padding_low", "edge_padding_high", "interior_padding"))
    return op.name != "stablehlo.slice" or integers(op, "strides")[d] == 1


def _link_reshape(op: ir.Operation, links: _Links) -> None:
    """Dimensions of equal size before which equally many elements are."""
    (operand,), (result,) = op.operands, op.results
    ways = []
    for value in (operand, result):
        dims = _dims(value)
        ways.append({(math.prod(dims[:d]), size): d for d, size in enumerate(dims) if size > 1})
    for value, own, other, across in ((operand, ways[0], ways[1], result), (result, ways[1], ways[0], operand)):
        for way, d in own.items():
            if way in other:
                links.join((value, d), (across, other[way]))
            else:
                links.mix(value, d)


def _link_product(op: ir.Operation, links: _Links) -> None:
    (left, right), (result,) = op.operands, op.results
    numbers = stablehlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
    batches = list(numbers.lhs_batching_dimensions), list(numbers.rhs_batching_dimensions)
    summed = list(numbers.lhs_contracting_dimensions), list(numbers.rhs_contracting_dimensions)
    for own, (d, other) in enumerate(zip(*batches, strict=True)):
        links.join((left, d), (right, other), (result, own))
    own = len(batches[0])
    for value, batch, contracted in zip((left, right), batches, summed, strict=True):
        links.mix(value, *contracted)
        for d in range(len(_dims(value))):
            if d not in batch and d not in contracted:
                links.join((value, d), (result, own))
                own += 1


def _inner(op: ir.Operation) -> list[ir.Operation] | None:
    """The operations of a loop's condition and body; None where one has a block that is more than a computation."""
    found = [entry.operation for block in _blocks(op) for entry in block.operations]
    if any(one.regions and one.name != "stablehlo.reduce" for one in found):
        return None
    return found if all(map(_is_known, (*op.results, *(v for one in found for v in one.results)))) else None


def _is_known(value: SSAValue) -> bool:
    return isinstance(value.type, ir.RankedTensorType) and value.type.has_static_shape


def _rows_of(op: ir.Operation) -> dict[SSAValue, int] | None:
    """The dimension of each value in a loop that is its rows; None if there are none, or two loops are not worth it."""
    inside = _inner(op)
    if inside is None or not any(one.name == _DOT for one in inside):
        return None
    links = _Links()
    condition, body = _blocks(op)
    terminator = list(body.operations)[-1].operation
    for one in inside:
        if one.name != "stablehlo.return":
            _link(one, links)
    for values in zip(condition.arguments, body.arguments, terminator.operands, strict=True):
        for d in range(len(_dims(values[0]))):
            links.join(*((value, d) for value in values))
    carries = {body.arguments[number] for number in _changed(op)}
    products = [one for one in inside if one.name == _DOT]
    for places in links.sets():
        rows = dict(places)
        if len(rows) < len(places) or not carries & rows.keys():
            continue
        sizes = {_dims(value)[d] for value, d in rows.items()}
        if len(sizes) == 1 and sizes.pop() >= _PARTS * _ROWS and _is_worth(products, rows):
            return rows
    return None


def _is_worth(products: Sequence[ir.Operation], rows: dict[SSAValue, int]) -> bool:
    if any(one.results[0] not in rows for one in products):
        return False
    held = {factor for one in products for factor in one.operands if factor not in rows}
    work = 0
    for one in products:
        numbers = stablehlo.DotDimensionNumbers(one.attributes["dot_dimension_numbers"])
        terms = math.prod(_dims(one.operands[0])[d] for d in numbers.lhs_contracting_dimensions)
        work += terms * math.prod(_dims(one.results[0]))
    return work >= _WORK and sum(math.prod(_dims(factor)) for factor in held) <= _HELD


def _part(op: ir.Operation, rows: dict[SSAValue, int], first: int, last: int) -> ir.Operation:
    """A copy of a loop with some of the rows."""
    made = op.clone()
    pairs = dict(zip(_values(op), _values(made), strict=True))
    arguments = op.regions[1].blocks[0].arguments
    own_carries = [
        n for n, a in enumerate(arguments) if n in _changed(op) or (a in rows and _joined(op, n, rows[a], first, last))
    ]
    for number in own_carries:
        argument, result = arguments[number], op.results[number]
        if argument in rows:
            with ir.InsertionPoint(made):
                made.operands[number] = _sliced(op.operands[number], rows[argument], first, last)
            pairs[result].set_type(_with_rows(result, rows[argument], last - first))
    whole = {block.arguments[n] for block in _blocks(op) for n in range(len(op.results)) if n not in own_carries}
    for value, d in rows.items():
        if value in pairs and value not in whole:
            pairs[value].set_type(_with_rows(value, d, last - first))
    for one, own in zip(_inner(op) or (), _inner(made) or (), strict=True):
        if one.name == "stablehlo.return":
            continue
        for number, operand in enumerate(one.operands):
            if operand in rows and (operand not in pairs or operand in whole):
                # What no turn changes is read where it is: a part of it is no array of its own.
                with ir.InsertionPoint(own):
                    own.operands[number] = _sliced(own.operands[number], rows[operand], first, last)
        if one.results and one.results[0] in rows:
            _resize(own, rows[one.results[0]], last - first)
    return made


def _changed(op: ir.Operation) -> list[int]:
    """The numbers of the carries that turns change."""
    body = op.regions[1].blocks[0]
    terminator = list(body.operations)[-1].operation
    return [n for n, value in enumerate(terminator.operands) if value != body.arguments[n]]


def _joined(op: ir.Operation, number: int, d: int, first: int, last: int) -> bool:
    """Whether what another loop's parts made, and nothing changes, is joined to be a carry: then it is read there."""
    return _piece(op.operands[number], d, first, last) is not None


def _piece(value: SSAValue, d: int, first: int, last: int) -> SSAValue | None:
    """The operand of a concatenation that is such a part of its result."""
    joined = defining_op(value, "stablehlo.concatenate")
    if joined is None or integer(joined, "dimension") != d:
        return None
    place = 0
    for operand in joined.operands:
        end = place + _dims(operand)[d]
        if (place, end) == (first, last):
            return operand
        place = end
    return None


def _sliced(value: SSAValue, d: int, first: int, last: int) -> SSAValue:
    piece = _piece(value, d, first, last)
    if piece is not None:
        return piece
    dims = _dims(value)
    starts, limits = [0] * len(dims), list(dims)
    starts[d], limits[d] = first, last
    part: SSAValue = ops.slice(Value(value), starts, limits).ir
    return part


def _blocks(op: ir.Operation) -> list[ir.Block]:
    return [region.blocks[0] for region in op.regions]


def _values(op: ir.Operation) -> list[SSAValue]:
    """The results of a loop, and the values in its blocks."""
    found: list[SSAValue] = list(op.results)
    for block in _blocks(op):
        found += list(block.arguments)
        found += [result for entry in block.operations for result in entry.operation.results]
    return found


def _with_rows(value: SSAValue, d: int, rows: int) -> ir.Type:
    type_ = ir.RankedTensorType(value.type)
    return ir.RankedTensorType.get([rows if n == d else size for n, size in enumerate(type_.shape)], type_.element_type)


def _resize(op: ir.Operation, d: int, rows: int) -> None:
    """Let attributes say how many rows there are."""
    if op.name == "stablehlo.constant":
        value = ir.DenseElementsAttr(op.attributes["value"])
        op.attributes["value"] = ir.DenseElementsAttr.get_splat(op.results[0].type, value.get_splat_value())
    for name in {"stablehlo.slice": ("limit_indices",), "stablehlo.dynamic_slice": ("slice_sizes",)}.get(op.name, ()):
        sizes = integers(op, name)
        sizes[d] = rows
        op.attributes[name] = ir.DenseI64ArrayAttr.get(sizes)


def _split(op: ir.Operation, rows: dict[SSAValue, int]) -> None:
    arguments = op.regions[1].blocks[0].arguments
    count = next(_dims(argument)[rows[argument]] for argument in arguments if argument in rows)
    ends = [count * n // _PARTS for n in range(_PARTS + 1)]
    with ir.InsertionPoint(op), op.location:
        parts = [_part(op, rows, first, last) for first, last in itertools.pairwise(ends)]
        changed = _changed(op)
        for number, (argument, result) in enumerate(zip(arguments, op.results, strict=True)):
            if number not in changed:
                result.replace_all_uses_with(op.operands[number])
                continue
            found = [Value(part.results[number]) for part in parts]
            is_part = argument in rows
            result.replace_all_uses_with((ops.concat_in_dim(found, rows[argument]) if is_part else found[0]).ir)
    op.erase()


@register
@dataclass(frozen=True)
class LegalizeIndependentRows(Pass):
    """Loops over rows that do not depend on each other are loops of some of the rows."""

    name: ClassVar[str] = "legalize-independent-rows"
    needs: ClassVar[frozenset[str]] = frozenset({_WHILE})
    requires: ClassVar[Facts] = NORMALIZED

    def run(self, module: ir.Module) -> None:
        with in_context(module):
            for op in operations(module, {_WHILE}):
                # In another loop's body one would run after the other.
                is_outer = op.parent is not None and op.parent.name == "func.func"
                rows = _rows_of(op) if is_outer else None
                if rows is not None:
                    _split(op, rows)
