"""hloforge as a platform of JAX: ``JAX_PLATFORMS=hloforge python train.py`` runs a program unchanged.

JAX finds ``initialize`` by the entry point group ``jax_plugins``. Nothing of hloforge's compiler or of IREE is imported
before the first array or program of the platform: JAX starts every platform that it knows.
"""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Callable
from typing import Any

# How many devices there are, each a thread of this process; without it as many as JAX is to make of its CPU.
DEVICES_VARIABLE = "HLOFORGE_JAX_DEVICES"


def initialize() -> None:
    """Make the platform known to JAX.

    Its clients fail with a plain message where the extension module was not built.
    """
    from hloforge.jax import backend, names

    try:
        is_cpu = names.stands_in_for_cpu()
    except ValueError as error:
        backend.register_refusal(str(error))
        return
    try:
        from hloforge.jax.plugin import _pjrt
    except ImportError as error:
        backend.register_refusal(
            f"JAX cannot run on hloforge: its extension module was not built ({error}). Install a C compiler and "
            "Python's headers, then hloforge again: pip install --force-reinstall --no-deps hloforge"
        )
        return
    try:
        backend.register(_pjrt.api(names.stablehlo_version()), _options, _pjrt.guard, is_cpu=is_cpu)
    except Exception as error:
        # JAX would go on with a line in its log, on its own CPU.
        backend.register_refusal(f"JAX cannot run on hloforge: {error}")
        raise
    # Before JAX ends its clients: threads must not ask for an interpreter that ends.
    atexit.register(_stop, _pjrt.stop)


def _stop(finish: Callable[[], None]) -> None:
    finish()
    processes = sys.modules.get("hloforge.jax.processes")
    if processes is not None:
        processes.leave()


def _options() -> dict[str, Any]:
    """What the client is created with.

    Raises:
        ValueError: a number of devices that is none.
        RuntimeError: another process does not come.
    """
    from hloforge.jax import backend

    count = _devices()
    state = backend.joined_processes()
    if state is None:
        return {"devices": count}
    # This loads what a process alone does not need.
    from hloforge.jax import processes

    world = processes.join(state, count)
    return {"devices": world.counts, "process": world.process}


def _devices() -> int:
    """How many devices this process is to have."""
    from hloforge.jax import backend

    count = os.environ.get(DEVICES_VARIABLE)
    if count is None:
        return backend.cpu_devices()
    if not count.isdecimal() or int(count) < 1:
        raise ValueError(f"{DEVICES_VARIABLE}={count!r}: give a number of devices, 1 or more")
    return int(count)
