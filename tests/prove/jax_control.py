"""Steps with computations of steps: loops, branches, and the transformations vmap, grad, jvp, checkpoint."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from tests.prove.pool import Dims, Item, Pool, UnfitError, grow, kind_of, step


def _fit(value: Any, shape: Dims, dtype: str) -> Any:
    """A value as one of this shape and type, small where it is inexact, so that loops do not grow."""
    flat = jnp.ravel(value)
    count = 1
    for size in shape:
        count *= size
    flat = jnp.resize(flat, count) if flat.size else jnp.zeros(count, value.dtype)
    value = flat.reshape(shape)
    if kind_of(dtype) in ("float", "complex"):
        if kind_of(str(value.dtype)) == "complex" and kind_of(dtype) == "float":
            value = jnp.real(value)
        value = value.astype(dtype)
        return value / (1 + jnp.abs(value)).astype(dtype)
    return value


def _source(pool: Pool, like: Item) -> Any:
    """The last value that may become one like this: exact for exact."""
    exact = kind_of(like.dtype) not in ("float", "complex")
    for item in reversed(pool.items):
        if exact and item.dtype == like.dtype:
            return item.value
        if not exact and kind_of(item.dtype) in ("float", "complex", "integer", "bool"):
            return item.value
    return like.value


def _carries(p: Pool) -> list[Item]:
    return [p.pick(depth=4, where=lambda i: i.bound <= 9) for _ in range(p.choice((1, 2, 2, 3)))]


class _Body:
    """A computation of the same choices each time that it is traced."""

    def __init__(self, p: Pool, like: Sequence[Item], *, smooth: bool = False) -> None:
        self.pool, self.like, self.smooth = p, like, smooth
        self.state, self.steps = p.random.getrandbits(64), p.choice((1, 2, 3))
        self.outside = p.random.sample(p.items, min(len(p.items), 2)) if p.chance(0.6) else []

    def __call__(
        self, values: Sequence[Any], extra: Sequence[Any] = (), results: Sequence[Item] | None = None
    ) -> list[Any]:
        """The next values of carries, of their types and shapes."""
        p = self.pool
        inner = Pool(type(p.random)(self.state), p.types, p.sizes, level=p.level + 1, smooth=self.smooth or p.smooth)
        inner.items += self.outside
        inner.items += [Item(value) for value in extra]
        # What a loop has rounded is never exact again.
        inner.items += [Item(v, max(1, i.depth) if kind_of(i.dtype) in ("float", "complex") else 0, max(i.bound, 3.0))
                        for v, i in zip(values, self.like, strict=True)]  # fmt: skip
        grow(inner, self.steps)
        wanted = self.like if results is None else results
        found = []
        for place, item in enumerate(wanted):
            made = _fit(_source(inner, item), item.shape, item.dtype)
            if place < len(values) and inner.chance(0.3) and results is None:
                made = values[(place + 1) % len(values)] if self._same(place) else made
            found.append(made)
        return found

    def _same(self, place: int) -> bool:
        """Whether the next carry is of the same kind, to be swapped."""
        one, other = self.like[place], self.like[(place + 1) % len(self.like)]
        return (one.shape, one.dtype) == (other.shape, other.dtype)


def _add(p: Pool, values: Sequence[Any], items: Sequence[Item]) -> None:
    for value, item in zip(values, items, strict=True):
        p.add(value, Item(item.value, item.depth + 2, max(item.bound, 3.0)))


@step(2, nests=True)
def scanned(p: Pool) -> None:
    carries = _carries(p)
    body = _Body(p, carries)
    xs = p.pick(least=1, depth=4, where=lambda i: i.shape[0] <= 17)
    stacked = [Item(jnp.zeros(d, t)) for d, t in ((p.dims(2), p.choice(("float32", "int32"))),)]

    def turn(carry: Any, x: Any) -> Any:
        made = body(carry, [x] if xs.depth == 0 else [])
        return tuple(made), tuple(_fit(made[0], i.shape, i.dtype) if "float" in i.dtype else x for i in stacked)

    last, ys = lax.scan(
        turn, tuple(i.value for i in carries), xs.value, reverse=p.chance(0.3), unroll=p.choice((1, 1, 2))
    )
    _add(p, last, carries)
    for y in ys:
        p.add(y, Item(y, 4, 4.0))


@step(1.5, nests=True)
def counted(p: Pool) -> None:
    carries = _carries(p)
    body = _Body(p, carries)
    first, trips = p.choice((0, 0, 1, -2)), p.choice((0, 1, 2, 3, 7))
    made = lax.fori_loop(first, first + trips, lambda n, c: tuple(body(c, [n])), tuple(i.value for i in carries))
    _add(p, made, carries)


@step(1.5, nests=True)
def whiled(p: Pool) -> None:
    carries = _carries(p)
    body = _Body(p, carries)
    limit = p.choice((0, 1, 3, 5))

    def turn(carry: Any) -> Any:
        n, values = carry
        return n + 1, tuple(body(values, [n]))

    n, made = lax.while_loop(lambda c: c[0] < limit, turn, (jnp.int32(0), tuple(i.value for i in carries)))
    p.add(n)
    _add(p, made, carries)


@step(1.5, nests=True)
def branched(p: Pool) -> None:
    carries = _carries(p)
    if p.chance(0.5):
        which = p.pick("bool", depth=0)
        test = which.value.ravel()[0] if which.value.size else jnp.asarray(True)
        branches = [_Body(p, carries) for _ in range(2)]
        made = lax.cond(test, *(lambda *c, b=b: tuple(b(c)) for b in branches), *(i.value for i in carries))
    else:
        which = p.pick("integer", depth=0)
        index = which.value.ravel()[0].astype("int32") if which.value.size else jnp.int32(1)
        branches = [_Body(p, carries) for _ in range(p.choice((1, 2, 3, 4)))]
        made = lax.switch(index, [lambda *c, b=b: tuple(b(c)) for b in branches], *(i.value for i in carries))
    _add(p, made, carries)


@step(1.5, nests=True)
def batched(p: Pool) -> None:
    """``vmap`` or ``map`` along the first or the last dimension."""
    x = p.pick(least=1, depth=4, where=lambda i: 0 not in i.shape and i.bound <= 9)
    axis = p.choice((0, len(x.shape) - 1))
    row = tuple(size for place, size in enumerate(x.shape) if place != axis)
    like = Item(jnp.zeros(row, x.dtype), x.depth, x.bound)
    body = _Body(p, [like])
    if axis == 0 and p.chance(0.3):
        made = lax.map(lambda v: body([v])[0], x.value)
    else:
        made = jax.vmap(lambda v: body([v])[0], in_axes=axis, out_axes=p.choice((0, -1)))(x.value)
    _add(p, [made], [x])


@step(2, nests=True)
def differentiated(p: Pool) -> None:
    """Gradients and products with Jacobians of smooth chains."""
    x = p.pick(
        "float", depth=1, where=lambda i: i.dtype in ("float32", "float64") and i.bound <= 4 and i.value.size > 0
    )
    body = _Body(p, [x], smooth=True)

    def chain(value: Any) -> Any:
        return body([value])[0]

    kind = p.choice(("grad", "jvp", "vjp", "value", "checkpoint"))
    if kind == "jvp":
        made: Any = jax.jvp(chain, (x.value,), (jnp.ones_like(x.value),))
    elif kind == "vjp":
        primal, pull = jax.vjp(chain, x.value)
        made = (primal, *pull(jnp.ones_like(primal)))
    elif kind == "value":
        made = jax.value_and_grad(lambda v: jnp.sum(chain(v)))(x.value)
    elif kind == "checkpoint":
        made = (jax.grad(lambda v: jnp.mean(jax.checkpoint(chain)(v) ** 2))(x.value),)
    else:
        made = (jax.grad(lambda v: jnp.sum(jnp.sin(chain(v))))(x.value),)
    for value in made:
        p.add(value, Item(value, 5, 9.0))


@step(0.7, nests=True)
def called(p: Pool) -> None:
    """A function with a jit of its own, called twice."""
    carries = _carries(p)
    body = _Body(p, carries)
    function = jax.jit(lambda *values: tuple(body(values)))
    made = function(*function(*(i.value for i in carries)))
    if not carries:
        raise UnfitError
    _add(p, made, carries)
