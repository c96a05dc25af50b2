"""Steps that sum, multiply and factor: reductions, windows, products, convolutions, transforms, matrices."""

from __future__ import annotations

from math import prod
from typing import Any

import ml_dtypes
import numpy as np

from hloforge.dialect import ops
from hloforge.dialect.element_types import ElementType
from hloforge.dialect.ops.convolution import ConvolutionDimensionNumbers
from hloforge.dialect.ops.dot import DotDimensionNumbers
from hloforge.dialect.values import Value
from hloforge.runtime.data.numbers import integer_range
from tests.fuzz.maker import KINDS, LARGEST, Maker, UnfitError, is_known
from tests.fuzz.step import step


def _monoid(m: Maker, row: ElementType) -> tuple[Any, Any]:
    """An associative computation and its identity."""
    if row.name == "pred":
        return m.random.choice(((ops.and_, True), (ops.or_, False), (ops.xor, False)))
    if row.is_complex:
        return ops.add, 0
    low, high = _extremes(row)
    found = [(ops.add, 0), (ops.add, 0), (ops.max, low), (ops.min, high)]
    if row.is_integer:
        found += [(ops.mul, 1), (ops.and_, -1 if row.name[0] == "s" else high), (ops.or_, 0), (ops.xor, 0)]
    return m.random.choice(found)


def _extremes(row: ElementType) -> tuple[Any, Any]:
    if row.is_integer:
        return integer_range(row)
    return -np.inf, np.inf


# Narrow floats round each partial sum, in an order of the engine's choice.
_SUMMED = KINDS["integer"] | KINDS["inexact"] | KINDS["pred"]


def _summed(m: Maker, least: int = 1, most: int = 5) -> Value:
    x = m.pick(least=least, most=most, where=lambda value: value.element_type.name in _SUMMED)
    return _clamped(x, exponents=prod(x.dims).bit_length() + 1)


