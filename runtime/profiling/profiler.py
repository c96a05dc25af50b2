"""Profile a loaded program: record its calls and attribute their time to the program's operations."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

from hloforge.dialect.errors import Error, ExecutionError, OptionError
from hloforge.dialect.program import Program
from hloforge.pipelines.named import lower
from hloforge.pipelines.replicas.fold import for_grid
from hloforge.runtime.compile.by_iree import phases_of
from hloforge.runtime.compile.generated import generated_apart
from hloforge.runtime.compile.partition import partitioned
from hloforge.runtime.compile.targets import Target
from hloforge.runtime.compile.weight_placement import place_weights
from hloforge.runtime.data.files import temporary_folder
from hloforge.runtime.host.host import with_host_functions
from hloforge.runtime.options import CompileOptions
from hloforge.runtime.profiling.attribution import Places, attribute
from hloforge.runtime.profiling.capture import RecordedCall, Subject, record
from hloforge.runtime.profiling.labels import Labels, labelled
from hloforge.runtime.profiling.result import Roofline, TimeProfile
from hloforge.runtime.profiling.roofline import measured_roofline
from hloforge.runtime.profiling.sites import Batch, batches, batches_of_kernels
from hloforge.runtime.profiling.subject import subject_of
from hloforge.runtime.session.convention import flatten_arguments

SECONDS, WARMUP = 2.0, 3
_LEAST_CALLS, _MOST_CALLS = 3, 1000
# Calls without measuring inside them.
_LATENCY_SECONDS, _LATENCY_CALLS = 0.3, 50
# Of so many calls, those that take so many times the median are left out: other processes had the processor.
_MANY, _DISTURBED = 20, 3
_PHASES = ("dispatch-creation", "stream")
_NOT_ALIKE = "the calls were not alike, so a single one was measured: the program's work depends on what it overwrites"
# IREE computes constants by compiling and running them, which takes most of the time, and changes no dispatch of calls.
_QUICK = ("--iree-opt-const-eval=false",)
_NOTHING = "the program runs nothing on its device"
_NOT_APART = "dispatches have no operations here: the program cannot be compiled with a dispatch for each step"
_NO_SOURCE = "a vmfb alone tells no operations: profile the program itself to see them"

Say = Callable[[str], None]


@dataclass(frozen=True)
class Plan:
    """How to measure.

    Attributes:
        iterations: how many calls; None for as many as fit into ``seconds``.
        warmup: calls before them.
        roofline: what the device can do; None to measure that.
        with_roofline: whether to compare with it at all.
        deadline: seconds that the tool which makes the calls may take; None for any time.

    Raises:
        OptionError: a number that makes no sense.
    """

    iterations: int | None = None
    seconds: float = SECONDS
    warmup: int = WARMUP
    roofline: Roofline | None = None
    with_roofline: bool = True
    deadline: float | None = None

    def __post_init__(self) -> None:
        if self.iterations is not None and self.iterations < 1:
            raise OptionError(f"iterations must be at least 1, not {self.iterations}")
        if self.seconds <= 0 or self.warmup < 0:
            raise OptionError("seconds must be positive, and warmup not negative")

    def calls(self, latency: float) -> int:
        """How many calls of so many seconds are measured."""
        fitting = int(self.seconds / max(latency, 1e-7))
        return self.iterations or min(max(fitting, _LEAST_CALLS), _MOST_CALLS)


def check_profilable(options: CompileOptions, host_calls: Sequence[Any] = ()) -> None:
    """Raise OptionError for what IREE's tool, which makes the calls, cannot run."""
    if options.grid.devices > 1 and not options.fold_replicas:
        raise OptionError(
            "profiling supports one device, and the program runs on several",
            hint="--fold-replicas folds the devices into one program",
        )
    if host_calls:
        names = ", ".join(sorted({call.target for call in host_calls}))
        raise OptionError(
            f"the program calls its host ({names}), and IREE's profiler records calls of its own tool, which has none",
            hint="profile the parts of the program between these calls",
        )


