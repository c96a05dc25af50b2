"""Compile a program by parts: what the host does, and each executable, whose machine code may be known.

``iree-compile`` makes all of a program in one process. Here a child of the server (``server.py``) brings the program to
dispatches and then to bytecode, by IREE's own passes (``passes.py``) in contexts of the few dialects that are left,
where they take a third of the time. Its executables are compiled by other children, one for each processor at a time,
unless their code is in the cache (``library_cache.py``). What this cannot compile, ``iree-compile`` compiles, or tells
why it cannot.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from hloforge.runtime.artifact.manifest import DISPATCHES_KEY
from hloforge.runtime.compile import timings
from hloforge.runtime.compile.assembly import server
from hloforge.runtime.compile.assembly.libraries import LEVEL, LINKER, O2, OF_CODE, SERIAL, Libraries, say
from hloforge.runtime.compile.in_place_audit import PASS, flags as audit_flags
from hloforge.runtime.compile.plugins import without_plugins
from hloforge.runtime.options import CompileOptions

# A device whose description has all that its executables depend on (``support_library``).
_DEVICE = "--iree-hal-target-device=__device_0="
# Where constants are hoisted, IREE compiles and runs programs inside the program, which are audited too.
_NO_HOISTING = "--iree-opt-const-expr-hoisting=false"
_ELIDING = "--mlir-elide-"
# They are printed with all of their constants. Bytes of a program for which that is no matter.
_SHORT = 2**22
_DATA_TILING = "--iree-dispatch-creation-data-tiling"
_NEEDED = (_DEVICE, LINKER)
_ASSERTIONS = "--iree-opt-strip-assertions=false"
_IN_ORDER = "--iree-stream-partitioning-favor=debug"
# Flags that mean the same here.
_KNOWN = (
    *_NEEDED,
    *OF_CODE,
    _DATA_TILING,
    _NO_HOISTING,
    SERIAL,
    "--iree-input-type=stablehlo",
    "--iree-input-demote-f64-to-f32=false",
    _ASSERTIONS,
    _IN_ORDER,
    "--iree-vm-bytecode-module-strip-source-map=true",
)
_FORMAT = re.compile(r'"(embedded-elf-\w+)"')
# IREE reads its library of micro-kernels for each executable, which takes longer than LLVM takes for most. Products in
# tiles of data alone call it.
_WITHOUT_LIBRARY = ("link_embedded = false, ", "link_embedded = false, link_ukernel_bitcode = false, ")


def assembled(
    flags: Sequence[str], program: bytes, options: CompileOptions, folder: Path, printed: Path | None
) -> bytes | None:
    """A vmfb; None where ``iree-compile`` has to make it.

    Args:
        flags: of ``iree-compile``, with the object of a C library in the folder (``flags_with_library``).
        folder: for temporary files.
        printed: where the text goes that ``in_place_audit`` reads; its flags are among the flags then.
    """
    ours = _flags(flags, printed)
    if ours is None or not server.is_available():
        return None
    try:
        return _Assembly(ours, options, folder, printed).vmfb(program)
    except (server.GoneError, OSError):
        # A temporary file cannot be written: iree-compile will say so.
        return None


def _flags(flags: Sequence[str], printed: Path | None) -> list[str] | None:
    """The flags for a child of the server; None if it does not know some, or lacks what it needs."""
    of_audit = audit_flags(printed) if printed else ()
    kept = [flag for flag in flags if flag not in of_audit and flag != SERIAL]
    if not all(flag.startswith(_KNOWN) for flag in kept):
        return None
    if not all(any(flag.startswith(needed) for flag in kept) for needed in _NEEDED):
        return None
    if _DATA_TILING not in kept:
        kept = [flag.replace(*_WITHOUT_LIBRARY) if flag.startswith(_DEVICE) else flag for flag in kept]
    return [*kept, *without_plugins(kept), SERIAL]


class _Assembly:
    """One compilation."""

    def __init__(self, flags: list[str], options: CompileOptions, folder: Path, printed: Path | None) -> None:
        self._flags, self._options, self._folder, self._printed = flags, options, folder, printed

    def vmfb(self, program: bytes) -> bytes:
        """Raises GoneError if it cannot be made."""
        device = next(flag for flag in self._flags if flag.startswith(_DEVICE))
        found = _FORMAT.search(device)
        if found is None:
            raise server.GoneError
        with ExitStack() as children:
            with timings.part("dispatches"):
                say("forming dispatches")
                fields: dict[str, object] = {"flags": self._flags, "format": found[1], "names": DISPATCHES_KEY}
                fields |= {"device": "", "dispatches": {}}
                levels = [flag for flag in self._flags if flag.startswith(LEVEL)]
                if levels == [O2] and _NO_HOISTING in self._flags:
                    strips, tiles = _ASSERTIONS not in self._flags, _DATA_TILING in self._flags
                    fields["device"] = device.removeprefix(_DEVICE)
                    fields["dispatches"] = {"strips_assertions": strips, "tiles_data": tiles}
                    fields["flags"] = self._flags if _IN_ORDER in self._flags else []
                else:
                    program = self._dispatches(program)
                host = children.enter_context(self._child("program", program, fields))
                audited, head, *texts = host.receive()
            if self._printed is not None:
                (self._printed / f"assembly_{PASS}.mlir").write_bytes(audited)
            names: list[str] = json.loads(head)
            libraries = Libraries(self._child, self._flags, self._folder, caching=self._options.cache)
            libraries.begin(dict(zip(names, (text.decode() for text in texts), strict=True)), children)
            with timings.part("code generation"):
                exports = libraries.exports()
            places = json.dumps(libraries.places).encode()
            host.send([places, *(export.encode() for export in exports.values())])
            with timings.part("LLVM and linker"):
                binaries = libraries.binaries()
            with timings.part("bytecode"):
                say("bytecode")
                host.send([json.dumps(list(binaries)).encode(), *binaries.values()])
                return host.receive()[0]

    def _dispatches(self, program: bytes) -> bytes:
        """A program of dispatches as bytecode, in a child of its own because flags change how all is printed."""
        flags = self._flags
        if _NO_HOISTING not in flags:
            if self._printed is None or len(program) > _SHORT:
                raise server.GoneError
            flags = [*flags, *(flag for flag in audit_flags(self._printed) if not flag.startswith(_ELIDING))]
        with self._child("dispatches", program, {"flags": flags}) as child:
            return child.receive()[0]

    def _child(self, kind: str, source: bytes, fields: Mapping[str, object]) -> server.Request:
        limits = {"memory": self._options.memory_limit or 0, "temporary": str(self._folder)}
        return server.server().request(kind, source, {**limits, **fields})
