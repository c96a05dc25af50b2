"""Convolutions that optimized programs for CPUs call oneDNN for, ``__onednn$convolution``.

Older programs have the numbers of spatial dimensions, paddings, strides and dilations one larger, because 0 meant that
there is none. Which form a program has, the numbers of its dimensions tell: each dimension occurs once.

Source: XLA ``onednn_contraction_rewriter.cc``, ``onednn_config.proto``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hloforge.dialect import ops
from hloforge.dialect.errors import UnsupportedError
from hloforge.dialect.values import Value
from hloforge.pipelines.library_calls.library_products import fused, wide_type, workspace
from hloforge.pipelines.library_calls.registry import CustomCall, custom_call_target


@custom_call_target("__onednn$convolution")
def convolution(call: CustomCall) -> list[Value]:
    """x, kernel, arrays of fused operations -> the convolution."""
    config = call.configuration("onednn_conv_config")
    if config.get("optimization_config", {}).get("weights_prepacked"):
        raise UnsupportedError(f"@{call.target} of weights in oneDNN's own order, which it chooses when it runs")
    x, kernel, *others = call.operands
    image, output = (config.get(name, {}).get("data", {}) for name in ("input", "output"))
    weights = config.get("kernel", {}).get("filter", {})
    shift = 0 if _is_complete(image, x.rank) else 1
    if shift and not _is_complete(image, x.rank, shift):
        raise UnsupportedError(f"@{call.target} does not tell which dimension is which")
    window = config.get("window", {})
    low, high, stride, dilation = (
        [int(number) - shift for number in window.get(name, ())]
        for name in ("pad_left", "pad_right", "strides", "window_dilations")
    )
    labels = [
        _labels(x.rank, {"b": _number(image, "batch_dim"), "f": _number(image, "feature_dim")}, image, shift),
        _labels(
            kernel.rank,
            {"i": _number(weights, "input_feature_dim"), "o": _number(weights, "output_feature_dim")},
            weights,
            shift,
        ),
        _labels(x.rank, {"b": _number(output, "batch_dim"), "f": _number(output, "feature_dim")}, output, shift),
    ]
    result = call.shapes[0]
    value = ops.conv_with_general_padding(
        *(x, kernel, stride, list(zip(low, high, strict=True))),
        rhs_dilation=dilation,
        feature_group_count=int(config.get("feature_groups", 1)),
        dimension_numbers=f"{labels[0]}_{labels[1]}->{labels[2]}",
        preferred_element_type=wide_type(result),
    )
    value = fused(call, config.get("fusions", {}), value, others, labels[2].index("f"))
    value = ops.reshape(ops.convert_element_type(value, result.element), result.dimensions)
    return [value, *workspace(call.shapes[1:])]


def _number(layout: Mapping[str, Any], name: str) -> int:
    return int(layout.get(name, 0))


def _spatial(layout: Mapping[str, Any], shift: int) -> list[int]:
    return [int(number) - shift for number in layout.get("spatial_dims", ())]


def _is_complete(image: Mapping[str, Any], rank: int, shift: int = 0) -> bool:
    """Whether each dimension of the image occurs once."""
    numbers = [_number(image, "batch_dim"), _number(image, "feature_dim"), *_spatial(image, shift)]
    return sorted(numbers) == list(range(rank))


def _labels(rank: int, letters: Mapping[str, int], layout: Mapping[str, Any], shift: int) -> str:
    """The dimensions as letters and numbers, such as ``b01f``."""
    found = [""] * rank
    for letter, place in (*letters.items(), *((str(n), place) for n, place in enumerate(_spatial(layout, shift)))):
        found[place] = letter
    return "".join(found)
