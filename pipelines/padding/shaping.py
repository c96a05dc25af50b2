"""Moves of whole dimensions: reshapes, slices, concatenations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hloforge.dialect import ops
from hloforge.dialect.constants import constant
from hloforge.dialect.operations import integer, integers
from hloforge.dialect.values import Value
from hloforge.pipelines.padding.frame import Frame, refuse, rule, split_atoms
from hloforge.pipelines.padding.layouts import Atom, Dim, merged, plain, prefix
from hloforge.pipelines.padding.sizes import Size, sized


@rule("broadcast_in_dim")
def broadcast_in_dim(frame: Frame, op: Any) -> None:
    mapped = integers(op, "broadcast_dimensions")
    operand, result = op.operands[0], op.results[0]
    dims = frame.prefixes(result, uniform=range(len(result.type.shape)))
    for d, place in enumerate(mapped):
        if frame.layout(operand)[d] is not None:
            dims[place] = frame.layout(operand)[d]
    frame.set(result, dims)


@rule("broadcast")
def broadcast(frame: Frame, op: Any) -> None:
    result = op.results[0]
    count = len(integers(op, "broadcast_sizes"))
    frame.set(result, [*frame.prefixes(result, uniform=range(count))[:count], *frame.layout(op.operands[0])])


@rule("transpose")
def transpose(frame: Frame, op: Any) -> None:
    layout = frame.layout(op.operands[0])
    frame.set(op.results[0], [layout[d] for d in integers(op, "permutation")])


# --- Reshapes: atoms move from one dimension to another.


@rule("reshape")
def reshape(frame: Frame, op: Any) -> None:
    x, result = Value(op.operands[0]), op.results[0]
    groups = _groups(frame, op)
    lying = [_split(frame, op, _atoms(frame, x, inputs), outputs) for inputs, outputs in groups]
    if any(each is None for each in lying):
        x = _in_order(frame, op, x, groups, lying)
        groups = [
            ([sum(1 if lying[m] is None else len(groups[m][0]) for m in range(n)) + i for i in range(count)], outputs)
            for n, (inputs, outputs) in enumerate(groups)
            for count in [1 if lying[n] is None else len(inputs)]
        ]
        lying = [_split(frame, op, _atoms(frame, x, inputs), outputs) for inputs, outputs in groups]
    layout: list[Dim | None] = [None] * len(result.type.shape)
    for (_, outputs), found in zip(groups, lying, strict=True):
        if found is None:
            raise refuse(op, "it makes an open size of others")
        for d, dim in zip(outputs, found, strict=True):
            layout[d] = dim
    frame.replace(op, [ops.reshape(x, list(result.type.shape))], [layout])


def _in_order(
    frame: Frame,
    op: Any,
    x: Value,
    groups: Sequence[tuple[list[int], list[int]]],
    lying: Sequence[list[Dim | None] | None],
) -> Value:
    """The operand with one dimension for each group that is cut anew, whose elements lie as the result's do."""
    shape: list[int] = []
    layout: list[Dim | None] = []
    moved: list[tuple[int, Dim]] = []
    for (inputs, outputs), found in zip(groups, lying, strict=True):
        if found is not None:
            shape += [x.dims[d] for d in inputs]
            layout += [frame.layout(x)[d] for d in inputs]
            continue
        sizes = frame.dims(op.results[0])
        target = merged([prefix(op.results[0].type.shape[d], sizes[d]).atoms[0] for d in outputs])
        atoms = [atom for atom, _ in _atoms(frame, x, inputs)]
        source = merged(atoms)
        if target is None or source is None:
            raise refuse(op, "it makes an open size of others")
        moved.append((len(shape), target))
        shape.append(_product([atom.extent for atom in atoms]))
        layout.append(source)
    flat = ops.reshape(x, shape)
    frame.set(flat, layout)
    for d, target in moved:
        flat = frame.relaid(flat, d, target)
    return flat


def _atoms(frame: Frame, x: Value, inputs: Sequence[int]) -> list[tuple[Atom, bool]]:
    """The atoms of some dimensions, and whether all elements along each are equal."""
    layout = frame.layout(x)
    found = []
    for d in inputs:
        dim = layout[d]
        found += [(atom, dim is not None and dim.uniform) for atom in split_atoms(dim, x.dims[d])]
    return found


