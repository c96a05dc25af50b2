"""IREE's way of a program for the command line: our passes and its compiler, with their times."""

from __future__ import annotations

from hloforge.dialect.program import Program
from hloforge.pipelines.named import lower
from hloforge.runtime.artifact.executable import Executable
from hloforge.runtime.compile.by_iree import compile_module
from hloforge.runtime.compile.ladder import Attempt
from hloforge.runtime.compile.targets import Target
from hloforge.runtime.options import CompileOptions
from hloforge.tools.progress import Stopwatch


def build_by_iree(form: Program, target: Target, options: CompileOptions, watch: Stopwatch) -> Executable:
    """Lower a copy of a program and hand it to IREE's compiler. Raises what ``hloforge.compile`` raises."""
    attempts: list[Attempt] = []

    lowered = form.clone()
    with watch.step("passes"):
        passes = lower(
            lowered.module,
            target=target.pipeline,
            verify=options.verify,
            dump_after=options.dump_after,
            dump_to=options.dump_to,
        )
    watch.steps += [(f"  {timing.name}", timing.seconds) for timing in passes]
    with watch.parts(), watch.step("iree-compile"):
        executable = compile_module(lowered, target, options, attempts.append)
    if len(attempts) > 1:
        watch.steps += [(_step_name(attempt), attempt.seconds) for attempt in attempts]
    return executable


def _step_name(attempt: Attempt) -> str:
    return f"  {attempt.name}" + (" (failed)" if attempt.failure else "")
