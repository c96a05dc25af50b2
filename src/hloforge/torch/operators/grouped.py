"""Products of groups of rows with a matrix each, as mixtures of experts have them."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch

from hloforge.torch.registry import Call, lowers


@lowers("aten._grouped_mm", "transformers.grouped_mm_fallback")
def grouped_product(call: Call, x: Any, weights: Any, ends: Any = None, bias: Any = None, out_dtype: Any = None) -> Any:
    """Rows, columns or both in groups that end at ``ends``; without it a product of stacks.

    ============  ================  ===========================================================
    ``x``         ``weights``       result
    ============  ================  ===========================================================
    ``(m, k)``    ``(g, k, n)``     ``(m, n)``: each row by the matrix of its group
    ``(g, m, k)`` ``(k, n)``        ``(m, n)``: each column by the matrix of its group
    ``(m, k)``    ``(k, n)``        ``(g, m, n)``: sums over the parts of ``k``
    ``(g, m, k)`` ``(g, k, n)``     ``(g, m, n)``
    ============  ================  ===========================================================

    Rows behind the last end are zeros.
    """
    if x.ndim == 3 and weights.ndim == 3:
        result = jnp.matmul(x, weights, preferred_element_type=_wide(x))
    else:
        sizes = jnp.diff(ends, prepend=0).astype(np.int32)
        if x.ndim == 2 and weights.ndim == 3:
            result = jax.lax.ragged_dot(x, weights, sizes, preferred_element_type=_wide(x))
        elif x.ndim == 3:
            turned = jax.lax.ragged_dot(weights.T, jnp.swapaxes(x, 1, 2), sizes, preferred_element_type=_wide(x))
            result = turned.T
        else:
            result = _parts(x, weights, ends)
    return result if bias is None else result + bias


@lowers("transformers.grouped_mm_fallback_backward")
def grouped_product_backward(call: Call, x: Any, weights: Any, ends: Any, gradient: Any) -> tuple[Any, Any]:
    """The gradients of each row by the matrix of its group: ``(m, k)`` of the rows, ``(g, k, n)`` of the matrices."""
    sizes = jnp.diff(ends, prepend=0).astype(np.int32)
    turned = jnp.swapaxes(weights, 1, 2)
    rows = jax.lax.ragged_dot(gradient, turned, sizes, preferred_element_type=_wide(gradient))
    return rows, _parts(x.T, gradient, ends)


def declare_operators() -> None:
    """Make PyTorch know the operators of transformers that files call, in a process without that library."""
    if hasattr(torch.ops.transformers, "grouped_mm_fallback"):
        return
    name = "transformers::grouped_mm_fallback"
    torch.library.define(name, "(Tensor input, Tensor weight, Tensor offs) -> Tensor")
    torch.library.register_fake(name, lambda x, weight, _: x.new_empty(x.shape[0], weight.shape[2]))
    name = f"{name}_backward"
    torch.library.define(name, "(Tensor input, Tensor weight, Tensor offs, Tensor grad_output) -> (Tensor, Tensor)")
    torch.library.register_fake(name, lambda x, weight, *_: (torch.empty_like(x), torch.empty_like(weight)))


def _parts(x: Any, weights: Any, ends: Any) -> Any:
    """The products of neighbouring parts of the dimension that is summed."""
    places = jnp.arange(x.shape[1])
    starts = jnp.concatenate([jnp.zeros(1, ends.dtype), ends[:-1]])
    is_own = (places >= starts[:, None]) & (places < ends[:, None])
    masked = jnp.where(is_own[:, None, :], x, jnp.zeros((), x.dtype))
    return jnp.matmul(masked, weights, preferred_element_type=_wide(x))


def _wide(x: Any) -> Any:
    return np.float32 if x.dtype.itemsize < 4 else x.dtype
