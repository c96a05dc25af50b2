"""PyTorch's decompositions, for operators that need no lowering of our own."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from torch._decomp import core_aten_decompositions, decomposition_table

from hloforge.torch.fused import FUSED
from hloforge.torch.lists import list_operators
from hloforge.torch.registry import lowering_of

# Decompositions that change what is computed, or are no decompositions at all.
_LEFT_OUT = ("aten.bernoulli", "aten.rand_like", "aten.randn_like", "aten.randint_like")


@cache
def _table() -> dict[Any, Callable[..., Any]]:
    import torch._refs
    import torch._refs.fft
    import torch._refs.linalg
    import torch._refs.nn.functional
    import torch._refs.special  # noqa: F401

    table = {**decomposition_table, **core_aten_decompositions(), **list_operators(), **FUSED}
    return {
        op: function for op, function in table.items() if lowering_of(op) is None and not str(op).startswith(_LEFT_OUT)
    }


def decompositions() -> dict[Any, Callable[..., Any]]:
    """By operator: for ``ExportedProgram.run_decompositions``, ``make_fx`` and ``aot_autograd``."""
    return dict(_table())
