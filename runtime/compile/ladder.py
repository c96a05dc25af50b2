"""The ladder of attempts to compile a program, and the record of those that failed.

IREE fails on some programs that it compiles with other flags, in another process, or with more copies. A ``Rung`` says
which failures it answers and what it changes. ``climb`` takes the rungs in order, leaves out those that answer nothing,
and returns what the first successful one compiled. The manifest of the executable keeps the record (``Attempts``), so
that no fallback is silent.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from hloforge.dialect.errors import CompileError
from hloforge.dialect.program import Program
from hloforge.pipelines.legalize.decide_updates import DecideUpdates
from hloforge.pipelines.workarounds.loop_buffers import without_calls_in_loops
from hloforge.pipelines.workarounds.many_arguments import LegalizeManyArguments
from hloforge.runtime.artifact.attempts import AS_IS, Attempts
from hloforge.runtime.artifact.executable import Executable
from hloforge.runtime.compile import reproducers
from hloforge.runtime.compile.bindings import TooManyArraysError
from hloforge.runtime.compile.in_place_audit import OverwrittenError

# Folders of files, which say where the user keeps programs, and where IREE's compiler had its temporary files.
_FOLDERS = re.compile(r"(?<![\w.])/(?:[^\s/:\"']+/)+")
_LONGEST_REASON = 200
_WITHOUT_END = "maximum iteration count exceeded"


class InProcessError(CompileError):
    """IREE's compiler refused a program in this process, where its diagnostics cannot be read."""


@dataclass(frozen=True)
class Failure:
    """An attempt that failed.

    Attributes:
        name: of the attempt.
        error: what IREE's compiler, or the audit of what it made, raised.
    """

    name: str
    error: CompileError

    @property
    def reason(self) -> str:
        """The first line of the error, without folders."""
        line = self.error.message.partition("\n")[0]
        return _FOLDERS.sub("", line)[:_LONGEST_REASON]


# Whether a rung answers failures: those since the flags changed last, in order.
Answers: TypeAlias = Callable[[Sequence[Failure]], bool]


def any_failure(_: Sequence[Failure]) -> bool:
    """Whatever went wrong."""
    return True


def refused_in_process(failures: Sequence[Failure]) -> bool:
    """The last attempt ran in this process."""
    return bool(failures) and isinstance(failures[-1].error, InProcessError)


def overwritten(failures: Sequence[Failure]) -> bool:
    """IREE would overwrite an array that is still read."""
    return bool(failures) and isinstance(failures[-1].error, OverwrittenError)


def with_too_many_arrays(failures: Sequence[Failure]) -> bool:
    """A dispatch has more arrays than IREE's runtime takes."""
    return bool(failures) and isinstance(failures[-1].error, TooManyArraysError)


def without_end(failures: Sequence[Failure]) -> bool:
    """IREE's compiler went on changing the program, until it gave up."""
    return bool(failures) and _WITHOUT_END in failures[-1].error.message


def overwritten_by_its_reader(failures: Sequence[Failure]) -> bool:
    """As ``overwritten``; at first it was one operation that read an array and wrote a part of it."""
    return overwritten(failures) and _first_overwritten(failures).in_one_operation


def _first_overwritten(failures: Sequence[Failure]) -> OverwrittenError:
    return next(failure.error for failure in failures if isinstance(failure.error, OverwrittenError))


def _unchanged(_: Any) -> bool:
    return True


@dataclass(frozen=True)
class Rung:
    """One more way to compile a program.

    Attributes:
        name: what it does, in a few words; the manifest and the command line show it.
        answers: the failures after which it is tried.
        flags: of IREE's compiler; None for those of the attempt before.
        change: rewrites the module of the program in place, which stays so for later rungs; False if it has nothing to
            change, and cannot help.
        in_process: whether IREE's compiler may run in this process.
        workaround: the name of the fault in the ledger (``runtime/upstream``) that it is for; empty if it is for any.
    """

    name: str
    answers: Answers = any_failure
    flags: tuple[str, ...] | None = None
    change: Callable[[Any], bool] = _unchanged
    in_process: bool = True
    workaround: str = ""


def _with_copied_parts(module: Any) -> bool:
    DecideUpdates(copied="parts").run(module)
    return True


def _with_copies_of_all(module: Any) -> bool:
    DecideUpdates(copied="all").run(module)
    return True


def _with_arrays_counted(module: Any) -> bool:
    LegalizeManyArguments(most=8, of_all=True).run(module)
    return True


