"""Steps element by element."""

from __future__ import annotations

from typing import Any

import hloforge
from hloforge.dialect import ops
from hloforge.dialect.element_types import element_type
from hloforge.dialect.values import Value
from tests.fuzz.maker import KINDS, Maker, UnfitError, is_known
from tests.fuzz.step import grow, step

_SMOOTH = ("tanh", "logistic", "erf")
_STEEP = ("cbrt", "exp", "expm1", "log", "log1p", "sqrt", "rsqrt", "sin", "cos", "tan")
_OF_COMPLEX = ("exp", "expm1", "log", "log1p", "sqrt", "rsqrt", "sin", "cos", "tan", "tanh", "logistic")
_ROUNDINGS = ("ceil", "floor", "round", "round_nearest_even")


def _same(m: Maker, value: Value) -> Value:
    return m.like(value.element_type.name, value.dims)


@step(3, is_scalar=True)
def move_sign(m: Maker) -> Any:
    x = m.pick("number")
    if x.element_type.name in KINDS["signed"] | KINDS["float"] and m.chance(0.5):
        return ops.abs(x)
    return ops.neg(x)


@step(2, exact=True, is_scalar=True)
def jump(m: Maker) -> Any:
    x = m.pick("real", where=lambda v: not v.element_type.name.startswith("u"))
    if x.element_type.is_integer or m.chance(0.25):
        return ops.sign(x)
    if m.chance(0.2):
        return ops.is_finite(x)
    return getattr(ops, m.random.choice(_ROUNDINGS))(x)


@step(1.5, is_scalar=True)
def count_bits(m: Maker) -> Any:
    x = m.pick("integer")
    made = m.random.choice((ops.population_count, ops.clz, ops.not_))
    # XLA counts leading zeros of known numbers wrongly: of negative ones, and of those of few bits.
    if made is ops.clz and is_known(x):
        raise UnfitError
    return made(x)


@step(3, rounds=True, is_scalar=True)
def smooth(m: Maker) -> Any:
    return getattr(ops, m.random.choice(_SMOOTH))(m.pick("wide"))


@step(3, rounds=True, exact=True, is_scalar=True)
def steep(m: Maker) -> Any:
    return getattr(ops, m.random.choice(_STEEP))(m.pick("wide"))


@step(0.6, rounds=True, exact=True, is_scalar=True)
def complex_function(m: Maker) -> Any:
    return getattr(ops, m.random.choice(_OF_COMPLEX))(m.pick("complex"))


@step(1.5, rounds=True, is_scalar=True)
def bounded_exponential(m: Maker) -> Any:
    return ops.exp(ops.tanh(m.pick("wide")))


@step(8, rounds=True, is_scalar=True)
def arithmetic(m: Maker) -> Any:
    x = m.pick("number" if m.chance(0.3) else "inexact" if m.chance(0.6) else "integer")
    y = _same(m, x)
    return m.random.choice((ops.add, ops.sub, ops.mul))(*((x, y) if m.chance(0.7) else (y, x)))


@step(2, rounds=True, exact=True, is_scalar=True)
def quotient(m: Maker) -> Any:
    x = m.pick("real" if m.chance(0.9) else "number")
    y = _same(m, x)
    if x.element_type.is_complex or m.chance(0.6):
        return ops.div(x, y)
    return ops.rem(x, y)


@step(1, rounds=True, exact=True, is_scalar=True)
def power(m: Maker) -> Any:
    x = m.pick("integer" if m.chance(0.4) else "wide")
    if x.element_type.is_integer:
        # Of more than the type's bits the engines read different parts.
        y = ops.and_(
            _same(m, x),
            ops.broadcast(ops.constant(min(3, 2 ** (x.element_type.bits - 1) - 1), x.element_type.name), x.dims),
        )
        return ops.pow(x, y)
    y, made = _same(m, x), m.random.choice((ops.pow, ops.atan2))
    # XLA makes NaN of atan2(0, 0) where it knows both.
    if made is ops.atan2 and is_known(x) and is_known(y):
        raise UnfitError
    return made(x, y)


@step(3, is_scalar=True)
def extreme(m: Maker) -> Any:
    x = m.pick("ordered")
    return m.random.choice((ops.max, ops.min))(x, _same(m, x))


@step(3, is_scalar=True)
def logic(m: Maker) -> Any:
    x = m.pick("bits")
    return m.random.choice((ops.and_, ops.or_, ops.xor))(x, _same(m, x))


@step(1.5, is_scalar=True)
def shift(m: Maker) -> Any:
    x = m.pick("integer")
    return m.random.choice((ops.shift_left, ops.shift_right_arithmetic, ops.shift_right_logical))(x, _same(m, x))


