"""Elementwise functions: arithmetic, transcendental functions, comparisons, bits."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy import special

from hloforge.torch.interpreter import converted
from hloforge.torch.registry import Call, Kind, lowers, number, pointwise

_FLOAT = Kind.INT_TO_FLOAT
_BOOL = Kind.ALWAYS_BOOL


def _register(table: dict[str, Any], kind: Kind = Kind.DEFAULT, *, wide: bool = False) -> None:
    """Functions by the operator's name, in ATen and in PyTorch's primitives."""
    for name, function in table.items():
        pointwise(f"aten.{name}", f"prims.{name}", kind=kind, wide=wide)(function)


def digamma(x: Any) -> Any:
    """The derivative of the logarithm of the gamma function, with PyTorch's infinities at the zeros."""
    return jnp.where(x == 0, jnp.copysign(jnp.asarray(np.inf, x.dtype), -x), special.digamma(x))


def zeta(x: Any, q: Any) -> Any:
    """Hurwitz' zeta function, with PyTorch's infinities at whole numbers below 1, where JAX has some NaN."""
    is_pole = (q <= 0) & (q == jnp.floor(q))
    found = jnp.where(is_pole, np.inf, special.zeta(x, q))
    return jnp.where(x == 1, np.inf, jnp.where(x < 1, np.nan, found))


_register(
    {
        "abs": jnp.abs,
        "bitwise_not": jnp.bitwise_not,
        "ceil": lambda x: x if x.dtype.kind in "iub" else jnp.ceil(x),
        "floor": lambda x: x if x.dtype.kind in "iub" else jnp.floor(x),
        "trunc": lambda x: x if x.dtype.kind in "iub" else jnp.trunc(x),
        "neg": lambda x: -x,
        "conj_physical": jnp.conj,
        "_conj_physical": jnp.conj,
        "sign": lambda x: x if x.dtype == np.bool_ else jnp.where(jnp.isnan(x), 0, jnp.sign(x)).astype(x.dtype),
        "bitwise_and": jnp.bitwise_and,
        "bitwise_or": jnp.bitwise_or,
        "bitwise_xor": jnp.bitwise_xor,
        "maximum": jnp.maximum,
        "minimum": jnp.minimum,
        "fmax": jnp.fmax,
        "fmin": jnp.fmin,
        "gcd": jnp.gcd,
        "mul": lambda x, y: jnp.logical_and(x, y) if x.dtype == np.bool_ else x * y,
        "nextafter": jnp.nextafter,
    }
)
_register(
    {
        "acos": jnp.arccos,
        "acosh": jnp.arccosh,
        "asin": jnp.arcsin,
        "asinh": jnp.arcsinh,
        "atan": jnp.arctan,
        "atanh": jnp.arctanh,
        "cos": jnp.cos,
        "cosh": jnp.cosh,
        "erf": special.erf,
        "erfc": special.erfc,
        "exp": jnp.exp,
        "exp2": jnp.exp2,
        "expm1": jnp.expm1,
        "log": jnp.log,
        "log10": jnp.log10,
        "log1p": jnp.log1p,
        "log2": jnp.log2,
        "reciprocal": lambda x: 1 / x,
        "rsqrt": lambda x: jax.lax.rsqrt(x),
        "sin": jnp.sin,
        "sinh": jnp.sinh,
        "sqrt": jnp.sqrt,
        "tan": jnp.tan,
        "tanh": jnp.tanh,
        "atan2": jnp.arctan2,
        "hypot": jnp.hypot,
    },
    _FLOAT,
)
_register(
    {
        "bessel_i0e": special.i0e,
        "bessel_i1": special.i1,
        "bessel_i1e": special.i1e,
        "cbrt": jnp.cbrt,
        "digamma": digamma,
        "erf_inv": special.erfinv,
        "lgamma": special.gammaln,
        "ndtri": special.ndtri,
        "zeta": zeta,
        "igamma": special.gammainc,
        "igammac": special.gammaincc,
    },
    _FLOAT,
    wide=True,
)
_register(
    {
        "eq": lambda x, y: x == y,
        "ne": lambda x, y: x != y,
        "ge": lambda x, y: x >= y,
        "gt": lambda x, y: x > y,
        "le": lambda x, y: x <= y,
        "lt": lambda x, y: x < y,
        "isnan": lambda x: jnp.isnan(x),
        "isinf": lambda x: jnp.isinf(x),
        "isfinite": lambda x: jnp.isfinite(x),
        "signbit": lambda x: jnp.zeros(x.shape, np.bool_) if x.dtype == np.bool_ else jnp.signbit(x),
        "logical_not": jnp.logical_not,
        "logical_and": jnp.logical_and,
        "logical_or": jnp.logical_or,
        "logical_xor": jnp.logical_xor,
    },
    _BOOL,
)
pointwise("aten.sigmoid", kind=_FLOAT, wide=True)(
    lambda x: jax.nn.sigmoid(x) if x.dtype.kind == "f" else 1 / (1 + jnp.exp(-x))
)
pointwise("aten.relu")(lambda x: jnp.maximum(x, 0))
pointwise("aten.erfinv", kind=_FLOAT, wide=True)(special.erfinv)
pointwise("aten.i0", "aten.special_i0", "prims.bessel_i0", kind=_FLOAT, wide=True)(special.i0)
pointwise("aten.special_i0e", kind=_FLOAT, wide=True)(special.i0e)
pointwise("aten.special_i1", kind=_FLOAT, wide=True)(special.i1)
pointwise("aten.special_i1e", kind=_FLOAT, wide=True)(special.i1e)
pointwise("aten.special_ndtri", kind=_FLOAT, wide=True)(special.ndtri)
pointwise("aten.special_zeta", kind=_FLOAT, wide=True)(zeta)


