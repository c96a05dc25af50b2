"""Functions of JAX as other people write them: one to three short parts, each of a habit and of arguments of its own.

Numbers of floats are integers where an order of additions could decide, so that results are exact; they are wild where
bits are moved, compared or converted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from random import Random
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax import lax

import hloforge
from tests.fuzz.generator import Case
from tests.prove.jax_functions import RandomFunction
from tests.prove.pool import INTEGERS, TINY, WIDE, Dims

Array: TypeAlias = np.ndarray[Any, Any]
_SIZES = (0, 1, 1, 2, 2, 3, 3, 4, 5, 5, 7, 8, 16, 17)
_COUNTED = (*INTEGERS, "int32", "float32", "float32", "float64")
_MOVED = (*INTEGERS, *TINY, "float32", "float64", "bfloat16", "float16", "complex64", "complex128", "bool")


class Plan:
    """The choices of a function, and its arguments."""

    def __init__(self, seed: int) -> None:
        self.random = Random(f"habits {seed}")
        self.arguments: list[Array] = []

    def of(self, *options: Any) -> Any:
        return self.random.choice(options)

    def between(self, low: int, high: int) -> int:
        return self.random.randint(low, high)

    def sample(self, count: int, most: int | None = None) -> list[int]:
        """Some of so many numbers, in any order."""
        return self.random.sample(range(count), count if most is None else min(most, count))

    def dims(self, least: int = 0, most: int = 3, largest: int = 600) -> Dims:
        dims = [self.of(*_SIZES) for _ in range(self.between(least, most))]
        while math.prod(dims) > largest:
            dims[dims.index(max(dims))] = self.of(1, 2, 3)
        return tuple(dims)

    def put(self, array: Any, dtype: str) -> int:
        with np.errstate(all="ignore"):
            self.arguments.append(np.asarray(array).astype(getattr(ml_dtypes, dtype, dtype)))
        return len(self.arguments) - 1

    def numbers(self) -> np.random.Generator:
        return np.random.default_rng(self.random.getrandbits(64))

    def counted(self, shape: Dims, dtype: str) -> int:
        """The place of an argument of small integers, also in floats."""
        low = 0 if dtype.startswith("u") or dtype == "bool" else -3
        return self.put(self.numbers().integers(low, 2 if dtype == "bool" else 5, shape), dtype)

    def wild(self, shape: Dims, dtype: str) -> int:
        """The place of an argument of any bits: the ends of the range, NaN, infinities, both zeros; none subnormal."""
        g = self.numbers()
        type_ = np.dtype(getattr(ml_dtypes, dtype, dtype))
        if dtype == "bool" or dtype in ("int4", "uint4"):
            return self.counted(shape, dtype)
        if dtype in INTEGERS:
            row = np.iinfo(type_)
            ends = np.array([row.min, row.max, 0, 1, row.max - 1, row.min + 1, 2], type_)
            numbers = g.integers(row.min, row.max, shape, type_, endpoint=True)
            return self.put(np.where(g.random(shape) < 0.4, g.choice(ends, shape), numbers), dtype)
        if dtype.startswith("complex"):
            made = np.empty(shape, np.complex128)
            made.real, made.imag = self._reals(g, shape), self._reals(g, shape)
            return self.put(made, dtype)
        return self.put(self._reals(g, shape), dtype)

    @staticmethod
    def _reals(g: np.random.Generator, shape: Dims) -> Array:
        ends = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 0.5, -0.5, 1.5, 2.5, 127.5, -128.5, 255.5, 2.0**31, -1e10])
        numbers = np.clip(g.standard_normal(shape) * g.choice([1, 40, 1e4, 3e9]), -1e10, 1e10)
        numbers = np.where(np.abs(numbers) < 0.02, 1.0, numbers)
        return np.where(g.random(shape) < 0.4, g.choice(ends, shape), numbers)


Function: TypeAlias = Callable[[Sequence[Any]], Sequence[Any]]
Habit: TypeAlias = Callable[[Plan], Function]


def _scanned(p: Plan) -> Function:
    """A scan over a tree of arrays of several types, whose carries trade places."""
    length, width = p.of(0, 1, 2, 3, 5), p.of(1, 2, 3)
    kinds = [p.of(*_COUNTED) for _ in range(3)]
    carries = [p.counted((width,), kind) for kind in (kinds[0], kinds[0], kinds[1])]
    rows = [p.counted((length, width), kinds[1]), p.wild((length,), p.of("bool", "int8"))]
    how: dict[str, Any] = {"reverse": p.of(True, False), "unroll": p.of(1, 1, 2)}
    nested = p.of(True, False)

    def body(c: Any, row: Any) -> Any:
        places, flag = row["places"], row["flag"]
        first = jnp.where(flag > 0, c["second"], c["first"] + 1)
        third = c["third"].at[0].set(places[-1]) if nested else lax.rev(c["third"], (0,))
        made = {"first": c["second"], "second": first, "third": third}
        return made, (c["first"], {"sum": c["third"] + places, "flag": flag})

    def function(v: Sequence[Any]) -> Sequence[Any]:
        start = dict(zip(("first", "second", "third"), (v[n] for n in carries), strict=True))
        return jax.tree.leaves(lax.scan(body, start, {"places": v[rows[0]], "flag": v[rows[1]]}, **how))

    return function


def _convolved(p: Plan) -> Function:
    """A convolution with all attributes."""
    rank = p.of(0, 1, 1, 2, 2, 3)
    features, batches = p.of((1, 1), (2, 1), (3, 1), (1, 2), (1, 3))
    channels, made, images = p.of(1, 2), p.of(1, 2) * features * batches, p.of(1, 2) * batches
    sizes = [p.of(1, 2, 3, 5, 7, 8) for _ in range(rank)]
    window = [p.of(1, 1, 2, 3) for _ in range(rank)]
    left, right, out = (p.sample(rank + 2) for _ in range(3))
    shapes = ([images, channels * features, *sizes], [made, channels, *window])
    element = p.of("float32", "float32", "float64", "int32", "bfloat16")
    x, kernel = (
        p.counted(tuple(shape[order.index(d)] for d in range(rank + 2)), element)
        for shape, order in zip(shapes, (left, right), strict=True)
    )
    settings: dict[str, Any] = {
        "window_strides": [p.of(1, 1, 2, 3) for _ in range(rank)],
        "padding": [(p.between(-1, 2), p.between(-1, 3)) for _ in range(rank)],
        "lhs_dilation": [p.of(1, 1, 2, 3) for _ in range(rank)],
        "rhs_dilation": [p.of(1, 1, 2) for _ in range(rank)],
        "dimension_numbers": lax.ConvDimensionNumbers(tuple(left), tuple(right), tuple(out)),
        "feature_group_count": features,
        "batch_group_count": batches,
    }
    differs = p.of(True, False, False) and element.startswith("float")

    def function(v: Sequence[Any]) -> Sequence[Any]:
        made = lax.conv_general_dilated(v[x], v[kernel], **settings)
        if not differs:
            return [made]
        weights = (jnp.arange(made.size, dtype=made.dtype) % 3).reshape(made.shape)
        total = jax.grad(lambda a, b: (lax.conv_general_dilated(a, b, **settings) * weights).sum(), (0, 1))
        return [made, *total(v[x], v[kernel])]

    return function


def _windowed(p: Plan) -> Function:
    """A reduction of windows with all attributes, and its derivative."""
    element, dims = p.of("float32", "float64", "int32", "int8", "uint8", "int64"), p.dims(1, 3, 200)
    x, rank = p.counted(dims, element), len(dims)
    body, start = p.of((lax.add, 0), (lax.max, None), (lax.min, None), (lax.mul, 1))
    settings: dict[str, Any] = {
        "window_dimensions": tuple(p.of(1, 1, 2, 3) for _ in range(rank)),
        "window_strides": tuple(p.of(1, 1, 2, 3) for _ in range(rank)),
        "padding": tuple((p.between(0, 2), p.between(0, 1)) for _ in range(rank)),
        "base_dilation": tuple(p.of(1, 1, 1, 2) for _ in range(rank)),
        "window_dilation": tuple(p.of(1, 1, 2) for _ in range(rank)),
    }
    type_ = np.dtype(element)
    low, high = (-np.inf, np.inf) if type_.kind == "f" else (np.iinfo(type_).min, np.iinfo(type_).max)
    first = np.asarray(start if start is not None else (low if body is lax.max else high), type_)

    def function(v: Sequence[Any]) -> Sequence[Any]:
        made = lax.reduce_window(v[x], first, body, **settings)
        if type_.kind != "f" or body is not lax.add:
            return [made]
        weights = (jnp.arange(made.size, dtype=made.dtype) % 3).reshape(made.shape)
        return [made, jax.grad(lambda a: (lax.reduce_window(a, first, body, **settings) * weights).sum())(v[x])]

    return function


def _aliasing(p: Plan) -> Function:
    """Windows written in loops in loops, of carries that are the same array, trade places, or read each other."""
    element, dims = p.of(*_MOVED), tuple(size or 2 for size in p.dims(1, 2, 60))
    x, row = p.wild(dims, element), p.wild((1, *dims[1:]), element)
    turns, inner, kind = p.of(1, 2, 3), p.of(0, 1, 2), p.of(0, 1, 2, 3)

    def written(n: Any, c: Any) -> Any:
        a, b = c
        start = [n, *[0] * (len(dims) - 1)]
        part = lax.dynamic_slice(b, start, (1, *dims[1:]))
        a = lax.dynamic_update_slice(a, part, [n + 1, *start[1:]])
        return ((a, b), (b, a), (a, a), (b, lax.dynamic_update_slice(b, part, start)))[kind]

    def function(v: Sequence[Any]) -> Sequence[Any]:
        start = (v[x], v[x])

        def outer(n: Any, c: Any) -> Any:
            c = lax.fori_loop(0, inner, lambda m, d: written(n + m, d), c)
            return lax.dynamic_update_slice(c[1], v[row], [n, *[0] * (len(dims) - 1)]), c[0]

        return [*lax.fori_loop(0, turns, outer, start), v[x]]

    return function


def _summed(p: Plan) -> Function:
    """An einsum of one to three operands, with diagonals, sums of one operand and free dimensions."""
    sizes = {letter: p.of(0, 1, 2, 2, 3, 4) if p.of(1, 1, 0) else 2 for letter in "ijklm"}
    terms = ["".join(p.of(*"ijklm") for _ in range(p.between(0, 3))) for _ in range(p.of(1, 2, 2, 3))]
    used = sorted(set("".join(terms)))
    out = "".join(p.random.sample(used, p.between(0, min(len(used), 3))))
    element = p.of("float32", "float64", "int32", "int64", "int8", "uint8", "complex64")
    places = [p.counted(tuple(sizes[letter] for letter in term), element) for term in terms]
    return lambda v: [jnp.einsum(f"{','.join(terms)}->{out}", *(v[n] for n in places))]


def _composed(p: Plan) -> Function:
    """Associative scans, of pairs too, and running results along any axis in both directions."""
    element, dims = p.of("int32", "int64", "uint8", "float64", "int16"), p.dims(1, 3, 200)
    x, y = p.counted(dims, element), p.counted(dims, element)
    axis, reverse = p.between(0, len(dims) - 1), p.of(True, False)
    run = p.of(lax.cumsum, lax.cummax, lax.cummin, lax.cumprod if element != "float64" else lax.cumsum)

    def affine(a: Any, b: Any) -> Any:
        return a[0] * b[0] % 7 if element != "float64" else jnp.maximum(a[0], b[0]), jnp.minimum(a[1], b[1])

    def function(v: Sequence[Any]) -> Sequence[Any]:
        pair = (v[x], v[y])
        made = list(lax.associative_scan(affine, pair, reverse=reverse, axis=axis)) if dims[axis] else []
        running = run(v[y], axis=axis, reverse=reverse)
        return [*made, lax.associative_scan(jnp.add, v[x], reverse=reverse, axis=axis) if dims[axis] else v[x], running]

    return function


def _sorted(p: Plan) -> Function:
    """Several operands by several keys; the largest ones; the places of extremes and of equal numbers."""
    types = [p.of("int32", "int8", "uint32", "float32", "int64", "bool", "bfloat16", "float64") for _ in range(3)]
    dims = p.dims(1, 3, 200)
    places = [p.wild(dims, kind) if p.of(0, 1) else p.counted(dims, kind) for kind in types]
    axis, keys = p.between(0, len(dims) - 1), p.of(1, 2, 3)

    def function(v: Sequence[Any]) -> Sequence[Any]:
        made = list(lax.sort(tuple(v[n] for n in places), dimension=axis, is_stable=True, num_keys=keys))
        first = v[places[0]]
        if first.dtype != bool and dims[-1]:
            made += list(lax.top_k(first, min(2, dims[-1])))
        if dims[axis]:
            made += [jnp.argmax(first, axis), jnp.argmin(first, axis)]
        return [*made, jnp.argsort(first, axis=axis, stable=True, descending=True)]

    return function


def _segments(p: Plan) -> Function:
    """Sums, products and extremes by numbers of segments, some of them outside."""
    element, count, width = p.of("int32", "uint8", "int64", "float32", "float64"), p.of(0, 1, 3, 8, 17), p.of(0, 1, 2)
    x = p.counted((count, width) if p.of(0, 1) else (count,), element)
    segments = p.of(0, 1, 3, 5)
    numbers = p.put(p.numbers().integers(-2, segments + 2, (count,)), p.of("int32", "int8", "uint8", "int64"))
    reduce = p.of(jax.ops.segment_sum, jax.ops.segment_max, jax.ops.segment_min, jax.ops.segment_prod)
    return lambda v: [
        reduce(v[x], v[numbers], num_segments=segments),
        jnp.bincount(jnp.abs(v[numbers].astype("int32")), length=4),
    ]


def _derived(p: Plan) -> Function:
    """Rules of one's own for derivatives, and checkpoints, under transformations."""
    size, factor, kind = p.of(1, 2, 3, 5), p.of(2.0, -1.0), p.of(0, 1, 2, 3)
    x = p.counted((size, size), p.of("float32", "float64"))

    @jax.custom_jvp
    def clipped(a: Any) -> Any:
        return jnp.clip(a, -1, 2)

    clipped.defjvp(lambda primals, tangents: (clipped(*primals), tangents[0] * factor))

    @jax.custom_vjp
    def scaled(a: Any) -> Any:
        return a * 2

    scaled.defvjp(lambda a: (a * 2, (a,)), lambda kept, g: (g * kept[0] + factor,))

    def loss(a: Any) -> Any:
        inner = jax.checkpoint(lambda b: clipped(scaled(b)) * b)
        if kind == 1:
            return lax.scan(lambda c, r: (inner(c) - r, c), a[0], a)[0].sum()
        return lax.fori_loop(0, 2, lambda _, c: inner(c) - a, a).sum() if kind == 2 else inner(a).sum()

    def function(v: Sequence[Any]) -> Sequence[Any]:
        if kind == 3:
            return [jax.vmap(jax.grad(loss))(v[x]), jax.jacfwd(clipped)(v[x][0])]
        forward = jax.jvp(lambda a: (clipped(a) * a).sum(), (v[x],), (jnp.ones_like(v[x]),))
        return [*jax.value_and_grad(loss)(v[x]), *forward]

    return function


