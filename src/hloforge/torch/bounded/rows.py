"""Operators for which the elements along some dimensions have nothing to do with each other."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import numpy as np

from hloforge.dialect.errors import UnsupportedError
from hloforge.torch.bounded.registry import OpenCall, bounded, rule_of
from hloforge.torch.registry import name_of

_Arrays = (jax.Array, np.ndarray)


@bounded("elementwise")
def elementwise(call: OpenCall, *arguments: Any, **named: Any) -> Any:
    """All operands get the padding of the result, with which they are aligned from the last dimension."""
    return call.plain(*(call.fitted(each) if isinstance(each, _Arrays) else each for each in arguments), **named)


@bounded(
    *("aten.clone", "aten.alias", "aten.detach", "aten.contiguous", "aten.lift_fresh_copy", "aten.lift_fresh"),
    *("aten.lift", "aten.alias_copy", "aten.detach_copy", "prims.view_of", "prims.clone", "aten._to_copy", "aten.to"),
    *("prims.convert_element_type", "prims.device_put", "aten.view_of", "aten.conj", "aten._conj", "aten.resolve_conj"),
    *("aten.resolve_neg", "aten._neg_view", "aten.positive", "prims.conj", "aten.permute", "aten.permute_copy"),
    *("prims.transpose", "aten.transpose", "aten.transpose_copy", "aten.t", "aten.t_copy", "aten.full_like"),
    *("prims.full_like", "aten.fill", "prims.fill", "aten.zeros_like", "aten.empty_like", "aten.ones_like"),
    *("aten.dropout", "aten.native_dropout", "aten.rand_like", "aten.randn_like", "aten.view_as_real"),
    *("aten.view_as_complex", "aten.cumsum", "aten.cumprod", "aten.cummax", "aten.cummin", "aten.logcumsumexp"),
    *("aten.bernoulli", "aten.embedding", "aten.copy", "aten.tril", "aten.triu", "aten.unfold", "aten.unfold_copy"),
    *("aten.uniform", "aten.normal_functional", "aten.exponential", "aten.geometric", "aten.cauchy"),
    *("aten.log_normal", "aten.randint_like", "aten.diagonal", "aten.diagonal_copy"),
    "aten.repeat_interleave.self_int",
)
def independent(call: OpenCall, *arguments: Any, **named: Any) -> Any:
    """No element depends on a later one, whatever the dimension."""
    return call.plain(*arguments, **named)


@bounded("aten._assert_tensor_metadata", "aten.sym_constrain_range", "aten._linalg_check_errors")
def nothing(call: OpenCall, *arguments: Any, **named: Any) -> None:
    return None


@bounded(
    *("higher_order.cond", "higher_order.wrap_with_set_grad_enabled", "higher_order.wrap_with_autocast"),
    *("higher_order.run_and_save_rng_state", "higher_order.run_with_rng_state"),
)
def inner(call: OpenCall, *arguments: Any, **named: Any) -> Any:
    """What it calls are graphs and operators that have rules of their own."""
    return call.plain(*arguments, **named)


@bounded("higher_order.with_effects")
def with_effects(call: OpenCall, token: Any, target: Any, *arguments: Any, **named: Any) -> Any:
    """The rule of an operator whose order matters to PyTorch, such as a check of errors."""
    rule = rule_of(target)
    if rule is None:
        raise UnsupportedError(f"{name_of(target)} of a size that is not known before the call")
    results = call.result[1:]
    result = results[0] if len(results) == 1 else results
    inner = replace(call, target=target, result=result, said=call.said[2:], arguments=call.arguments[2:])
    found = rule(inner, *arguments, **named)
    if not results or found is None:
        return (token, *[None] * len(results))
    return (token, found) if len(results) == 1 else (token, *found)


def _closed(first: int, *names: str, last: int | None = None) -> None:
    """Operators that read across the dimensions ``[first:last]`` of their first argument: these must have known sizes.

    The dimensions of all other arguments must too, but for the rows that belong to those of the first argument.
    """

    def rule(call: OpenCall, *arguments: Any, **named: Any) -> Any:
        for number, said in enumerate(call.said):
            mixed = set(range(said.ndim)[first:last] if number == 0 and hasattr(said, "ndim") else call.open(number))
            if number and first == 1 and 0 in mixed and str(said.shape[0]) == str(call.said[0].shape[0]):
                mixed.remove(0)
            if set(call.open(number)) & mixed:
                raise UnsupportedError(
                    f"it reads across a dimension of argument {number} whose size depends on elements"
                )
        return call.plain(*arguments, **named)

    bounded(*names)(rule)


_closed(
    1,
    *("aten.native_group_norm", "aten.grid_sampler_2d", "aten.grid_sampler_3d", "aten.pixel_shuffle"),
    *("aten.upsample_nearest2d", "aten.upsample_bilinear2d", "aten.upsample_bicubic2d"),
    *("aten._upsample_bilinear2d_aa", "aten._upsample_bicubic2d_aa"),
    *("aten.fractional_max_pool2d", "aten.fractional_max_pool3d"),
    *("aten.grid_sampler_2d_backward", "aten.grid_sampler_3d_backward"),
)
_closed(1, "aten._native_batch_norm_legit_no_training", last=2)
_closed(-2, "aten._linalg_eigh", "aten._linalg_svd", "aten.linalg_qr")


@bounded("aten.native_layer_norm", "aten._fused_rms_norm", "aten.rms_norm", "aten.layer_norm")
def layer_norm(call: OpenCall, x: Any, sizes: Any, *arguments: Any, **named: Any) -> Any:
    if any(dim >= x.ndim - len(sizes) for dim in call.open(0)):
        raise UnsupportedError("it normalizes over a dimension whose size depends on elements")
    return call.plain(x, x.shape[x.ndim - len(sizes) :], *arguments, **named)


@bounded("aten._fft_c2c", "aten._fft_r2c", "aten._fft_c2r")
def transform(call: OpenCall, x: Any, dims: Any, *arguments: Any, **named: Any) -> Any:
    if not {dim % x.ndim for dim in dims}.isdisjoint(call.open(0)):
        raise UnsupportedError("a Fourier transform (fft) along a dimension whose size is not known before the call")
    return call.plain(x, dims, *arguments, **named)
