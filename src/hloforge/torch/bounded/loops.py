"""Loops over arrays of open sizes, and loops whose number of turns is itself an open size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from hloforge.dialect.errors import UnsupportedError
from hloforge.torch import turns as kept
from hloforge.torch.bounded.registry import OpenCall, bounded, made


@bounded("higher_order.while_loop", "higher_order.map_impl", "higher_order.associative_scan")
def over_padding(call: OpenCall, *arguments: Any) -> Any:
    """What the loop calls has rules of its own, and no turn but its own reads what is padding of a mapped dimension."""
    return call.plain(*arguments)


@bounded("higher_order.scan")
def scan(call: OpenCall, body: Any, init: Sequence[Any], xs: Sequence[Any], others: Sequence[Any] = ()) -> Any:
    """Turns behind the real size change nothing that is carried."""
    lengths = [said.shape[0] for said in call.said[2]]
    real = call.sizes.real(lengths[0]) if lengths else 0
    if isinstance(real, int):
        return call.plain(body, init, xs, others)
    count = len(init)

    def turn(state: Any, given: Any) -> Any:
        number, slices = given
        new = call.run(body, [*state, *slices, *others])
        kept = [jnp.where(number < real, n, s) for n, s in zip(new[:count], state, strict=True)]
        return tuple(kept), tuple(new[count:])

    numbers = jnp.arange(xs[0].shape[0], dtype=np.int64)
    last, stacked = jax.lax.scan(turn, tuple(init), (numbers, tuple(xs)))
    return (*last, *stacked)


@bounded("higher_order.while_loop_stack_output")
def while_loop_stack_output(
    call: OpenCall, condition: Any, body: Any, carried: Sequence[Any], others: Sequence[Any] = ()
) -> Any:
    """A loop that keeps the values of all turns, for its gradient.

    The stacks have room for some turns (``Sizes.room``). A loop that makes more runs to its end, so that the caller
    knows how many it made: what it returned is of no use then, and a program with more room is.
    """
    room = call.sizes.room
    if room is None:
        raise UnsupportedError(
            "nothing bounds the number of turns whose values it keeps",
            hint="torch.scan, or a while_loop that is not in one, has a gradient",
        )
    start = tuple(map(jnp.asarray, carried))
    keeps = kept.keep_turns(body)

    def going(state: Any) -> Any:
        found = call.run(condition, [*state[1], *others])
        return jnp.asarray(found[0] if isinstance(found, list | tuple) else found).reshape(())

    def turn(state: Any) -> Any:
        number, now, stacks, before = state
        found, turns = kept.run(call, body, [*now, *others], keeps)
        new = tuple(jnp.asarray(n, s.dtype) for n, s in zip(found, now, strict=True))
        at = jnp.minimum(number, room - 1)
        stacks = tuple(s.at[at].set(n) for s, n in zip(stacks, new, strict=True))
        return number + 1, new, stacks, kept.most(before, turns)

    # As PyTorch has it: a loop without turns keeps what it started with.
    stacks = tuple(jnp.zeros((room, *each.shape), each.dtype).at[0].set(each) for each in start)
    first = (jnp.zeros((), np.int64), start, stacks, kept.no_turns(keeps))
    number, _, stacks, within = jax.lax.while_loop(going, turn, first)
    turns = jnp.maximum(number, 1)
    kept.note(call, (*within, turns))
    return made(call, stacks, room, turns)
