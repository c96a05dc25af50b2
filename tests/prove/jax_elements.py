"""Steps that compute each element alone, as users of JAX write them."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy.special as special
from jax import lax

from tests.prove.pool import FLOATS, INTEGERS, Item, Pool, UnfitError, highest, step

_SMALL = (jnp.sin, jnp.cos, jnp.tanh, jnp.arctan, jax.nn.sigmoid, jax.nn.softmax, lax.erf, lambda x: jnp.exp(-x * x),
          special.expit, special.ndtr, lambda x: 1 / (1 + x * x), lambda x: lax.rsqrt(1 + x * x), jnp.sinc,
          jax.nn.hard_tanh)  # fmt: skip
_EQUAL = (jnp.abs, jnp.negative, jax.nn.relu, jax.nn.softplus, jax.nn.gelu, jax.nn.silu, jax.nn.elu, jax.nn.selu,
          jax.nn.leaky_relu, jax.nn.celu, jnp.arcsinh, jax.nn.relu6, lambda x: jnp.log1p(jnp.abs(x)), jax.nn.mish,
          lambda x: jnp.sqrt(1 + jnp.abs(x)), lambda x: jnp.log(2 + jnp.abs(x)), jax.nn.log_sigmoid, jnp.positive,
          lambda x: jnp.logaddexp(x, 0 * x + 1), lambda x: jnp.hypot(x, 1 + x * 0), lambda x: jnp.nan_to_num(x),
          jax.nn.squareplus, lambda x: jnp.arctan2(x, 2 + jnp.abs(x)), lambda x: x / 3, lambda x: jnp.cbrt(x + 20),
          lambda x: jnp.deg2rad(x), lambda x: jnp.rad2deg(x) / 64, lambda x: special.xlogy(x, 2 + jnp.abs(x)),
          lambda x: special.gammaln(1 + jnp.abs(x)), lambda x: special.digamma(2 + jnp.abs(x)), special.i0e,
          special.i1e, lambda x: special.entr(1 + jnp.abs(x)), lambda x: special.betaln(1 + jnp.abs(x), 2.5),
          lambda x: special.erfinv(x / 200), lambda x: special.logsumexp(jnp.stack([x, -x]), 0))  # fmt: skip
_KINKED = (jnp.abs, jax.nn.relu, jax.nn.relu6, jax.nn.leaky_relu, jax.nn.hard_tanh, jnp.nan_to_num)
_JUMPS = (jnp.floor, jnp.ceil, jnp.round, jnp.sign, jnp.trunc, jnp.rint, lambda x: jnp.modf(x)[0],
          lambda x: jnp.frexp(x)[0], lambda x: x - jnp.floor(x),
          # Of 0 they make subnormal numbers, which XLA takes for 0.
          lambda x: jnp.spacing(1 + jnp.abs(x)),
          lambda x: jnp.nextafter(1 + jnp.abs(x), jnp.zeros_like(x)))  # fmt: skip
_RAW = (jnp.log, jnp.sqrt, jnp.exp2, jnp.arccos, jnp.arcsin, jnp.arctanh, jnp.log2, jnp.log10, jnp.cbrt, jnp.tan,
        jnp.arccosh, lax.rsqrt, jnp.reciprocal, jnp.expm1, jnp.cosh, jnp.sinh, jnp.square, lax.lgamma, lax.erfc,
        lambda x: x**3, lambda x: x**0.5, lambda x: x**-2, lambda x: jnp.power(jnp.abs(x), 1.5))  # fmt: skip
_OF_COMPLEX = (jnp.conj, jnp.negative, jnp.sin, jnp.cos, jnp.tanh, lambda x: jnp.exp(x / 4), lambda x: x * x,
               lambda x: x / (2 + jnp.abs(x)), lambda x: jnp.sqrt(x + 30), lambda x: jnp.log(x + 30), jnp.square,
               lambda x: 1j * x, lambda x: lax.complex(jnp.imag(x), jnp.real(x)))  # fmt: skip
_OF_INTEGER = (jnp.abs, jnp.negative, jnp.invert, jnp.sign, lax.population_count, lax.clz, jnp.square, jnp.positive,
               lambda x: x << 1, lambda x: x >> 2, lambda x: x**3, lambda x: x // 3, lambda x: x % 5, lambda x: -x // 2,
               lambda x: jnp.clip(x, 1, 4), lambda x: jnp.bitwise_count(x), lambda x: x * 3 - 1, lambda x: ~x & 7,
               lambda x: jnp.divmod(x, 3)[1], lambda x: jnp.fmod(x, 3))  # fmt: skip


@step(6, smooth=True)
def function(p: Pool) -> None:
    x = p.pick("float", where=lambda i: i.bound <= 10)
    small = p.chance(0.4)
    options = [f for f in (_SMALL if small else _EQUAL) if not p.smooth or f not in _KINKED]
    f = p.choice([f for f in options if f is not jax.nn.softmax or x.shape])
    p.add(f(x.value), x, rounds=True, bound=3.0 if small else max(x.bound, 3.0) * 1.6)


@step(2)
def raw_function(p: Pool) -> None:
    """Of arguments anywhere, so that poles, branch cuts and NaN are met."""
    x = p.pick("float", depth=0, where=lambda i: i.bound <= 3)
    # What is not finite is met by what moves, compares and chooses.
    made = p.choice(_RAW)(x.value)
    p.add(jnp.where(jnp.abs(made) < 512, made, 1), x, rounds=True, bound=9.0)
    if p.chance(0.3):
        p.add(jnp.isfinite(made))


@step(2)
def jump(p: Pool) -> None:
    x = p.pick("float", depth=0)
    p.add(p.choice(_JUMPS)(x.value), x)


@step(3)
def complex_function(p: Pool) -> None:
    x = p.pick("complex", where=lambda i: i.bound <= 4)
    p.add(p.choice(_OF_COMPLEX)(x.value), x, rounds=True, bound=8.0)


@step(1.5)
def parts(p: Pool) -> None:
    if p.chance(0.5):
        x = p.pick("complex")
        p.add(p.choice((jnp.real, jnp.imag, jnp.abs))(x.value), x, rounds=True)
    else:
        x = p.pick("float", where=lambda i: i.dtype in ("float32", "float64"))
        p.add(lax.complex(x.value, p.like(x).value), x, rounds=True)


@step(4)
def integer_function(p: Pool) -> None:
    x = p.pick("integer")
    p.add(p.choice(_OF_INTEGER)(x.value))


def _pair(p: Pool, *kinds: str, depth: int | None = None) -> tuple[Item, Item]:
    """Two values that broadcast."""
    x = p.pick(*kinds, depth=depth)
    shape = x.shape
    if p.chance(0.3):
        shape = tuple(1 if p.chance(0.4) else size for size in shape)[p.random.randint(0, len(shape)) :]
    return x, p.like(x, shape, depth=depth)


@step(6, smooth=True)
def arithmetic(p: Pool) -> None:
    x, y = _pair(p, "float", "complex")
    kind = p.choice("+-*/")
    if kind == "/":
        p.add(x.value / (1 + jnp.abs(y.value).astype(x.dtype)), x, y, rounds=True, bound=x.bound)
    else:
        bound = x.bound + y.bound if kind == "*" else max(x.bound, y.bound) + 1
        if bound > highest(x.dtype):
            raise UnfitError
        made = {"+": jnp.add, "-": jnp.subtract, "*": jnp.multiply}[kind](x.value, y.value)
        p.add(made, x, y, rounds=True, bound=bound)


@step(4)
def integer_arithmetic(p: Pool) -> None:
    x, y = _pair(p, "integer")
    options = [jnp.add, jnp.subtract, jnp.multiply, jnp.bitwise_and, jnp.bitwise_or, jnp.bitwise_xor, jnp.minimum,
               jnp.maximum, jnp.floor_divide, jnp.remainder, lax.div, lax.rem, jnp.left_shift, jnp.right_shift,
               jnp.gcd, lax.shift_right_logical]  # fmt: skip
    f = p.choice(options)
    a, b = x.value, y.value
    if f in (lax.div, lax.rem, lax.shift_right_logical):
        b = jnp.broadcast_to(b, jnp.broadcast_shapes(a.shape, b.shape))
        a = jnp.broadcast_to(a, b.shape)
    if f in (jnp.left_shift, jnp.right_shift, lax.shift_right_logical):
        b = b & 7
    if f is jnp.gcd:
        a, b = a & 63, b & 63
    p.add(f(a, b))


@step(3)
def logic(p: Pool) -> None:
    x, y = _pair(p, "bool")
    f = p.choice((jnp.logical_and, jnp.logical_or, jnp.logical_xor, jnp.add, jnp.multiply, jnp.maximum, jnp.equal))
    p.add(~f(x.value, y.value) if p.chance(0.3) else f(x.value, y.value))


@step(3)
def comparison(p: Pool) -> None:
    x, y = _pair(p, "float", "integer", "complex", depth=0)
    options = [jnp.equal, jnp.not_equal]
    if "complex" not in x.dtype:
        options += [jnp.less, jnp.less_equal, jnp.greater, jnp.greater_equal]
    p.add(p.choice(options)(x.value, y.value))


@step(3)
def extreme(p: Pool) -> None:
    x, y = _pair(p, "float", "integer")
    p.add(p.choice((jnp.minimum, jnp.maximum, jnp.fmin, jnp.fmax))(x.value, y.value), x, y)


@step(3)
def choice(p: Pool) -> None:
    x, y = _pair(p)
    shape = jnp.broadcast_shapes(x.shape, y.shape)
    mask = p.like(x, shape if p.chance(0.6) else shape[-1:], "bool")
    p.add(jnp.where(mask.value, x.value, y.value), x, y)


@step(4)
def conversion(p: Pool) -> None:
    """To another type of the program; numbers that lie in both, or saturate."""
    x = p.pick("bool", "integer", "float", "tiny", depth=0)
    dtype = p.choice(p.types if p.chance(0.6) else (*FLOATS, *INTEGERS, "bool"))
    value = x.value
    if dtype in ("int4", "uint4"):
        value = jnp.clip(value.astype("int32"), 0, 7)
    elif dtype.startswith("uint") and "float" in x.dtype:
        value = jnp.abs(value)
    made: Any = value.astype(dtype)
    if "float" in dtype and "int" in x.dtype:
        made = jnp.clip(made, -100, 100)
        p.add(made, x, bound=7.0)
    elif "float" in dtype and x.bound > 8 and dtype.startswith(("float8", "float16")):
        raise UnfitError
    else:
        p.add(made, x)


@step(2, smooth=True)
def rounding_conversion(p: Pool) -> None:
    """There and back, through a narrower or a wider type."""
    x = p.pick("float", where=lambda i: i.bound <= 9)
    p.add(x.value.astype(p.choice(FLOATS)).astype(x.dtype), x, rounds=True)


@step(1)
def bits(p: Pool) -> None:
    x = p.pick("float", "integer", depth=0)
    width = x.value.dtype.itemsize * 8
    options = [name for name in (*INTEGERS, *FLOATS) if jnp.dtype(name).itemsize * 8 == width and "int" in name]
    p.add(lax.bitcast_convert_type(x.value, p.choice(options)))
