"""Program files with their arguments: MLIR text with comments that ``hloforge verify`` and ``bisect`` read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from hloforge.dialect.errors import ImporterError, Location
from hloforge.dialect.program import Program
from hloforge.runtime.data.literals import format_array

_MARK = "// hloforge-input: "
_RECORDED = re.compile(rb"^// hloforge-input: (.*)$", re.MULTILINE)


def recorded_inputs(data: bytes, file: str) -> tuple[str, ...]:
    """The arguments that a program's text has in comments, as specifications of ``runtime.inputs``; none as a rule.

    Args:
        file: what to call the program's file.

    Raises:
        ImporterError: one names a file. What a program says is data, and opens nothing: neither values nor types have
            the sign of a file in them.
    """
    found = []
    for match in _RECORDED.finditer(data):
        spec = match[1].decode(errors="replace").strip()
        if "@" in spec:
            line = data.count(b"\n", 0, match.start()) + 1
            raise ImporterError(
                "a comment of the program names a file as its argument, but comments may not open files",
                location=Location(file, line),
                op=match[0].decode(errors="replace")[:240],
                hint=f"to use that file, name it on the command line: --input='{spec[:200]}'",
            )
        found.append(spec)
    return tuple(found)


def self_contained(program: Program, arguments: Sequence[np.ndarray[Any, Any]], remarks: Sequence[str]) -> str:
    """MLIR text of a program, with remarks and its arguments' leaves as comments above."""
    lines = [f"// {line}" for remark in remarks for line in remark.splitlines()]
    lines += [_MARK + format_array(array, limit=None) for array in arguments]
    return "\n".join([*lines, program.text().rstrip("\n")]) + "\n"
