"""Random numbers that a backward pass draws again, as those of a checkpointed part of a model.

AOTAutograd lets the forward pass return PyTorch's state of random numbers, and the backward pass start from it. Here
the key of JAX takes the place of that state: its first bytes.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import torch
from torch._guards import detect_fake_mode
from torch._subclasses.fake_tensor import FakeTensorMode

from hloforge.dialect.errors import UnsupportedError
from hloforge.torch.interpreter import converted
from hloforge.torch.registry import Call, draws, lowering_of, lowers, name_of
from hloforge.torch.types import dtype_of


@lowers("higher_order.run_and_save_rng_state")
@draws
def run_and_save(call: Call, target: Any, *arguments: Any, **named: Any) -> tuple[Any, Any]:
    key = jax.random.key_data(call.key())
    found = _run(call, key, target, call.arguments[1:], arguments, named)
    kept = jax.lax.bitcast_convert_type(key, jnp.uint8).ravel()
    return jnp.zeros(_state_size(), jnp.uint8).at[: kept.size].set(kept), found


@lowers("higher_order.run_with_rng_state")
def run_with(call: Call, state: Any, target: Any, *arguments: Any, **named: Any) -> Any:
    key = jax.lax.bitcast_convert_type(state[:8].reshape(2, 4), jnp.uint32)
    return _run(call, key, target, call.arguments[2:], arguments, named)


def _state_size() -> int:
    return int(torch.get_rng_state().numel())


def _run(
    call: Call, data: Any, target: Any, fakes: Sequence[Any], arguments: Sequence[Any], named: dict[str, Any]
) -> Any:
    """An operator with keys that follow from this one."""
    function = lowering_of(target)
    if function is None:
        raise UnsupportedError(f"{name_of(target)} cannot be imported")
    # Both passes say nothing of the operator's own results.
    with detect_fake_mode(fakes) or FakeTensorMode():
        value = target(*fakes, **named)
    numbers = itertools.count()

    def key() -> Any:
        return jax.random.fold_in(jax.random.wrap_key_data(data), next(numbers))

    inner = replace(call, target=target, value=value, arguments=tuple(fakes), key=key)
    found = function(inner, *arguments, **named)
    if isinstance(value, torch.Tensor):
        return converted(jnp.asarray(found), dtype_of(value.dtype))
    return tuple(converted(jnp.asarray(f), dtype_of(v.dtype)) for f, v in zip(found, value, strict=True))
