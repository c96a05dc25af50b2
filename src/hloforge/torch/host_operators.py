"""Operators that are none of PyTorch's own and have no lowering: calls of the host inside of a program.

A library's operator has a kernel of machine code or Python, which nobody can look into. Its fake kernel tells the sizes
of its results. So a program calls PyTorch for it, with copies of the arrays, as a function of the host
(docs/host-calls.md). The function's name tells the operator and the arguments that are no tensors.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import torch
from torch.utils import _pytree as pytree

from hloforge.runtime.host import host
from hloforge.torch.types import dtype_of, to_numpy, to_torch

# Namespaces of PyTorch's own operators: one without a lowering is missing here, and not to be hidden.
_OWN = frozenset(("aten", "prim", "prims", "quantized_decomposed", "_c10d_functional", "c10d", "inductor", "symm_mem"))
PREFIX = "torch.ops."


def reason_against(node: torch.fx.Node) -> str | None:
    """Why a call of the host cannot run a node's operator; nothing if it can."""
    target = node.target
    if not isinstance(target, torch._ops.OpOverload) or target.namespace in _OWN:
        return "it has no lowering"
    if target._schema.is_mutable:
        return "it changes its arguments"
    values = pytree.tree_leaves(node.meta.get("val"))
    if not values or not all(isinstance(value, torch.Tensor) for value in values):
        return "it returns something else than tensors"
    shapes = [value.shape for value in values]
    if not all(isinstance(size, int) for shape in shapes for size in shape):
        return "the sizes of its result are not known when it is compiled"
    return None


def call_host(node: torch.fx.Node, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """The results of a node's operator, which PyTorch computes when the program runs.

    Args:
        arguments, named: of the operator, tensors as arrays of JAX.
    """
    operator: Any = node.target
    leaves, spec = pytree.tree_flatten((arguments, named))
    tensors = [number for number, leaf in enumerate(leaves) if isinstance(leaf, jax.Array | np.ndarray)]
    plain = {number: leaf for number, leaf in enumerate(leaves) if number not in tensors}
    shown = ", ".join("_" if number in tensors else repr(leaf) for number, leaf in enumerate(leaves))
    values, results = pytree.tree_flatten(node.meta["val"])

    def run(*arrays: np.ndarray[Any, Any]) -> Any:
        given = dict(plain)
        given |= {number: to_torch(np.array(array)) for number, array in zip(tensors, arrays, strict=True)}
        own, own_named = pytree.tree_unflatten([given[number] for number in range(len(leaves))], spec)
        with torch.no_grad():
            found = operator(*own, **own_named)
        made = [to_numpy(result.contiguous()) for result in pytree.tree_leaves(found)]
        return made[0] if len(made) == 1 else tuple(made)

    # Equal calls are one function; what differs is in the name.
    name = f"{PREFIX}{operator}({shown})"
    host.register(name, run, replace=True)
    wanted = [jax.ShapeDtypeStruct(value.shape, dtype_of(value.dtype)) for value in values]
    called = jax.ffi.ffi_call(name, wanted)(*(leaves[number] for number in tensors))
    return pytree.tree_unflatten(list(called), results)
