"""Steps that move elements: shapes, slices, indices, updates, scatters, sorts."""

from __future__ import annotations

import math

import jax.numpy as jnp
from jax import lax

from tests.prove.pool import LARGEST, Item, Pool, UnfitError, highest, step

_ANY = ("bool", "integer", "float", "complex", "tiny")


def _fits(*sizes: int) -> None:
    if math.prod(sizes) > LARGEST:
        raise UnfitError


@step(5, smooth=True)
def reshaped(p: Pool) -> None:
    x = p.pick(*_ANY, depth=9)
    kind = p.choice(("reshape", "transpose", "flip", "ravel", "newaxis", "squeeze", "swap", "roll", "rot"))
    value = x.value
    if kind == "reshape":
        value = value.reshape(p.shape_of(value.size))
    elif kind == "transpose":
        value = value.transpose(p.random.sample(range(value.ndim), value.ndim))
    elif kind == "flip":
        value = jnp.flip(value, p.axis(x))
    elif kind == "ravel":
        value = value.ravel(order=p.choice("CF"))
    elif kind == "newaxis" and value.ndim < 4:
        value = jnp.expand_dims(value, p.random.randint(0, value.ndim))
    elif kind == "squeeze":
        value = value.squeeze()
    elif kind == "swap":
        value = jnp.moveaxis(value, p.axis(x), p.axis(x))
    elif kind == "roll":
        value = jnp.roll(value, p.random.randint(-5, 9), p.axis(x) if p.chance(0.7) and x.shape else None)
    elif value.ndim > 1:
        value = jnp.rot90(value, p.random.randint(-2, 3))
    p.add(value, x)


@step(3, smooth=True)
def joined(p: Pool) -> None:
    x = p.pick(*_ANY, depth=9, least=1)
    axis = p.axis(x)
    kind = p.choice(("concatenate", "stack", "tile", "repeat", "split", "broadcast"))
    others = [p.like(x) for _ in range(p.random.randint(1, 3))]
    if kind == "concatenate":
        _fits(x.value.size, 4)
        p.add(jnp.concatenate([x.value, *(o.value for o in others)], axis), x, *others)
    elif kind == "stack" and x.value.ndim < 4:
        _fits(x.value.size, 4)
        p.add(jnp.stack([x.value, *(o.value for o in others)], axis), x, *others)
    elif kind == "tile":
        _fits(x.value.size, 6)
        p.add(jnp.tile(x.value, (p.choice((1, 2)), p.choice((1, 3)))), x)
    elif kind == "repeat":
        _fits(x.value.size, 3)
        p.add(jnp.repeat(x.value, p.choice((1, 2, 3)), axis), x)
    elif kind == "broadcast" and x.value.ndim < 4:
        _fits(x.value.size, 5)
        p.add(jnp.broadcast_to(x.value, (p.choice((1, 2, 5)), *x.shape)), x)
    elif x.shape[axis] > 1:
        for part in jnp.split(x.value, [p.random.randint(0, x.shape[axis])], axis):
            p.add(part, x)


@step(3, smooth=True)
def padded(p: Pool) -> None:
    x = p.pick(depth=9, least=1)
    mode = p.choice(("constant", "constant", "lax", "edge", "reflect", "symmetric", "wrap"))
    most = 3 if mode in ("constant", "edge") else 1
    if mode == "lax":
        edges = [(p.random.randint(-1, 2), p.random.randint(-1, 2), p.choice((0, 0, 1, 2))) for _ in x.shape]
        if any(
            low + high + size + max(0, size - 1) * inner < 0
            for size, (low, high, inner) in zip(x.shape, edges, strict=True)
        ):
            raise UnfitError
        _fits(x.value.size, 8)
        p.add(lax.pad(x.value, jnp.zeros((), x.dtype), edges), x)
        return
    if (0 in x.shape and mode != "constant") or (1 in x.shape and mode == "reflect"):
        raise UnfitError
    widths = [(p.random.randint(0, most), p.random.randint(0, most)) for _ in x.shape]
    _fits(*(size + 6 for size in x.shape))
    p.add(jnp.pad(x.value, widths, mode=mode), x)


@step(5, smooth=True)
def sliced(p: Pool) -> None:
    x = p.pick(*_ANY, depth=9, least=1)
    index: list[slice | int | None] = []
    for size in x.shape:
        if p.chance(0.3):
            index.append(slice(None))
        elif p.chance(0.25) and size:
            index.append(p.random.randrange(-size, size))
        else:
            ends = [p.choice((None, p.random.randint(-size - 1, size + 1))) for _ in range(2)]
            index.append(slice(ends[0], ends[1], p.choice((None, 1, 2, 3, -1, -2))))
    if p.chance(0.15) and len(index) < 4:
        index.insert(p.random.randint(0, len(index)), None)
    p.add(x.value[tuple(index)], x)


