"""A call with the times of what ran in it, for profilers that record programs as they run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class TimedCall:
    """A call on one device. Times are those of ``time.time_ns``.

    Attributes:
        results: what the call returned.
        begin, end: of the call.
        kernels: names, beginnings and ends in order; none of a program that another runtime ran.
    """

    results: list[Any]
    begin: int
    end: int
    kernels: tuple[tuple[str, int, int], ...] = ()
