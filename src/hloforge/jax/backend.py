"""What the backend needs of JAX's private modules: being registered, DLPack, guards, costs.

Tried with JAX 0.10.2.
"""

from __future__ import annotations

import ctypes
import functools
import os
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
from jax._src import compilation_cache, config, distributed, dlpack, source_info_util, traceback_util, xla_bridge
from jax._src.array import ArrayImpl
from jax._src.interpreters import pxla
from jax._src.lib import _profiler
from jax._src.typing import DLDeviceType

from hloforge.dialect.errors import OptionError
from hloforge.dialect.mlir import _jax
from hloforge.jax import names, platform
from hloforge.runtime.data.private_folders import distrust

# JAX's CPU has 0.
_PRIORITY = -100
# Booleans, integers, floats and complex numbers: what numpy makes capsules of.
_NUMPY_KINDS = "biufc"
# DLPack knows read-only arrays from this version on.
_KNOWS_READ_ONLY, _OLD = (1, 0), (0, 0)
_HOST = DLDeviceType.kDLCPU
_DEVICES_FLAG = re.compile(r"--xla_force_host_platform_device_count=(\d+)")
_NOTHING = "module { func.func @main() { return } }"


def register(functions: Any, options: Callable[[], dict[str, Any]], guard: Callable[[], None], *, is_cpu: bool) -> None:
    """Make ``hloforge`` a backend of JAX, below its CPU: whoever wants it says so.

    Args:
        functions: a capsule with the table of PJRT's functions.
        options: what the client is created with.
        guard: called before copies to the host are guarded for the first time.
        is_cpu: make it JAX's CPU as well.
    """

    def named() -> dict[str, Any]:
        return options() | ({"platform": names.CPU} if is_cpu else {})

    # JAX warns of platforms that it does not know.
    xla_bridge._nonexperimental_plugins.add(platform.PLATFORM)
    xla_bridge.register_plugin(platform.PLATFORM, priority=_PRIORITY, c_api=functions, options=named)
    # JAX does so for plugins that are libraries alone.
    _profiler.register_plugin_profiler(functions)
    platform.register()
    _hide_our_frames()
    _share_by_dlpack()
    _take_by_dlpack()
    _tell_costs()
    _allow_the_cache()
    create = _creating(xla_bridge._backend_factories[platform.PLATFORM].factory)
    if is_cpu:
        names.register_for_cpu(create)
    else:
        names.register_beside_cpu(create)
    _tell_of_guards(guard)


def register_refusal(reason: str) -> None:
    """Answer whoever wants the backend with the reason why there is none."""

    def refuse() -> Any:
        raise RuntimeError(reason)

    xla_bridge.register_backend_factory(platform.PLATFORM, refuse, priority=_PRIORITY, fail_quietly=True)
    if names.is_renamed():
        names.register_for_cpu(refuse)


def _creating(create: Callable[[], Any]) -> Callable[[], Any]:
    """What makes a client of ours by what makes a client of a plugin."""

    return lambda: _lasting(create())


def _lasting(client: Any) -> Any:
    """The client, which nothing ends any more: numpy's views of its arrays, as a script's variables, outlive JAX's last
    moment, and jaxlib asks the client when they go.
    """
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(client))
    return client


def _hide_our_frames() -> None:
    """Let JAX tell users of lines of their own: what this package wraps is of JAX, as its own functions are."""
    folder = f"{Path(__file__).parent}{os.sep}"
    source_info_util.register_exclusion(folder)
    traceback_util.register_exclusion(folder)


