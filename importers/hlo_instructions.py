"""Whether text has an instruction of HLO: ``name = shape opcode(``, or ``shape opcode(`` at its begin.

One pass over tokens that begin where the last one ended, so that the time is linear in the text, whatever it holds: a
regular expression for the whole would be tried again at each character.
"""

from __future__ import annotations

import enum
import re

_TOKEN = re.compile(
    r"(?P<space>\s++)|(?P<word>[\w.\-%]++)|(?P<sizes>\[[^\]\n]*+\]?+)|(?P<braces>\{[^{}\n]*+\})|(?P<sign>.)", re.DOTALL
)
_WORD = re.compile(r"[\w.\-%]")
_OPCODE = re.compile(r"[a-z][\w\-]*")
_ELEMENT = re.compile(r"[a-z]\w*")


class _State(enum.Enum):
    """What was read of an instruction."""

    NOTHING = enum.auto()
    EQUALS = enum.auto()
    ELEMENT = enum.auto()
    TUPLE = enum.auto()
    SHAPE = enum.auto()
    SPACE = enum.auto()
    OPCODE = enum.auto()


def has_instruction(plain: str) -> bool:
    """Whether there is one.

    Args:
        plain: text without strings and comments (``hlo_text.without_opaque``).
    """
    reader, position = _Reader(), 0
    while token := _TOKEN.match(plain, position):
        if reader.take(str(token.lastgroup), token[0]):
            return True
        position = token.end()
        if reader.state is _State.NOTHING:
            # Nothing but an equals sign matters now, and whether a name is before it.
            equals = plain.find("=", position)
            if equals < 0:
                return False
            before = equals
            while before > position and plain[before - 1].isspace():
                before -= 1
            if before > position:
                reader.named = _WORD.match(plain[before - 1]) is not None
            position = equals
    return False


class _Reader:
    """Reads token by token; the text's begin is read as if ``=`` was before it."""

    def __init__(self) -> None:
        self.state = _State.EQUALS
        self.depth = 0
        self.named = False

    def take(self, kind: str, text: str) -> bool:
        """Whether this token ends the head of an instruction."""
        if self.state is _State.OPCODE and text == "(":
            return True
        if text == "=":
            # A name is before it; no shape has one, so that it also ends what looked like one.
            self.state = _State.EQUALS if self.named else _State.NOTHING
        elif self.state is _State.TUPLE:
            self.depth += {"(": 1, ")": -1}.get(text, 0)
            if not self.depth:
                self.state = _State.SHAPE
        else:
            self.state = self._next(kind, text)
        self.named = kind == "word" or (kind == "space" and self.named)
        return False

    def _next(self, kind: str, text: str) -> _State:
        match self.state:
            case _State.EQUALS if kind == "space":
                return _State.EQUALS
            case _State.EQUALS if text == "(":
                self.depth = 1
                return _State.TUPLE
            case _State.EQUALS if _ELEMENT.fullmatch(text):
                return _State.ELEMENT
            case _State.ELEMENT if kind == "sizes" and text.endswith("]"):
                return _State.SHAPE
            case _State.SHAPE:
                return _State.SPACE if kind == "space" else _State.SHAPE
            case _State.SPACE if _OPCODE.fullmatch(text):
                return _State.OPCODE
        return _State.NOTHING
