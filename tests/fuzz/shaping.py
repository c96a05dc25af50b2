"""Steps that move elements."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from hloforge.dialect import ops
from hloforge.dialect.element_types import Kind, element_type
from hloforge.dialect.values import Value
from hloforge.runtime.data.numbers import integer_range
from tests.fuzz.elementwise import scalar_function
from tests.fuzz.maker import KINDS, LARGEST, Maker, UnfitError, is_known
from tests.fuzz.step import step


@step(3)
def transposed(m: Maker) -> Any:
    x = m.pick(least=1)
    return ops.transpose(x, m.permutation(x.rank))


@step(4)
def reshaped(m: Maker) -> Any:
    x = m.pick()
    count, sizes = prod(x.dims), []
    if not count:
        return ops.reshape(x, [x.dims[d] for d in m.permutation(x.rank)])
    while count > 1 and len(sizes) < 4 and m.chance(0.7):
        divisor = m.random.choice([number for number in range(1, count + 1) if count % number == 0])
        sizes.append(divisor)
        count //= divisor
    if count > 1 or m.chance(0.2):
        sizes.append(count)
    m.random.shuffle(sizes)
    return ops.reshape(x, sizes)


@step(3)
def spread(m: Maker) -> Any:
    x = m.pick(most=3)
    rank = m.random.randint(x.rank, min(5, x.rank + 2))
    places = sorted(m.random.sample(range(rank), x.rank))
    sizes = [m.size() for _ in range(rank)]
    for place, size in zip(places, x.dims, strict=True):
        sizes[place] = m.size() if size == 1 and m.chance(0.5) else size
    if prod(sizes) > LARGEST:
        raise UnfitError
    return ops.broadcast_in_dim(x, sizes, places)


@step(4)
def sliced(m: Maker) -> Any:
    x = m.pick(least=1)
    starts, limits, strides = [], [], []
    for size in x.dims:
        low, high = sorted((m.random.randint(0, size), m.random.randint(0, size)))
        if m.chance(0.4):
            low, high = 0, size
        if low == high and m.chance(0.95):
            low, high = 0, size
        starts.append(low)
        limits.append(high)
        strides.append(m.random.choice((1, 1, 1, 2, 3)))
    return ops.slice(x, starts, limits, strides)


@step(3)
def padded(m: Maker) -> Any:
    x = m.pick(least=1)
    config = []
    for size in x.dims:
        interior = m.random.choice((0, 0, 0, 1, 2))
        whole = size + max(size - 1, 0) * interior
        low = m.random.choice((0, 0, 1, 2, -1, 3))
        high = m.random.choice((0, 0, 1, 2, -1, 3))
        if whole + low + high < (0 if m.chance(0.05) else 1):
            low, high = 1, 1
        config.append((low, high, interior))
    if (
        prod(
            low + high + size + max(size - 1, 0) * interior
            for size, (low, high, interior) in zip(x.dims, config, strict=True)
        )
        > LARGEST
    ):
        raise UnfitError
    return ops.pad(x, m.scalar(x.element_type.name), config)


@step(4)
def joined(m: Maker) -> Any:
    x = m.pick(least=1)
    along = m.random.randrange(x.rank)
    parts = [x]
    for _ in range(m.random.choice((1, 1, 2, 3))):
        dims = list(x.dims)
        if m.chance(0.4):
            dims[along] = m.size()
        parts.append(m.like(x.element_type.name, dims))
    m.random.shuffle(parts)
    if sum(prod(part.dims) for part in parts) > LARGEST:
        raise UnfitError
    return ops.concat_in_dim(parts, along)


@step(2)
def reversed_(m: Maker) -> Any:
    x = m.pick(least=1)
    return ops.rev(x, m.some(x.rank))


def _starts(m: Maker, rank: int) -> list[Value]:
    """Starts of a slice; unsigned ones without the highest bit, which XLA's client and the interpreter take for a sign
    in some programs and not in others."""
    row = element_type(m.element("integer"))
    return [_without_sign(_index(m, row.name, ())) for _ in range(rank)]


def _without_sign(index: Value) -> Value:
    """An unsigned index without its highest bit."""
    row = index.element_type
    if row.kind is not Kind.UNSIGNED:
        return index
    return ops.and_(index, ops.constant(np.full(index.dims, integer_range(row)[1] >> 1).tolist(), row.name))


def _index(m: Maker, element: str, dims: tuple[int, ...]) -> Value:
    """Integers, which mostly lie in arrays."""
    kept, m.limit = m.limit, 0
    found = m.like(element, dims)
    m.limit = kept
    # XLA takes the highest bit of a known unsigned number for a sign.
    if element.startswith("u") and is_known(found):
        raise UnfitError
    return found


@step(3)
def dynamically_sliced(m: Maker) -> Any:
    x = m.pick(least=1)
    sizes = [m.random.randint(0 if m.chance(0.05) else min(1, size), size) for size in x.dims]
    return ops.dynamic_slice(x, _starts(m, x.rank), sizes)


@step(4)
def updated(m: Maker) -> Any:
    x = m.pick(least=1)
    sizes = [m.random.randint(0 if m.chance(0.05) else min(1, size), size) for size in x.dims]
    return ops.dynamic_update_slice(x, m.like(x.element_type.name, sizes), _starts(m, x.rank))


@step(3, exact=True)
def ordered(m: Maker) -> Any:
    # XLA leaves integers of 2 bits as they are; the interpreter takes NaN of f8e8m0fnu for less than all, XLA for more.
    x = m.pick("ordered", least=1, where=lambda v: v.element_type.bits != 2 and v.element_type.name != "f8e8m0fnu")
    along = m.random.randrange(x.rank)
    if m.chance(0.4):
        comparator = None if x.element_type.is_float or m.chance(0.5) else m.random.choice((ops.gt, ops.lt))
        return ops.sort(x, comparator, along)
    others = [m.like(m.element(), x.dims) for _ in range(m.random.randint(1, 2))]
    if x.element_type.is_float or m.chance(0.5):
        return ops.sort([x, *others], None, along, is_stable=True)
    direction = m.random.choice((ops.gt, ops.lt))
    return ops.sort([x, *others], lambda a, b, *_: direction(a, b), along, is_stable=True)


@step(1, exact=True)
def best(m: Maker) -> Any:
    x = m.pick("real", least=1)
    # Among the smallest of f8e5m2 XLA's client has NaN first, in this type alone.
    count, largest = m.random.randint(1, x.dims[-1]) if x.dims[-1] else 0, m.chance(0.7)
    return ops.top_k(x, count, largest or x.element_type.name == "f8e5m2")


def _places(m: Maker, x: Value) -> tuple[list[int], list[int], int]:
    """Dimensions that indices name, those that vanish, and how many places there are."""
    indexed = m.some(x.rank, 1)
    m.random.shuffle(indexed)
    return indexed, m.some(x.rank), m.random.choice((1, 2, 3, 5, 8))


@step(3)
def gathered(m: Maker) -> Any:
    x = m.pick(least=1)
    indexed, gone, count = _places(m, x)
    sizes = [1 if d in gone else m.random.randint(min(1, size), size) for d, size in enumerate(x.dims)]
    if 0 in x.dims or count * prod(sizes) > LARGEST:
        raise UnfitError
    batch = (count,) if m.chance(0.8) else (count, 2) if m.chance(0.5) else ()
    places = _index(m, m.element("integer"), (*batch, len(indexed)))
    if prod(batch) == 1:
        places = _without_sign(places)  # XLA makes a dynamic slice of the gather.
    kept = x.rank - len(gone)
    offsets = sorted(m.random.sample(range(kept + len(batch)), kept))
    return ops.gather(
        x, places, offset_dims=offsets, collapsed_slice_dims=gone, start_index_map=indexed, slice_sizes=sizes,
        index_vector_dim=len(batch),
    )  # fmt: skip


@step(2, rounds=True)
def scattered(m: Maker) -> Any:
    x = m.pick("ordered" if m.chance(0.9) else "any", least=1)
    indexed, gone, count = _places(m, x)
    sizes = [1 if d in gone else m.random.randint(min(1, size), size) for d, size in enumerate(x.dims)]
    if 0 in x.dims or count * prod(sizes) > LARGEST:
        raise UnfitError
    places = _index(m, m.element("integer"), (count, len(indexed)))
    return _scatter(
        m, x, _within(places, [x.dims[d] for d in indexed], [sizes[d] for d in indexed]), sizes, gone, indexed
    )


def _within(places: Value, dims: list[int], window: list[int]) -> Value:
    """Places of windows, none of which lies in the array in part: the interpreter writes that part, XLA nothing."""
    if set(window) == {1}:
        return places
    whole = integer_range(element_type(places.element_type.name))
    bounds = [whole if size == 1 else (0, min(dim - size, whole[1])) for dim, size in zip(dims, window, strict=True)]
    least, greatest = (
        ops.constant([[bound[end] for bound in bounds]] * places.dims[0], places.element_type.name) for end in (0, 1)
    )
    return ops.clamp(least, places, greatest)


@step(1.5)
def scattered_once(m: Maker) -> Any:
    """Each row at most once, so that any computation has one result."""
    x = m.pick(least=1)
    if 0 in x.dims or 1 in x.dims[:1]:
        raise UnfitError
    element = m.element("integer")
    bits = m.random.sample(range(x.dims[0]), m.random.randint(1, x.dims[0]))
    if max(bits) > 1:
        element = "s32"
    places = ops.constant([[number] for number in bits], element)
    return _scatter(m, x, places, [1, *x.dims[1:]], [0], [0], once=True)


def _scatter(
    m: Maker, x: Value, places: Value, sizes: list[int], gone: list[int], indexed: list[int], *, once: bool = False
) -> Any:
    element = x.element_type.name
    window = [size for d, size in enumerate(sizes) if d not in gone]
    slots = sorted(m.random.sample(range(len(window) + 1), len(window)))
    dims = [places.dims[0]] * (len(window) + 1)
    for slot, size in zip(slots, window, strict=True):
        dims[slot] = size
    updates = m.like(element, dims)
    if once:
        exact = m.taken == 0
        computation: Any = m.random.choice((
            lambda a, b: b,
            lambda a, b: a,
            lambda a, b: scalar_function(m, [element] * 2, element, (a, b), exact=exact),
        ))  # fmt: skip
    elif element in KINDS["complex"]:
        computation = ops.add
    elif element == "pred":
        computation = m.random.choice((ops.and_, ops.or_, ops.xor))
    else:
        computation = m.random.choice(
            (ops.add, ops.add, ops.max, ops.min) + ((ops.mul,) if element in KINDS["integer"] else ())
        )
    return ops.scatter(
        x, places, updates, computation, update_window_dims=slots, inserted_window_dims=gone,
        scatter_dims_to_operand_dims=indexed, index_vector_dim=1, unique_indices=once and m.chance(0.5),
    )  # fmt: skip
