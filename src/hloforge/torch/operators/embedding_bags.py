"""Bags of rows of a table, and their gradients."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from hloforge.torch.registry import Call, lowers

_MEAN, _MAX = 1, 2


@lowers("aten._embedding_bag_forward_only", "aten._embedding_bag")
def embedding_bag(
    call: Call,
    weight: Any,
    positions: Any,
    offsets: Any,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: Any = None,
    include_last_offset: bool = False,
    padding_idx: int = -1,
) -> Any:
    """Sums (mode 0), means (1) or maxima (2) of rows; a bag begins at each offset.

    Returns:
        the bags; what only PyTorch's own gradients read; the rows of the maxima, if there are any.
    """
    count = offsets.shape[0] - (1 if include_last_offset else 0)
    bags = _bags(positions, offsets, count)
    wanted = _wanted(positions, padding_idx)
    rows = weight[positions]
    sizes = _sizes(bags, wanted, count)
    empty = jnp.zeros((count, weight.shape[1]), weight.dtype)
    others = [jnp.zeros(value.shape, np.int64) for value in call.value[1:]]
    if mode == _MAX:
        lowest = jnp.full_like(empty, -np.inf)
        found = lowest.at[bags].max(jnp.where(wanted[:, None], rows, -np.inf))
        result = jnp.where(sizes[:, None] > 0, found, 0)
        # The first of equal rows, as PyTorch takes.
        last = positions.shape[0]
        is_largest = wanted[:, None] & (rows == found[bags])
        places = jnp.where(is_largest, jnp.arange(last)[:, None], last)
        first = jnp.full(empty.shape, last).at[bags].min(places)
        others[-1] = jnp.append(positions, 0)[first]
        return (result, *others)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights[:, None]
    result = empty.at[bags].add(jnp.where(wanted[:, None], rows, 0))
    if mode == _MEAN:
        result = result / jnp.maximum(sizes, 1).astype(weight.dtype)[:, None]
    return (result, *others)


@lowers("aten._embedding_bag_backward")
def embedding_bag_backward(
    call: Call,
    gradient: Any,
    positions: Any,
    offsets: Any,
    bag_of_each: Any,
    bag_size: Any,
    largest: Any,
    count: int,
    scale_grad_by_freq: bool,
    mode: int,
    sparse: bool,
    per_sample_weights: Any,
    padding_idx: int = -1,
) -> Any:
    """The gradient of the table, [count, width]."""
    if sparse:
        raise ValueError("a sparse gradient; sparse=False computes the same")
    bags = _bags(positions, offsets, gradient.shape[0])
    wanted = _wanted(positions, padding_idx)
    sizes = _sizes(bags, wanted, gradient.shape[0])
    table = jnp.zeros((count, gradient.shape[1]), gradient.dtype)
    if mode == _MAX:
        columns = jnp.arange(gradient.shape[1])
        return table.at[largest, columns].add(jnp.where(sizes[:, None] > 0, gradient, 0))
    rows = gradient[bags]
    if mode == _MEAN:
        rows = rows / jnp.maximum(sizes, 1)[bags].astype(rows.dtype)[:, None]
    if per_sample_weights is not None:
        rows = rows * per_sample_weights[:, None]
    if scale_grad_by_freq:
        uses = jnp.zeros(count, np.int64).at[positions].add(1)
        rows = rows / uses[positions].astype(rows.dtype)[:, None]
    return table.at[positions].add(jnp.where(wanted[:, None], rows, 0))


@lowers("aten._embedding_bag_per_sample_weights_backward")
def per_sample_weights_backward(
    call: Call,
    gradient: Any,
    weight: Any,
    positions: Any,
    offsets: Any,
    bag_of_each: Any,
    mode: int,
    padding_idx: int = -1,
) -> Any:
    """The gradient of the weights of the rows, one number each."""
    products = (gradient[_bags(positions, offsets, gradient.shape[0])] * weight[positions]).sum(-1)
    return jnp.where(_wanted(positions, padding_idx), products, 0)


def _bags(positions: Any, offsets: Any, count: int) -> Any:
    """The bag of each row."""
    return jnp.searchsorted(offsets[:count], jnp.arange(positions.shape[0]), side="right") - 1


def _wanted(positions: Any, padding_idx: int) -> Any:
    return positions != padding_idx if padding_idx >= 0 else jnp.ones(positions.shape, np.bool_)


def _sizes(bags: Any, wanted: Any, count: int) -> Any:
    """How many rows a bag has."""
    return jnp.zeros(count, np.int64).at[bags].add(wanted)
