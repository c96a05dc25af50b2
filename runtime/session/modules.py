"""What a vmfb says of itself: its module, its entry function, its manifest, and where its weights are."""

from __future__ import annotations

import json
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

from hloforge.dialect.errors import LoadError
from hloforge.dialect.program import ENTRY
from hloforge.runtime.artifact import bundle
from hloforge.runtime.artifact.bucket_file import table_of
from hloforge.runtime.artifact.code_signing import Verified, verified
from hloforge.runtime.artifact.executable import Executable
from hloforge.runtime.artifact.functions import functions_of
from hloforge.runtime.artifact.manifest import DISPATCHES_KEY, REFLECTION_KEY, Manifest
from hloforge.runtime.artifact.manifest_check import check_manifest
from hloforge.runtime.artifact.plain_vmfb import signature_of_declaration
from hloforge.runtime.artifact.vm_modules import ADVICE, vm_module
from hloforge.runtime.compile.targets import Target
from hloforge.runtime.devices.devices import FAILURES, reason


def weights_near(source: str | PathLike[str] | bytes | Executable) -> Path:
    """The folder or file where the weights of a program are looked for."""
    if isinstance(source, Executable):
        return source.weights or Path()
    if isinstance(source, bytes):
        return source.folder if isinstance(source, Verified) else Path()
    return Path(source).parent


def read_manifest(source: str | PathLike[str] | bytes | Executable) -> Manifest:
    """The manifest of a vmfb, without a device. Raises LoadError as ``load`` does."""
    here = isinstance(source, Executable)
    source = verified(source.vmfb if isinstance(source, Executable) else source, compiled_here=here)
    module = vm_module(source, here)
    manifest = manifest_of(entry_of(module))
    others = tuple(str(bundle.target_of(entry)) for entry in bundle.appended(source))
    if (table := table_of(source)) is not None:
        manifest = table.manifest
    manifest = replace(manifest, functions=functions_of(source))
    return replace(manifest, targets=(manifest.target, *others)) if others else manifest


def module_for(source: str | PathLike[str] | bytes, device: str | None, here: bool) -> Any:
    """The module of a file; of several targets in it, of the first that runs on the device, or anywhere here."""
    first = vm_module(source, here)
    entries = bundle.appended(source)
    if not entries:
        return first
    targets = [Target.parse(manifest_of(entry_of(first)).target), *map(bundle.target_of, entries)]
    number = bundle.choose(targets, device)
    # A part of a file that was let in.
    return vm_module(bundle.read_entry(source, entries[number - 1]), True) if number else first


def entry_of(module: Any) -> Any:
    """The function ``main``; the caller keeps the module alive."""
    entry = module.lookup_function(ENTRY)
    if entry is None:
        names = [name for name in module.function_names if not name.startswith("__")]
        raise LoadError(f"the vmfb has no function {ENTRY}", hint=f"it has: {', '.join(names)}")
    return entry


def manifest_of(entry: Any) -> Manifest:
    """What the function says of its program. Raises LoadError of a damaged or asynchronous vmfb."""
    try:
        reflection = entry.reflection
    except FAILURES as error:
        raise LoadError(f"the vmfb is damaged: {reason(error)}", hint=ADVICE) from None
    if reflection.get("iree.abi.model", "sync") != "sync":
        raise LoadError(
            f"{ENTRY} of the vmfb is asynchronous", hint="compile it without --iree-execution-model=async-external"
        )
    if REFLECTION_KEY in reflection:
        manifest = Manifest.from_json(reflection[REFLECTION_KEY])
        check_manifest(manifest, reflection.get("iree.abi.declaration", ""))
        return manifest
    return Manifest("module", signature_of_declaration(reflection.get("iree.abi.declaration", "")))


def dispatch_names_of(entry: Any) -> dict[str, str]:
    """As the vmfb says it; none where it says something else."""
    try:
        found = json.loads(entry.reflection.get(DISPATCHES_KEY, "{}"))
    except (*FAILURES, ValueError, RecursionError):
        return {}
    pairs = found.items() if isinstance(found, dict) else ()
    return {kernel: name for kernel, name in pairs if isinstance(name, str)}
