"""Leave out plugins of IREE's compiler that a compilation does not use.

IREE starts all of its plugins for each compilation: importers of other frameworks' dialects and code generators of all
devices. Each registers dialects, whose canonicalizations many passes collect anew: 15 of 260 ms for one multiplication.
"""

from __future__ import annotations

from collections.abc import Iterable

# Plugins, and the devices and backends that need them. Programs are StableHLO, and the CPU's plugins compute constants.
_PLUGINS: dict[str, tuple[str, ...]] = {
    "input_torch": (),
    "input_tosa": (),
    "hal_target_cuda": ("cuda",),
    "hal_target_rocm": ("hip", "rocm", "amdgpu"),
    "hal_target_vulkan_spirv": ("vulkan",),
    "hal_target_metal_spirv": ("metal",),
    "hal_target_vmvx": ("vmvx",),
}
_CHOICES = ("iree-hal-", "iree-plugin", "iree-consteval-")


def without_plugins(flags: Iterable[str]) -> tuple[str, ...]:
    """Flags that leave out the plugins for which these flags of IREE's compiler do not ask."""
    chosen = " ".join(flag for flag in flags if flag.lstrip("-").startswith(_CHOICES))
    unused = (plugin for plugin, names in _PLUGINS.items() if not any(name in chosen for name in (plugin, *names)))
    return tuple(f"--iree-plugin=-{plugin}" for plugin in unused)
