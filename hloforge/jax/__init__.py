"""JAX on hloforge: ``hloforge.jit`` and ``hloforge.jax.compile``, and the platform that JAX lowers for.

Raises (on import):
    ImportError: JAX is not installed.
"""

from __future__ import annotations

try:
    import jax as _jax  # noqa: F401
except ModuleNotFoundError as error:
    if error.name != "jax":
        raise
    message = "hloforge.jit and hloforge.jax need JAX, which is not installed: pip install 'hloforge[jax]'"
    raise ModuleNotFoundError(message, name="jax") from None

from hloforge.jax.compiled import Compiled, compile
from hloforge.jax.jit import Jitted, jit
from hloforge.jax.platform import PLATFORM, register

__all__ = ["PLATFORM", "Compiled", "Jitted", "compile", "jit", "register"]
