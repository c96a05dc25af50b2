"""Record which attempt compiled a program, and why earlier ones failed; the manifest keeps it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

# The name of the usual way, which is tried first.
AS_IS = "as is"
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")


@dataclass(frozen=True)
class Attempts:
    """The record of a compilation.

    Attributes:
        compiled: the name of the attempt that succeeded.
        failed: name and reason of the attempts before, in order.
    """

    compiled: str = AS_IS
    failed: tuple[tuple[str, str], ...] = ()

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> Attempts:
        """Read back what ``dataclasses.asdict`` gave. Raises KeyError, TypeError or ValueError for anything else."""
        failed = tuple((name, reason) for name, reason in found["failed"])
        if not all(isinstance(text, str) for text in (found["compiled"], *(text for pair in failed for text in pair))):
            raise TypeError("attempts are texts")
        return cls(found["compiled"], failed)

    def __str__(self) -> str:
        """``first attempt``, or ``second attempt: copies of parts``."""
        number = len(self.failed)
        ordinal = _ORDINALS[number] if number < len(_ORDINALS) else f"{number + 1}th"
        return f"{ordinal} attempt: {self.compiled}" if number else f"{ordinal} attempt"

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of times has to know: which attempt it was, and each reason once; none of the first attempt."""
        reasons = "; ".join(dict.fromkeys(reason for _, reason in self.failed))
        return (f"compiled at the {self}, because {reasons}",) if self.failed else ()


FIRST = Attempts()
