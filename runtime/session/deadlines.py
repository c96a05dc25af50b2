"""Calls with a deadline: one that hangs on its device becomes an error of the caller."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue

from hloforge.dialect.errors import ExecutionError, OptionError
from hloforge.runtime.host.vm_module import hand_over, take_raised

_THREAD = "hloforge-call"


def is_call_left() -> bool:
    """Whether a call that was over its limit still runs in this process."""
    return any(thread.name == _THREAD for thread in threading.enumerate())


class Deadline:
    """The limit of a session's calls, each of which runs in a thread of its own.

    A device cannot be told to stop: a call that is over its limit goes on in its thread, with all that it refers to,
    and the session takes no further ones.

    Args:
        seconds: of one call.

    Raises:
        OptionError: the limit is not positive.
    """

    def __init__(self, seconds: float) -> None:
        if seconds <= 0:
            raise OptionError(f"a deadline must be positive, not {seconds}")
        self._seconds = seconds
        self._lost = False

    def run(self, call: Callable[[], object]) -> None:
        """Run ``call``.

        Raises:
            ExecutionError: it does not end in time, or an earlier one did not.
            Exception: what it raised.
        """
        if self._lost:
            message = "an earlier call of this session is still running on its device"
            raise ExecutionError(message, hint="load the program again, in another process if the device hangs")
        ended: SimpleQueue[tuple[BaseException | None, BaseException | None]] = SimpleQueue()

        def work() -> None:
            try:
                call()
            except BaseException as error:
                ended.put((error, take_raised()))
            else:
                ended.put((None, None))

        threading.Thread(target=work, name=_THREAD, daemon=True).start()
        try:
            error, raised = ended.get(timeout=self._seconds)
        except Empty:
            self._lost = True
            raise ExecutionError(f"the call did not end within {self._seconds:g} s") from None
        if error is not None:
            hand_over(raised)
            raise error
