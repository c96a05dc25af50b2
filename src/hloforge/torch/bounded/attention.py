"""Attention by functions of the user's: keys that are padding have no part in it."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

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
