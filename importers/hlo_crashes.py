"""The instruction of HLO text at which jaxlib's parser or converter ends its process.

The parser makes each instruction as it reads it, so a text that stops after the instruction ends the process too, and
one that stops before it is only incomplete: the place is found by parsing less and less of the text. If it is no
instruction's place, the parsed module is converted with fewer and fewer of its instructions (hlo_blame.py).
"""

from __future__ import annotations

from hloforge.dialect import budget
from hloforge.dialect.errors import Error, ImporterError, Location
from hloforge.importers import hlo_text, native
from hloforge.importers.guard import CrashError, guarded
from hloforge.importers.hlo_blame import culprit
from hloforge.importers.hlo_proto import label
from hloforge.importers.locations import pointed_at


def located(error: CrashError, text: str, file: str) -> ImporterError:
    """The error with the place of the instruction, if there is one."""
    place = hlo_text.first_failing(text, _crashes) or _first_converted(error, text, file)
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


def _first_converted(crash: CrashError, text: str, file: str) -> tuple[int, int] | None:
    """The line and column of the first instruction whose conversion ends the process."""
    try:
        labelled, computations = label(guarded(native.hlo_text_to_proto, text))
    except (Error, ValueError):
        return None
    number = culprit(labelled, lambda module: guarded(native.hlo_proto_to_mlir, module, file), str(crash))
    # Where that took too long no answer is right.
    budget.check()
    if number is None:
        return None
    position = hlo_text.positions(text, computations)[0].get(number)
    return (position.line, position.column) if position else None