@pointwise("aten.special_log_ndtr", kind=_FLOAT, wide=True)
def _log_ndtr(x: jax.Array) -> jax.Array:
    # JAX's takes the logarithm of a number near 1 there, which leaves few digits.
    upper = jnp.log1p(-special.erfc(x * np.sqrt(0.5).astype(x.dtype)) / 2)
    # The asymptotic series from -20 (f64) on: JAX's three terms leave eleven digits, ten leave all.
    return jnp.where(x > 0, upper, special.log_ndtr(jnp.minimum(x, 0), series_order=10))


@lowers("aten.add", "prims.add")
def add(call: Call, x: Any, y: Any, *, alpha: Any = 1) -> Any:
    x, y = _both(call, x, y)
    if x.dtype == np.bool_:
        return jnp.logical_or(x, y) if alpha else x
    return x + (y if _is_one(alpha) else y * number(alpha, x.dtype))


@lowers("aten.sub", "prims.sub")
def sub(call: Call, x: Any, y: Any, *, alpha: Any = 1) -> Any:
    x, y = _both(call, x, y)
    return x - (y if _is_one(alpha) else y * number(alpha, x.dtype))


@lowers("aten.rsub")
def rsub(call: Call, x: Any, y: Any, alpha: Any = 1) -> Any:
    return sub(call, y, x, alpha=alpha)


def _is_one(alpha: Any) -> bool:
    return isinstance(alpha, int | float) and alpha == 1


def _both(call: Call, x: Any, y: Any, kind: Kind = Kind.DEFAULT) -> tuple[Any, Any]:
    dtype = call.computed_in(kind)
    return tuple(converted(v, dtype) if hasattr(v, "dtype") else number(v, dtype) for v in (x, y))


