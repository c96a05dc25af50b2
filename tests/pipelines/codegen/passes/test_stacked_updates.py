"""legalize-stacked-updates: arrays that loops change and stack, beside XLA."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from hypothesis import given, settings, strategies as st
from jax import lax

from tests.pipelines.codegen.jax_programs import check, normal


@given(
    st.sampled_from(["given", "carried", "plain"]),
    st.lists(st.integers(-2, 5), min_size=1, max_size=2),
    st.sampled_from(["product", "sum", "stack", "nothing"]),
    st.booleans(),
)
@settings(max_examples=8, deadline=None)
def test_any_reader(source: str, rows: list[int], reader: str, is_reversed: bool) -> None:
    """Caches of scans, parts of carries, and one array for all; places beside the array are clamped."""

    def function(x: Any, caches: Any) -> Any:
        def body(step: Any, carry: Any) -> Any:
            state, stack = carry
            place = 2 - step if is_reversed else step
            old = {"given": caches[place], "carried": stack[place], "plain": caches[0]}[source]
            new = old
            for row in rows:
                new = lax.dynamic_update_slice(new, jnp.tanh(state[None]), (row + 0 * step, 0 * step))
            if reader == "product":
                state = jnp.tanh(state @ new.T @ old)
            elif reader == "sum":
                state = state + new.sum(0)
            elif reader == "stack":
                state = state + stack.sum((0, 1)) * 0.1
            return state, lax.dynamic_update_slice(stack, new[None], (place, 0 * step, 0 * step))

        return lax.fori_loop(0, 3, body, (x, caches * 2))

    check(function, normal(8), normal(3, 4, 8) / 4, tolerance=1e-4)


def test_starts_of_one_type() -> None:
    """The place in the stack has 64 bits, that in the array 32."""

    def function(x: Any, caches: Any) -> Any:
        def body(step: Any, stack: Any) -> Any:
            new = lax.dynamic_update_slice(caches[0], x[None], (step.astype(np.int32), np.int32(0)))
            return lax.dynamic_update_slice(stack, new[None], (step, 0, 0))

        return lax.fori_loop(0, 3, body, caches)

    check(function, normal(8), normal(3, 4, 8))
