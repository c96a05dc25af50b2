"""IREE's own tools as child processes: with a deadline, and with one error for whatever ends them."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence

from hloforge.dialect.errors import ExecutionError
from hloforge.runtime.compile.iree import runtime_binary


def run_tool(name: str, arguments: Sequence[str], deadline: float | None, environment: Mapping[str, str]) -> str:
    """The standard output of a tool of IREE's runtime.

    Args:
        deadline: seconds that it may take; None for any time.
        environment: variables beside this process's.

    Raises:
        ExecutionError: it failed, crashed, or did not end in time; the message repeats what it said.
        LoadError: the runtime has no such tool.
    """
    pipe = subprocess.PIPE
    # A session of its own: Ctrl-C reaches this process alone, which ends the child.
    child = subprocess.Popen(
        [runtime_binary(name), *arguments],
        stdin=subprocess.DEVNULL,
        stdout=pipe,
        stderr=pipe,
        env={**os.environ, **environment},
        start_new_session=True,
    )
    with child:
        try:
            output, errors = child.communicate(timeout=deadline)
        except subprocess.TimeoutExpired:
            message = f"{name} did not end within {deadline:g} s"
            raise ExecutionError(
                message, hint="fewer --iterations, smaller --seconds, or a longer --deadline"
            ) from None
        finally:
            child.kill()
    if child.returncode:
        raise _failure(name, child.returncode, errors.decode(errors="replace"))
    return output.decode(errors="replace")


def _failure(name: str, status: int, said: str) -> ExecutionError:
    how = f"crashed ({signal.Signals(-status).name})" if status < 0 else "failed"
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return ExecutionError(f"{name} {how}" + (f": {lines[-1][:300]}" if lines else ""))
