"""Functions in a child process that may not come back."""

from __future__ import annotations

import os
import signal
import traceback
from collections.abc import Callable


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
