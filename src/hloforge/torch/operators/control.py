"""Higher-order operators: their graphs become JAX's control flow."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp

from hloforge.dialect.errors import UnsupportedError
from hloforge.torch import turns as kept
from hloforge.torch.registry import Call, lowering_of, lowers


@lowers("higher_order.cond")
def cond(call: Call, predicate: Any, when_true: Any, when_false: Any, operands: Sequence[Any] = ()) -> Any:
    keeps = kept.keep_turns(when_true, when_false)
    if isinstance(predicate, bool | int):
        found, turns = kept.run(call, when_true if predicate else when_false, operands, keeps)
    else:
        found, turns = jax.lax.cond(
            predicate.reshape(()),
            lambda *given: kept.run(call, when_true, given, keeps),
            lambda *given: kept.run(call, when_false, given, keeps),
            *operands,
        )
    kept.note(call, turns)
    return found


@lowers("higher_order.while_loop")
def while_loop(call: Call, condition: Any, body: Any, carried: Sequence[Any], others: Sequence[Any] = ()) -> Any:
    start = tuple(map(jnp.asarray, carried))
    keeps = kept.keep_turns(body)

    def going(state: Any) -> Any:
        return jnp.asarray(_first(call.run(condition, [*state[0], *others]))).reshape(())

    def turn(state: Any) -> Any:
        now, before = state
        new, turns = kept.run(call, body, [*now, *others], keeps)
        return tuple(jnp.asarray(n, s.dtype) for n, s in zip(new, now, strict=True)), kept.most(before, turns)

    last, turns = jax.lax.while_loop(going, turn, (start, kept.no_turns(keeps)))
    kept.note(call, turns)
    return last


def _first(result: Any) -> Any:
    return result[0] if isinstance(result, list | tuple) else result


@lowers("higher_order.scan")
def scan(call: Call, body: Any, init: Sequence[Any], xs: Sequence[Any], others: Sequence[Any] = ()) -> Any:
    count = len(init)

    def turn(state: Any, slices: Any) -> Any:
        new = call.run(body, [*state, *slices, *others])
        return tuple(new[:count]), tuple(new[count:])

    last, stacked = jax.lax.scan(turn, tuple(init), tuple(xs))
    return (*last, *stacked)


@lowers("higher_order.map_impl")
def map_(call: Call, body: Any, xs: Sequence[Any], others: Sequence[Any] = ()) -> Any:
    keeps = kept.keep_turns(body)
    found, turns = jax.lax.map(lambda slices: kept.run(call, body, [*slices, *others], keeps), tuple(xs))
    kept.note(call, turns)
    return found


@lowers("higher_order.associative_scan")
def associative_scan(call: Call, combine: Any, xs: Sequence[Any], others: Sequence[Any] = ()) -> Any:
    function = jax.vmap(lambda a, b: tuple(call.run(combine, [*a, *b, *others])))
    return jax.lax.associative_scan(function, tuple(xs))


@lowers("higher_order.wrap_with_set_grad_enabled", "higher_order.wrap_with_autocast")
def wrapped(call: Call, *arguments: Any) -> Any:
    graph = next(number for number, argument in enumerate(arguments) if hasattr(argument, "graph"))
    return call.run(arguments[graph], arguments[graph + 1 :])


@lowers("higher_order.invoke_subgraph")
def invoke_subgraph(call: Call, graph: Any, identifier: Any, *arguments: Any) -> Any:
    return call.run(graph, arguments)


lowers("_operator.getitem")(lambda call, x, at: operator.getitem(x, at))


@lowers("higher_order.with_effects")
def with_effects(call: Call, token: Any, target: Any, *arguments: Any, **named: Any) -> Any:
    """An operator whose order matters to PyTorch, such as a check of errors; a program computes values only."""
    function = lowering_of(target)
    if function is None:
        raise UnsupportedError(f"{target} cannot be imported")
    results = call.value[1:]
    inner = replace(
        call, target=target, value=results[0] if len(results) == 1 else results, arguments=call.arguments[2:]
    )
    found = function(inner, *arguments, **named)
    if not results or found is None:
        return (token, *[None] * len(results))
    return (token, found) if len(results) == 1 else (token, *found)


@lowers("prims._make_token")
def make_token(call: Call) -> Any:
    return jnp.zeros(0, jnp.float32)


@lowers("prims._sink_tokens")
def sink_tokens(call: Call, tokens: Any) -> None:
    """Nothing: there are no effects to wait for."""
