"""The gradient of weight normalization, where a matrix is stored as directions and lengths."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from hloforge.torch.registry import Call, lowers


@lowers("aten._weight_norm_interface_backward")
def weight_norm_backward(call: Call, gradient: Any, directions: Any, lengths: Any, norms: Any, dim: int) -> Any:
    """Gradients of the directions and of the lengths; norms: those of the directions along all dimensions but one."""
    others = tuple(n for n in range(directions.ndim) if n != dim % directions.ndim)
    norms = norms.astype(directions.dtype)
    along = jnp.sum(gradient * directions, others, keepdims=True)
    of_directions = lengths / norms * (gradient - directions * (along / (norms * norms)))
    return of_directions, along / norms
