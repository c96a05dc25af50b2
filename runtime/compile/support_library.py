"""Link executables with an object of IREE's C library, which IREE's compiler otherwise compiles again for each.

LLVM may make calls of C's functions (``memcpy``, ``fmodf``) that no program has. IREE 3.13 therefore links all of musl
as bitcode into each executable of a CPU before LLVM optimizes it, and the linker drops most of it again: 40 to 50 of
the 260 ms that ``iree-compile`` takes for one multiplication. LLVM's object of any executable holds this library,
compiled for its processor. One is kept for each kind of processor, and the linker takes from it what an executable
calls.

IREE knows two ways to link: into an ELF file that its own loader reads, with musl (``link_embedded``), and by a linker
of the system, without it. The description of a device may ask for the files of the first way and the linker of the
second. The linker is IREE's own in both.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hloforge.dialect import budget
from hloforge.runtime.artifact.manifest import tool_versions
from hloforge.runtime.compile import cache, iree, timings
from hloforge.runtime.compile.cpu_targets import processor
from hloforge.runtime.compile.elf_symbols import ElfError, with_global_functions
from hloforge.runtime.data.files import temporary_folder

# Flags that decide for which processor code is made. What they say is all that the library depends on.
_PROCESSOR = re.compile(r"--iree-(?:hal-(?:target-device|local-target-device-backends)|llvmcpu-target-(?!data-layout))")
_DEVICES = re.compile(r"--iree-hal-(?:target-device|local-target-device-backends)=")
_LOCAL = ("--iree-hal-target-device=local", "--iree-hal-local-target-device-backends=llvm-cpu")
# Flags of the code generator that are not part of a device's description.
_OF_NO_DEVICE = ("--iree-llvmcpu-vector-pproc-strategy=", "--iree-llvmcpu-disable-distribution")
# Users' flags beside these may change what an executable is, or how it is linked.
_OF_EXECUTABLES = re.compile(r"-{1,2}iree-(?:hal|llvmcpu|consteval)-")
# Architectures without an object of 64 bits (``elf_symbols``).
_OTHER_OBJECTS = re.compile(r"--iree-llvmcpu-target-triple=(?!x86_64|aarch64|riscv64)")
_DESCRIPTION = re.compile(r'target\((<"llvm-cpu", "embedded-elf-[^{]*\{)(.*?\}>)\)', re.DOTALL)
# As IREE's linker of embedded files has them.
_LINKER_FLAGS = (
    "-flavor gnu --build-id=none --no-undefined --no-allow-shlib-undefined --allow-multiple-definition --gc-sections "
    "-z now -z relro --discard-all --icf=all --ignore-data-address-equality --ignore-function-address-equality "
    "--hash-style=sysv"
)
_SMALLEST = b"""
func.func @twice(%argument: tensor<4xf32>) -> tensor<4xf32> {
  %sum = arith.addf %argument, %argument : tensor<4xf32>
  return %sum : tensor<4xf32>
}
"""
_OBJECT = "support.o"
_TEMPORARY = "temporary"
# As IREE calls the first device, also in messages of the runtime.
_DEVICE = "__device_0"
_HOST = "--iree-llvmcpu-target-cpu=host"

# Of this process, by the flags of its processor; None where IREE makes none.
_libraries: dict[tuple[str, ...], _Library | None] = {}
# Processors that one program was compiled for without a library.
_seen: set[tuple[str, ...]] = set()


@dataclass(frozen=True)
class _Library:
    """What IREE made for a processor.

    Attributes:
        device: the attribute of MLIR that describes it, whose executables are linked without musl.
        code: an object with all functions of the library.
    """

    device: str
    code: bytes


def flags_with_library(flags: Sequence[str], folder: Path) -> tuple[str, ...]:
    """Flags of IREE's compiler by which it links an object that this puts into a folder.

    They are those that were given where that is not possible: off Linux, for other devices than a CPU of 64 bits,
    beside flags of users that change what executables are, and where the object cannot be made.
    """
    asked = tuple(flag for flag in flags if _PROCESSOR.match(flag))
    others = [flag for flag in flags if flag not in asked and not flag.startswith(_OF_NO_DEVICE)]
    if asked[:2] != _LOCAL or sys.platform != "linux" or any(map(_OTHER_OBJECTS.match, asked)):
        return tuple(flags)
    if any(map(_OF_EXECUTABLES.match, others)):
        return tuple(flags)
    library = _library(asked)
    if library is None:
        return tuple(flags)
    path = folder / _OBJECT
    path.write_bytes(library.code)
    linker = f"{shlex.quote(iree.linker_binary())} {_LINKER_FLAGS} --start-lib {shlex.quote(str(path))} --end-lib"
    return (
        *(flag for flag in flags if not _DEVICES.match(flag)),
        f"--iree-hal-target-device={_DEVICE}={library.device}",
        f"--iree-llvmcpu-system-linker-path={linker}",
    )


def _library(asked: tuple[str, ...]) -> _Library | None:
    """The library for the processor that these flags ask for; None if it cannot be made, or is not worth it."""
    if asked in _libraries:
        return _libraries[asked]
    path = _path(asked)
    kept = path and cache.recall(path)
    if kept:
        library: _Library | None = _Library(kept[0]["device"], kept[1])
    elif path is None and asked not in _seen:
        # Most processes without a cache compile one program: the library would take longer than it saves.
        _seen.add(asked)
        return None
    else:
        with timings.part("library for this processor"):
            library = _made(asked)
        if library and path:
            cache.keep(path, {"device": library.device}, library.code)
    _libraries[asked] = library
    return library


def _path(asked: tuple[str, ...]) -> Path | None:
    """The library's file in the cache; None if there is no cache that this process may write to."""
    home = cache.folder()
    if home is None or not cache.is_usable(home):
        return None
    facts = (asked, tool_versions(), cache.sources(), processor() if _HOST in asked else ())
    return home / f"{hashlib.sha256(repr(facts).encode()).hexdigest()}{cache.LIBRARY_SUFFIX}"


def _made(asked: tuple[str, ...]) -> _Library | None:
    """The same, made by IREE's compiler: half a second, once for each kind of processor."""
    with temporary_folder() as folder:
        if folder is None:
            return None
        dumps = (f"--iree-hal-dump-executable-{what}-to={folder}" for what in ("sources", "intermediates"))
        command = [*iree.tied_to_this_process(), iree.compiler_binary(), "-", "-o", "/dev/null", *asked, *dumps]
        try:
            # IREE's linker leaves its files if it is killed.
            (folder / _TEMPORARY).mkdir()
            environment = os.environ | {"TMPDIR": str(folder / _TEMPORARY)}
            done = subprocess.run(
                command,
                input=_SMALLEST,
                capture_output=True,
                check=False,
                timeout=budget.remaining(),
                env=environment,
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        sources, objects = (sorted(folder.glob(pattern)) for pattern in ("*.mlir", "*.o"))
        if done.returncode or len(sources) != 1 or len(objects) != 1:
            return None
        found = _DESCRIPTION.search(sources[0].read_text())
        if found is None:
            return None
        executable = f"#hal.executable.target{found[1]}link_embedded = false, {found[2]}"
        try:
            code = with_global_functions(objects[0].read_bytes())
        except ElfError:
            return None
        return _Library(f'#hal.device.target<"local", [{executable}]>', code)