def time_profile(
    subject: Subject,
    arguments: Sequence[Any],
    plan: Plan,
    *,
    program: Program | None = None,
    options: CompileOptions | None = None,
    say: Say = lambda _: None,
) -> TimeProfile:
    """Measure calls of a program.

    Args:
        arguments: one a parameter.
        program: what was compiled with ``options``, as it was read; None if there is only a vmfb.

    Raises:
        ExecutionError: the program or IREE's tool failed, crashed, or took too long.
        OptionError: the program needs what the tool lacks.
    """
    options, session = options or CompileOptions(), subject.session
    check_profilable(options, session.manifest.host_calls)
    leaves = flatten_arguments(session.signature, arguments)
    say("calling")
    latency = _latency(lambda: session(*arguments))
    apart = _apart(program, subject, options, plan) if program and session.manifest.is_generated else None
    say("recording")
    recorded, warmup, notes = _recorded(apart.subject if apart else subject, leaves, plan, plan.calls(latency))
    if not any(call.end for call in recorded):
        recorded, notes = _without_record(latency), [_NOTHING]
    found: list[Batch] = []
    labels: Labels | None = None
    if program is None:
        notes.append(_NO_SOURCE)
    elif apart is not None:
        found, labels = apart.batches, apart.labels
    elif session.manifest.is_generated:
        notes.append(_NOT_APART)
    else:
        say("finding the operations of dispatches")
        names = frozenset(run.dispatch for call in recorded for run in call.runs)
        try:
            found, labels = _sites(program, session.manifest.flags, session.manifest.target, options, names)
        except Error as error:
            notes.append(f"dispatches have no operations here: {error.message}")
    rows, calls = attribute(recorded, found, labels)
    roofline = plan.roofline
    if plan.with_roofline and roofline is None and labels is not None:
        say("measuring the roofline")
        roofline = measured_roofline(Target.parse(session.manifest.target), session.device, subject.threads)
    return TimeProfile(
        Path(program.source).name if program is not None else session.manifest.source or session.manifest.name,
        session.manifest.target,
        session.device,
        calls,
        warmup,
        latency,
        rows,
        labels.operations if labels else (),
        labels is not None,
        roofline if plan.with_roofline else None,
        tuple(notes),
    )


def _latency(call: Callable[[], Any]) -> float:
    """The median seconds of a call from Python; the first one, which is slow, is left out."""
    call()
    taken: list[float] = []
    while len(taken) < _LATENCY_CALLS and (not taken or sum(taken) < _LATENCY_SECONDS):
        start = time.perf_counter()
        call()
        taken.append(time.perf_counter() - start)
    return median(taken)


def _recorded(
    subject: Subject, leaves: Sequence[Any], plan: Plan, calls: int
) -> tuple[list[RecordedCall], int, list[str]]:
    """Calls, how many were left out before them, and what there is to say of them."""
    with temporary_folder() as folder:
        if folder is None:
            raise ExecutionError("no temporary folder can be made", hint="set TMPDIR to another folder")
        # The end of a call is the beginning of the next, so one more is made.
        found = record(subject, leaves, plan.warmup + calls + 1, Path(folder), plan.deadline)
        if found is not None:
            kept, notes = undisturbed(found[plan.warmup :])
            return kept, plan.warmup, notes
        alone = record(subject, leaves, 1, Path(folder), plan.deadline)
    return alone or [], 0, [_NOT_ALIKE]


def undisturbed(calls: Sequence[RecordedCall]) -> tuple[list[RecordedCall], list[str]]:
    """Of many calls those that nothing else on the machine held up, and what there is to say of the others."""
    if len(calls) < _MANY:
        return list(calls), []
    longest = _DISTURBED * median(call.end - call.start for call in calls)
    kept = [call for call in calls if call.end - call.start <= longest]
    left = len(calls) - len(kept)
    return kept, [f"{left} calls are left out that took more than {_DISTURBED} times the median"] if left else []


def _without_record(latency: float) -> list[RecordedCall]:
    """A call of which the device saw nothing."""
    return [RecordedCall(0, round(1e9 * latency), (), ())]


@dataclass(frozen=True)
class _Apart:
    """A program of our code generator with a dispatch for each step."""

    subject: Subject
    batches: list[Batch]
    labels: Labels


def _apart(program: Program, subject: Subject, options: CompileOptions, plan: Plan) -> _Apart | None:
    """What is measured in the place of a program whose dispatches have many steps; None if it cannot be made."""
    session = subject.session
    program, options = _prepared(program, options)
    numbered, labels = labelled(program)
    made = generated_apart(numbered, Target.parse(session.manifest.target), options)
    if made is None:
        return None
    executable, kernels = made
    loading: dict[str, Any] = {"deadline": plan.deadline} if plan.deadline else {}
    own = subject_of(executable, device=session.device, threads=subject.threads, **loading)
    return _Apart(own, batches_of_kernels(kernels), labels)


def _prepared(program: Program, options: CompileOptions) -> tuple[Program, CompileOptions]:
    """The program as it is before a target's passes."""
    program, options = place_weights(partitioned(program, options), replace(options, externalize_weights=None))
    return for_grid(with_host_functions(program, options), options.grid, folded=options.fold_replicas), options


def _sites(
    program: Program, flags: Sequence[str], target: str, options: CompileOptions, names: frozenset[str]
) -> tuple[list[Batch], Labels]:
    """The dispatches of a program that was compiled with these flags.

    Args:
        names: of dispatches that ran: what is found has to have them all.

    Raises:
        Error: the program cannot be compiled in the same way again.
    """
    program, options = _prepared(program, options)
    numbered, labels = labelled(program)
    lower(numbered.module, target=Target.parse(target).pipeline, verify=False)
    for further in (_QUICK, ()):
        found = batches(phases_of(numbered, (*flags, *further), _PHASES, options))
        if names <= Places(found).names:
            return found, labels
    missing = sorted(names - Places(found).names)
    raise Error(f"compiling the program again makes no dispatch {missing[0]}")
