"""How many arrays IREE binds to each dispatch of a GPU, counted in its own code: the runtime refuses too many.

Source: IREE 3.13, ``IREE_HAL_EXECUTABLE_MAX_BINDING_COUNT`` of its drivers for CUDA and HIP.
"""

from __future__ import annotations

import re

from hloforge.dialect.errors import CompileError, Location
from hloforge.dialect.operations import location_of, operations
from hloforge.dialect.program import Program, entry_function

__all__ = ["TooManyArraysError", "check"]

MOST = 16

_EXPORT = re.compile(rb"hal\.executable\.export public @(\S+) .*?layout\((#\S+?)(?:<(.*)>)?\) count")
_NAMED = re.compile(rb"^(#pipeline_layout\d*) = (.*)$", re.MULTILINE)
_BINDING = b"#hal.pipeline.binding<"


class TooManyArraysError(CompileError):
    """A dispatch that IREE made reads and writes more arrays than its runtime takes."""


def check(code: bytes, program: Program) -> None:
    """Count the arrays of each dispatch, in IREE's text at ``executable-targets``.

    Args:
        program: whose code it is.

    Raises:
        TooManyArraysError: one has too many.
    """
    named = {found[1]: found[2].count(_BINDING) for found in _NAMED.finditer(code)}
    for export in _EXPORT.finditer(code):
        count = export[3].count(_BINDING) if export[3] else named.get(export[2], 0)
        if count > MOST:
            raise TooManyArraysError(
                f"a dispatch of IREE's reads and writes {count} arrays, and its runtime takes {MOST} "
                f"({export[1].decode()})",
                location=_place(program),
                hint="compute fewer results of so many arguments at once, or compile for the CPU",
            )


def _place(program: Program) -> Location | None:
    """Where the program is: of its entry function, or of the first operation that says where it is."""
    entry = entry_function(program.module).operation
    return next(filter(None, map(location_of, (entry, *operations(entry)))), None)
