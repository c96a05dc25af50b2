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
from torch.utils import _pytree as pytree

from hloforge.dialect.errors import UnsupportedError
from hloforge.torch.bounded.registry import OpenCall, rule_of
from hloforge.torch.interpreter import converted
from hloforge.torch.registry import Call, draws, lowering_of, lowers, name_of
from hloforge.torch.types import dtype_of


@lowers("higher_order.run_and_save_rng_state")
@draws
def run_and_save(call: Call, target: Any, *arguments: Any, **named: Any) -> tuple[Any, Any]:
    key = jax.random.key_data(call.key())
    found = _run(call, key, target, 1, arguments, named)
    kept = jax.lax.bitcast_convert_type(key, jnp.uint8).ravel()
    return jnp.zeros(_state_size(), jnp.uint8).at[: kept.size].set(kept), found


@lowers("higher_order.run_with_rng_state")
def run_with(call: Call, state: Any, target: Any, *arguments: Any, **named: Any) -> Any:
    key = jax.lax.bitcast_convert_type(state[:8].reshape(2, 4), jnp.uint32)
    return _run(call, key, target, 2, arguments, named)


def _state_size() -> int:
    return int(torch.get_rng_state().numel())


def _run(call: Call, data: Any, target: Any, first: int, arguments: Sequence[Any], named: dict[str, Any]) -> Any:
    """An operator with keys that follow from this one.

    Args:
        first: the number of its first argument among those of the call.
    """
    numbers = itertools.count()

    def key() -> Any:
        return jax.random.fold_in(jax.random.wrap_key_data(data), next(numbers))

    if isinstance(call, OpenCall) and call.is_open:
        return _run_open(call, key, target, first, arguments, named)
    function = lowering_of(target)
    if function is None:
        raise UnsupportedError(f"{name_of(target)} cannot be imported")
    fakes = call.arguments[first:]
    value = _value(target, fakes, named)
    inner = replace(call, target=target, value=value, arguments=tuple(fakes), key=key)
    return _converted(function(inner, *arguments, **named), value)


def _run_open(
    call: OpenCall, key: Any, target: Any, first: int, arguments: Sequence[Any], named: dict[str, Any]
) -> Any:
    """As ``_run``, of open sizes."""
    rule = rule_of(target)
    if rule is None:
        raise UnsupportedError(f"{name_of(target)} of an open size cannot be imported")
    said = call.said[first:]
    result = _value(target, said, named)
    value = call.sizes.padded(result)
    own = tuple(call.arguments[first:])
    inner = replace(call, target=target, value=value, arguments=own, key=key, said=said, result=result)
    return _converted(rule(inner, *arguments, **named), value)


def _value(target: Any, fakes: Sequence[Any], named: dict[str, Any]) -> Any:
    """What PyTorch says of the results, because both passes say nothing of the operator's own."""
    sizes = [each for each in pytree.tree_leaves((fakes, named)) if isinstance(each, torch.SymInt)]
    environment = sizes[0].node.shape_env if sizes else None
    with detect_fake_mode(fakes) or FakeTensorMode(shape_env=environment):
        return target(*fakes, **named)


def _converted(found: Any, value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return converted(jnp.asarray(found), dtype_of(value.dtype))
    return tuple(converted(jnp.asarray(f), dtype_of(v.dtype)) for f, v in zip(found, value, strict=True))