def _with_few_arrays(module: Any) -> bool:
    LegalizeManyArguments(most=3, of_all=True).run(module)
    return True


# What is tried with the same flags after each rung of flags.
REPAIRS: tuple[Rung, ...] = (
    Rung("without calls in loops", without_end, change=without_calls_in_loops, workaround="endless-waits"),
    Rung("with all arrays counted", with_too_many_arrays, change=_with_arrays_counted, workaround="many-arguments"),
    Rung("with few arrays", with_too_many_arrays, change=_with_few_arrays, workaround="many-arguments"),
    # IREE places what is written where it belongs, also if the dispatch that computes it reads the array.
    Rung("copies of parts", overwritten_by_its_reader, change=_with_copied_parts, workaround="overwritten-operands"),
    Rung("copies of all", overwritten, change=_with_copies_of_all, workaround="overwritten-operands"),
)
# A child repeats what failed in this process: only there can the compiler's diagnostics be read.
IN_A_CHILD = Rung("in a child process", refused_in_process, in_process=False)


def in_order(rungs: Iterable[Rung]) -> tuple[Rung, ...]:
    """Rungs of flags without those whose flags were tried before; the first one is the program's usual way."""
    distinct: dict[tuple[str, ...] | None, Rung] = {}
    for rung in rungs:
        distinct.setdefault(rung.flags, rung)
    first, *others = distinct.values()
    return (replace(first, name=AS_IS), *others)


@dataclass(frozen=True)
class Step:
    """A rung for a program.

    Attributes:
        rung: what to do.
        program: what to compile.
        optimization: the rung of flags that it belongs to, which may be itself.
        changes: names of what was done to the program, in order; shared by the steps of a program.
        is_tentative: whether steps with other flags follow.
    """

    rung: Rung
    program: Program
    optimization: Rung
    changes: list[str]
    is_tentative: bool

    @property
    def flags(self) -> tuple[str, ...]:
        return self.optimization.flags or ()

    @property
    def name(self) -> str:
        """What is done to the program, all in all."""
        own = () if self.rung.in_process else (self.rung.name,)
        names = dict.fromkeys((*self.changes, self.optimization.name, *own))
        return ", ".join(name for name in names if name != AS_IS) or AS_IS


def steps(rungs: Sequence[Rung], program: Program, *, change: str = "", is_tentative: bool = False) -> Iterator[Step]:
    """Each rung of flags, and what is tried if the program fails with these flags alone.

    Args:
        change: what was done to the program before; empty for nothing.
        is_tentative: whether another program follows.
    """
    changes = [change] if change else []
    for optimization in rungs:
        tentative = is_tentative or optimization is not rungs[-1]
        for rung in (optimization, *REPAIRS):
            yield Step(rung, program, optimization, changes, tentative)
            yield Step(IN_A_CHILD, program, optimization, changes, tentative)


@dataclass(frozen=True)
class Attempt:
    """An attempt that was made, for whoever measures.

    Attributes:
        name: of the attempt.
        seconds: it took.
        failure: why it failed; empty if it succeeded.
    """

    name: str
    seconds: float
    failure: str = ""


def climb(
    ladder: Iterable[Step],
    compile_step: Callable[[Step, Attempts], Executable],
    on_attempt: Callable[[Attempt], None] = lambda _: None,
) -> Executable:
    """What the first successful step compiles.

    Args:
        compile_step: compiles the program of a step as it is then, with its flags; is given the record until then.
        on_attempt: told of each attempt after it.

    Raises:
        CompileError: of the last attempt, which alone keeps a reproducer.
        Error: anything else that ``compile_step`` raises ends the climb.
    """
    failures: list[Failure] = []
    recent: list[Failure] = []
    for step in ladder:
        if step.rung is step.optimization:
            recent = []
        if not step.rung.answers(recent) or not step.rung.change(step.program.module):
            continue
        if step.rung in REPAIRS:
            step.changes.append(step.rung.name)
        if failures:
            # Its frames hold the text of the program.
            failures[-1].error.__traceback__ = None
        record = Attempts(step.name, tuple((failure.name, failure.reason) for failure in failures))
        start = time.perf_counter()
        try:
            with reproducers.tentative() if step.is_tentative else nullcontext():
                executable = compile_step(step, record)
        except CompileError as error:
            recent.append(Failure(step.name, error))
            failures.append(recent[-1])
            on_attempt(Attempt(step.name, time.perf_counter() - start, recent[-1].reason))
            continue
        on_attempt(Attempt(step.name, time.perf_counter() - start))
        return executable
    raise failures[-1].error
