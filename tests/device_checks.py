"""What sessions on every GPU have to do, for the suites of Vulkan and of CUDA."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

import hloforge

_X = np.arange(12, dtype=np.float32).reshape(3, 4)
_Y = np.full((3, 4), 2, np.float32)


def donation_keeps_what_is_still_seen(target: str) -> None:
    step = jax.jit(lambda x, y: (x + y, x * y), donate_argnums=0)
    session = hloforge.compile(step.lower(_X, _Y), target=target, cache=False).load(deadline=60)
    total, product = session.call_device(session.put(_X, 0), _Y)
    second, _ = session.call_device(total, _Y)
    np.testing.assert_array_equal(np.asarray(second), _X + 4)
    np.testing.assert_array_equal(np.asarray(product), _X * 2)


def functions_of_the_host_see_and_return_arrays(target: str) -> None:
    def f(x: jax.Array) -> jax.Array:
        shape = jax.ShapeDtypeStruct((3, 4), jnp.float32)
        return jax.pure_callback(lambda v: np.asarray(v) + 1, shape, x * 2) * 3

    session = hloforge.compile(jax.jit(f).lower(_X), target=target, cache=False).load(deadline=60)
    np.testing.assert_array_equal(session(_X), (_X * 2 + 1) * 3)
