"""A module of PyTorch in the ways that the examples compare: eager, inductor, and hloforge's two."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from beside import beside

import hloforge.torch


def compare(title: str, model: torch.nn.Module, *arguments: torch.Tensor) -> torch.Tensor:
    """Prints how the ways compare; returns the answer of ``hloforge.torch.compile``.

    Raises:
        SystemExit: an answer differs from eager PyTorch's by more than a thousandth.
    """
    model.eval()
    compiled = hloforge.torch.compile(model, arguments)
    ways: dict[str, Any] = {
        "PyTorch, eager": model,
        "hloforge.torch.compile": compiled,
        'torch.compile, backend="hloforge"': torch.compile(model, backend="hloforge"),
        "torch.compile, inductor": torch.compile(model),
    }
    with torch.no_grad():
        calls = {name: _call(way, arguments) for name, way in ways.items()}
        _drop_inductor_without_compiler(calls)
        apart = beside(title, calls)
        answer: torch.Tensor = compiled(*arguments)
    if max(apart.values()) > 1e-3:
        raise SystemExit("the answers differ")
    return answer


def _call(way: Any, arguments: tuple[torch.Tensor, ...]) -> Callable[[], torch.Tensor]:
    return lambda: way(*arguments)


def _drop_inductor_without_compiler(calls: dict[str, Callable[[], torch.Tensor]]) -> None:
    """Leave inductor out where it does not run: it needs a compiler of C++."""
    name = list(calls)[-1]
    try:
        calls[name]()
    except Exception as error:
        print(f"{name} does not run here: {type(error).__name__}")
        del calls[name]
