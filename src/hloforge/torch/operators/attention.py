"""Attention as one operator, its gradients, and ``flex_attention``, whose scores the user's functions change."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from hloforge.torch.registry import Call, lowers

# Parts of the rows of causal attention at most, and rows of one at least.
_MOST_PARTS, _LEAST_ROWS = 4, 128
_OF_BF16 = jax.lax.DotAlgorithmPreset.BF16_BF16_F32


@lowers("higher_order.flex_attention")
def flex_attention(
    call: Call,
    query: Any,
    key: Any,
    value: Any,
    change: Any,
    blocks: Sequence[Any],
    scale: float,
    options: Any = None,
    change_buffers: Sequence[Any] = (),
    mask_buffers: Sequence[Any] = (),
    *,
    length: Any = None,
) -> Any:
    """All scores, computed at once; the block mask says only which blocks a kernel could leave out.

    Args:
        length: of the keys, if there is padding behind it, whose values are 0.

    Returns:
        the attention; the logarithm to the base 2 of the sums of exponentials; and the greatest scores in its unit.
    """
    wide = jnp.float64 if query.dtype == jnp.float64 else jnp.float32
    groups = query.shape[1] // key.shape[1]
    key, value = (jnp.repeat(each, groups, axis=1) for each in (key, value))
    key, value = (jnp.broadcast_to(each, (query.shape[0], *each.shape[1:])) for each in (key, value))
    scores = jnp.einsum("bhqd,bhkd->bhqk", query.astype(wide), key.astype(wide)) * scale
    places = [jnp.arange(size, dtype=jnp.int32) for size in scores.shape]
    changed = _for_each(lambda *given: _one(call.run(change, given)), 1, change_buffers)(scores, *places)
    kept = _for_each(lambda *given: _one(call.run(blocks[-1], given)), 0, mask_buffers)(*places)
    if length is not None:
        kept &= places[3] < length
    scores = jnp.where(kept, changed, -jnp.inf).astype(wide)
    greatest = jnp.max(scores, -1)
    shift = jnp.where(jnp.isfinite(greatest), greatest, 0)
    weights = jnp.exp(scores - shift[..., None])
    total = jnp.sum(weights, -1)
    logarithm = jnp.where(jnp.isneginf(greatest), -jnp.inf, jnp.log(total) + shift)
    weights = weights / jnp.where(total == 0, 1, total)[..., None]
    result = jnp.einsum("bhqk,bhkd->bhqd", weights.astype(query.dtype), value.astype(query.dtype))
    return result, logarithm / math.log(2), greatest / math.log(2)


def _for_each(function: Callable[..., Any], scores: int, buffers: Sequence[Any]) -> Callable[..., Any]:
    """A function of (score,) batch, head, query and key, of single numbers, for arrays of all of them."""

    def whole(*given: Any) -> Any:
        return function(*given, *buffers)

    for place in (3, 2, 1, 0):
        axes = [None] * (scores + 4)
        axes[scores + place] = 0  # type: ignore[call-overload]
        # The scores have the dimensions that are still to come.
        whole = jax.vmap(whole, in_axes=[0] * scores + axes[scores:])
    return whole


def _one(result: Any) -> Any:
    return result[0] if isinstance(result, list | tuple) else result


@lowers("aten._scaled_dot_product_flash_attention_for_cpu")
def attention(
    call: Call,
    query: Any,
    key: Any,
    value: Any,
    dropout: float = 0.0,
    is_causal: bool = False,
    *,
    attn_mask: Any = None,
    scale: Any = None,
    length: Any = None,
) -> tuple[Any, Any]:
    """Attention as PyTorch's kernel of the CPU computes it: factors keep their 16 bits, and so do the exponentials.

    Sums, scores and what divides the results are f32. Rows that see no key are 0.

    Args:
        query: [batch, heads, queries, features]; keys and values may have fewer heads, each for a group of queries'.
        attn_mask: what is added to the scores, or which keys are seen: [batch or 1, heads or 1, queries, keys].
        length: of the keys, if there is padding behind it, whose values are 0.

    Returns:
        the attention; and the logarithms of the sums of exponentials, [batch, heads, queries].
    """
    assert not dropout  # the kernel has none
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    count = min(query.shape[2] // _LEAST_ROWS, _MOST_PARTS) if is_causal else 1
    if count < 2:
        return _rows_of_attention(query, key, value, 0 if is_causal else None, attn_mask, factor, length)
    # Later keys are hidden: each part of the rows has a product of its own with those that it sees.
    parts, rows = [], -(-query.shape[2] // count)
    for first in range(0, query.shape[2], rows):
        own = slice(first, first + rows)
        seen = min(first + rows, key.shape[2])
        mask = attn_mask
        if mask is not None:
            mask = mask[:, :, own if mask.shape[2] > 1 else slice(None), :seen]
        parts.append(
            _rows_of_attention(query[:, :, own], key[:, :, :seen], value[:, :, :seen], first, mask, factor, length)
        )
    found, sums = zip(*parts, strict=True)
    return jnp.concatenate(found, 2), jnp.concatenate(sums, 2)


def _rows_of_attention(
    query: Any, key: Any, value: Any, first: int | None, attn_mask: Any, factor: Any, length: Any
) -> tuple[Any, Any]:
    """As ``attention``.

    Args:
        first: the number of the first query, which sees the keys up to this one; None for all keys.
    """
    wide = jnp.promote_types(query.dtype, jnp.float32)
    shape, groups = query.shape, query.shape[1] // key.shape[1]
    grouped = query.reshape(shape[0], key.shape[1], groups, *shape[2:])
    scores = _product("bhgqd,bhkd->bhgqk", grouped, key)
    scores = scores.reshape(*shape[:3], key.shape[2]) * factor
    seen = None if first is None else jnp.tril(jnp.ones(scores.shape[2:], bool), first)
    if length is not None:
        inside = jnp.arange(scores.shape[3]) < length
        seen = inside if seen is None else seen & inside
    if attn_mask is not None and attn_mask.dtype == jnp.bool_:
        seen = attn_mask if seen is None else seen & attn_mask
    elif attn_mask is not None:
        scores = scores + attn_mask.astype(wide)
    if seen is not None:
        scores = jnp.where(seen, scores, -jnp.inf)
    greatest = scores.max(-1, keepdims=True)
    # The first key alone is hidden from no row.
    is_seen = attn_mask is None and length is None
    shift = greatest if is_seen else jnp.where(greatest == -jnp.inf, 0, greatest)
    powers = jnp.exp(scores - shift)
    total = powers.sum(-1, keepdims=True)
    weights = powers.astype(query.dtype).reshape(*grouped.shape[:-1], key.shape[2])
    sums = _product("bhgqk,bhkd->bhgqd", weights, value).reshape(*shape[:3], value.shape[-1])
    found = (sums / (total if is_seen else jnp.where(total == 0, 1, total))).astype(query.dtype)
    return found, (jnp.log(total) + shift)[..., 0]


def _product(dimensions: str, x: Any, y: Any) -> Any:
    """A product whose factors are what they say, even beside a reduction, and whose sums are f32 at least."""
    algorithm = _OF_BF16 if x.dtype == jnp.bfloat16 else None
    wide = jnp.promote_types(x.dtype, jnp.float32)
    return jnp.einsum(dimensions, x, y, precision=algorithm, preferred_element_type=wide)


@lowers("aten._scaled_dot_product_flash_attention_for_cpu_backward")
def attention_backward(
    call: Call,
    gradient: Any,
    query: Any,
    key: Any,
    value: Any,
    out: Any,
    sums: Any,
    dropout: float,
    is_causal: bool,
    *,
    attn_mask: Any = None,
    scale: float | None = None,
) -> tuple[Any, Any, Any]:
    """Gradients of attention in graphs that were traced with their backward pass, computed in f32 as by the kernel.

    The sums of the forward pass are computed again: where that is decomposed, they are something else.
    """
    assert not dropout  # the kernel has none
    wide = jnp.promote_types(query.dtype, jnp.float32)
    given, q, k, v = (x.astype(wide) for x in (gradient, query, key, value))
    factor = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    scores = jnp.einsum("...qd,...kd->...qk", q, k) * factor
    if is_causal:
        scores = jnp.where(jnp.tril(jnp.ones(scores.shape[-2:], bool)), scores, -jnp.inf)
    if attn_mask is not None:
        is_mask = attn_mask.dtype == jnp.bool_
        scores = jnp.where(attn_mask, scores, -jnp.inf) if is_mask else scores + attn_mask.astype(wide)
    greatest = scores.max(-1, keepdims=True)
    powers = jnp.exp(scores - jnp.where(jnp.isfinite(greatest), greatest, 0))
    total = powers.sum(-1, keepdims=True)
    chances = powers / jnp.where(total == 0, 1, total)
    change = jnp.einsum("...qd,...kd->...qk", given, v)
    change = chances * (change - (change * chances).sum(-1, keepdims=True)) * factor
    return (
        jnp.einsum("...qk,...kd->...qd", change, k).astype(query.dtype),
        jnp.einsum("...qk,...qd->...kd", change, q).astype(key.dtype),
        jnp.einsum("...qk,...qd->...kd", chances, given).astype(value.dtype),
    )
