"""Opcodes of newer versions of XLA than jaxlib's, as calls that the passes know, and attributes that change nothing.

Before: ``y = f32[4] atan(x)``; after: ``y = f32[4] custom-call(x), custom_call_target="chlo.atan"``, on the same line,
so that the instruction stays where it is.
"""

from __future__ import annotations

import re

from hloforge.importers.hlo_text import without_opaque

_UNKNOWN = re.compile(r"Unknown opcode: ([\w-]+)")
# Opcodes and what ``lower-mhlo`` makes the call.
_CALLS = {"atan": "chlo.atan"}
# Attributes that ask for what hloforge does in any case: of equal elements ``topk`` takes the first.
KEPT = frozenset({"is_stable"})
_BRACKETS = re.compile(r"[()]")


def with_known_opcode(text: str, message: str) -> str:
    """The text without the opcode that the parser's message names; the text itself if nothing is known of it."""
    unknown = _UNKNOWN.search(message)
    target = _CALLS.get(unknown[1]) if unknown else None
    if unknown is None or target is None:
        return text
    plain = without_opaque(text)
    pieces, done = [], 0
    # After a shape or its layout, and before operands.
    for found in re.finditer(rf"(?<=[\]}}]\s){unknown[1]}\(", plain):
        end = _closing(plain, found.end())
        called = f'custom-call({text[found.end() : end]}), custom_call_target="{target}"'
        pieces += [text[done : found.start()], called]
        done = min(end + 1, len(text))
    return "".join([*pieces, text[done:]])


def _closing(plain: str, position: int) -> int:
    """Where the parenthesis that is open at the position closes."""
    depth = 1
    for bracket in _BRACKETS.finditer(plain, position):
        depth += 1 if bracket[0] == "(" else -1
        if depth == 0:
            return bracket.start()
    return len(plain)