@step(4, exact=True, is_scalar=True)
def comparison(m: Maker) -> Any:
    x = m.pick("any")
    name = m.random.choice(("eq", "ne") if x.element_type.is_complex else ("eq", "ne", "ge", "gt", "le", "lt"))
    in_total_order = x.element_type.is_float and m.chance(0.2)
    return getattr(ops, name + "_total_order" * in_total_order)(x, _same(m, x))


@step(4, is_scalar=True)
def choice(m: Maker) -> Any:
    x = m.pick("any")
    pred = m.like("pred", x.dims if m.chance(0.75) else ())
    return ops.select(pred, x, _same(m, x))


@step(1, is_scalar=True)
def clamped(m: Maker) -> Any:
    x = m.pick("real")
    bounds = [_same(m, x) if m.chance(0.5) else m.scalar(x.element_type.name) for _ in range(2)]
    if bounds[0].rank != bounds[1].rank:
        bounds[1] = _same(m, x) if bounds[0].rank else m.scalar(x.element_type.name)
    return ops.clamp(bounds[0], x, bounds[1])


@step(5, exact=True, rounds=True, is_scalar=True)
def conversion(m: Maker) -> Any:
    x, element = m.pick("any"), m.element()
    if element == "f8e8m0fnu" != x.element_type.name:
        # It has no zero: XLA makes NaN of it, but 2**-127 of a constant.
        wide = ops.convert_element_type(x, "f32")
        x = ops.select(wide > 0, wide, ops.broadcast(ops.constant(1, "f32"), x.dims))
    return ops.convert_element_type(x, element)


@step(1, rounds=True, is_scalar=True)
def float_conversion(m: Maker) -> Any:
    return ops.convert_element_type(m.pick("inexact"), m.element("complex" if m.chance(0.15) else "wide"))


@step(0.7, is_scalar=True)
def parts(m: Maker) -> Any:
    if m.chance(0.5):
        x = m.pick("wide", where=lambda v: v.element_type.name in ("f32", "f64"))
        return ops.complex(x, _same(m, x))
    return m.random.choice((ops.real, ops.imag))(m.pick("complex"))


@step(0.7, exact=True, is_scalar=True)
def lower_precision(m: Maker) -> Any:
    return ops.reduce_precision(m.pick("wide"), m.random.choice((3, 5, 8)), m.random.choice((1, 3, 7, 10)))


@step(1)
def same_bits(m: Maker) -> Any:
    x = m.pick("integer", most=4)
    bits = x.element_type.bits
    narrower = [
        name for name in KINDS["integer"] if bits % element_type(name).bits == 0 and element_type(name).bits >= 8
    ]
    wider = [
        name
        for name in KINDS["integer"]
        if element_type(name).bits % bits == 0
        and x.rank
        and x.dims[-1] == element_type(name).bits // bits
        and bits >= 8
    ]
    names = sorted({*narrower, *wider} - {x.element_type.name})
    if not names:
        raise UnfitError
    return ops.bitcast_convert_type(x, m.random.choice(names))


def scalar_function(m: Maker, elements: list[str], result: str, values: tuple[Value, ...], *, exact: bool) -> Value:
    """The body of a computation of scalars."""
    inner = m.inner([(value, 0 if exact else 1) for value in values], exact=exact, highest=0)
    grow(inner, m.random.randint(1, 4), only_scalars=True)
    inner.limit, inner.taken = (0 if inner.exact else 3), 0
    m.taken = max(m.taken, 0 if exact else 2)
    return inner.like(result, ())


@step(2, nests=True)
def mapped(m: Maker) -> Any:
    x = m.pick("any")
    operands = [x, *(m.like(m.element(), x.dims) for _ in range(m.random.randint(0, 2)))]
    result, exact = m.element(), m.taken == 0 and m.chance(0.5)
    elements = [operand.element_type.name for operand in operands]
    return ops.map(operands, lambda *values: scalar_function(m, elements, result, values, exact=exact))


@step(1.5, nests=True)
def called(m: Maker) -> Any:
    x = m.pick("any")
    operands = [x, m.pick("any")]
    exact = m.taken == 0 and m.chance(0.5)

    def body(*values: Value) -> Any:
        inner = m.inner([(value, 0 if exact else 1) for value in values], exact=exact)
        grow(inner, m.random.randint(1, 4))
        inner.limit = 0 if inner.exact else 3
        return inner.pick("any"), inner.pick("any")

    m.taken = max(m.taken, 0 if exact else 3)
    if m.chance(0.5):
        return ops.call(body, *operands)
    return hloforge.composite("fuzz.part", version=m.random.randint(0, 2))(body)(*operands)