def _share_by_dlpack() -> None:
    """Let other libraries take the backend's arrays: jaxlib makes capsules for its own platforms alone.

    numpy makes them instead, of the memory that an array shows, and JAX's CPU of types that numpy does not know.
    Who does not ask for a version that knows read-only arrays gets a writable one, as of JAX's CPU.
    """
    capsule, place = ArrayImpl.__dlpack__, ArrayImpl.__dlpack_device__

    def shared(self: Any, **arguments: Any) -> Any:
        if not _is_ours(self):
            return capsule(self, **arguments)
        arguments.pop("stream", None)
        shown = np.asarray(self)
        if shown.dtype.kind not in _NUMPY_KINDS:
            return capsule(jax.device_put(shown, names.cpu_of_jax().local_devices()[0], may_alias=True), **arguments)
        knows_read_only = (arguments.get("max_version") or _OLD) >= _KNOWS_READ_ONLY
        return (shown if knows_read_only else _writable(shown)).__dlpack__(**arguments)

    def shared_device(self: Any) -> tuple[Any, int]:
        return (_HOST, 0) if _is_ours(self) else place(self)

    ArrayImpl.__dlpack__, ArrayImpl.__dlpack_device__ = shared, shared_device  # type: ignore[method-assign]


def _is_ours(array: Any) -> bool:
    """Whether an array that is to be shared lies on one device of hloforge.

    Raises:
        RuntimeError: it was deleted, about which jaxlib must not be asked.
        BufferError: it lies on several devices.
    """
    array._check_if_deleted()
    devices = array.sharding.device_set
    are_ours = names.is_ours(next(iter(devices)).client)
    if len(devices) > 1 and are_ours:
        raise BufferError(f"an array on {len(devices)} devices is not shared by DLPack: move it to one device first")
    return are_ours


def _take_by_dlpack() -> None:
    """Put what other libraries share onto hloforge, where that is JAX's default: its memory is the host's.

    JAX's own CPU takes it first: jaxlib copies what is not aligned for its own clients alone.
    """
    take = dlpack.from_dlpack
    if names.stands_in_for_cpu():
        setattr(dlpack, "xla_bridge", SimpleNamespace(get_backend=_of_jax))  # noqa: B010

    @functools.wraps(take)
    def from_dlpack(external_array: Any, device: Any = None, copy: bool | None = None) -> Any:
        if isinstance(external_array, ArrayImpl) and _is_ours(external_array) and device is None:
            return jax.device_put(external_array, external_array.sharding, may_alias=copy is not True)
        wanted = device
        if device is None:
            wanted = config.default_device.value or jax.local_devices()[0]
        elif isinstance(device, jax.sharding.Sharding) and len(device.device_set) == 1:
            (wanted,) = device.device_set
        is_for_us = isinstance(wanted, jax.Device) and names.is_ours(wanted.client)
        if not is_for_us or not _is_on_host(external_array):
            return take(external_array, device, copy)
        taken = take(external_array, None, copy)
        return jax.device_put(taken, wanted if device is not None else None, may_alias=True)

    dlpack.from_dlpack = jax.dlpack.from_dlpack = from_dlpack


def _of_jax(name: str) -> Any:
    return names.cpu_of_jax() if name == names.CPU else xla_bridge.get_backend(name)


def _is_on_host(array: Any) -> bool:
    return hasattr(array, "__dlpack_device__") and array.__dlpack_device__()[0] == _HOST


def _tell_costs() -> None:
    """Let ``Lowered.cost_analysis`` ask XLA, which JAX asks of its own clients alone."""
    ask = pxla.MeshComputation.cost_analysis

    def cost_analysis(self: Any) -> Any:
        if not names.is_ours(self.compile_args["backend"]):
            return ask(self)
        return _jax.hlo_module_cost_analysis(names.cpu_of_jax(), self.hlo().as_hlo_module())

    pxla.MeshComputation.cost_analysis = cost_analysis  # type: ignore[method-assign]


def _allow_the_cache() -> None:
    """Let JAX's compilation cache on disk, which takes platforms that it knows, hold programs of ours.

    A program that calls Python names functions by numbers. These are part of the cache's key, and whoever reads the
    entry has just given them to functions of its own. An entry is native code: a folder to which others may write is
    not used.
    """
    is_used = compilation_cache.is_cache_used
    stand_in = SimpleNamespace(platform="cpu", supports_executable_serialization=True)

    def is_cache_used(backend: Any) -> Any:
        if not names.is_ours(backend):
            return is_used(backend)
        return is_used(stand_in) and _is_private(config.compilation_cache_dir.value or "")

    compilation_cache.is_cache_used = is_cache_used