@lowers("aten.div", "aten.true_divide")
def div(call: Call, x: Any, y: Any, *, rounding_mode: str | None = None) -> Any:
    x, y = _both(call, x, y, _FLOAT if rounding_mode is None else Kind.DEFAULT)
    if rounding_mode is None:
        return x / y
    if rounding_mode == "floor":
        return floor_divide(x, y)
    return jax.lax.div(*jnp.broadcast_arrays(x, y)) if x.dtype.kind in "iu" else jnp.trunc(x / y)


def floor_divide(x: Any, y: Any) -> Any:
    """PyTorch's: of floats, with the sign of zero and the infinities of a true division."""
    if x.dtype.kind in "iu":
        return jnp.floor_divide(x, y)
    quotient = jnp.floor_divide(x, y)
    exact = x / y
    return jnp.where((y == 0) | jnp.isinf(exact), exact, quotient)


pointwise("aten.floor_divide")(floor_divide)


@pointwise("prims.fma")
def fma(x: Any, y: Any, z: Any) -> Any:
    """Rounded twice, as PyTorch's own ``addcmul`` of the CPU does."""
    return x * y + z


@lowers("aten.addcdiv")
def addcdiv(call: Call, x: Any, first: Any, second: Any, *, value: Any = 1) -> Any:
    dtype = call.computed_in(Kind.DEFAULT, wide=True)
    x, first, second = (converted(each, dtype) for each in (x, first, second))
    return x + number(value, dtype) * first / second


@pointwise("prims.div")
def prims_div(x: Any, y: Any) -> Any:
    return jax.lax.div(*jnp.broadcast_arrays(x, y)) if x.dtype.kind in "iu" else x / y


@pointwise("aten.fmod", "prims.fmod")
def fmod(x: Any, y: Any) -> Any:
    return jax.lax.rem(*jnp.broadcast_arrays(x, y))


pointwise("aten.remainder", "prims.remainder")(jnp.remainder)


@lowers("aten.pow", "prims.pow")
def power(call: Call, x: Any, y: Any) -> Any:
    if isinstance(y, int) and not isinstance(y, bool) and hasattr(x, "dtype") and abs(y) < 64:
        dtype = call.dtype
        return jax.lax.integer_pow(converted(x, dtype), y) if y >= 0 or dtype.kind in "fc" else _int_power(x, y, dtype)
    x, y = _both(call, x, y)
    if x.dtype.kind in "iu":
        return _int_power(x, y, x.dtype)
    return jnp.power(x, y)


def _int_power(x: Any, y: Any, dtype: Any) -> Any:
    """Integers to integers: negative exponents leave 1 and -1."""
    x, y = jnp.broadcast_arrays(x.astype(dtype), jnp.asarray(y, dtype))
    result = jnp.ones_like(x)
    base, left = x, jnp.maximum(y, 0)
    # The exponent of a power that does not overflow has six bits; above, only 0, 1 and -1 matter, and wrapping.
    for _ in range(8 * np.dtype(dtype).itemsize):
        result = jnp.where(left & 1, result * base, result)
        base, left = base * base, left >> 1
    odd = jnp.where(y & 1, x, 1)
    unit = jnp.where(jnp.abs(x) == 1, odd, 0) if np.dtype(dtype).kind == "i" else jnp.where(x == 1, 1, 0)
    return jnp.where(y < 0, unit, result)


@pointwise("aten.round", "prims.round")
def round_(x: Any, *, decimals: int = 0) -> Any:
    if x.dtype.kind in "iub":
        return x
    return jnp.round(x) if decimals == 0 else jnp.round(x * 10.0**decimals) / 10.0**decimals


@pointwise("aten.bitwise_left_shift", "aten.__lshift__", "prims.shift_left")
def shift_left(x: Any, y: Any) -> Any:
    return jnp.left_shift(x, y)


@pointwise("aten.bitwise_right_shift", "aten.__rshift__", "prims.shift_right_arithmetic")
def shift_right(x: Any, y: Any) -> Any:
    return jnp.right_shift(x, y)


pointwise("prims.shift_right_logical")(lambda x, y: jax.lax.shift_right_logical(x, y))


