"""One model in a framework's engines and compiled by hloforge: what a row of docs/models.md is measured of."""

from __future__ import annotations

import os
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


def pytorch_engines(model: Any, run: Callable[[Any, int], list[Any]]) -> dict[str, Callable[[], list[Any]]]:
    """Eager PyTorch and Inductor, each with one thread and with one a processor.

    Args:
        run: calls a model with a number of threads.
    """
    import torch

    torch._dynamo.reset()
    return {
        f"{name}, {threads} thread{'s' * (threads > 1)}": lambda call=call, threads=threads: run(call, threads)
        for name, call in {"eager": model, "Inductor": torch.compile(model)}.items()
        for threads in sorted({1, os.cpu_count() or 1})
    }
