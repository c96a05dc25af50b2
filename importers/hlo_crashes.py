"""The instruction of HLO text at which jaxlib's parser ends its process, or says no more than that it failed.

The parser makes each instruction as it reads it, so a text that stops after the instruction ends the process too, and
one that stops before it is only incomplete: the place is found by parsing less and less of the text.
"""

from __future__ import annotations

from hloforge.dialect.errors import ImporterError, Location
from hloforge.importers import hlo_text, native
from hloforge.importers.guard import CrashError, guarded
from hloforge.importers.locations import pointed_at


def located(error: CrashError, text: str, file: str) -> ImporterError:
    """The error with the place of the instruction, if it is the parser that crashed, and not what comes after it."""
    place = hlo_text.first_failing(text, _crashes)
    if place is not None:
        error.location, error.op = Location(file, *place), pointed_at(text, *place)
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
