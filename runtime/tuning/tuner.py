"""``hloforge tune``: search for the device and the numbers or flags that make one program fastest.

One question after the other is asked of the best form so far: each answer is compiled, checked against the reference,
and timed in turn with the best one. That finds a good form in as many compilations as there are answers, where all
combinations would take their product; what it cannot find is two changes that pay only together.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hloforge.dialect.errors import Error, MismatchError, ReferenceEngineError
from hloforge.dialect.program import Program
from hloforge.pipelines.framework.machine import TUNABLE
from hloforge.runtime.artifact.executable import Executable
from hloforge.runtime.compile.compiler import compile_program
from hloforge.runtime.compile.targets import Target
from hloforge.runtime.devices import devices
from hloforge.runtime.options import CompileOptions
from hloforge.runtime.reference.compare import compare
from hloforge.runtime.reference.correctness import judge
from hloforge.runtime.reference.engines import ReferenceEngine
from hloforge.runtime.session.session import Session
from hloforge.runtime.tuning.timing import interleaved
from hloforge.runtime.tuning.tuned_profile import Profile

# What is asked of IREE's compiler, each one of ``profile.FLAGS``; a later flag overrides hloforge's own choice.
_FLAGS = (
    "--iree-opt-level=O3",
    "--iree-opt-level=O1",
    "--iree-opt-level=O0",
    "--iree-dispatch-creation-data-tiling",
    "--iree-dispatch-creation-data-tiling=false",
    "--iree-llvmcpu-enable-ukernels=all",
    "--iree-dispatch-creation-enable-aggressive-fusion",
    "--iree-dispatch-creation-enable-fuse-horizontal-contractions",
    "--iree-llvmcpu-distribution-size=32",
    "--iree-llvmcpu-distribution-size=128",
    "--iree-opt-aggressively-propagate-transposes",
    "--iree-codegen-llvmgpu-use-vector-distribution=false",
    "--iree-codegen-llvmgpu-use-reduction-vector-distribution=false",
    "--iree-codegen-llvmgpu-use-tile-and-fuse-matmul",
    "--iree-llvmgpu-enable-shared-memory-reuse",
)
# Flags of one kind of code generator by a part of their names, and the pipelines that have it.
_GENERATORS = {"llvmcpu": "cpu", "llvmgpu": "cuda"}
# A gain below this share of the time is not worth a state.
_LEAST_GAIN = 0.03
# Seconds of calls for one comparison, at most; and the share of the budget.
_SECONDS, _SHARE = 2.0, 0.02


@dataclass(frozen=True)
class Trial:
    """One form of the program.

    Attributes:
        profile: how it was made.
        ratio: its time by that of the best one before; 0 if it has none.
        problem: why it was not timed: the compiler's error, or how its results differ.
        accepted: whether it became the best one.
    """

    profile: Profile
    ratio: float = 0.0
    problem: str = ""
    accepted: bool = False


@dataclass(frozen=True)
class Tuned:
    """What tuning found.

    Attributes:
        executable: the fastest form, with its device in its manifest.
        profile: how it was made.
        trials: all forms, in order.
        speedup: the untuned time by the tuned one, measured in turn at the end; 1 where nothing was faster then.
    """

    executable: Executable
    profile: Profile
    trials: tuple[Trial, ...]
    speedup: float


@dataclass(frozen=True)
class _Form:
    profile: Profile
    executable: Executable
    session: Session


def tune(
    program: Program,
    arguments: Sequence[Any],
    target: Target | str = "cpu",
    options: CompileOptions | None = None,
    *,
    reference: ReferenceEngine | None = None,
    budget: float = 120.0,
    on_trial: Callable[[Trial], None] = lambda _: None,
) -> Tuned:
    """Search for the fastest form of a program on this machine.

    Args:
        arguments: what it is called with, to check and to time it.
        options: their flags hold for every form.
        reference: the engine that every form has to agree with; None, or one that cannot evaluate the program: the
            untuned form.
        budget: seconds; no new form is begun after them.
        on_trial: called with each trial when it has ended.

    Raises:
        CompileError, UnsupportedError: the program does not compile at all.
        LoadError: the machine has no device of the target.
        MismatchError: its untuned form differs from the reference.
    """
    seconds = min(_SECONDS, _SHARE * budget)
    search = _Search(program, arguments, Target.parse(target), options or CompileOptions(), seconds)
    if reference is not None:
        search.judge_by(reference)
    end = time.monotonic() + budget
    trials: list[Trial] = []
    # Asking costs time as well: a question about the machine compiles the program for each number.
    for profile in search.profiles(lambda: time.monotonic() < end):
        trials.append(search.attempt(profile))
        on_trial(trials[-1])
    return search.conclude(tuple(trials))


class _Search:
    """The best form of a program so far, and how others are held against it."""

    def __init__(
        self, program: Program, arguments: Sequence[Any], target: Target, options: CompileOptions, seconds: float
    ) -> None:
        self.program, self.arguments, self.target, self.options = program, arguments, target, options
        self.seconds = seconds
        if target.driver:
            devices.device(target.driver)  # no form can be timed without one, so nothing is compiled
        self.compiled: dict[tuple[tuple[str, ...], ...], Executable] = {}
        self.untuned = self.best = self._form(Profile())
        self.wanted = self.untuned.session(*arguments)
        self.reference: ReferenceEngine | None = None

    def judge_by(self, reference: ReferenceEngine) -> None:
        """Hold all forms against an engine, if it can evaluate the program."""
        try:
            report = judge(reference, self.program, self.arguments, self.wanted)
        except ReferenceEngineError:
            return
        if not report.agrees:
            raise MismatchError(f"the program differs from the reference before any tuning:\n{report}")
        self.reference = reference

    def profiles(self, has_time: Callable[[], bool]) -> Iterator[Profile]:
        """What to try, one after the other, while there is time: changes of the form that is best by then."""
        for question in self._questions():
            for profile in question:
                if not has_time():
                    return
                yield profile
            if not has_time():
                return

    def _questions(self) -> Iterator[list[Profile]]:
        """Answers to one question after the other. A question without answers gives time to look at the clock."""
        yield [replace(self.best.profile, device=device, threads=threads) for device, threads in _devices(self.target)]
        if not self.untuned.executable.manifest.is_generated:
            for flag in _flags(self.target):
                yield [replace(self.best.profile, flags=_with(self.best.profile.flags, flag))]
            return
        for name, values in TUNABLE.items():
            known = self.best.profile.machine
            yield list(
                self._distinct([replace(self.best.profile, machine=_with(known, f"{name}={v}")) for v in values])
            )

    def _distinct(self, profiles: Sequence[Profile]) -> Iterator[Profile]:
        """Those that make code of their own."""
        seen = {self.best.executable.vmfb}
        for profile in profiles:
            made = self._compiled(profile).vmfb
            if made not in seen:
                seen.add(made)
                yield profile

    def attempt(self, profile: Profile) -> Trial:
        """Compile, check and time one form; it becomes the best one if it is faster."""
        try:
            form = self._form(profile)
            results = form.session(*self.arguments)
        except Error as error:
            return Trial(profile, problem=error.message)
        if not self._agrees(results):
            return Trial(profile, problem="its results differ")
        ratio = self._ratio(form, self.best)
        if ratio > 1 - _LEAST_GAIN:
            return Trial(profile, ratio)
        self.best = form
        return Trial(profile, ratio, accepted=True)

    def conclude(self, trials: tuple[Trial, ...]) -> Tuned:
        """The best form, measured against the first one; it knows its device."""
        ratio = 1.0 if self.best is self.untuned else self._ratio(self.best, self.untuned)
        if ratio >= 1:
            # What won by noise alone is no winner.
            self.best, ratio = self.untuned, 1.0
        executable = compile_program(self.program, self.target, self.best.profile.applied(self.options))
        return Tuned(executable, self.best.profile, trials, 1 / ratio)

    def _form(self, profile: Profile) -> _Form:
        executable = self._compiled(profile)
        session = executable.load(device=profile.device or None, threads=profile.threads or None)
        return _Form(profile, executable, session)

    def _compiled(self, profile: Profile) -> Executable:
        """The program for any device."""
        key = profile.flags, profile.machine
        if key not in self.compiled:
            options = replace(profile, device="", threads=0).applied(self.options)
            self.compiled[key] = compile_program(self.program, self.target, options)
        return self.compiled[key]

    def _agrees(self, results: Any) -> bool:
        if self.reference is None:
            return compare(results, self.wanted).agrees
        return judge(self.reference, self.program, self.arguments, results).agrees

    def _ratio(self, form: _Form, other: _Form) -> float:
        calls = {side: (lambda at=at: at.session(*self.arguments)) for side, at in (("form", form), ("other", other))}
        found = interleaved(calls, self.seconds)
        return found["form"].median / found["other"].median


def _flags(target: Target) -> list[str]:
    """The flags that the target's code generator reads."""
    strange = [part for part, pipeline in _GENERATORS.items() if pipeline != target.pipeline]
    return [flag for flag in _FLAGS if not any(part in flag for part in strange)]


def _devices(target: Target) -> list[tuple[str, int]]:
    """Devices and threads to choose from; a GPU's code runs on the GPU alone."""
    if target.driver:
        return []
    cores = os.cpu_count() or 1
    return [("local-sync", 0), ("local-task", 0), *([("local-task", cores // 2)] if cores >= 4 else [])]


def _with(flags: tuple[str, ...], flag: str) -> tuple[str, ...]:
    """The flags, or the numbers of the machine, with another value of one of them."""
    name = flag.partition("=")[0]
    return (*(kept for kept in flags if kept.partition("=")[0] != name), flag)
