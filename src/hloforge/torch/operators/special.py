"""Special functions: Bessel functions, orthogonal polynomials and other rare ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy import special

from hloforge.torch.registry import Kind, pointwise

_FLOAT = Kind.INT_TO_FLOAT

Step = Callable[[Any, Any, Any, Any], Any]


def _polynomial(name: str, first: Callable[[Any], Any], step: Step, shift: bool = False) -> None:
    """Register a family of polynomials by its recurrence.

    Args:
        first: of degree 1, from x.
        step: degree k + 1 from x, k and those of degrees k and k - 1.
        shift: on [0, 1] instead of [-1, 1].
    """

    def value(x: Any, degree: Any) -> Any:
        x, degree = jnp.broadcast_arrays(x, jnp.trunc(degree))
        x = 2 * x - 1 if shift else x
        most = jnp.max(degree, initial=0).astype(np.int64)

        def turn(state: Any) -> Any:
            k, below, here = state
            after = jnp.where(k < degree, step(x, k.astype(x.dtype), here, below), here)
            return k + 1, jnp.where(k < degree, here, below), after

        start = (jnp.ones((), np.int64), jnp.ones_like(x), first(x))
        found = jax.lax.while_loop(lambda state: state[0] < most, turn, start)[2]
        return jnp.where(degree < 0, 0, jnp.where(degree == 0, 1, found)).astype(x.dtype)

    pointwise(f"aten.special_{name}", kind=_FLOAT, wide=True)(value)


for _shift, _prefix in ((False, ""), (True, "shifted_")):
    for _letter, _first in {
        "t": lambda x: x,
        "u": lambda x: 2 * x,
        "v": lambda x: 2 * x - 1,
        "w": lambda x: 2 * x + 1,
    }.items():
        _polynomial(
            f"{_prefix}chebyshev_polynomial_{_letter}", _first, lambda x, k, here, below: 2 * x * here - below, _shift
        )
_polynomial("hermite_polynomial_h", lambda x: 2 * x, lambda x, k, here, below: 2 * x * here - 2 * k * below)
_polynomial("hermite_polynomial_he", lambda x: x, lambda x, k, here, below: x * here - k * below)
_polynomial(
    "laguerre_polynomial_l",
    lambda x: 1 - x,
    lambda x, k, here, below: ((2 * k + 1 - x) * here - k * below) / (k + 1),
)
_polynomial(
    "legendre_polynomial_p", lambda x: x, lambda x, k, here, below: ((2 * k + 1) * x * here - k * below) / (k + 1)
)


@pointwise("prims.spherical_bessel_j0", "aten.special_spherical_bessel_j0", kind=_FLOAT, wide=True)
def spherical_j0(x: Any) -> Any:
    near = 1 - x * x / 6
    return jnp.where(jnp.abs(x) < 1e-2, near, jnp.where(jnp.isinf(x), 0, jnp.sin(x) / x))


@pointwise("prims.erfcx", "aten.special_erfcx", kind=_FLOAT, wide=True)
def erfcx(x: Any) -> Any:
    """exp(x²) erfc(x): by a continued fraction where erfc vanishes."""
    large = jnp.maximum(x, 3.0)
    tail = large
    for k in range(60, 0, -1):
        tail = large + (k / 2) / tail
    near = jnp.exp(jnp.minimum(x, 3.0) ** 2) * special.erfc(jnp.minimum(x, 3.0))
    return jnp.where(x > 3, 1 / (tail * np.sqrt(np.pi)), near)


pointwise("aten.special_modified_bessel_i0", kind=_FLOAT, wide=True)(special.i0)
pointwise("aten.special_modified_bessel_i1", kind=_FLOAT, wide=True)(special.i1)
