"""Entry point of the ``hloforge`` command: Ctrl-C ends it quietly, even while Python loads modules."""

from __future__ import annotations

import os
import signal
import sys


def main() -> None:
    """Entry point of the command; always ends in SystemExit."""
    # Until the command's own handlers are there; Python's would raise KeyboardInterrupt in some import.
    handler = signal.getsignal(signal.SIGINT)
    if handler is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    # A command reads one program, or a few: a server would take longer to start.
    os.environ.setdefault("HLOFORGE_READER_SERVER", "0")
    from hloforge.dialect.garbage import seldom_collecting

    try:
        # Most of what a command makes are modules, which stay: searching them for garbage is in vain.
        with seldom_collecting():
            from hloforge.tools.main import main as begin

            signal.signal(signal.SIGINT, handler)
            begin()
    except SystemExit as end:
        _leave_calls(end.code)
        raise


def _leave_calls(status: object) -> None:
    """End the process at once if a call hangs on its device: Python would take IREE apart while the call uses it."""
    deadlines = sys.modules.get("hloforge.runtime.session.deadlines")  # not imported, and no call has been made
    if deadlines is None or not deadlines.is_call_left():
        return
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    os._exit(status if isinstance(status, int) else 1)


if __name__ == "__main__":
    main()
