"""The kinds of random programs, and what one of a kind is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.perf_fuzz.arguments import Argument
from benchmarks.perf_fuzz.drawing import Draw

Function = Callable[..., Any]


@dataclass(frozen=True)
class Drawn:
    """A function of JAX and its arguments.

    Attributes:
        share: of the elements of integer results that may differ, where a last bit decides them.
    """

    function: Function
    arguments: tuple[Argument, ...]
    share: float = 0.0


@dataclass(frozen=True)
class Kind:
    """A kind of program.

    Attributes:
        family: what tables collect it under.
        make: draws one.
        gradient: whether it may be differentiated.
        batch: whether it may be batched by ``vmap`` and repeated in a loop.
    """

    name: str
    family: str
    make: Callable[[Draw], Drawn]
    gradient: bool
    batch: bool


KINDS: dict[str, Kind] = {}


def kind(
    family: str, *, gradient: bool = False, batch: bool = True
) -> Callable[[Callable[[Draw], Drawn]], Callable[[Draw], Drawn]]:
    """Register a kind by the name of the function that draws it."""

    def register(make: Callable[[Draw], Drawn]) -> Callable[[Draw], Drawn]:
        name = make.__name__.replace("_", " ").strip()
        if name in KINDS:
            raise ValueError(f"{name} is registered")
        KINDS[name] = Kind(name, family, make, gradient, batch)
        return make

    return register


def drawn(function: Function, *arguments: Argument | Sequence[Argument], share: float = 0.0) -> Drawn:
    """A function with its arguments; those in sequences are taken one by one."""
    flat: list[Argument] = []
    for argument in arguments:
        flat += [argument] if isinstance(argument, Argument) else list(argument)
    return Drawn(function, tuple(flat), share)