@functools.cache
def _is_private(folder: str) -> bool:
    why = "" if "://" in folder else distrust(Path(folder))
    if why:
        warnings.warn(f"JAX's compilation cache is not used for hloforge: {why}", stacklevel=2)
    return not why


def _writable(shown: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The same memory without the note that it must not be written to."""
    if not shown.flags.c_contiguous or shown.nbytes == 0:
        return shown.copy()
    memory: Any = (ctypes.c_char * shown.nbytes).from_address(shown.ctypes.data)
    memory.owner = shown
    return np.ndarray(shown.shape, shown.dtype, memory)


def _tell_of_guards(guard: Callable[[], None]) -> None:
    """Let the plugin know when ``jax.transfer_guard_device_to_host`` is used: it is of no use before."""
    state = config.transfer_guard_device_to_host
    everywhere, in_thread = state._update_global_hook, state._update_thread_local_hook

    def guarded(hook: Callable[[Any], None] | None) -> Callable[[Any], None]:
        def update(level: Any) -> None:
            if level is not None:
                guard()
            if hook is not None:
                hook(level)

        return update

    state._update_global_hook, state._update_thread_local_hook = guarded(everywhere), guarded(in_thread)


def joined_processes() -> Any:
    """What ``jax.distributed`` knows of several processes that run on hloforge; None where JAX has other devices, or
    one process."""
    wanted = (config.jax_platforms.value or "").split(",")
    is_wanted = platform.PLATFORM in wanted or names.stands_in_for_cpu()
    return distributed.global_state if distributed.global_state.num_processes > 1 and is_wanted else None


def cpu_devices() -> int:
    """How many devices JAX is to make of its CPU, by ``jax_num_cpu_devices`` or by XLA's flag; at least 1."""
    asked: int = xla_bridge.num_cpu_devices.value
    if asked < 0:
        flags = _DEVICES_FLAG.findall(os.environ.get("XLA_FLAGS", ""))
        asked = int(flags[-1]) if flags else 1
    return max(asked, 1)


def guards_copies_to_host() -> bool:
    """Whether JAX refuses or logs copies to the host, in this thread."""
    level = _jax.guard_lib.thread_local_state().device_to_host
    if level is None:
        level = _jax.guard_lib.global_state().device_to_host
    return level is not None and level != _jax.guard_lib.TransferGuardLevel.ALLOW


def check_overrides(options: bytes) -> None:
    """Let XLA look at options of its own, which programs on hloforge do not need.

    Args:
        options: serialized CompileOptionsProto with the user's ``compiler_options`` and nothing else.

    Raises:
        OptionError: an option that XLA does not know, or with a value that it does not take.
    """
    client = names.cpu_of_jax()
    parsed = _jax.CompileOptions.ParseFromString(_jax.CompileOptions().SerializeAsString() + options)
    try:
        client.compile_and_load(_NOTHING, _jax.DeviceList(tuple(client.local_devices()[:1])), parsed)
    except _jax.JaxRuntimeError as error:
        raise OptionError(str(error).removeprefix("INVALID_ARGUMENT: ")) from None


def costs_of(bytecode: bytes) -> list[tuple[str, float]]:
    """What XLA says that a StableHLO program costs, by name; nothing of a program that XLA cannot read."""
    try:
        computation = _jax.mlir.mlir_module_to_xla_computation(bytecode, use_tuple_args=False, return_tuple=False)
        found = _jax.hlo_module_cost_analysis(names.cpu_of_jax(), computation.get_hlo_module())
    except (RuntimeError, ValueError):
        return []
    return [(name, float(value)) for name, value in found.items()]
