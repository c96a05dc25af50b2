"""Functions of JAX of two or three lines, as somebody writes who tries to find a wrong number: a view and an update.

Every element type has the same share, with those of 4 and 8 bits. Indices are repeated, negative and out of bounds;
what is read is also written, and arguments, views and updates are all results.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

import hloforge
from tests.fuzz.generator import Case
from tests.prove.jax_functions import RandomFunction
from tests.prove.pool import COMPLEX, FLOATS, INTEGERS, TINY, WIDE, Dims, Pool, kind_of

_TYPES = (*FLOATS, *FLOATS, *COMPLEX, *INTEGERS, *TINY, "bool")
_SIZES = (0, 1, 1, 2, 2, 3, 3, 4, 5, 5, 7, 8, 16, 17, 33)
_RANKS = (0, 1, 1, 1, 2, 2, 2, 3)


class _Lines:
    """The choices of a function, which are the same each time that it is traced."""

    def __init__(self, random: Random) -> None:
        self.random = random

    def of(self, *options: Any) -> Any:
        return self.random.choice(options)

    def places(self, size: int, count: int) -> Any:
        """Indices: repeated, negative, beyond the ends."""
        slack = self.of(0, 0, 1, 3)
        low = self.of(0, 0, -size - slack)
        numbers = [self.random.randint(low, size - 1 + slack) if size else 0 for _ in range(count)]
        type_ = np.dtype(self.of("int32", "int32", "int8"))
        fits = all(abs(number) < 128 for number in numbers)
        return jnp.asarray(np.asarray(numbers, type_ if fits else np.int32))

    def slice(self, size: int) -> slice:
        ends = [self.of(None, None, self.random.randint(-size - 1, size + 1)) for _ in range(2)]
        return slice(*ends, self.of(None, None, None, 2, 3, -1, -2))

    def starts(self, x: Any) -> list[Any]:
        """Of a window: inside, or clamped; not known when it is compiled where an argument takes part."""
        return [jnp.asarray(self.random.randint(-2, size + 1), "int32") for size in x.shape]


def _sliced(t: _Lines, x: Any) -> Any:
    return x[tuple(t.slice(size) for size in x.shape[: t.of(1, 2, 3)])]


def _window(t: _Lines, x: Any) -> Any:
    return lax.dynamic_slice(x, t.starts(x), [t.random.randint(0, size) for size in x.shape])


def _broadcast(t: _Lines, x: Any) -> Any:
    return jnp.broadcast_to(x, (t.of(1, 2, 3), *x.shape)) if x.size < 200 else x


def _gathered(t: _Lines, x: Any) -> Any:
    if not x.size:
        return x
    return x.at[t.places(x.shape[0], t.of(1, 2, 5))].get(mode=t.of("clip", "fill", None), fill_value=1)


def _padded(t: _Lines, x: Any) -> Any:
    edges = [(t.of(0, 1, 2, -1 if size > 2 else 0), t.of(0, 0, 1), t.of(0, 0, 1)) for size in x.shape]
    return lax.pad(x, jnp.ones((), x.dtype), edges)


def _masked(t: _Lines, x: Any) -> Any:
    return jnp.where(jnp.arange(x.shape[-1]) % 2 == 0, x, jnp.zeros((), x.dtype))


def _counted(t: _Lines, x: Any) -> Any:
    """What integers and floats of a usual width compute; of other types as they are."""
    if kind_of(str(x.dtype)) in ("bool", "tiny"):
        return x[::-1]
    return t.of(lambda v: v + v, lambda v: -v, lambda v: v * 2 - 1, lambda v: v - v)(x)


# Of an array of a dimension or more, empty ones too.
_VIEWS: tuple[Callable[[_Lines, Any], Any], ...] = (
    lambda t, x: x,
    _sliced,
    _sliced,
    _window,
    _broadcast,
    _gathered,
    _padded,
    _masked,
    _counted,
    lambda t, x: x.T,
    lambda t, x: x.ravel(),
    lambda t, x: jnp.flip(x, t.of(0, -1)),
    lambda t, x: x[t.of(0, -1)] if x.size else x,
    lambda t, x: x[..., None],
    lambda t, x: x.reshape(x.shape[::-1]),
    lambda t, x: x.reshape(-1, t.of(*(n for n in range(1, 9) if x.size % n == 0))) if x.size else x.T,
    lambda t, x: jnp.concatenate([x, x], t.of(0, -1)),
    lambda t, x: jnp.concatenate([x[1:], x[:1]]),
    lambda t, x: jnp.roll(x, t.of(1, -1, 2), t.of(0, -1, None)),
    lambda t, x: jnp.stack([x, x], t.of(0, -1))[..., 0],
    lambda t, x: jnp.repeat(x, 2, axis=t.of(0, -1)),
    lambda t, x: jnp.split(x, [x.shape[0] // 2])[t.of(0, 1)],
    lambda t, x: lax.optimization_barrier(x),
    lambda t, x: jnp.tile(x, 2),
    lambda t, x: jnp.diagonal(x) if x.ndim > 1 else x,
    lambda t, x: jnp.tril(x) if x.ndim > 1 else x[::2],
    lambda t, x: lax.rev(x, range(x.ndim)),
    lambda t, x: lax.cond(x.ravel()[0] == x.ravel()[-1], lambda v: v, lambda v: v[::-1], x) if x.size else x,
)


def _like(value: Any, shape: Dims, dtype: Any) -> Any:
    """The elements of a view, as an array of this shape; of another type, a constant."""
    if value.dtype != dtype:
        return jnp.ones(shape, dtype)
    flat = value.ravel()
    return jnp.resize(flat, (math.prod(shape),)).reshape(shape) if flat.size else jnp.zeros(shape, dtype)


def _set(t: _Lines, x: Any, view: Any) -> Any:
    where = tuple(t.slice(size) for size in x.shape[: t.of(1, 1, 2)])
    return x.at[where].set(_like(view, x[where].shape, x.dtype))


def _scattered(t: _Lines, x: Any, view: Any) -> Any:
    """With repeated indices; where the order makes a difference the last one is meant, as engines have it."""
    if not x.size:
        return x
    axis = t.random.randrange(min(2, x.ndim))
    places = t.places(x.shape[axis], t.of(1, 2, 3, 6))
    at = x.at[(*(slice(None),) * axis, places)]
    update = _like(view, (*x.shape[:axis], places.size, *x.shape[axis + 1 :]), x.dtype)
    kind, mode = kind_of(str(x.dtype)), t.of(None, "drop", "clip")
    if kind == "integer":
        return getattr(at, t.of("set", "add", "max", "min", "multiply"))(update, mode=mode)
    if kind in ("float", "complex"):
        # One value for each place: a sum of two in 16 bits depends on the order.
        return getattr(at, t.of("set", "set", "add" if "float16" not in str(x.dtype) else "set"))(update, mode=mode)
    return at.set(update, mode=mode)


def _window_set(t: _Lines, x: Any, view: Any) -> Any:
    sizes = tuple(t.random.randint(min(1, size), size) for size in x.shape)
    return lax.dynamic_update_slice(x, _like(view, sizes, x.dtype), t.starts(x))


def _swapped(t: _Lines, x: Any, view: Any) -> Any:
    if x.shape[0] < 2:
        return x
    return x.at[0].set(x[-1]).at[-1].set(x[0])


def _one(t: _Lines, x: Any, view: Any) -> Any:
    if not x.size:
        return x
    index = tuple(t.random.randint(-size - 1, size + 1) for size in x.shape)
    return x.at[index].set(_like(view, (), x.dtype), mode=t.of(None, "clip", "drop"))


def _looped(t: _Lines, x: Any, view: Any) -> Any:
    """Rows written one after the other, each from another row of the same array."""
    if not x.shape[0]:
        return x
    count, shift = x.shape[0], t.of(0, 1, -1)
    row = _like(view, x.shape[1:], x.dtype)
    if t.of(0, 1):
        return lax.fori_loop(0, min(count, 4), lambda n, c: c.at[n].set(c[(n + shift) % count]), x)
    return lax.fori_loop(0, t.of(0, 1, 3), lambda n, c: c.at[n].set(row), x)


def _exchanged(t: _Lines, x: Any, view: Any) -> Any:
    other = _like(view, x.shape, x.dtype)
    first, second = lax.fori_loop(0, t.of(1, 2, 3), lambda _, c: (c[1], c[0].at[:1].set(c[1][:1])), (x, other))
    return t.of(first, second)


_UPDATES: tuple[Callable[[_Lines, Any, Any], Any], ...] = (
    _set,
    _set,
    _scattered,
    _scattered,
    _scattered,
    _window_set,
    _window_set,
    _swapped,
    _one,
    _looped,
    _exchanged,
    lambda t, x, view: jnp.where(jnp.arange(x.shape[0]).reshape(-1, *[1] * (x.ndim - 1)) < 1, x[::-1], x),
    lambda t, x, view: x.at[: x.shape[0] // 2].set(x[: 2 * (x.shape[0] // 2) : 2]),
    lambda t, x, view: x.at[1:].set(x[:-1]),
    lambda t, x, view: x.at[..., ::2].set(x[..., ::-2] if x.shape[-1] % 2 else x[..., ::2]),
    lambda t, x, view: jnp.concatenate([x[:1], _like(view, x.shape, x.dtype)[1:]]),
    lambda t, x, view: lax.scan(lambda c, r: (r, c), _like(view, x.shape[1:], x.dtype), x, reverse=t.of(True, False))[
        1
    ],
    lambda t, x, view: (
        lax.cond(x.ravel()[0] == x.ravel()[-1], lambda v: v.at[:1].set(v[-1:]), lambda v: v, x) if x.size else x
    ),
    lambda t, x, view: (
        jnp.put_along_axis(
            x, t.places(x.shape[0], 2).reshape(2, *[1] * (x.ndim - 1)), _like(view, (), x.dtype), 0, inplace=False
        )
        if x.size
        else x
    ),
)


def _special(array: np.ndarray[Any, Any], random: Random) -> np.ndarray[Any, Any]:
    """With zeros of both signs, infinities and NaN in some places, where the type has them."""
    if kind_of(str(array.dtype)) in ("float", "complex"):
        flat = array.reshape(-1)
        for place in range(0, flat.size, 3):
            flat[place] = random.choice((-0.0, 0.0, np.nan, np.inf, -np.inf))
    return array


def _lines(t: _Lines, made: list[Any]) -> list[Any]:
    """A view, an update that reads it, and perhaps a view of one of the two."""
    view = jnp.atleast_1d(t.of(*_VIEWS)(t, jnp.atleast_1d(t.of(*made[-2:], made[0]))))
    target = jnp.atleast_1d(t.of(made[0], made[-1], view))
    if max(target.size, view.size) > 4000:
        return []
    lines = [view, t.of(*_UPDATES)(t, target, view)]
    return [*lines, t.of(*_VIEWS)(t, t.of(*lines))] if t.of(0, 1, 1) else lines


def function_of(seed: int) -> RandomFunction:
    """The function of a seed."""
    random = Random(f"short {seed}")
    element = random.choice(_TYPES)
    pool = Pool(random, (element,), _SIZES)
    shape = tuple(random.choice(_SIZES) for _ in range(random.choice(_RANKS)))
    shapes = [shape, random.choice((shape, shape[:1], ()))][: random.choice((1, 2))]
    special = random.random() < 0.3
    arguments = tuple(
        _special(pool.numbers(one, element), random) if special else pool.numbers(one, element) for one in shapes
    )
    start = random.getrandbits(64)

    def function(*values: Any) -> Any:
        t = _Lines(Random(start))
        made = list(values)
        for _ in range(t.of(1, 1, 2)):
            with suppress(TypeError, ValueError, IndexError):  # what JAX itself does not take
                made += _lines(t, made)
        results = made[-4:] if len(made) > len(values) else made
        results += [values[0]] if t.of(0, 0, 1) else []
        t.random.shuffle(results)
        return tuple(results)

    return RandomFunction(function, arguments, element in WIDE or random.random() < 0.3)


def case_of(seed: int) -> Case:
    """The program of a seed, as a file that hloforge reads."""
    made = function_of(seed)
    return Case(seed, hloforge.read(str(made.lowered().as_text()), name=f"short_{seed}"), made.arguments)
