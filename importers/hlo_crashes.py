"""The instruction of HLO text at which jaxlib's parser ends its process, found by parsing less and less of it.

The parser makes each instruction as it reads it, so a text that stops after the instruction ends the process too, and
one that stops before it is only incomplete.
"""

from __future__ import annotations

from bisect import bisect_left

from hloforge.dialect.errors import ImporterError, Location
from hloforge.importers import hlo_text, native
from hloforge.importers.guard import CrashError, guarded
from hloforge.importers.locations import pointed_at


def located(error: CrashError, text: str, file: str) -> ImporterError:
    """The error with the place of the instruction, if it is the parser that crashed, and not what comes after it."""
    starts = hlo_text.instruction_starts(text)
    ends = [*starts[1:], len(text)]
    if not starts or not _crashes(text):
        return error
    start = starts[bisect_left(range(len(starts) - 1), True, key=lambda number: _crashes(text[: ends[number]]))]
    line, column = text.count("\n", 0, start) + 1, start - text.rfind("\n", 0, start)
    error.location, error.op = Location(file, line, column), pointed_at(text, line, column)
    return error


def _crashes(text: str) -> bool:
    try:
        guarded(native.parse_hlo_text, text)
    except CrashError:
        return True
    except ImporterError:
        # Out of time or memory.
        return False
    return False
