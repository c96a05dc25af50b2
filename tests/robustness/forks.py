"""Functions in a child process that may not come back, or may crash."""

from __future__ import annotations

import multiprocessing
import os
import signal
import traceback
from collections.abc import Callable
from typing import Any


def in_fork(function: Callable[[], object], seconds: int = 60) -> int:
    """The status of a forked child that runs a function: 0, 1 if it raises, and minus the signal that ended it."""
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(seconds)
        status = 1
        try:
            function()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def in_spawned(function: Callable[..., object], *arguments: Any, seconds: int = 120) -> int | None:
    """As ``in_fork``, of a function of a module, in a process without this one's threads and their locks.

    Returns:
        None if it ran out of time.
    """
    child = multiprocessing.get_context("spawn").Process(target=function, args=arguments)
    child.start()
    child.join(seconds)
    status = child.exitcode
    child.kill()
    child.join()
    return status
