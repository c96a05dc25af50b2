"""hloforge as a platform of JAX: ``JAX_PLATFORMS=hloforge python train.py`` runs a program unchanged.

JAX finds ``initialize`` by the entry point group ``jax_plugins``. Nothing of hloforge's compiler or of IREE is imported
before the first array or program of the platform: JAX starts every platform that it knows.
"""

from __future__ import annotations

import atexit
import os
from typing import Any

PLATFORM = "hloforge"
# How many devices there are, each a thread of this process.
DEVICES_VARIABLE = "HLOFORGE_JAX_DEVICES"
# Below that of JAX's CPU, which is 0: whoever wants hloforge says so.
_PRIORITY = -100


def initialize() -> None:
    """Make the platform known to JAX.

    Its clients fail with a plain message where the extension module was not built.
    """
    from jax._src import xla_bridge

    try:
        from hloforge.jax.plugin import _pjrt
    except ImportError as error:
        reason = str(error)
        xla_bridge.register_backend_factory(PLATFORM, lambda: _refuse(reason), priority=_PRIORITY, fail_quietly=True)
        return
    from jax._src.interpreters import mlir

    # JAX warns of a platform that it does not know, and drops donations there.
    xla_bridge._nonexperimental_plugins.add(PLATFORM)
    if PLATFORM not in mlir._platforms_with_donation:
        mlir._platforms_with_donation.append(PLATFORM)
    xla_bridge.register_plugin(PLATFORM, priority=_PRIORITY, c_api=_pjrt.api(), options=_options)
    # Before JAX ends its clients: threads must not ask for an interpreter that ends.
    atexit.register(_pjrt.stop)
    _lower_for_the_platform()


def _lower_for_the_platform() -> None:
    """Give JAX our rules, and its CPU beside us: it has the arguments of callbacks there."""
    import jax

    from hloforge.jax.platform import register

    register()
    if jax.config.jax_platforms == PLATFORM:
        jax.config.update("jax_platforms", f"{PLATFORM},cpu")


def _options() -> dict[str, Any]:
    """What the client is created with. Raises ValueError for a number of devices that is none."""
    count = os.environ.get(DEVICES_VARIABLE, "1")
    if not count.isdecimal() or int(count) < 1:
        raise ValueError(f"{DEVICES_VARIABLE}={count!r}: give a number of devices, 1 or more")
    return {"devices": int(count)}


def _refuse(reason: str) -> Any:
    raise RuntimeError(
        f"JAX cannot run on hloforge: its extension module was not built ({reason}). Install a C compiler and Python's "
        "headers, then hloforge again: pip install --force-reinstall --no-deps hloforge"
    )