def _groups(frame: Frame, op: Any) -> list[tuple[list[int], list[int]]]:
    """The dimensions of the operand and of the result that have the same elements, the fewest together."""
    points = (*frame.family.fits.points, frame.point)
    sizes = [frame.extents(Value(op.operands[0])), frame.dims(op.results[0])]
    rows = [[tuple(size.at(point) for point in points) for size in dims] for dims in sizes]
    one = tuple(1 for _ in points)
    groups: list[tuple[list[int], list[int]]] = []
    places = [0, 0]
    while places[0] < len(rows[0]) or places[1] < len(rows[1]):
        taken: tuple[list[int], list[int]] = [], []
        products = [one, one]
        while True:
            # The side with fewer elements goes on; each begins with one.
            side = 0 if not taken[0] else 1 if not taken[1] else int(_less(products[1], products[0]))
            if places[side] >= len(rows[side]):
                side = 1 - side
            if places[side] >= len(rows[side]):
                break
            taken[side].append(places[side])
            products[side] = tuple(p * s for p, s in zip(products[side], rows[side][places[side]], strict=True))
            places[side] += 1
            if taken[0] and taken[1] and products[0] == products[1]:
                break
        groups.append(taken)
    return groups


def _less(one: Sequence[int], other: Sequence[int]) -> bool:
    """Whether one product is less than another; of those that cross, that which is less for more sizes."""
    less = sum(a < b for a, b in zip(one, other, strict=True))
    more = sum(a > b for a, b in zip(one, other, strict=True))
    return less > more


