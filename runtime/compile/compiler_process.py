"""Run IREE's compiler as a child process, which ends with this one, its deadline and its limit of memory."""

from __future__ import annotations

import functools
import os
import resource
import subprocess
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

from hloforge.dialect import budget
from hloforge.dialect.errors import CompileError
from hloforge.dialect.forked import end_with_parent
from hloforge.runtime.compile import iree
from hloforge.runtime.compile.assembly.assembler import assembled
from hloforge.runtime.compile.plugins import without_plugins
from hloforge.runtime.compile.progress import CompilerWatch
from hloforge.runtime.compile.support_library import flags_with_library
from hloforge.runtime.compile.timings import CompilerClock
from hloforge.runtime.data.files import temporary_folder
from hloforge.runtime.options import CompileOptions

# No status of a process.
TIMEOUT = 1 << 16


def run_compiler(
    flags: Sequence[str], data: bytes, options: CompileOptions, printed: Path | None = None
) -> tuple[int, bytes, str]:
    """Give a module to IREE's compiler.

    Args:
        printed: where these flags have it print passes, with constants elided; None if they do not.

    Returns:
        Exit status (``TIMEOUT`` when it ran out of time), standard output and standard error.

    Raises:
        CompileError: it cannot be started.
    """
    with temporary_folder() as folder:
        if folder is None:
            return _run([iree.compiler_binary(), "-", "-o", "-", *flags, *without_plugins(flags)], data, options)
        quick = flags_with_library(flags, folder)
        made = assembled(quick, data, options, folder, printed)
        if made is not None:
            return 0, made, ""
        running = budget.budget()
        watch = CompilerWatch(folder, printed) if running is not None and running.is_watched else None
        clock = CompilerClock(folder, flags, is_elided=printed is not None)
        looking = (*(watch.flags if watch else ()), *clock.flags)
        command = [iree.compiler_binary(), "-", "-o", "-", *quick, *looking, *without_plugins(flags)]
        # IREE's linker leaves its files if it is killed.
        environment = os.environ | {"TMPDIR": str(folder)}
        with watch.saying(running) if watch and running else nullcontext():
            status, output, said = _run(command, data, options, environment)
        return status, output, clock.read(said)


def _run(
    command: list[str], data: bytes, options: CompileOptions, environment: dict[str, str] | None = None
) -> tuple[int, bytes, str]:
    pipe, tie = subprocess.PIPE, iree.tied_to_this_process()
    # Where util-linux is missing the child asks for it itself, which makes a slower fork of it.
    ask = None if tie else functools.partial(end_with_parent, os.getpid())
    try:
        child = subprocess.Popen(
            [*tie, *command], stdin=pipe, stdout=pipe, stderr=pipe, env=environment, preexec_fn=ask
        )
    except OSError as error:
        raise CompileError(f"IREE's compiler cannot be started: {error.strerror}", hint="reinstall it") from None
    with child:
        try:
            if options.memory_limit is not None:
                resource.prlimit(child.pid, resource.RLIMIT_AS, (options.memory_limit, options.memory_limit))
            output, errors = child.communicate(data, budget.remaining())
            return child.returncode, output, errors.decode(errors="replace")
        except subprocess.TimeoutExpired:
            return TIMEOUT, b"", ""
        finally:
            # Also on Ctrl-C: no compiler outlives the call.
            child.kill()
