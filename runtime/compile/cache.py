"""Compiled programs on disk: what was compiled once is read again.

A file is named by a digest of everything that the vmfb depends on: the program's bytes and how they were read, the
target (with this processor's features for ``cpu:host``), IREE's flags, the versions of the packages and hloforge's own
sources. It holds its own digest and its name, so that damage and exchanged files are noticed and mean a new
compilation. Files are written whole or not at all, and the longest unused ones go when there are too many bytes: any
number of processes may share the folder. A vmfb is native code: what another user owns or may write to, or any of the
folders above it, is not used (``private_folders``).
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import platformdirs

from hloforge.dialect.errors import LoadError, OptionError
from hloforge.runtime.artifact.code_signing import required
from hloforge.runtime.artifact.executable import Executable
from hloforge.runtime.artifact.manifest import Manifest, tool_versions
from hloforge.runtime.artifact.weights import described
from hloforge.runtime.compile.cpu_targets import processor
from hloforge.runtime.compile.targets import Target
from hloforge.runtime.data.files import replacing
from hloforge.runtime.data.private_folders import distrust, make_private, read_private
from hloforge.runtime.options import CompileOptions

# A folder instead of the platform's own; empty for no cache at all.
FOLDER_VARIABLE = "HLOFORGE_CACHE_DIR"
# Bytes that the cache may take.
LIMIT_VARIABLE = "HLOFORGE_CACHE_LIMIT"
_LIMIT = 4 * 2**30
_SUFFIX = ".cached"
# Machine code of executables (``assembly.library_cache``).
KERNELS_SUFFIX = ".kernels"
# What compilations are linked with (``support_library``): a few files, which are not counted.
LIBRARY_SUFFIX = ".library"
_ABANDONED_SECONDS = 3600.0
# So many files, or so small a part of the limit, are written before all files are looked at again.
_BETWEEN_TRIMS = 64
# The packages that make a vmfb out of a program.
_COMPILING = ("dialect", "importers", "pipelines", "runtime")


@dataclass(frozen=True)
class Entry:
    """Where one compilation is in the cache.

    Attributes:
        path: its file; None where nothing is cached.
        weights: the file that the compilation looks its weights up in.
    """

    path: Path | None
    weights: Path | None = None

    def find(self) -> Executable | None:
        """What was compiled before; None if nothing was, the file is damaged, or signatures are asked for."""
        if self.path is None or required():
            return None
        kept = recall(self.path)
        if kept is None:
            return None
        fields, vmfb = kept
        try:
            executable = Executable(vmfb, Manifest.from_json(fields["manifest"]), weights=self.weights)
        except (ValueError, KeyError, TypeError, RecursionError, LoadError):
            return None
        with suppress(OSError):
            os.utime(self.path)
        return executable

    def store(self, executable: Executable) -> bool:
        """Keep a compilation; a folder that cannot be written to is no reason to fail. Whether it is kept."""
        # What is compiled at its calls has no bytes.
        if self.path is None or not executable.vmfb:
            return False
        return keep(self.path, {"manifest": executable.manifest.to_json()}, executable.vmfb)


def recall(path: Path) -> tuple[dict[str, Any], bytes] | None:
    """What ``keep`` wrote to a file: fields and bytes. None if it did not, or another user can have changed it."""
    try:
        head, _, data = read_private(path).partition(b"\n")
        fields = json.loads(head)
        if fields["name"] != path.name or fields["digest"] != hashlib.sha256(data).hexdigest():
            return None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return fields, data


def keep(path: Path, fields: Mapping[str, object], data: bytes) -> bool:
    """Write a file of the cache, whole or not at all; whether its folder can be written to and is private."""
    head = {"name": path.name, "digest": hashlib.sha256(data).hexdigest(), **fields}
    with suppress(OSError):
        # Before anything is made, and again: a folder that is there may be another one by now.
        if distrust(path.parent):
            return False
        make_private(path.parent)
        if distrust(path.parent):
            return False
        # Also in the place of a link, or of what is not ours.
        with replacing(path, mode=0o600) as temporary:
            temporary.write_bytes(json.dumps(head).encode() + b"\n" + data)
        _GROWTH.add(path.parent, len(data))
        return True
    return False


class _Growth:
    """What this process wrote since it last looked whether there are too many bytes.

    To look takes as long as a compilation, because a folder may hold thousands of files. So it looks after its first
    file, and then when it wrote many of them, or a good part of what the cache may take.
    """

    def __init__(self) -> None:
        self._files, self._bytes = _BETWEEN_TRIMS, 0

    def add(self, home: Path, size: int) -> None:
        self._files, self._bytes = self._files + 1, self._bytes + size
        if self._files <= _BETWEEN_TRIMS and self._bytes < limit() / _BETWEEN_TRIMS:
            return
        self._files = self._bytes = 0
        with suppress(OSError):
            trim(home)


_GROWTH = _Growth()


# Whose code generator makes the code (``generated.py``).
CODEGEN = "HLOFORGE_CODEGEN"


def entry(data: bytes, reading: Mapping[str, object], target: Target, options: CompileOptions) -> Entry:
    """The position of a compilation.

    Args:
        data: the program as it was given.
        reading: what else decides which program it is: its name and the options of the reader.

    Raises:
        OptionError: ``HLOFORGE_CACHE_LIMIT`` is no number, or the weights are no file of weights.
    """
    home = folder()
    # Who asks for the IR between passes wants them run, and who asks for a file of weights wants it written.
    if home is None or not options.cache or options.dump_after or options.externalize_weights:
        return Entry(None)
    weights = options.weights and options.weights.absolute()
    limit()
    facts = (
        sorted(reading.items()),
        str(target),
        options.flags,
        options.dynamic_shapes,
        sorted(options.shapes.items()),
        options.buckets if isinstance(options.buckets, str) else sorted(options.buckets.items()),
        options.machine,
        (options.device, options.threads),
        (options.replicas, options.partitions, options.fold_replicas),
        weights and (weights.name, sorted(described(weights).items())),
        _compiler(),
        os.environ.get(CODEGEN, ""),
        processor() if target.variant == "host" else (),
    )
    digest = hashlib.sha256(repr(facts).encode())
    digest.update(data)
    return Entry(home / f"{digest.hexdigest()}{_SUFFIX}", weights)


def folder() -> Path | None:
    """Where the cache is; None if ``HLOFORGE_CACHE_DIR`` is set to nothing."""
    chosen = os.environ.get(FOLDER_VARIABLE)
    if chosen is None:
        return platformdirs.user_cache_path("hloforge") / "vmfb"
    return Path(chosen).expanduser() if chosen else None


def is_usable(home: Path) -> bool:
    """Whether a folder, or where it would be made, is private and this process may write to it."""
    there = next((path for path in (home, *home.absolute().parents) if path.exists()), home)
    return os.access(there, os.W_OK) and not distrust(home)


def limit() -> int:
    """Bytes that the cache may take. Raises OptionError for a limit that is no number."""
    chosen = os.environ.get(LIMIT_VARIABLE, str(_LIMIT))
    if not chosen.isdecimal():
        raise OptionError(f"{LIMIT_VARIABLE}={chosen!r} is no number of bytes")
    return int(chosen)


def usage(home: Path) -> tuple[int, int]:
    """How many compilations a folder holds, and the bytes of these and of the kernels."""
    files = _files(home)
    return sum(path.suffix == _SUFFIX for path in files), sum(status.st_size for status in files.values())


def kernels(home: Path) -> int:
    """How many files of kernels a folder holds."""
    return sum(path.suffix == KERNELS_SUFFIX for path in _files(home))


def clear(home: Path) -> None:
    """Forget all compilations in a folder."""
    for path in (*_files(home), *home.glob(f"*{LIBRARY_SUFFIX}")):
        path.unlink(missing_ok=True)


def trim(home: Path) -> None:
    """Remove what was not used for longest until the rest fits; another process that is at it will do."""
    # Who finds a program, and stores none, does not need it.
    import filelock

    allowed = limit()
    with suppress(filelock.Timeout), filelock.FileLock(home / ".lock", timeout=0, mode=0o600):
        _remove_abandoned(home)
        files = _files(home)
        excess = sum(status.st_size for status in files.values()) - allowed
        for path, status in sorted(files.items(), key=lambda item: item[1].st_mtime):
            if excess <= 0:
                return
            path.unlink(missing_ok=True)
            excess -= status.st_size


def _remove_abandoned(home: Path) -> None:
    """Remove the temporary files of writers that were killed; nobody writes one for as long as this."""
    for path in home.glob(".*.tmp"):
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > _ABANDONED_SECONDS:
                path.unlink()


def _files(home: Path) -> dict[Path, os.stat_result]:
    found = {}
    for suffix in (_SUFFIX, KERNELS_SUFFIX):
        for path in home.glob(f"*{suffix}"):
            with suppress(FileNotFoundError):  # removed by another process meanwhile
                found[path] = path.stat()
    return found


@cache
def _compiler() -> str:
    """What compiles, as one digest: to spell a thousand files takes a third of a millisecond."""
    return hashlib.sha256(repr((tool_versions(), sources())).encode()).hexdigest()


@cache
def sources() -> tuple[tuple[str, int, int], ...]:
    """Sizes and times of hloforge's own files: whoever changes a pass must not get what the old one made."""
    specs = [importlib.util.find_spec(f"hloforge.{name}") for name in _COMPILING]
    homes = [home for spec in specs if spec for home in spec.submodule_search_locations or ()]
    return tuple(sorted(found for home in homes for found in _python_files(home)))


def _python_files(home: str) -> Iterator[tuple[str, int, int]]:
    """The files below a folder; a process looks at a thousand of them before its first compilation."""
    with os.scandir(home) as entries:
        for one in entries:
            if one.name.endswith(".py"):
                status = one.stat()
                yield one.path, status.st_size, status.st_mtime_ns
            elif one.name != "__pycache__" and one.is_dir():
                yield from _python_files(one.path)
