"""Read, lower and compile a program for the command line, with progress and timings."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from pathlib import PurePath
from typing import Any

from hloforge.dialect import budget
from hloforge.dialect.program import Program
from hloforge.importers.onnx.load import is_onnx, refers_to_files
from hloforge.importers.source import NamedBytes, load
from hloforge.pipelines.capability.check_needs import check_calls
from hloforge.pipelines.named import lower
from hloforge.pipelines.replicas.fold import for_grid
from hloforge.runtime.artifact.bundle import bundled, options_for
from hloforge.runtime.artifact.executable import Executable
from hloforge.runtime.artifact.weights import place_weights
from hloforge.runtime.compile import cache
from hloforge.runtime.compile.compiler import compile_lowered
from hloforge.runtime.compile.generated import generated
from hloforge.runtime.compile.ladder import Attempt
from hloforge.runtime.compile.limited import limited_form, make_executable, within
from hloforge.runtime.compile.partition import partitioned
from hloforge.runtime.compile.specialize import at_sizes, compile_dynamic
from hloforge.runtime.compile.targets import Target, parse_targets
from hloforge.runtime.host.host import has_functions, with_host_functions
from hloforge.runtime.options import CompileOptions
from hloforge.tools.options import read_program
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
            executable = _build_anew(NamedBytes(data, file), chosen, options, watch, reading)
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


def _build_anew(
    source: NamedBytes, target: Target, options: CompileOptions, watch: Stopwatch, reading: dict[str, Any]
) -> Executable:
    def make(_: Program | None, options: CompileOptions) -> Executable:
        source.seek(0)  # another target may have read it
        budget.enter("reading")
        with watch.step("read"):
            program = read_program(source, **reading)
        return build_program(program, target, options, watch)

    return make_executable(make, None, options, also=watch.steps)


def build_program(program: Program, target: Target, options: CompileOptions, watch: Stopwatch) -> Executable:
    """Compile a program that was read; it is left as it was."""
    program, options = at_sizes(program, options)
    if program.template is not None:
        return compile_dynamic(program, lambda form: build_program(form, target, options, watch), target, options)
    if options.grid.devices > 1:
        # Cutting and folding a program takes longer than its passes.
        check_calls(with_host_functions(program, options).module, target.pipeline)
    with watch.step("partition"):
        program = partitioned(program, options)
    program, options = place_weights(program, options)
    program = for_grid(with_host_functions(program, options), options.grid, folded=options.fold_replicas)

    def lowered(form: Program, without: frozenset[str]) -> Program:
        copy = form.clone()
        with watch.step("passes"):
            passes = lower(
                copy.module,
                target=target.pipeline,
                machine=target.machine.with_settings(options.machine),
                without=without | options.without,
                verify=options.verify,
                dump_after=options.dump_after,
                dump_to=options.dump_to,
            )
        watch.steps += [(f"  {timing.name}", timing.seconds) for timing in passes]
        return copy

    attempts: list[Attempt] = []

    def compile_by_iree(form: Program) -> Executable:
        with watch.parts(), watch.step("iree-compile"):
            executable = compile_lowered(lambda without: lowered(form, without), target, options, attempts.append)
        if len(attempts) > 1:
            watch.steps += [(_step_name(attempt), attempt.seconds) for attempt in attempts]
        return executable

    def compile_lowered_form(form: Program) -> Executable:
        with watch.parts(), watch.step("code generation"):
            made = generated(form, target, options)
        return compile_by_iree(form) if made is None else made

    return compile_dynamic(program, limited_form(compile_lowered_form, options), target, options)


def _step_name(attempt: Attempt) -> str:
    return f"  {attempt.name}" + (" (failed)" if attempt.failure else "")
