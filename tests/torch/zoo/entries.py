"""What a model of the zoo is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn


@dataclass(frozen=True)
class Entry:
    """A model.

    Attributes:
        make: makes it with PyTorch's random weights.
        inputs: makes arguments of a call.
        opens: the arguments whose first dimension may have other sizes; none if the model has one size.
        trains: whether it has a gradient.
        is_whole: whether Dynamo makes one graph of it.
    """

    name: str
    make: Callable[[], nn.Module]
    inputs: Callable[[], tuple[Any, ...]]
    opens: tuple[int, ...] = ()
    trains: bool = True
    is_whole: bool = True


def entries(*found: Entry) -> dict[str, Entry]:
    """By name, each once."""
    table = {each.name: each for each in found}
    assert len(table) == len(found)
    return table


def floats(leaves: list[Any]) -> list[Tensor]:
    """The tensors that have a gradient."""
    return [each for each in leaves if isinstance(each, Tensor) and each.dtype.is_floating_point]
