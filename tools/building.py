"""Compile a program for the command line, or find it compiled, with progress and timings."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from pathlib import PurePath
from typing import Any

from hloforge.importers.onnx.load import is_onnx, refers_to_files
from hloforge.importers.source import NamedBytes, load
from hloforge.runtime.artifact.bundle import bundled, options_for
from hloforge.runtime.artifact.executable import Executable
from hloforge.runtime.compile import cache
from hloforge.runtime.compile.limited import within
from hloforge.runtime.compile.targets import Target, parse_targets
from hloforge.runtime.host.host import has_functions
from hloforge.runtime.options import CompileOptions
from hloforge.tools.progress import Stopwatch, progress, silent
from hloforge.tools.streams import STDIO


def build(
    source: str | NamedBytes, target: str, options: CompileOptions, watch: Stopwatch, **reading: Any
) -> Executable:
    """Read and compile a program, or find it compiled; raises what ``hloforge.compile`` raises.

    Args:
        source: a path, ``-`` for standard input, or what was read from one.
        reading: as of ``read_program``.
    """
    targets = parse_targets(target)
    with ExitStack() as stack:
        name = source if isinstance(source, str) else source.name
        say = stack.enter_context(progress(f"compiling {'standard input' if name == STDIO else PurePath(name).name}"))
        if say is not silent:
            options = replace(options, progress=say)
        if options.is_limited:
            from hloforge.runtime.compile.compiler import load_ahead
            from hloforge.tools import building_anew  # noqa: F401  # as of ``load_ahead``

            load_ahead(targets, options)
        stack.enter_context(within(options))
        with watch.step("open"):
            data, file = load(PurePath(source) if isinstance(source, str) and source != STDIO else source)
            # The cache does not see tensors that are in other files.
            kept = not (is_onnx(data) and refers_to_files(data))

        def made(chosen: Target, options: CompileOptions) -> Executable:
            with watch.step("look up"):
                place = cache.entry(data, reading | {"file": PurePath(file).name}, chosen, options)
                executable = place.find() if kept else None
            if executable is not None and has_functions(executable.manifest, options):
                watch.notes.append(f"{chosen}: found in the cache: {place.path}")
                return executable
            # What compiles takes longer to load than what finds a program that was compiled before.
            from hloforge.tools.building_anew import build_anew

            executable = build_anew(NamedBytes(data, file), chosen, options, watch, reading)
            with watch.step("store"):
                stored = kept and place.store(executable)
            watch.notes.append(f"{chosen}: {_not_found(place, kept=kept, stored=stored)}")
            return executable

        several = [made(one, options_for(one, options) if targets[1:] else options) for one in targets]
        watch.notes += [f"{each.manifest.target}: {note}" for each in several for note in each.manifest.attempts.notes]
        return replace(bundled(several) if several[1:] else several[0], libraries=options.libraries)


def _not_found(place: cache.Entry, *, kept: bool, stored: bool) -> str:
    """Why a program was compiled, and what the cache has of it now."""
    if not kept:
        return "the cache keeps no programs with tensors in other files"
    if place.path is None:
        return "the cache is off"
    return f"not found in the cache, now {'' if stored else 'not '}in it: {place.path}"