def _clamped(x: Value, *, factors: int = 1, exponents: int) -> Value:
    """With infinities and NaN, but without numbers so large that sums of products overflow, or not, by their order.

    Args:
        factors: how many of the numbers are multiplied.
        exponents: bits that the number of summands has.
    """
    if x.element_type.name not in KINDS["inexact"]:
        return x
    if x.element_type.is_complex:
        real, imaginary = (_clamped(part(x), factors=factors, exponents=exponents + 1) for part in (ops.real, ops.imag))
        return ops.complex(real, imaginary)
    bound = 2.0 ** ((ml_dtypes.finfo(x.element_type.dtype).maxexp - exponents) // factors)
    least, most = (ops.constant(limit, x.element_type) for limit in (-bound, bound))
    return ops.select(ops.is_finite(x), ops.clamp(least, x, most), x)


@step(6, rounds=True)
def reduced(m: Maker) -> Any:
    x = _summed(m)
    computation, identity = _monoid(m, x.element_type)
    return ops.reduce(x, identity, computation, m.some(x.rank, 0 if m.chance(0.1) else 1))


@step(1, exact=True)
def greatest(m: Maker) -> Any:
    """Position and value of the greatest element, as frameworks write argmax."""
    x = m.pick(
        "real",
        least=1,
        where=lambda v: (
            v.element_type.bits >= 8 and (v.element_type.is_integer or v.element_type.name in KINDS["wide"])
        ),
    )
    if 0 in x.dims:
        raise UnfitError
    along = m.random.randrange(x.rank)

    def larger(best: Value, place: Value, value: Value, at: Value) -> tuple[Value, Value]:
        takes = (value > best) | (value.ne(value) & best.eq(best))
        ties = value.eq(best) | (value.ne(value) & best.ne(best))
        return ops.select(takes, value, best), ops.select(takes | (ties & (at < place)), at, place)

    return ops.reduce([x, ops.iota("s32", x.dims, along)], [_extremes(x.element_type)[0], 0], larger, [along])


@step(2, rounds=True)
def reduced_windows(m: Maker) -> Any:
    x = _summed(m, most=4)
    computation, identity = _monoid(m, x.element_type)
    window = [m.random.choice((1, 1, 2, 3)) for _ in x.dims]
    strides = [m.random.choice((1, 1, 2, 3)) for _ in x.dims]
    dilations = [m.random.choice((1, 1, 1, 2)) for _ in x.dims]
    holes = [m.random.choice((1, 1, 1, 1, 2)) for _ in x.dims]
    padding = [(m.random.randint(0, 2), m.random.randint(0, 2)) for _ in x.dims]
    for d, size in enumerate(x.dims):
        whole = (size - 1) * holes[d] + 1 if size else 0
        if whole + sum(padding[d]) < (window[d] - 1) * dilations[d] + 1 and m.chance(0.95):
            raise UnfitError
    if m.chance(0.3):
        padding = [(0, 0) for _ in x.dims]
    return ops.reduce_window(x, identity, computation, window, strides, padding, holes, dilations)


@step(1, rounds=True)
def cumulative(m: Maker) -> Any:
    """As ``jnp.cumsum`` writes it."""
    x = _summed(m, most=3)
    computation, identity = _monoid(m, x.element_type)
    along = m.random.randrange(x.rank)
    size = x.dims[along]
    if not size:
        raise UnfitError
    padding = [(0, 0)] * x.rank
    padding[along] = (size - 1, 0) if m.chance(0.7) else (0, size - 1)
    return ops.reduce_window(x, identity, computation, [size if d == along else 1 for d in range(x.rank)], [], padding)


@step(0.7, rounds=True, exact=True)
def unpooled(m: Maker) -> Any:
    x = m.pick("real", least=1, most=4, where=lambda v: v.element_type.name in KINDS["wide"] | {"s32", "s64"})
    window = [m.random.choice((1, 2, 3)) for _ in x.dims]
    window = [min(size, max(there, 1)) for size, there in zip(window, x.dims, strict=True)]
    strides = [m.random.randint(1, size) for size in window]
    if 0 in x.dims:
        raise UnfitError
    places = [(size - wide) // stride + 1 for size, wide, stride in zip(x.dims, window, strides, strict=True)]
    source = m.like(x.element_type.name, places)
    return ops.select_and_scatter(x, ops.ge, window, strides, "VALID", source, 0, ops.add)


@step(5, rounds=True)
def product(m: Maker) -> Any:
    x = m.pick(least=1, most=4, where=lambda v: v.element_type.name in KINDS["inexact"] | KINDS["integer"])
    order = m.permutation(x.rank)
    contracted = order[: m.random.choice((1, 1, 1, 0, 2))]
    batch = [d for d in order if d not in contracted][: m.random.choice((0, 0, 1, 2))]
    free = [m.size() for _ in range(m.random.choice((0, 1, 1, 2)))]
    sizes = [*(("batch", d, x.dims[d]) for d in batch), *(("contracted", d, x.dims[d]) for d in contracted)]
    sizes += [("free", -1, size) for size in free]
    m.random.shuffle(sizes)
    y = m.like(x.element_type.name, [size for _, _, size in sizes])
    where = {(kind, d): place for place, (kind, d, _) in enumerate(sizes)}
    numbers = DotDimensionNumbers(
        contracted, [where["contracted", d] for d in contracted], batch, [where["batch", d] for d in batch]
    )
    if prod(x.dims) // max(1, prod(x.dims[d] for d in contracted)) * prod(free) > LARGEST:
        raise UnfitError
    bits = prod(x.dims[d] for d in contracted).bit_length() + 1
    x, y = (_clamped(value, factors=2, exponents=bits) for value in (x, y))
    if x.element_type.is_complex:
        # Products of infinities are infinite or NaN by the form in which an engine writes them.
        x, y = _moderate(x), _moderate(y)
    preferred = None
    if x.element_type.name in ("s8", "u8", "s16", "u16") and m.chance(0.5):
        preferred = "s32" if x.element_type.name[0] == "s" else "u32"
    if x.element_type.name in ("bf16", "f16") and m.chance(0.4):
        preferred = "f32"
    return ops.dot_general(x, y, numbers, preferred_element_type=preferred)


_SPATIAL = "012"


def _moderate(x: Value) -> Value:
    """Without infinity and NaN, by which engines multiply zeros of their own or do not, and overflow in sums."""
    if x.element_type.name not in KINDS["inexact"]:
        return x
    if x.element_type.is_complex:
        return ops.complex(_moderate(ops.real(x)), _moderate(ops.imag(x)))
    finite = ops.select(ops.is_finite(x), x, _ones(x))
    # The root of the greatest number, and four bits less for the number of products.
    bound = 2.0 ** (ml_dtypes.finfo(x.element_type.dtype).maxexp // 2 - 4)
    return ops.clamp(ops.constant(-bound, x.element_type), finite, ops.constant(bound, x.element_type))


def _ones(x: Value) -> Value:
    return ops.broadcast(ops.constant(1, x.element_type.name), x.dims)


@step(2.5, rounds=True)
def convolved(m: Maker) -> Any:
    spatial = m.random.choice((1, 1, 2, 2, 2, 3))
    element = m.element("wide") if m.chance(0.8) else m.element("complex") if m.chance(0.3) else m.element("integer")
    if element in ("s2", "u2", "s4", "u4"):
        raise UnfitError
    groups = m.random.choice((1, 1, 1, 2, 3))
    batches = m.random.choice((1, 1, 1, 1, 2)) if groups == 1 else 1
    inputs, outputs = m.random.choice((1, 2, 3, 4)), m.random.choice((1, 2, 3, 4)) * groups * batches
    window = [m.random.choice((1, 2, 3)) for _ in range(spatial)]
    space = [m.random.choice((1, 3, 4, 5, 6, 8)) for _ in range(spatial)]
    image = dict(zip("bf" + _SPATIAL, [m.random.choice((1, 2)) * batches, inputs * groups, *space], strict=False))
    kernel = dict(zip("io" + _SPATIAL, [inputs, outputs, *window], strict=False))
    orders = ["".join(m.random.sample(letters, len(letters))) for letters in (list(image), list(kernel), list(image))]
    if m.chance(0.5):
        digits = _SPATIAL[:spatial]
        orders = (
            [f"b{digits}f", f"{digits}io", f"b{digits}f"]
            if m.chance(0.5)
            else [f"bf{digits}", f"oi{digits}", f"bf{digits}"]
        )
    strides = [m.random.choice((1, 1, 2, 3)) for _ in range(spatial)]
    holes = [m.random.choice((1, 1, 1, 2)) for _ in range(spatial)]
    dilations = [m.random.choice((1, 1, 1, 2)) for _ in range(spatial)]
    padding = [m.random.choice(((0, 0), (1, 1), (0, 1), (2, 1), (-1, 1))) for _ in range(spatial)]
    for size, hole, pads, wide, dilation in zip(space, holes, padding, window, dilations, strict=True):
        if (size - 1) * hole + 1 + sum(pads) < (wide - 1) * dilation + 1:
            raise UnfitError
    factors = [
        _moderate(m.like(element, [sizes[letter] for letter in order]))
        for sizes, order in ((image, orders[0]), (kernel, orders[1]))
    ]
    # XLA computes a convolution of known integers wrongly when it compiles: it saturates, or widens.
    if element in KINDS["integer"] and all(map(is_known, factors)):
        raise UnfitError
    return ops.conv_with_general_padding(
        *factors,
        strides, padding, holes, dilations, groups, batches,
        ConvolutionDimensionNumbers.parse(f"{orders[0]}_{orders[1]}->{orders[2]}"),
        window_reversal=[m.chance(0.15) for _ in range(spatial)],
    )  # fmt: skip


@step(1, rounds=True)
def transformed(m: Maker) -> Any:
    kind = m.random.choice(("FFT", "IFFT", "RFFT", "IRFFT"))
    names = ("f32", "f64") if kind == "RFFT" else ("c64", "c128")
    x = m.pick("inexact", least=1, most=4, where=lambda v: v.element_type.name in names and 0 not in v.dims)
    lengths = list(x.dims[-m.random.randint(1, min(2, x.rank)) :])
    if kind == "IRFFT":
        lengths[-1] = 2 * (lengths[-1] - 1) + m.random.randint(0, 1)
        if lengths[-1] < 1:
            raise UnfitError
    return ops.fft(_moderate(x), kind, lengths)


def _well_conditioned(m: Maker) -> Value:
    element = m.element("inexact")
    if element in ("bf16", "f16"):
        element = "f32"
    size = m.random.choice((1, 2, 3, 4, 5, 8))
    x = _moderate(m.like(element, [*m.dims(0, 1), size, size]))
    if prod(x.dims) > LARGEST:
        raise UnfitError
    unit = ops.convert_element_type(
        ops.eq(ops.iota("s32", x.dims, x.rank - 2), ops.iota("s32", x.dims, x.rank - 1)), element
    )
    return ops.tanh(x) * 0.3 + unit * (size + 1.0)


@step(0.6, rounds=True, exact=True)
def solved(m: Maker) -> Any:
    a = _well_conditioned(m)
    left, count = m.chance(0.5), m.random.choice((1, 2, 3))
    size = a.dims[-1]
    b = m.like(a.element_type.name, [*a.dims[:-2], *((size, count) if left else (count, size))])
    transposition = m.random.choice(("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"))
    return ops.triangular_solve(a, _moderate(b), left, m.chance(0.5), m.chance(0.2), transposition)


@step(0.5, rounds=True, exact=True)
def factored(m: Maker) -> Any:
    a = _well_conditioned(m)
    axes = [*range(a.rank - 2), a.rank - 1, a.rank - 2]
    mirrored = ops.transpose(a, axes)
    if a.element_type.is_complex:
        mirrored = ops.complex(ops.real(mirrored), -ops.imag(mirrored))
    lower = m.chance(0.5)
    factor = ops.cholesky(a + mirrored, lower)
    row, column = (ops.iota("s32", a.dims, d) for d in (a.rank - 2, a.rank - 1))
    return ops.select(
        row >= column if lower else row <= column, factor, ops.broadcast(ops.constant(0, a.element_type.name), a.dims)
    )


@step(1, rounds=True, exact=True)
def softmax(m: Maker) -> Any:
    x = m.pick("wide", least=1)
    along = m.random.randrange(x.rank)
    kept = [d for d in range(x.rank) if d != along]
    greatest_ = ops.reduce(x, -np.inf, ops.max, [along])
    powers = ops.exp(ops.sub(x, ops.broadcast_in_dim(greatest_, x.dims, kept)))
    return ops.div(powers, ops.broadcast_in_dim(ops.reduce(powers, 0.0, ops.add, [along]), x.dims, kept))


@step(0.5, rounds=True, exact=True)
def normalized(m: Maker) -> Any:
    x = m.pick("wide", least=2, most=4, where=lambda v: 0 not in v.dims)
    feature = m.random.randrange(x.rank)
    row = x.element_type.name
    # Of large or equal numbers the variance is what rounding leaves, and so is what the scale multiplies.
    scale, offset = (ops.tanh(m.like(row, [x.dims[feature]])) for _ in range(2))
    normal, mean, _ = ops.batch_norm_training(ops.tanh(x), scale, offset, 0.5, feature)
    return normal, mean
