"""A compilation within its limits: one deadline and one limit of memory for reading, our passes and IREE's compiler."""

from __future__ import annotations

import importlib
import io
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from hloforge.dialect import budget
from hloforge.dialect.budget import Budget, OverBudgetError
from hloforge.dialect.errors import CompileError
from hloforge.dialect.forked import UNLIMITED, StoppedError, may_fork, run_forked
from hloforge.dialect.garbage import seldom_collecting
from hloforge.dialect.mlir import parse_module
from hloforge.dialect.program import Program
from hloforge.runtime.artifact.executable import Executable
from hloforge.runtime.compile.progress import told
from hloforge.runtime.compile.specialize import SpecializingExecutable
from hloforge.runtime.data.files import nest_temporary_folders, remove_pending, temporary_folder
from hloforge.runtime.options import CompileOptions

Result = TypeVar("Result")
# Seconds for the child to say itself that its time is up, and where.
_GRACE = 0.25
# Modules that are gone with the children that loaded them: the next child has them from this process.
_loaded_by_children: set[str] = set()


@contextmanager
def within(options: CompileOptions) -> Iterator[None]:
    """Start the deadline of a compilation, and tell who watches it what it does, unless both run already.

    Raises:
        CompileError: time or memory is spent.
    """
    wanted = (options.timeout, options.memory_limit, options.progress)
    if budget.budget() is not None or wanted == (None, None, None):
        yield
        return
    running = Budget(options.timeout, options.memory_limit, is_watched=options.progress is not None)
    try:
        with budget.spending(running), told(options.progress, running):
            yield
    except OverBudgetError as error:
        raise _as_compile_error(error) from None


def _as_compile_error(error: OverBudgetError) -> CompileError:
    return CompileError(error.message, location=error.location, op=error.op, hint=error.hint, notes=error.notes)


def make_executable(
    make: Callable[[Program | None, CompileOptions], Executable],
    program: Program | None,
    options: CompileOptions,
    also: list[Any] | None = None,
) -> Executable:
    """``make(program, options)`` within the options' limits: in a child process, if there are any.

    Args:
        make: compiles a program of its own, which this copies into the child, or reads it first (None).
        also: a list that ``make`` adds to, such as timings.

    Raises:
        CompileError: time or memory is spent, or the child crashed.
        Exception: what ``make`` raised.
    """

    also = [] if also is None else also

    def portable() -> tuple[Executable | _PerCall, list[Any]]:
        made = make(_moved(program), options)
        return made if type(made) is Executable else _PerCall(getattr(made, "refusal", "")), also

    with within(options), seldom_collecting():
        answer = in_child(portable)
        if answer is None:
            return make(program, options)
        made, also[:] = answer
        if isinstance(made, Executable):
            return made
        # Its forms are compiled by this process, each within limits of its own: it only has to be read here as well.
        again = make(program, replace(options, dynamic_shapes="specialize"))
        return replace(again, refusal=made.refusal) if isinstance(again, SpecializingExecutable) else again


def limited_form(
    compile_form: Callable[[Program], Executable], options: CompileOptions
) -> Callable[[Program], Executable]:
    """A function that compiles a program as it is, with limits of its own if it is called after the compilation."""

    def make(form: Program | None, _: CompileOptions) -> Executable:
        assert form is not None
        return compile_form(form)

    return lambda form: make_executable(make, form, options)


@dataclass(frozen=True)
class _PerCall:
    """What represents a program that is compiled for the sizes of each call, and why it is."""

    refusal: str


def in_child(function: Callable[[], Result]) -> Result | None:
    """``function()`` in a child process that ends with the budget; None if nothing is limited, or it runs in one.

    Raises:
        OverBudgetError: the budget is spent.
        CompileError: the child crashed.
        Exception: what the function raised.
    """
    running = budget.budget()
    if running is None or not running.is_limited or not may_fork() or budget.is_of_process():
        return None
    for name in sorted(_loaded_by_children - sys.modules.keys()):
        importlib.import_module(name)
    running.check()
    with temporary_folder() as folder:

        def work() -> tuple[Result, set[str]]:
            budget.take_over(running)
            nest_temporary_folders(folder)
            before = set(sys.modules)
            return function(), {name for name in sys.modules.keys() - before if name.startswith("hloforge.")}

        memory = UNLIMITED if running.memory is None else running.memory
        left = running.remaining
        try:
            result, loaded = run_forked(
                work, seconds=None if left is None else left + _GRACE, memory=memory, on_end=remove_pending
            )
            _loaded_by_children.update(loaded)
            return result
        except StoppedError as stopped:
            if stopped.how == "time":
                raise running.out_of_time() from None
            if stopped.how == "memory":
                raise running.out_of_memory() from None
            raise CompileError(_crash(stopped, running.phase), hint="this is a defect: report it") from None


def _crash(stopped: StoppedError, phase: str) -> str:
    status = stopped.status
    how = signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else f"status {os.WEXITSTATUS(status)}"
    return f"the compilation crashed ({how})" + (f" in {phase}" if phase else "")


def _moved(program: Program | None) -> Program | None:
    """A program of the parent in an MLIR context of this child: the threads of the old one's pool are not here."""
    if program is None or not budget.is_of_process():
        return program
    stream = io.BytesIO()
    program.module.operation.write_bytecode(stream)
    return replace(program, module=parse_module(stream.getvalue()))
