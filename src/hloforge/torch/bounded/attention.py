"""Attention as one operator: keys that are padding have no part in it."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from hloforge.dialect.errors import UnsupportedError
from hloforge.torch.bounded.registry import OpenCall, bounded
from hloforge.torch.bounded.sizes import fit
from hloforge.torch.operators import attention


@bounded("higher_order.flex_attention")
def flex_attention(call: OpenCall, query: Any, key: Any, value: Any, *rest: Any) -> Any:
    length = call.count(1, 2) if 2 in call.open(1) else None
    value = jnp.where(call.inside(2, value), value, jnp.zeros((), value.dtype))
    extent = max(key.shape[2], value.shape[2])
    key, value = (fit(each, [*each.shape[:2], extent, each.shape[3]]) for each in (key, value))
    return attention.flex_attention(call, query, key, value, *rest, length=length)


@bounded("aten._scaled_dot_product_flash_attention_for_cpu")
def flash_attention(
    call: OpenCall, query: Any, key: Any, value: Any, *rest: Any, attn_mask: Any = None, scale: Any = None
) -> Any:
    if query.shape[1] != key.shape[1] and (1 in call.open(0) or 1 in call.open(1)):
        raise UnsupportedError("groups of heads, whose number depends on elements")
    if 3 in call.open(0) or 3 in call.open(1):
        # Products over features that are padding, and PyTorch's scale of those that are not.
        if scale is None:
            wide = jnp.promote_types(query.dtype, jnp.float32)
            scale = (1 / jnp.sqrt(jnp.asarray(call.count(0, 3)).astype(wide))).astype(wide)
        query, key = (
            jnp.where(call.inside(number, each, [3]), each, jnp.zeros((), each.dtype))
            for number, each in enumerate((query, key))
        )
        features = max(query.shape[3], key.shape[3])
        query, key = (fit(each, [*each.shape[:3], features]) for each in (query, key))
    length = call.count(1, 2) if 2 in call.open(1) else None
    value = jnp.where(call.inside(2, value), value, jnp.zeros((), value.dtype))
    extent = max(key.shape[2], value.shape[2])
    key, value = (fit(each, [*each.shape[:2], extent, each.shape[3]]) for each in (key, value))
    if attn_mask is not None:
        wanted = zip(attn_mask.shape, (*query.shape[:3], extent), strict=True)
        attn_mask = fit(attn_mask, [1 if size == 1 else most for size, most in wanted])
    return attention.attention(call, query, key, value, *rest, attn_mask=attn_mask, scale=scale, length=length)