def _split(
    frame: Frame, op: Any, atoms: Sequence[tuple[Atom, bool]], outputs: Sequence[int]
) -> list[Dim | None] | None:
    """The atoms in the dimensions of the result; None if they lie otherwise."""
    shape, sizes = op.results[0].type.shape, frame.dims(op.results[0])
    if len(outputs) == 1:
        dim = merged([atom for atom, _ in atoms])
        return [None if dim is None else Dim(dim.atoms, all(uniform for _, uniform in atoms))]
    left = list(atoms)
    found: list[Dim | None] = []
    for number, d in enumerate(outputs):
        taken: list[tuple[Atom, bool]] = []
        extent = 1
        while extent < shape[d]:
            if not left:
                return None
            atom, uniform = left.pop(0)
            if extent * atom.extent > shape[d]:
                parts = _cut(frame, atom, shape[d] // extent, sizes, outputs[number:], extent)
                if parts is None or shape[d] % extent:
                    return None
                left.insert(0, (parts[1], uniform))
                atom = parts[0]
            taken.append((atom, uniform))
            extent *= atom.extent
        if extent != shape[d]:
            return None
        dim = merged([atom for atom, _ in taken])
        is_open = sizes[d].number is None
        if (dim is not None) != is_open or (dim is not None and not _same(frame, dim.real, sizes[d])):
            return None
        found.append(None if dim is None else Dim(dim.atoms, all(uniform for _, uniform in taken)))
    return found if all(atom.extent == 1 for atom, _ in left) else None


def _cut(
    frame: Frame, atom: Atom, first: int, sizes: Sequence[Size], outputs: Sequence[int], before: int
) -> tuple[Atom, Atom] | None:
    """An atom as two, of which the second has no padding; None if it would."""
    rest, remainder = divmod(atom.extent, first)
    if remainder:
        return None
    if not atom.is_open:
        return Atom(first, sized(first)), Atom(rest, sized(rest))
    size = sizes[outputs[0]]
    if before != 1 or size.number is not None or not _same(frame, size * rest, atom.real):
        return None
    return Atom(first, size), Atom(rest, sized(rest))


def _same(frame: Frame, one: Size, other: Size) -> bool:
    return all(one.at(point) == other.at(point) for point in (*frame.family.fits.points, frame.point))


def _product(numbers: Sequence[int]) -> int:
    found = 1
    for number in numbers:
        found *= number
    return found


# --- Parts.


@rule("slice")
def slice_(frame: Frame, op: Any) -> None:
    x, result = Value(op.operands[0]), op.results[0]
    starts, limits = (frame.attribute(op, name, integers(op, name)) for name in ("start_indices", "limit_indices"))
    strides = integers(op, "strides")
    sizes = frame.extents(Value(op.operands[0]))
    wanted = frame.prefixes(result)
    dims: list[Dim | None] = []
    shifted = []
    for d, dim in enumerate(frame.layout(x)):
        is_whole = starts[d].number == 0 and strides[d] == 1 and _same(frame, limits[d], sizes[d])
        if is_whole:
            dims.append(dim)
            continue
        x = frame.as_prefix(x, [d])
        dims.append(wanted[d])
        if starts[d].number is None:
            shifted.append(d)
    op.operands[0] = x.ir
    if not shifted:
        frame.set(result, dims)
        return
    extents = list(result.type.shape)
    lengths = [(extent - 1) * stride + 1 if extent else 0 for extent, stride in zip(extents, strides, strict=True)]
    first = [0 if d in shifted else integers(op, "start_indices")[d] for d in range(x.rank)]
    last = [x.dims[d] if d in shifted else integers(op, "limit_indices")[d] for d in range(x.rank)]
    steps = [1 if d in shifted else strides[d] for d in range(x.rank)]
    x = ops.slice(x, first, last, steps)
    # Behind the end of the array, so that no start is moved.
    zero = constant(0, x.element_type)
    x = ops.pad(x, zero, [(0, lengths[d] if d in shifted else 0, 0) for d in range(x.rank)])
    places = [frame.size(starts[d]) if d in shifted else constant(0, "s64") for d in range(x.rank)]
    x = ops.dynamic_slice(x, places, [lengths[d] if d in shifted else x.dims[d] for d in range(x.rank)])
    if any(strides[d] != 1 for d in shifted):
        x = ops.slice(x, [0] * x.rank, list(x.dims), [strides[d] if d in shifted else 1 for d in range(x.rank)])
    frame.replace(op, [x], [dims])


@rule("pad")
def pad(frame: Frame, op: Any) -> None:
    x, result = Value(op.operands[0]), op.results[0]
    names = ("edge_padding_low", "edge_padding_high", "interior_padding")
    lows, highs, interiors = (frame.attribute(op, name, integers(op, name)) for name in names)
    wanted = frame.prefixes(result)
    dims: list[Dim | None] = []
    moved, shifted = [], []
    for d, dim in enumerate(frame.layout(x)):
        if (lows[d].number, highs[d].number, interiors[d].number) == (0, 0, 0):
            dims.append(dim)
            continue
        x = frame.as_prefix(x, [d])
        moved.append(d)
        dims.append(wanted[d])
        if interiors[d].number is None:
            raise refuse(op, "its padding between elements depends on a size")
        if lows[d].number is None:
            shifted.append(d)
            if interiors[d].number:
                raise refuse(op, "it pads between elements, and before them by a size")
    x = frame.masked(x, moved, Value(op.operands[1]))
    op.operands[0] = x.ir
    if not shifted:
        frame.set(result, dims)
        return
    low, high = integers(op, names[0]), integers(op, names[1])
    fill = Value(op.operands[1])
    entries = [(0, 0, 0) if d in shifted else (low[d], high[d], integers(op, names[2])[d]) for d in range(x.rank)]
    x = ops.pad(x, fill, entries)
    extents = [result.type.shape[d] + (x.dims[d] if d in shifted else 0) for d in range(x.rank)]
    whole = ops.broadcast_in_dim(fill, extents, [])
    for d in shifted:
        if any(lows[d].at(point) < 0 for point in (*frame.family.fits.points, frame.point)):
            raise refuse(op, "it cuts off the first elements, as many as a size says")
    places = [frame.size(lows[d]) if d in shifted else constant(0, "s64") for d in range(x.rank)]
    whole = ops.dynamic_update_slice(whole, x, places)
    made = ops.slice(whole, [0] * x.rank, list(result.type.shape), [1] * x.rank)
    frame.replace(op, [made], [dims])


@rule("concatenate")
def concatenate(frame: Frame, op: Any) -> None:
    along = integer(op, "dimension")
    values = [Value(operand) for operand in op.operands]
    layout = [
        None if d == along else frame.common([frame.layout(value)[d] for value in values])
        for d in range(values[0].rank)
    ]
    fitted = []
    for value in values:
        for d, dim in enumerate(layout):
            if dim is not None:
                value = frame.relaid(value, d, dim)
        fitted.append(frame.as_prefix(value, [along]))
    dims = [*layout]
    dims[along] = frame.prefixes(op.results[0])[along]
    for number, value in enumerate(fitted):
        op.operands[number] = value.ir
    if all(frame.layout(value)[along] is None for value in fitted[:-1]):
        frame.set(op.results[0], dims)
        return
    # Each over the padding of the one before.
    result = op.results[0]
    first = fitted[0]
    missing = result.type.shape[along] - first.dims[along]
    zero = constant(0, first.element_type)
    whole = ops.pad(first, zero, [(0, missing if d == along else 0, 0) for d in range(first.rank)])
    sizes = [frame.extents(value)[along] for value in fitted]
    start = sizes[0]
    for value, size in zip(fitted[1:], sizes[1:], strict=True):
        places = [frame.size(start) if d == along else constant(0, "s64") for d in range(value.rank)]
        whole = ops.dynamic_update_slice(whole, value, places)
        start = start + size
    frame.replace(op, [whole], [dims])


@rule("reverse")
def reverse(frame: Frame, op: Any) -> None:
    x = Value(op.operands[0])
    dimensions = integers(op, "dimensions")
    turned = [d for d in dimensions if frame.layout(x)[d] is not None and not _is_uniform(frame, x, d)]
    x = frame.as_prefix(x, turned)
    op.operands[0] = x.ir
    if not turned:
        frame.set(op.results[0], frame.layout(x))
        return
    layout = frame.layout(x)
    turned_x = ops.rev(x, dimensions)
    zero = constant(0, x.element_type)
    wide = ops.pad(turned_x, zero, [(0, x.dims[d] if d in turned else 0, 0) for d in range(x.rank)])
    places = []
    for d in range(x.rank):
        dim = layout[d]
        is_turned = d in turned and dim is not None
        # What was padding is first now.
        missing = ops.sub(constant(x.dims[d], "s64"), frame.size(dim.real)) if is_turned and dim else None
        places.append(constant(0, "s64") if missing is None else missing)
    made = ops.dynamic_slice(wide, places, list(x.dims))
    frame.replace(op, [made], [layout])


def _is_uniform(frame: Frame, x: Value, d: int) -> bool:
    dim = frame.layout(x)[d]
    return dim is not None and dim.uniform


@rule("dynamic_slice")
def dynamic_slice(frame: Frame, op: Any) -> None:
    x, result = Value(op.operands[0]), op.results[0]
    sizes, taken = frame.extents(x), frame.dims(result)
    wanted = frame.prefixes(result)
    dims: list[Dim | None] = []
    for d, size in enumerate(sizes):
        start = Value(op.operands[d + 1])
        if _same(frame, size, taken[d]):
            # All of it: there is one place to start.
            dims.append(frame.layout(x)[d])
            op.operands[d + 1] = constant(0, start.element_type).ir
            continue
        x = frame.as_prefix(x, [d])
        dims.append(wanted[d])
        if size.number is not None and taken[d].number is not None:
            continue
        last = ops.convert_element_type(frame.size(size - taken[d]), start.element_type)
        op.operands[d + 1] = ops.max(ops.min(start, last), constant(0, start.element_type)).ir
        x = frame.with_room(x, d, size, taken[d])
    op.operands[0] = x.ir
    frame.set(result, dims)


@rule("dynamic_update_slice")
def dynamic_update_slice(frame: Frame, op: Any) -> None:
    x, update = Value(op.operands[0]), Value(op.operands[1])
    sizes, given = frame.extents(x), frame.extents(update)
    before = x.dims
    starts = [Value(operand) for operand in list(op.operands)[2:]]
    partial = []
    for d, (size, part) in enumerate(zip(sizes, given, strict=True)):
        if _same(frame, size, part):
            dim = frame.common([frame.layout(x)[d], frame.layout(update)[d]])
            if dim is not None:
                x, update = frame.relaid(x, d, dim), frame.relaid(update, d, dim)
            starts[d] = constant(0, starts[d].element_type)
            continue
        x, update = frame.as_prefix(x, [d]), frame.as_prefix(update, [d])
        if size.number is None or part.number is None:
            last = ops.convert_element_type(frame.size(size - part), starts[d].element_type)
            starts[d] = ops.max(ops.min(starts[d], last), constant(0, starts[d].element_type))
        if part.number is None:
            partial.append(d)
    layout = plain(frame.layout(x))
    if partial:
        # Padding of the update keeps what was there.
        zero = constant(0, x.element_type)
        wide = ops.pad(x, zero, [(0, update.dims[d] if d in partial else 0, 0) for d in range(x.rank)])
        old = ops.dynamic_slice(wide, starts, list(update.dims))
        dims = {d: dim for d in partial if (dim := frame.layout(update)[d]) is not None}
        update = ops.select(frame.inside(update.dims, dims), update, old)
        made = ops.dynamic_update_slice(wide, update, starts)
        made = ops.slice(made, [0] * x.rank, list(before), [1] * x.rank)
        frame.replace(op, [made], [layout])
        return
    for number, value in enumerate([x, update, *starts]):
        op.operands[number] = value.ir
    frame.set(op.results[0], layout)


@rule("bitcast_convert")
def bitcast(frame: Frame, op: Any) -> None:
    layout, rank = frame.layout(op.operands[0]), len(op.results[0].type.shape)
    if len(layout) > rank and layout[-1] is not None:
        raise refuse(op, "it merges bits along an open size")
    frame.set(op.results[0], [*layout, None][:rank])