def _bits(p: Plan) -> Function:
    """Shifts beyond the width, counts of bits, and the same bits as numbers of another width."""
    element, dims = p.of(*INTEGERS), p.dims(0, 2, 100)
    x, places = p.wild(dims, element), p.wild(dims, element) if p.of(0, 1) else p.counted(dims, element)
    source, target = p.of(*INTEGERS), p.of(*INTEGERS)
    ratio = np.dtype(target).itemsize // np.dtype(source).itemsize
    words = p.wild((*dims, ratio) if ratio > 1 else dims, source)

    def function(v: Sequence[Any]) -> Sequence[Any]:
        a, n = v[x], v[places]
        made = [lax.shift_left(a, n), lax.shift_right_logical(a, n), lax.shift_right_arithmetic(a, n)]
        made += [lax.population_count(a), lax.clz(a), ~a ^ n, a | n, (a << 3) | lax.shift_right_logical(a, a * 0 + 5)]
        return [*made, lax.bitcast_convert_type(v[words], target)]

    return function


def _divided(p: Plan) -> Function:
    """Quotients, remainders, powers, and signs of integers at the ends: the least one by -1, all by 0."""
    element, dims = p.of(*INTEGERS), p.dims(0, 2, 100)
    x, y = p.wild(dims, element), p.wild(dims, element) if p.of(0, 1) else p.counted(dims, element)

    def function(v: Sequence[Any]) -> Sequence[Any]:
        a, b = v[x], v[y]
        made = [lax.div(a, b), lax.rem(a, b), a // b, a % b, *jnp.divmod(b, a), jnp.abs(a), jnp.sign(b), a * b, -a]
        return [*made, lax.integer_pow(a, 3), lax.clamp(b, a, lax.max(a, b)), jnp.gcd(jnp.abs(a) % 99, jnp.abs(b) % 77)]

    return function


def _converted(p: Plan) -> Function:
    """Between all types, also out of range; comparisons and classes of what is there."""
    source, target, dims = p.of(*_MOVED), [p.of(*_MOVED) for _ in range(3)], p.dims(0, 2, 100)
    x = p.wild(dims, source)
    is_complex = source.startswith("complex")
    # A number that a small float has not is NaN, infinity or the largest one, as one likes; zeros of integers are one.
    fitting = [t for t in target if t not in TINY or source in TINY or source in ("bool", "int8", "uint8")]

    def function(v: Sequence[Any]) -> Sequence[Any]:
        made = [v[x].astype(t) for t in fitting if not is_complex or t.startswith("complex")]
        if source.startswith(("float", "bfloat")) and source not in TINY:
            made += [jnp.isfinite(v[x]), jnp.signbit(v[x]), lax.round(v[x]), jnp.rint(v[x]), jnp.trunc(v[x])]
        return [*made, v[x] == v[x], v[x]]

    return function


def _tiny(p: Plan) -> Function:
    """Numbers of 4 and 8 bits: moved, counted where they are integers, and as wide ones."""
    element, dims = p.of(*TINY), p.dims(0, 3, 200)
    x, y = p.counted(dims, element), p.counted(dims, element)
    wide = "int32" if "int" in element else "float32"

    def function(v: Sequence[Any]) -> Sequence[Any]:
        a, b = v[x], v[y]
        made = [a.astype(wide) * 2, (a.astype(wide) + b.astype(wide)).astype(element), jnp.where(a == b, a, b), a < b]
        made += [jnp.concatenate([a.ravel(), b.ravel()])[::-1], jnp.repeat(a, 2, 0) if dims else a]
        return [*made, a.astype(wide).sum(), *([a * b, a + b, -a, jnp.max(a, initial=0)] if "int" in element else [])]

    return function


def _complex(p: Plan) -> Function:
    """Parts of complex numbers, made of any bits and taken apart."""
    dims, part = p.dims(0, 3, 100), p.of("float32", "float64")
    x, y = p.wild(dims, part), p.wild(dims, part)
    z = p.wild(dims, "complex64" if part == "float32" else "complex128")

    def function(v: Sequence[Any]) -> Sequence[Any]:
        made = lax.complex(v[x], v[y])
        return [made, jnp.real(v[z]), jnp.imag(v[z]), jnp.conj(v[z]), -v[z], v[z] == made, v[z] != v[z],
                v[z] + made, made - v[z], jnp.where(v[x] > 0, made, v[z]), lax.is_finite(jnp.imag(made))]  # fmt: skip

    return function


def _ranks(p: Plan) -> Function:
    """Of rank 0 to 7: transposed, reshaped, reduced, joined, broadcast and cut."""
    rank, element = p.of(0, 5, 6, 6, 7), p.of("int32", "float32", "int8", "uint64", "bool", "complex64", "bfloat16")
    dims = tuple(p.of(1, 1, 2, 2, 3, 0 if p.of(0, 0, 1) else 2) for _ in range(rank))
    x = p.counted(dims, element)
    order, some, turned = p.sample(rank), tuple(p.sample(rank, 3)), tuple(p.sample(rank, 2))
    cuts = tuple(slice(p.of(None, 0, 1), None, p.of(1, 2, -1)) for _ in dims)

    def function(v: Sequence[Any]) -> Sequence[Any]:
        a = v[x]
        made = [jnp.transpose(a, order), a.ravel(), lax.rev(a, turned), a[cuts], jnp.expand_dims(a, 0)]
        made += [jnp.any(a != 0, axis=some), jnp.broadcast_to(a, (2, *dims)), jnp.squeeze(a[None]), a[None] == a]
        if element != "bool":
            made.append(a.sum(some))
        return [*made, jnp.concatenate([a, a], rank - 1) if rank else jnp.stack([a, a])]

    return function


def _batched(p: Plan) -> Function:
    """Loops, branches, windows and updates of which each row has its own, by ``vmap``."""
    count, width, element = (
        p.of(0, 1, 2, 3, 5),
        p.of(1, 2, 3, 7),
        p.of("int32", "float32", "uint8", "int64", "bfloat16"),
    )
    x, numbers = p.counted((count, width), element), p.counted((count,), p.of("int32", "int8"))
    kind, mode = p.of(0, 1, 2, 3, 4), p.of("drop", "clip", "wrap", None)

    def row(a: Any, n: Any) -> Any:
        if kind == 0:
            return lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, jnp.roll(c[1], 1)), (n.astype("int32"), a))[
                1
            ]
        if kind == 1:
            return lax.switch(n, [lambda b: b, lambda b: b[::-1], lambda b: b.at[0].set(b[-1])], a)
        if kind == 2:
            return lax.dynamic_update_slice(a, lax.dynamic_slice(a, [n], [1]), [-n])
        if kind == 3:
            return a.at[jnp.stack([n, n + 1, n])].add(jnp.ones((3,), a.dtype), mode=mode)
        return lax.cond(n > 0, lambda b: lax.fori_loop(0, n, lambda _, c: c[::-1], b), lambda b: b * 2, a)

    return lambda v: [
        jax.vmap(row)(v[x], v[numbers]),
        jax.vmap(row, (None, 0))(jnp.ones((width,), element), v[numbers]),
    ]


