"""The drivers of IREE on this machine, their devices and limits, and why a driver has none."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from hloforge.runtime.devices.cuda_library import find_cuda, provide_cuda

# IREE's drivers in the order of this table, and what each one runs on.
DRIVERS: Mapping[str, str] = {
    "local-sync": "the processor, on the caller's thread",
    "local-task": "the processor, on a pool of threads",
    "vulkan": "GPUs by Vulkan 1.3",
    "cuda": "NVIDIA's GPUs",
    "hip": "AMD's GPUs by ROCm",
    "metal": "Apple's GPUs",
}
# Where Vulkan's loader looks for drivers, beside what its variables name.
_ICD_FOLDERS = ("/etc/vulkan/icd.d", "/usr/share/vulkan/icd.d", "/usr/local/share/vulkan/icd.d")
_ICD_VARIABLES = ("VK_DRIVER_FILES", "VK_ICD_FILENAMES")
_MESA = "in software by Debian's mesa-vulkan-drivers (apt-get install mesa-vulkan-drivers libvulkan1)"
# ``name: value`` of a driver's description of a device; CUDA's and HIP's begin with a dash.
_FACT = re.compile(r"^(?:- )?([A-Za-z][\w\[\]. -]*?): *(.*)$")
_WORDS = re.compile(r"(\w+)=(\S+)")


@dataclass(frozen=True)
class Device:
    """A device that a driver lists.

    Attributes:
        uri: what ``--device`` takes for it.
        name: the driver's name for it.
        info: facts as the driver tells them, by name (``subgroup``, ``gpu-arch-name`` …).
        extensions: of Vulkan.
    """

    uri: str
    name: str
    info: Mapping[str, str] = field(default_factory=dict)
    extensions: tuple[str, ...] = ()

    @property
    def architecture(self) -> str:
        """Of CUDA and HIP: ``sm_90``, ``gfx1100``; empty for others."""
        # HIP adds features: gfx90a:sramecc+:xnack-. CUDA tells a number: 9.0.
        capability = self.info.get("gpu-compute-capability", "").replace(".", "")
        return self.info.get("gpu-arch-name", "").partition(":")[0] or (f"sm_{capability}" if capability else "")


@dataclass(frozen=True)
class Driver:
    """A driver of IREE's runtime on this machine.

    Attributes:
        name: as IREE calls it.
        devices: what it lists; empty if it is not usable.
        problem: why it is not usable; empty if it is.
        way_out: what would make it so.
    """

    name: str
    devices: tuple[Device, ...] = ()
    problem: str = ""
    way_out: str = ""


@cache
def driver(name: str) -> Driver:
    """A driver as this machine has it. It is asked once a process."""
    from hloforge.runtime.devices.devices import FAILURES, reason, rt

    if name not in rt.query_available_drivers():
        return Driver(name, (), f"IREE's runtime for this platform has no driver {name}", _WAYS_OUT[name])
    prepare(name)
    try:
        opened = rt.get_driver(name)
        found = tuple(_device(name, opened, listed) for listed in opened.query_available_devices())
    except FAILURES as error:
        return Driver(name, (), _problem(name, reason(error)), _way_out(name))
    if found:
        return Driver(name, found)
    return Driver(name, (), _problem(name, "it lists no device"), _way_out(name))


def first_device(name: str) -> Device | None:
    """The device that a driver runs programs on if nobody says; None if it has none."""
    found = driver(name).devices
    return found[0] if found else None


def has_lavapipe() -> bool:
    """Whether Mesa's Vulkan driver for processors is in this process, into which TensorFlow does not load then."""
    with suppress(OSError):
        return "libvulkan_lvp" in Path("/proc/self/maps").read_text()
    return False


def prepare(name: str) -> None:
    """Make the libraries loadable that a driver asks for by a name which the machine may not have."""
    if name == "cuda":
        provide_cuda()


def _device(name: str, opened: Any, listed: Mapping[str, Any]) -> Device:
    path = str(listed["path"])
    text = opened.dump_device_info(listed["device_id"])
    info, extensions = read_info(text)
    return Device(f"{name}://{path}" if path else name, str(listed["name"]).strip(), info, extensions)


def read_info(text: str) -> tuple[dict[str, str], tuple[str, ...]]:
    """The facts in a driver's description of a device, and the extensions of Vulkan that it lists."""
    facts, extensions = {}, []
    for line in text.splitlines():
        stripped = line.strip()
        if stripped.startswith("VK_"):
            extensions.append(stripped)
        elif match := _FACT.match(stripped):
            facts[match[1]] = match[2]
        elif heap := re.match(r"\[0\] size=(\d+)", stripped):
            facts["memory"] = heap[1]
    return facts, tuple(extensions)


def words(fact: str) -> dict[str, str]:
    """``size=8 minSubgroupSize=8`` by name."""
    return dict(_WORDS.findall(fact))


def _problem(name: str, said: str) -> str:
    """Why a driver is not usable, in terms of what the machine has."""
    if name == "vulkan" and not vulkan_drivers():
        return "no Vulkan driver is installed: no ICD file in " + ", ".join(_ICD_FOLDERS)
    if name == "cuda" and find_cuda() is None:
        return "NVIDIA's driver is not installed: no libcuda.so and no libcuda.so.1"
    if name == "hip" and "libamdhip64" in said:
        return "AMD's ROCm runtime is not installed: no libamdhip64.so"
    if "vulkan" in said.lower() and "librar" in said.lower():
        return "Vulkan's loader is not installed: no libvulkan.so.1"
    return said


_WAYS_OUT = {
    "vulkan": f"install the GPU's Vulkan driver and libvulkan1; {_MESA}",
    "cuda": "install NVIDIA's driver; in a container, start it with --gpus=all",
    "hip": "install AMD's ROCm runtime (hip-runtime-amd), and put it where the dynamic linker looks",
    "metal": "Metal is there on macOS alone; elsewhere --target=metal compiles",
    "local-sync": "reinstall iree-base-runtime",
    "local-task": "reinstall iree-base-runtime",
}


def _way_out(name: str) -> str:
    if name == "vulkan" and vulkan_drivers():
        return f"the installed drivers ({', '.join(vulkan_drivers())}) find no device of Vulkan 1.3; {_MESA}"
    return _WAYS_OUT[name]


def vulkan_drivers() -> tuple[str, ...]:
    """The names of the files that describe Vulkan's drivers to its loader."""
    for variable in _ICD_VARIABLES:
        if named := os.environ.get(variable):
            return tuple(Path(path).name for path in named.split(os.pathsep))
    folders = [Path(folder) for folder in _ICD_FOLDERS]
    return tuple(sorted(path.name for folder in folders if folder.is_dir() for path in folder.glob("*.json")))
