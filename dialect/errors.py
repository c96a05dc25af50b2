"""The tree of errors that hloforge raises, for bad input and for limits of the tools below it."""

from __future__ import annotations

import os
from dataclasses import dataclass

# A damaged file is quoted, and its names may be as long as itself.
_LONGEST, _KEPT = 2000, 800
_IN = "note: in "


def name_text(name: str) -> str:
    """The name of a file as text, which MLIR and reports take: bytes that are no UTF-8 are written ``\\xff``."""
    return name if name.isascii() else os.fsencode(name).decode("utf-8", "backslashreplace")


@dataclass(frozen=True)
class Location:
    """Where in a user's file something is. ``line`` and ``column`` count from 1; 0 means unknown."""

    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        parts = [self.file]
        if self.line:
            parts.append(str(self.line))
            if self.column:
                parts.append(str(self.column))
        return ":".join(parts)


class Error(Exception):
    """Base of every error raised on purpose.

    Args:
        message: one line, what is wrong, naming the thing; what is longer than a page loses its middle.
        location: where it is in the user's input.
        op: the text of the operation concerned, if there is one; a line of the source may have a caret under it.
        hint: the way out.
        notes: further lines, each shown as a ``note:``.
    """

    def __init__(
        self,
        message: str,
        *,
        location: Location | None = None,
        op: str = "",
        hint: str = "",
        notes: tuple[str, ...] = (),
    ) -> None:
        message = _clipped(message)
        super().__init__(message)
        self.message = message
        self.location = location
        self.op = op
        self.hint = hint
        self.notes = notes

    def __str__(self) -> str:
        """The report as the command line prints it: ``file:line:col: error: …`` and its notes."""
        where = f"{self.location}: " if self.location else ""
        lines = [f"{where}error: {self.message}"]
        if self.op:
            lines.append(f"{_IN}{self.op}".replace("\n", "\n" + " " * len(_IN)))
        lines += [f"note: {note}" for note in self.notes]
        if self.hint:
            lines.append(f"note: {self.hint}")
        return "\n".join(lines)


def _clipped(message: str) -> str:
    left_out = len(message) - 2 * _KEPT
    if len(message) <= _LONGEST:
        return message
    return f"{message[:_KEPT]} … ({left_out} characters) … {message[-_KEPT:]}"


class ImporterError(Error):
    """The input is not a program that hloforge can read."""


class OperationError(Error):
    """An operation was applied against a rule of XLA's shape inference; the message names the rule."""


class ElidedConstantError(ImporterError):
    """The text holds ``constant({...})``: its values were dropped when the text was printed."""


class PassError(Error):
    """A pass failed or left behind what it promised to remove."""


class PipelineError(Error):
    """A textual pipeline is malformed, or names an unknown pass or option."""


class UnsupportedError(Error):
    """An operation (with these types) cannot be compiled for the target; the message says why."""


class UnregisteredError(UnsupportedError):
    """A custom call names a function that the host does not have, and that is not decomposed."""


class CompileError(Error):
    """IREE's compiler refused the module, crashed, ran out of memory or of time."""


class OptionError(Error):
    """A target, flag or option is malformed or unknown."""


class LoadError(Error):
    """A vmfb cannot be loaded: damaged, of another version, or for another machine."""


class ArgumentError(Error):
    """The arguments of a call do not match the program's signature."""


class ExecutionError(Error):
    """A compiled program failed while it ran."""


class ReferenceEngineError(Error):
    """A reference engine cannot evaluate the program."""


class MismatchError(Error):
    """Results differ from the expected ones by more than the tolerance."""
