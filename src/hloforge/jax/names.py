"""The name by which JAX knows hloforge's devices: ``hloforge``, or ``cpu`` where they stand in for JAX's CPU.

Programs, libraries and tests decide by ``jax.default_backend()`` and ``device.platform``. With
``HLOFORGE_JAX_PLATFORM=cpu`` JAX's CPU is hloforge: JAX lowers by its own rules for the CPU, and only functions of
Python are called by numbers.

Tried with JAX 0.10.2.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from jax._src import config, xla_bridge
from jax._src.debugging import inspect_sharding_p
from jax._src.interpreters import mlir
from jax._src.lib import xla_client  # type: ignore[attr-defined]

from hloforge.dialect.mlir import stablehlo
from hloforge.jax import callbacks, inspections
from hloforge.jax.platform import PLATFORM

CPU = "cpu"
VARIABLE = "HLOFORGE_JAX_PLATFORM"
# What devices.c says, behind a line of jaxlib about plugins.
_VERSION = "hloforge on IREE"


def stands_in_for_cpu() -> bool:
    """Whether hloforge is to be JAX's CPU.

    Raises:
        ValueError: another name is asked for.
    """
    name = os.environ.get(VARIABLE, PLATFORM)
    if name not in (PLATFORM, CPU):
        raise ValueError(f"{VARIABLE}={name!r}: give {PLATFORM} or {CPU}")
    return name == CPU


def is_renamed() -> bool:
    """Whether the user asks for another name, valid or not."""
    return os.environ.get(VARIABLE, PLATFORM) != PLATFORM


def is_ours(client: Any) -> bool:
    """Whether a client of JAX runs programs on hloforge, by whichever name."""
    return bool(client.platform_version.endswith(_VERSION))


def cpu_of_jax() -> Any:
    """The client of JAX's own CPU, beside ours if that has its name: XLA answers some questions by it."""
    client = xla_bridge.get_backend(CPU)
    return _beside() if is_ours(client) else client


@functools.cache
def _beside() -> Any:
    """A client of this process alone, also where there are several: it is not made in all of them at once."""
    return xla_client.make_cpu_client(num_devices=max(xla_bridge.num_cpu_devices.value, 1))


def stablehlo_version() -> tuple[int, int, int]:
    """Of the programs that this jaxlib reads, and may hand to us."""
    major, minor, patch = map(int, stablehlo.get_current_version().split("."))
    return major, minor, patch


def register_beside_cpu(create: Callable[[], Any]) -> None:
    """Start JAX's CPU with ours: JAX has the arguments of callbacks there.

    It is no platform of ``jax_platforms``, which is the user's.
    """

    def create_both() -> Any:
        wanted = config.jax_platforms.value
        if wanted and CPU not in wanted.split(","):
            # JAX holds its lock, and has no list of backends before all of them are there.
            xla_bridge._backends[CPU] = xla_bridge._init_backend(CPU)
        return create()

    _replace_factory(PLATFORM, create_both)


def register_for_cpu(create: Callable[[], Any]) -> None:
    """Let JAX's CPU be what ``create`` makes: under both names one client."""

    def create_once() -> Any:
        known = xla_bridge._backends
        if CPU not in known:
            known[CPU] = known[PLATFORM] = create()
        return known[CPU]

    _replace_factory(CPU, create_once)
    _replace_factory(PLATFORM, create_once)
    _number_callbacks()
    _ask_from_another_process()


def _replace_factory(name: str, factory: Callable[[], Any]) -> None:
    xla_bridge._backend_factories[name] = replace(xla_bridge._backend_factories[name], factory=factory)


def _number_callbacks() -> None:
    """Let programs lowered for our client name functions of Python by numbers, whichever rule wrote the call."""
    lower = mlir.lower_jaxpr_to_module

    @functools.wraps(lower)
    def numbered(*arguments: Any, **options: Any) -> Any:
        lowered = lower(*arguments, **options)
        backend, functions = options.get("backend"), lowered.host_callbacks
        if backend is None or not functions or not is_ours(backend):
            return lowered
        kept = [*(lowered.keepalive or ()), *callbacks.adopt_all(lowered.module, functions)]
        return lowered._replace(host_callbacks=[], keepalive=kept)

    mlir.lower_jaxpr_to_module = numbered


def _ask_from_another_process() -> None:
    """Let ``jax.debug.inspect_array_sharding`` name its functions by numbers, too."""
    rule = mlir._lowerings[inspect_sharding_p].rule
    ours = inspections.adopting(rule)

    def lower(context: Any, *operands: Any, **parameters: Any) -> Any:
        backend = context.module_context.backend
        chosen = ours if backend is not None and is_ours(backend) else rule
        return chosen(context, *operands, **parameters)

    mlir.register_lowering(inspect_sharding_p, lower, platform=CPU)
