"""Run ``hloforge profile``: from programs and arguments of the command line to a ``TimeProfile``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import Any

from hloforge.importers.source import NamedBytes, load
from hloforge.runtime.options import CompileOptions
from hloforge.runtime.profiling.capture import Subject
from hloforge.runtime.profiling.profiler import Plan, check_profilable, time_profile
from hloforge.runtime.profiling.result import TimeProfile
from hloforge.runtime.profiling.subject import subject_of
from hloforge.tools import calling
from hloforge.tools.building import build
from hloforge.tools.options import read_program
from hloforge.tools.progress import Say, Stopwatch
from hloforge.tools.streams import STDIO, is_vmfb, open_source
from hloforge.tools.verifying import at_sizes, judged_program


def profile(
    source: str,
    target: str,
    options: CompileOptions,
    reading: dict[str, Any],
    inputs: Sequence[str],
    plan: Plan,
    loading: dict[str, Any],
    say: Say,
) -> TimeProfile:
    """Compile a program, unless it is a vmfb, and measure its calls.

    Args:
        inputs: specifications of the arguments; none for plausible ones, or random ones of a vmfb.
        loading: device and threads.

    Raises:
        Error: the program cannot be read, compiled, run or measured.
    """
    seed = reading["seed"]
    check_profilable(options)
    head, stream = open_source(source)
    if is_vmfb(head):
        given = stream if isinstance(stream, str) else stream.getvalue()
        subject = subject_of(given, weights=options.weights, libraries=options.libraries, **loading)
        arguments = calling.arguments(subject.session.signature, inputs or ("random",), seed, None)
        return _with_attempts(time_profile(subject, arguments, plan, say=say), subject)
    say("reading")
    place: Any = PurePath(stream) if isinstance(stream, str) and stream != STDIO else stream
    named = NamedBytes(*load(place))
    program, options = at_sizes(read_program(named, **reading), options, inputs, seed)
    executable = build(NamedBytes(named.getvalue(), named.name), target, options, Stopwatch(), **reading)
    subject = subject_of(executable, weights=executable.weights, **loading)
    judged = judged_program(program, options)
    arguments = calling.arguments(subject.session.signature, inputs or (calling.PLAUSIBLE,), seed, judged)
    found = time_profile(subject, arguments, plan, program=program, options=options, say=say)
    return _with_attempts(found, subject)


def _with_attempts(found: TimeProfile, subject: Subject) -> TimeProfile:
    """The profile, with a note if IREE's compiler failed on the program as it is: the code may be slower."""
    return replace(found, notes=(*found.notes, *subject.session.manifest.attempts.notes))
