"""Where the ``hloforge`` command begins: Ctrl-C ends it quietly also while Python loads the rest of it."""

from __future__ import annotations

import signal


def main() -> None:
    """Entry point of the command; always ends in SystemExit."""
    # Until the command's own handlers are there; Python's would raise KeyboardInterrupt in some import.
    handler = signal.getsignal(signal.SIGINT)
    if handler is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from hloforge.tools.main import main as begin

    signal.signal(signal.SIGINT, handler)
    begin()


if __name__ == "__main__":
    main()
