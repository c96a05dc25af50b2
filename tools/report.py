"""Report errors in the style of compilers, and end with an exit status that scripts can rely on."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import click

from hloforge.dialect.errors import Error

FAILURE = 1
USAGE = 2
INTERRUPTED = 130
# A full disk, a quota, a limit of a file's size: of standard output; files have messages of their own.
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def run_guarded(action: Callable[[], Any], *, debug: bool) -> int:
    """Run an action and report what it raises on standard error.

    Args:
        debug: print tracebacks.

    Returns:
        the exit status: 0, 1 for an error, 2 for a wrong command line, 130 for Ctrl-C.
    """
    try:
        action()
        sys.stdout.flush()
    except click.UsageError as error:
        error.show()
        return USAGE
    except click.exceptions.Exit as error:
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        return INTERRUPTED
    except BrokenPipeError:
        return _quietly()
    except Exception as error:
        return _report(error, debug)
    return 0


def _report(error: Exception, debug: bool) -> int:
    if debug:
        traceback.print_exception(error)
    elif isinstance(error, Error):
        click.echo(str(error), err=True)
    elif isinstance(error, click.ClickException):
        click.echo(f"error: {error.format_message()}", err=True)
    elif isinstance(error, MemoryError):
        click.echo("error: out of memory", err=True)
    elif isinstance(error, OSError) and error.errno in _NO_ROOM:
        click.echo(f"error: cannot write: {error.strerror}", err=True)
        _quietly()
    else:
        message = str(error).strip().partition("\n")[0]
        click.echo(f"error: internal: {type(error).__name__}: {message}", err=True)
        click.echo("note: this is a defect of hloforge; --debug shows where", err=True)
    return FAILURE


def _quietly() -> int:
    """The reader of our output went away, as ``head`` does: nothing is left to say, also when Python closes stdout."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return FAILURE
