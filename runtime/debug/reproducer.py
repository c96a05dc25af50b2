"""A program file with its arguments inside: MLIR text under comments that ``hloforge verify`` and ``bisect`` read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from hloforge.dialect.program import Program
from hloforge.runtime.literals import format_array

_MARK = "// hloforge-input: "
_RECORDED = re.compile(rb"^// hloforge-input: (.*)$", re.MULTILINE)


def recorded_inputs(data: bytes) -> tuple[str, ...]:
    """The arguments that a program's text has in comments, as specifications of ``runtime.inputs``; none as a rule."""
    return tuple(found.decode(errors="replace").strip() for found in _RECORDED.findall(data))


def self_contained(program: Program, arguments: Sequence[np.ndarray[Any, Any]], remarks: Sequence[str]) -> str:
    """MLIR text of a program, with remarks and its arguments' leaves as comments above."""
    lines = [f"// {line}" for remark in remarks for line in remark.splitlines()]
    lines += [_MARK + format_array(array, limit=None) for array in arguments]
    return "\n".join([*lines, program.text().rstrip("\n")]) + "\n"