def _counting(p: Plan) -> Function:
    """What has a size of its own in numpy: unique numbers, places, intersections, of a size that is given."""
    element, size = p.of("int32", "int8", "float32", "bool", "uint8"), p.of(0, 1, 2, 5, 8, 17)
    x, y = p.counted((size,), element), p.counted((p.of(1, 3, 5),), element)
    room = p.of(1, 3, 6)
    return lambda v: [
        *jnp.unique(v[x], size=room, fill_value=1, return_counts=True, return_inverse=True),
        *jnp.nonzero(v[x], size=room, fill_value=-1),
        jnp.searchsorted(jnp.sort(v[x]), v[y], side="right"),
        jnp.isin(v[y], v[x]),
        jnp.diff(v[x]) if element != "bool" else v[x],
        jnp.union1d(v[x], v[y], size=room),
    ]


_HABITS: tuple[Habit, ...] = (
    _scanned, _convolved, _convolved, _windowed, _aliasing, _summed, _composed, _sorted, _segments, _derived, _bits,
    _divided, _converted, _tiny, _complex, _ranks, _batched, _counting,
)  # fmt: skip


def function_of(seed: int, habits: Sequence[Habit] = _HABITS) -> RandomFunction:
    """The function of a seed, of one to three of the habits."""
    plan = Plan(seed)
    parts = [plan.of(*habits)(plan) for _ in range(plan.of(1, 2, 3))]

    def function(*values: Any) -> Any:
        results: list[Any] = []
        for part in parts:
            with suppress(ValueError):  # what JAX itself does not take
                results += part(values)
        return tuple(results or values[:1])

    wide = any(str(one.dtype) in WIDE for one in plan.arguments)
    return RandomFunction(function, tuple(plan.arguments), wide or plan.of(True, False))


def case_of(seed: int) -> Case:
    """The program of a seed, as a file that hloforge reads."""
    made = function_of(seed)
    return Case(seed, hloforge.read(str(made.lowered().as_text()), name=f"habits_{seed}"), made.arguments)
