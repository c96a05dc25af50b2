"""What a call of a host function costs: a program that hands four numbers to numpy, and does nothing else."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np

import hloforge

_TEXT = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = stablehlo.custom_call @benchmark(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32> }"""


def calls() -> dict[str, Callable[[], Any]]:
    """The ways to call it, by name; those of JAX where it is installed.

    ``callback`` is a Python function of numpy arrays, ``jax callback`` the same program of ``jax.pure_callback`` that
    ``xla callback`` runs by JAX on XLA's CPU client.
    """
    x = np.ones(4, np.float32)
    session = hloforge.compile(_TEXT, host_calls={"benchmark"}).load(host={"benchmark": np.negative})
    ways = _by_jax(x) if importlib.util.find_spec("jax") else {}
    return ways | {"callback": lambda: session(x)}


def _by_jax(x: np.ndarray[Any, Any]) -> dict[str, Callable[[], Any]]:
    import jax

    cpu = jax.devices("cpu")[0]
    shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
    function = jax.jit(lambda x: jax.pure_callback(np.negative, shape, x))
    with jax.default_device(cpu):
        session = hloforge.compile(function.lower(x)).load()

    def by_xla() -> Any:
        with jax.default_device(cpu):
            return np.asarray(function(x))

    return {"xla callback": by_xla, "jax callback": lambda: session(x)}
