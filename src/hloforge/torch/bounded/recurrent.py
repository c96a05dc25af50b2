"""Recurrent layers along sequences, and of batches, of open sizes: states stay as they are behind the end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp

from hloforge.dialect.errors import UnsupportedError
from hloforge.torch.bounded.registry import OpenCall, bounded, within
from hloforge.torch.bounded.sizes import open_dims
from hloforge.torch.operators import recurrent_gradients
from hloforge.torch.operators.recurrent import layers_of


@bounded("hloforge.recurrent")
def recurrent(call: OpenCall, x: Any, states: Sequence[Any], weights: Sequence[Any], *settings: Any) -> list[Any]:
    said = call.said
    x, *states = _real(call, [x, *states], [said[0], *said[1]])
    return layers_of(x, states, weights, *settings, length=_length(call, said[0], said[2], settings[-1]))


@bounded("hloforge.recurrent_layer")
def layer(call: OpenCall, x: Any, states: Sequence[Any], weights: Sequence[Any], *settings: Any) -> list[Any]:
    said = call.said
    x, *states = _real(call, [x, *states], [said[0], *said[1]])
    length = _length(call, said[0], said[2], settings[-1])
    found: list[Any] = recurrent_gradients.layer(call, x, states, weights, *settings, length=length)
    return found


@bounded("hloforge.recurrent_layer_backward")
def gradient(
    call: OpenCall,
    gradients: Sequence[Any],
    x: Any,
    output: Any,
    states: Sequence[Any],
    weights: Sequence[Any],
    kept: Sequence[Any],
    *settings: Any,
) -> list[Any]:
    said = call.said
    gradients = _real(call, gradients, said[0])
    x, output, *states = _real(call, [x, output, *states], [said[1], said[2], *said[3]])
    kept = _real(call, kept, said[5])
    length = _length(call, said[1], said[4], settings[-1])
    found: list[Any] = recurrent_gradients.gradient(
        call, gradients, x, output, states, weights, kept, *settings, length=length
    )
    return found


def _real(call: OpenCall, arrays: Sequence[Any], said: Sequence[Any]) -> list[Any]:
    """The arrays, 0 where they are padding: NaN times 0 would be in the gradients of weights."""
    found = []
    for array, value in zip(arrays, said, strict=True):
        counts = {d: call.sizes.real(value.shape[d]) for d in open_dims(value)}
        inside = within(array.shape, counts) if counts else None
        found.append(array if inside is None else jnp.where(inside, array, jnp.zeros((), array.dtype)))
    return found


def _length(call: OpenCall, x: Any, weights: Sequence[Any], batch_first: bool) -> Any:
    """The length of the sequence, if it is open. Raises UnsupportedError for features of open sizes."""
    if any(open_dims(weight) for weight in weights) or x.ndim - 1 in open_dims(x):
        raise UnsupportedError("the features of a recurrent layer have an open size")
    dim = 1 if batch_first else 0
    return call.sizes.real(x.shape[dim]) if dim in open_dims(x) else None
