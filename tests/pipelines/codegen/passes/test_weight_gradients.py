"""Gradients of weights beside images whose pixels are contiguous, with XLA's numbers."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from jax import lax

from tests.pipelines.codegen.jax_programs import check, normal


def _weights(numbers: Any, steps: Any, edges: Any, window: Any, groups: int = 1) -> Any:
    def gradient(x: Any, g: Any) -> Any:
        def forward(w: Any) -> Any:
            return lax.conv_general_dilated(x, w, steps, edges, dimension_numbers=numbers, feature_group_count=groups)

        return jax.vjp(forward, jnp.zeros(window, x.dtype))[1](g)[0]

    return gradient


@given(data=st.data())
@settings(max_examples=10, deadline=None)
def test_random_windows(data: st.DataObject) -> None:
    rank = data.draw(st.integers(1, 3))
    size = st.integers(1, 5)
    images, inputs, outputs = data.draw(st.integers(1, 4)), data.draw(size), data.draw(st.sampled_from([3, 8, 19]))
    window, steps = data.draw(st.tuples(*[size] * rank)), data.draw(st.tuples(*[st.integers(1, 3)] * rank))
    sizes = data.draw(st.tuples(*[st.integers(6, 14)] * rank))
    edges = data.draw(st.tuples(*[st.tuples(st.integers(0, 2), st.integers(0, 2))] * rank))
    spatial = "DHW"[-rank:]
    weights = data.draw(st.sampled_from(["OI" + spatial, spatial + "IO"]))
    numbers = ("NC" + spatial, weights, "NC" + spatial)
    # Also images of a batch with weights of their own, which are groups of one image.
    groups = data.draw(st.sampled_from([1, 1, 2, 3]))
    places = {"O": outputs * groups, "I": inputs} | dict(zip(spatial, window, strict=True))
    out = [(n + sum(e) - w) // s + 1 for n, e, w, s in zip(sizes, edges, window, steps, strict=True)]
    x, g = normal(images, inputs * groups, *sizes), normal(images, outputs * groups, *out)
    check(_weights(numbers, steps, edges, [places[name] for name in weights], groups), x, g, tolerance=5e-5)


@pytest.mark.parametrize("dtype", [np.float64, np.int32, jnp.bfloat16])
def test_other_types(dtype: Any) -> None:
    x, g = (np.round(normal(*shape) * 2).astype(dtype) for shape in ((3, 4, 9, 9), (3, 16, 9, 9)))
    check(_weights(("NCHW", "OIHW", "NCHW"), (1, 1), [(1, 1), (1, 1)], (16, 4, 3, 3)), x, g)