@step(4, smooth=True)
def indexed(p: Pool) -> None:
    """By arrays: repeated, negative, beyond the ends."""
    x = p.pick(*_ANY, depth=9, least=1, where=lambda i: 0 not in i.shape)
    axis = p.random.randrange(len(x.shape))
    shape = p.choice(((3,), (5,), (1,), (2, 3), (0,), (7,)))
    _fits(x.value.size, math.prod(shape))
    places = p.index(x.shape[axis], shape, dtype=p.choice(("int32", "int32", "int8", "int16")))
    kind = p.choice(("take", "brackets", "two", "along", "dynamic", "get"))
    if kind == "take":
        value = jnp.take(x.value, places, axis, mode=p.choice(("clip", "wrap", "fill")), fill_value=1)
    elif kind == "two" and len(x.shape) > 1:
        value = x.value[places, p.index(x.shape[1], shape)]
    elif kind == "along":
        value = jnp.take_along_axis(x.value, p.index(x.shape[axis], x.shape), axis, mode=p.choice(("clip", "fill")))
        value = jnp.where(value == value, value, jnp.ones((), value.dtype))
    elif kind == "dynamic":
        sizes = [p.random.randint(1, size) for size in x.shape]
        starts = [jnp.asarray(p.random.randint(-size - 1, size + 1)) for size in x.shape]
        value = lax.dynamic_slice(x.value, starts, sizes)
    elif kind == "get":
        value = x.value.at[places].get(mode=p.choice(("clip", "wrap"))) if not axis else x.value[..., places % 2]
    else:
        value = x.value[(slice(None),) * axis + (jnp.asarray(places),)]
    p.add(value, x)


@step(6, smooth=True)
def updated(p: Pool) -> None:
    """``at[]``, with repeated indices where the order makes no difference."""
    x = p.pick("integer", "float", "complex", least=1, where=lambda i: 0 not in i.shape)
    axis = p.random.randrange(min(2, len(x.shape)))
    lead = (slice(None),) * axis
    kind = p.choice(("add", "set", "slice", "max", "mul", "window", "get"))
    mode = p.choice((None, "drop", "clip", "promise_in_bounds"))
    count = p.choice((1, 2, 5, 9))
    if kind == "window":
        sizes = [p.random.randint(1, size) for size in x.shape]
        update = p.like(x, tuple(sizes))
        starts = [jnp.asarray(p.random.randint(-2, size + 1)) for size in x.shape]
        p.add(lax.dynamic_update_slice(x.value, update.value, starts), x, update)
        return
    if kind == "slice":
        step_ = p.choice((1, 2, 3))
        where = (*lead, slice(p.choice((None, 1)), None, step_))
        update = p.like(x, tuple(x.value[where].shape) if p.chance(0.6) else ())
        p.add(x.value.at[where].set(update.value), x, update)
        return
    places = p.index(x.shape[axis], (count,), outside=mode != "promise_in_bounds")
    if kind == "set" or (p.smooth and kind != "add"):
        places = jnp.asarray(p.random.sample(range(x.shape[axis]), min(count, x.shape[axis])), "int32")
    shape = (*x.shape[:axis], len(places), *x.shape[axis + 1 :])
    update = p.like(x, shape if p.chance(0.8) else ())
    at = x.value.at[(*lead, jnp.asarray(places))]
    if kind == "set":
        p.add(at.set(update.value, mode=mode), x, update)
    elif kind == "max" and "complex" not in x.dtype and not p.smooth:
        p.add((at.max if p.chance(0.5) else at.min)(update.value, mode=mode), x, update)
    elif kind == "mul" and "int" in x.dtype:
        p.add(at.multiply(update.value, mode=mode))
    else:
        bound = max(x.bound, update.bound) + 4
        if bound > highest(x.dtype):
            raise UnfitError
        p.add(at.add(update.value, mode=mode), x, update, rounds="int" not in x.dtype, bound=bound)


@step(1.5)
def ordered(p: Pool) -> None:
    x = p.pick("integer", "float", depth=0, least=1)
    axis = p.axis(x)
    kind = p.choice(("sort", "argsort", "top", "search", "unique", "lexsort", "pairs"))
    if kind == "sort":
        p.add(jnp.sort(x.value, axis, descending=p.chance(0.3)), x)
    elif kind == "argsort":
        p.add(jnp.argsort(x.value, axis))
    elif kind == "top":
        values, places = lax.top_k(x.value, p.random.randint(0, x.shape[-1]))
        p.add(values, x)
        p.add(places)
    elif kind == "search":
        p.add(jnp.searchsorted(jnp.sort(x.value.ravel()), p.like(x).value, side=p.choice(("left", "right"))))
    elif kind == "unique" and x.value.size:
        p.add(jnp.unique(x.value, size=min(x.value.size, 5), fill_value=0), x)
    elif kind == "pairs":
        keys, others = lax.sort((x.value, p.like(x).value), dimension=axis, num_keys=p.choice((1, 2)))
        p.add(keys, x)
        p.add(others, x)
    else:
        p.add(jnp.lexsort((x.value.ravel(), p.like(x).value.ravel())))


@step(1.5, smooth=True)
def triangle(p: Pool) -> None:
    x = p.pick(least=2, depth=9)
    kind = p.choice(("tril", "triu", "diagonal", "trace", "diag"))
    if kind == "tril":
        p.add(jnp.tril(x.value, p.random.randint(-1, 1)), x)
    elif kind == "triu":
        p.add(jnp.triu(x.value, p.random.randint(-1, 1)), x)
    elif kind == "diagonal":
        p.add(jnp.diagonal(x.value, p.random.randint(-1, 1)), x)
    elif kind == "diag" and len(x.shape) == 2 and max(x.shape) < 40:
        p.add(jnp.diag(x.value.ravel()[:20]), x)
    else:
        _traced(p, x)


def _traced(p: Pool, x: Item) -> None:
    if "bool" in x.dtype or x.depth > 2:
        raise UnfitError
    p.add(jnp.trace(x.value), x, rounds="int" not in x.dtype, bound=x.bound + 6)
