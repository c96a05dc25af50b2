"""Several targets in one file; loading selects the first that this machine runs.

Each target is compiled by itself: its pipeline decomposes what it lacks, and code that hloforge writes for processors
is none for GPUs. IREE could compile one module for several devices, but only one that all of them take, so that the
poorest would decide for each. A vmfb is a zip whose first entry IREE reads in place; the vmfbs of further targets are
appended to the first one's zip. So any tool of IREE runs the file as that of its first target, and unzip takes out
the others.
"""

from __future__ import annotations

import io
import platform
import zipfile
from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path

from hloforge.dialect.errors import LoadError, OptionError
from hloforge.runtime.artifact.executable import Executable
from hloforge.runtime.artifact.manifest import Manifest
from hloforge.runtime.compile.cpu_targets import architecture_of, lacking
from hloforge.runtime.compile.gpu_targets import BASELINE
from hloforge.runtime.compile.targets import Target
from hloforge.runtime.data.integrity import DAMAGE
from hloforge.runtime.devices import drivers
from hloforge.runtime.options import GPU_DRIVERS, CompileOptions

_SUFFIX = ".vmfb"
_FOLDER = "targets/"
# Files in a zip have a time; this one says nothing, so that equal programs make equal files.
_NO_TIME = (1980, 1, 1, 0, 0, 0)
_MACHINES = {"x86_64": "x86-64", "AMD64": "x86-64", "arm64": "aarch64"}


def bundled(executables: Sequence[Executable]) -> Executable:
    """One executable of several, whose order is that of preference.

    Raises:
        OptionError: one of them is compiled at its calls and has no vmfb.
    """
    first, *others = executables
    targets = tuple(executable.manifest.target for executable in executables)
    for executable in executables:
        if not executable.vmfb:
            raise OptionError(
                f"a file of several targets cannot hold {executable.manifest.target}: it is compiled at its calls",
                hint="name the sizes of the arguments (shapes=…, --shape=x=8x4)",
            )
    stream = io.BytesIO(first.vmfb)
    with zipfile.ZipFile(stream, "a", zipfile.ZIP_STORED) as archive:
        for executable in others:
            archive.writestr(zipfile.ZipInfo(_entry_of(executable.manifest.target), _NO_TIME), executable.vmfb)
    return replace(first, vmfb=stream.getvalue(), manifest=replace(first.manifest, targets=targets))


def options_for(target: Target, options: CompileOptions) -> CompileOptions:
    """The options of one of several targets: a device that another one runs on is none for it."""
    driver = options.device.partition("://")[0]
    fits = driver == target.driver if driver in GPU_DRIVERS else not target.driver
    return options if fits else replace(options, device="", threads=0)


def appended(source: str | PathLike[str] | bytes) -> list[str]:
    """The entries of a file that hold the vmfbs of further targets; none in a vmfb of one target."""
    if not isinstance(source, bytes) and not Path(source).is_file():
        return []  # a pipe, which can be read once
    stream = io.BytesIO(source) if isinstance(source, bytes) else source
    try:
        with zipfile.ZipFile(stream) as archive:
            return [name for name in archive.namelist() if name.startswith(_FOLDER)]
    except DAMAGE:
        return []  # damaged, or no zip: whoever loads it says so


def _entry_of(target: str) -> str:
    return f"{_FOLDER}{target.replace(':', '-', 1)}{_SUFFIX}"


def target_of(entry: str) -> Target:
    """The target that an entry is named by. Raises LoadError for a name that is none of ours."""
    text = entry.removeprefix(_FOLDER).removesuffix(_SUFFIX).replace("-", ":", 1)
    try:
        return Target.parse(text)
    except OptionError as error:
        raise LoadError(f"the file's entry {entry} names no target: {error.message}", hint="compile again") from None


def read_entry(source: str | PathLike[str] | bytes, name: str) -> bytes:
    """The vmfb in an entry. Raises LoadError if it is damaged."""
    try:
        with zipfile.ZipFile(io.BytesIO(source) if isinstance(source, bytes) else source) as archive:
            return archive.read(name)
    except DAMAGE as error:
        raise LoadError(f"the file's entry {name} is damaged: {error}", hint="compile again") from None


def choose(targets: Sequence[Target], device: str | None) -> int:
    """The number of the first target that a device runs, or that some device of this machine does.

    Args:
        device: as of ``hloforge.load``.

    Raises:
        LoadError: there is none; says what each target would take.
    """
    reasons = []
    for number, target in enumerate(targets):
        reason = _mismatch(target, device or "") or _obstacle(target, device or "")
        if not reason:
            return number
        reasons.append(f"{target}: {reason}")
    where = f"on device {device!r}" if device else "on this machine"
    raise LoadError(f"none of the file's targets runs {where}", notes=tuple(reasons), hint="compile it for another one")


def check_device(target: Target, device: str) -> None:
    """Refuse code for a Vulkan device of another kind: IREE runs it, and its results may be wrong.

    Raises:
        LoadError: names the device and what the code is for.
    """
    if target.kind == "vulkan" and (problem := _obstacle(target, device)):
        raise LoadError(
            f"the program was compiled for {target}, but {problem}: its results may be wrong",
            hint="compile it with --target=vulkan for the device at hand",
        )


def check_instructions(manifest: Manifest) -> None:
    """Refuse code with instructions that this machine's processor lacks: it would end the process.

    Raises:
        LoadError: names them.
    """
    if missing := lacking(manifest.instructions):
        raise LoadError(
            f"the program was compiled for {manifest.target}, and this machine's processor lacks {', '.join(missing)}",
            hint="compile it here, or for older processors: --target=cpu:x86-64-v3 or --target=cpu:generic",
        )


def _mismatch(target: Target, device: str) -> str:
    """Why a target's code is none for a device that was asked for."""
    driver = device.partition("://")[0]
    if not driver or driver == target.driver or (driver not in GPU_DRIVERS and not target.driver):
        return ""
    return f"its driver is {target.driver}" if target.driver else "code for processors"


def _obstacle(target: Target, device: str) -> str:
    """Why this machine does not run a target's code; empty if it does, as far as can be told before loading it."""
    if not target.driver:
        wanted = architecture_of(target.variant)
        here = _MACHINES.get(platform.machine(), platform.machine())
        if wanted not in ("", here):
            return f"this machine's processor is {here}"
        missing = lacking(target.instructions)
        return f"this machine's processor lacks {', '.join(missing)}" if missing else ""
    found = drivers.driver(target.driver)
    if not found.devices:
        return found.problem
    gpu = next((one for one in found.devices if one.uri == device), found.devices[0])
    name = gpu.architecture
    if target.kind == "cuda" and _number(name) < _number(target.variant):
        return f"the GPU is of {name}"
    if target.kind == "rocm" and name and name != target.variant:
        return f"the GPU is of {name}"
    return _software(target, gpu.name) if target.kind == "vulkan" else ""


def _software(target: Target, name: str) -> str:
    """Why a Vulkan device is not that of a target's name: code for llvmpipe is none for GPUs, nor theirs for it."""
    is_llvmpipe = "llvmpipe" in name
    fits = target.variant == BASELINE or is_llvmpipe == (target.variant == "llvmpipe")
    return "" if fits else f"the device is {name}"


def _number(architecture: str) -> int:
    """90 of sm_90; 0 of a device that does not say."""
    digits = architecture.removeprefix("sm_")
    return int(digits) if digits.isdecimal() else 1000
