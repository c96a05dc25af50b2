"""The type of the ``call`` fixture."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from click.testing import Result

Call: TypeAlias = Callable[..., Result]


def values(result: Result) -> list[str]:
    """The lines that ``hloforge run`` prints, without the headings of several results."""
    return [line for line in result.stdout.splitlines() if not line.endswith(":")]


def headings(result: Result) -> list[str]:
    """The headings of several results that ``hloforge run`` prints."""
    return [line for line in result.stdout.splitlines() if line.endswith(":")]
