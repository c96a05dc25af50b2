"""Operators for which the elements along some dimensions have nothing to do with each other."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from hloforge.dialect.errors import UnsupportedError
from hloforge.torch.bounded.registry import OpenCall, bounded

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
    *("aten.bernoulli", "aten.embedding", "aten.copy", "aten.tril", "aten.triu"),
    "aten.repeat_interleave.self_int",
)
def independent(call: OpenCall, *arguments: Any, **named: Any) -> Any:
    """No element depends on a later one, whatever the dimension."""
    return call.plain(*arguments, **named)


@bounded("aten._assert_tensor_metadata", "aten.sym_constrain_range")
def nothing(call: OpenCall, *arguments: Any, **named: Any) -> None:
    return None


@bounded(
    *("higher_order.cond", "higher_order.wrap_with_set_grad_enabled", "higher_order.wrap_with_autocast"),
    *("higher_order.run_and_save_rng_state", "higher_order.run_with_rng_state"),
)
def inner(call: OpenCall, *arguments: Any, **named: Any) -> Any:
    """What it calls are graphs and operators that have rules of their own."""
    return call.plain(*arguments, **named)


def _closed(first: int, *names: str, last: int | None = None) -> None:
    """Operators that read across the dimensions ``[first:last]`` of their first argument: these must have known sizes.

    The dimensions of all other arguments must too.
    """

    def rule(call: OpenCall, *arguments: Any, **named: Any) -> Any:
        for number, said in enumerate(call.said):
            mixed = range(said.ndim)[first:last] if number == 0 and hasattr(said, "ndim") else call.open(number)
            if set(call.open(number)) & set(mixed):
                raise UnsupportedError(
                    f"it reads across a dimension of argument {number} whose size depends on elements"
                )
        return call.plain(*arguments, **named)

    bounded(*names)(rule)


_closed(
    1,
    *("aten.native_group_norm", "aten.grid_sampler_2d", "aten.grid_sampler_3d", "aten.pixel_shuffle"),
    *("aten._adaptive_avg_pool2d", "aten._adaptive_avg_pool3d", "aten.adaptive_max_pool2d"),
    *("aten.upsample_nearest2d", "aten.upsample_bilinear2d", "aten.upsample_bicubic2d"),
)
_closed(1, "aten._native_batch_norm_legit_no_training", last=2)
_closed(
    -2,
    *("aten.linalg_inv_ex", "aten._linalg_det", "aten._linalg_eigh", "aten._linalg_svd"),
    *("aten.linalg_cholesky_ex", "aten.linalg_qr", "aten._linalg_solve_ex", "aten.diagonal", "aten.diagonal_copy"),
)


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
