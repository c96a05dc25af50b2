"""JAX on hloforge: ``hloforge.jit`` and ``hloforge.jax.compile``, and the platform that JAX lowers for.

The names are imported when one is first used: JAX imports ``hloforge.jax.plugin`` in every process.

Raises (on import):
    ImportError: JAX is not installed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

try:
    import jax as _jax  # noqa: F401
except ModuleNotFoundError as error:
    if error.name != "jax":
        raise
    message = (
        "hloforge.jit and hloforge.jax need JAX, which is not installed: "
        "pip install 'hloforge[jax]', in a clone '.[jax]'"
    )
    raise ModuleNotFoundError(message, name="jax") from None

if TYPE_CHECKING:
    from hloforge.jax.compiled import Compiled, compile
    from hloforge.jax.jitted import Jitted, jit
    from hloforge.jax.platform import PLATFORM, register

__all__ = ["PLATFORM", "Compiled", "Jitted", "compile", "jit", "register"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'hloforge.jax' has no attribute {name!r}")
    from hloforge.jax.compiled import Compiled, compile
    from hloforge.jax.jitted import Jitted, jit
    from hloforge.jax.platform import PLATFORM, register

    # All at once: the module ``jit`` must not stay where the function is meant.
    found = {each.__name__: each for each in (Compiled, Jitted, compile, jit, register)}
    globals().update(found, PLATFORM=PLATFORM)
    return globals()[name]