@lowers("aten.where.self", "prims.where")
def where(call: Call, condition: Any, x: Any, y: Any) -> Any:
    dtype = call.dtype
    return jnp.where(condition, *(converted(v, dtype) if hasattr(v, "dtype") else number(v, dtype) for v in (x, y)))


@lowers("aten.clamp")
def clamp(call: Call, x: Any, low: Any = None, high: Any = None) -> Any:
    x = converted(x, call.dtype)
    # Nan stays, and of bounds that cross the upper one counts.
    if low is not None:
        x = jnp.maximum(x, converted(low, call.dtype) if hasattr(low, "dtype") else number(low, call.dtype))
    if high is not None:
        x = jnp.minimum(x, converted(high, call.dtype) if hasattr(high, "dtype") else number(high, call.dtype))
    return x


@lowers("aten.real", "prims.real")
def real(call: Call, x: Any) -> Any:
    return jnp.real(x)


@lowers("aten.imag", "prims.imag")
def imag(call: Call, x: Any) -> Any:
    return jnp.imag(x)


@lowers("aten.angle")
def angle(call: Call, x: Any) -> Any:
    if x.dtype.kind == "c":
        return jnp.angle(x)
    x = x.astype(call.dtype)
    return jnp.where(jnp.isnan(x), x, jnp.where(x < 0, np.pi, 0.0).astype(x.dtype))


@lowers("aten.sgn")
def sgn(call: Call, x: Any) -> Any:
    return x if x.dtype == np.bool_ else jnp.sign(x)


@lowers("aten.complex")
def complex_(call: Call, x: Any, y: Any) -> Any:
    parts = np.finfo(call.dtype).dtype
    return jax.lax.complex(*(part.astype(parts) for part in jnp.broadcast_arrays(x, y)))


@lowers("aten.polygamma")
def polygamma(call: Call, order: int, x: Any) -> Any:
    x = x.astype(np.promote_types(call.dtype, np.float32) if call.dtype.itemsize >= 4 else np.float32)
    if order == 0:
        return digamma(x)
    if order > 1:
        return _polygamma(order, x)
    # Below one half by reflection.
    sine = jnp.sin(np.pi * x)
    low = x < 0.5
    trigamma = special.zeta(jnp.asarray(2, x.dtype), jnp.where(low, 1 - x, x))
    return jnp.where(low, (np.pi / sine) ** 2 - trigamma, trigamma)


def _polygamma(order: int, x: Any) -> Any:
    """Of an order of 2 and more. Numbers below 1 are raised by the recurrence of Hurwitz' zeta function."""
    power = order + 1
    furthest = -(2.0**23)  # Below it f32 has whole numbers only, all of them poles.

    def is_low(place: Any) -> Any:
        return (place < 1) & (place > furthest)

    def turn(state: Any) -> Any:
        place, total = state
        low = is_low(place)
        return jnp.where(low, place + 1, place), jnp.where(low, total + place**-power, total)

    place, total = jax.lax.while_loop(lambda state: jnp.any(is_low(state[0])), turn, (x, jnp.zeros_like(x)))
    total = total + special.zeta(jnp.asarray(power, x.dtype), place)
    return (-1) ** power * math.factorial(order) * total


@lowers("aten.frexp", "prims.frexp")
def frexp(call: Call, x: Any) -> Any:
    return jnp.frexp(x)


@lowers("aten.gelu")
def gelu(call: Call, x: Any, *, approximate: str = "none") -> Any:
    wide = x.astype(np.promote_types(x.dtype, np.float32)) if x.dtype.itemsize < 4 else x
    return jax.nn.gelu(wide, approximate=approximate == "tanh")


@lowers("aten.polar")
def polar(call: Call, length: Any, angle: Any) -> Any:
    return jax.lax.complex(*jnp.broadcast_arrays(length * jnp.cos(angle), length * jnp.sin(angle)))
