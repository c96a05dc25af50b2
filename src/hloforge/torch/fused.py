"""PyTorch's fused kernels of the CPU, in the operators that they fuse.

``nn.TransformerEncoderLayer`` and ``nn.MultiheadAttention`` call these in ``eval()`` without gradients. They have no
decompositions in PyTorch, because they are chosen while a module runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

# The kind of a mask that hides keys of each batch, instead of pairs of positions (0) or both for each head (2).
_KEYS = 1


def multi_head_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim: int,
    heads: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    weight: Tensor,
    bias: Tensor,
    mask: Tensor | None = None,
    need_weights: bool = True,
    average_attn_weights: bool = True,
    mask_type: int | None = None,
) -> tuple[Tensor, Tensor]:
    """Attention by heads with one matrix for queries, keys and values; what a mask says is true, or not 0, is hidden.

    Args:
        query, key, value: [batch, length, embed_dim].
        mask: [length, length] of pairs, [batch, length] of keys, or [batch, heads, length, length].

    Returns:
        [batch, length, embed_dim], and the weights [batch, (heads,) length, length]; empty ones if nobody needs them.
    """
    weights, biases = qkv_weight.chunk(3), qkv_bias.chunk(3)
    split = [
        functional.linear(x, w, b).unflatten(-1, (heads, -1)).transpose(1, 2)
        for x, w, b in zip((query, key, value), weights, biases, strict=True)
    ]
    scores = (split[0] / math.sqrt(embed_dim // heads)) @ split[1].transpose(-1, -2)
    if mask is not None:
        scores = scores.masked_fill(_for_scores(mask.to(torch.bool), mask_type), -math.inf)
    shares = scores.softmax(-1)
    joined = (shares @ split[2]).transpose(1, 2).flatten(2)
    if not need_weights:
        return functional.linear(joined, weight, bias), query.new_empty(0)
    return functional.linear(joined, weight, bias), shares.mean(1) if average_attn_weights else shares


def _for_scores(mask: Tensor, mask_type: int | None) -> Tensor:
    return mask[:, None, None, :] if mask_type == _KEYS else mask


def transformer_encoder_layer(
    src: Tensor,
    embed_dim: int,
    heads: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    norm_weight_1: Tensor,
    norm_bias_1: Tensor,
    norm_weight_2: Tensor,
    norm_bias_2: Tensor,
    ffn_weight_1: Tensor,
    ffn_bias_1: Tensor,
    ffn_weight_2: Tensor,
    ffn_bias_2: Tensor,
    mask: Tensor | None = None,
    mask_type: int | None = None,
) -> Tensor:
    """A layer of a transformer's encoder: attention and two dense layers, each with a sum and a normalization."""

    def first_norm(x: Tensor) -> Tensor:
        return functional.layer_norm(x, (embed_dim,), norm_weight_1, norm_bias_1, eps)

    def second_norm(x: Tensor) -> Tensor:
        return functional.layer_norm(x, (embed_dim,), norm_weight_2, norm_bias_2, eps)

    def attention(x: Tensor) -> Tensor:
        weights = (qkv_weight, qkv_bias, proj_weight, proj_bias)
        return multi_head_attention(x, x, x, embed_dim, heads, *weights, mask, False, True, mask_type)[0]

    def dense(x: Tensor) -> Tensor:
        hidden = functional.linear(x, ffn_weight_1, ffn_bias_1)
        return functional.linear(functional.gelu(hidden) if use_gelu else hidden.relu(), ffn_weight_2, ffn_bias_2)

    if norm_first:
        x = src + attention(first_norm(src))
        return x + dense(second_norm(x))
    x = first_norm(src + attention(src))
    return second_norm(x + dense(x))


# By operator.
FUSED: dict[Any, Callable[..., Any]] = {
    torch.ops.aten._native_multi_head_attention.default: multi_head_attention,
    torch.ops.aten._transformer_encoder_layer_fwd.default: transformer_encoder_layer,
}
