"""One model in a framework's engines and compiled by hloforge: what a row of docs/models.md is measured of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Pair:
    """One model, in the framework's engines and compiled.

    Attributes:
        theirs: calls by the names of engines, with equal arguments; they return arrays. The first one is what the
            results are compared with.
        ours: a call of what hloforge made.
        seconds: that hloforge took to make a program of the model.
    """

    theirs: dict[str, Callable[[], list[Any]]]
    ours: Callable[[], list[Any]]
    seconds: float


@dataclass(frozen=True)
class Family:
    name: str
    way: str
    pair: Callable[[], Pair]
