"""Operators on lists of tensors (``_foreach_…``), which optimizers and ``clip_grad_norm_`` call: one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import torch
from torch import Tensor

_PREFIX = "_foreach_"


def _norm(x: Tensor, order: Any = 2, dtype: torch.dtype | None = None) -> Tensor:
    return torch.linalg.vector_norm(x, order, dtype=dtype)


def _sum_of_powers(x: Tensor, order: Any = 2, dtype: torch.dtype | None = None) -> Tensor:
    return x.abs().pow(order).sum(dtype=dtype)


def _copy(x: Tensor, source: Tensor, non_blocking: bool = False) -> Tensor:
    return source.to(x.dtype).expand_as(x).clone()


def _addcmul(x: Tensor, first: Tensor, second: Tensor, value: Any = 1) -> Tensor:
    if isinstance(value, Tensor):
        return x + value * first * second
    return torch.addcmul(x, first, second, value=value)


def _addcdiv(x: Tensor, first: Tensor, second: Tensor, value: Any = 1) -> Tensor:
    if isinstance(value, Tensor):
        return x + value * first / second
    return torch.addcdiv(x, first, second, value=value)


# Where the operator of one tensor has another name, or other arguments.
_OTHERS: dict[str, Callable[..., Tensor]] = {
    "addcdiv": _addcdiv,
    "addcmul": _addcmul,
    "copy": _copy,
    "maximum": torch.clamp_min,
    "minimum": torch.clamp_max,
    "norm": _norm,
    "powsum": _sum_of_powers,
    "zero": torch.zeros_like,
}


def _one_by_one(function: Callable[..., Tensor]) -> Callable[..., list[Tensor]]:
    """The function of lists."""

    def run(*given: Any, **named: Any) -> list[Tensor]:
        count = next(len(each) for each in given if isinstance(each, Sequence))
        rows = ([each[n] if isinstance(each, Sequence) else each for each in given] for n in range(count))
        return [function(*row, **named) for row in rows]

    return run


@cache
def list_operators() -> dict[Any, Callable[..., Any]]:
    """By operator, those that change nothing; AOTAutograd makes them of the others."""
    names = {schema.name.removeprefix("aten::") for schema in torch._C._jit_get_all_schemas()}
    found: dict[Any, Callable[..., Any]] = {}
    for name in sorted(each for each in names if each.startswith(_PREFIX) and not each.endswith("_")):
        title = name.removeprefix(_PREFIX)
        function = _OTHERS.get(title) or getattr(torch, title, None)
        if function is None:
            continue
        packet = getattr(torch.ops.aten, name)
        for overload in packet.overloads():
            # A tensor of numbers, one for each element of the lists, is nothing that Dynamo takes.
            is_split = overload == "Tensor" and title.startswith("addc")
            if "out" not in overload and not is_split:
                found[getattr(packet, overload)] = _one_by_one(function)
    return found
