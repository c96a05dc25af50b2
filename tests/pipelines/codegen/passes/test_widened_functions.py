"""legalize-widened-functions: sums of bf16 that a function reads in f32 are not rounded, as XLA's client does it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy.special as special
import ml_dtypes
import numpy as np
import pytest
from jax import lax

import hloforge
from hloforge.runtime.reference.engines import reference
from tests.pipelines.codegen.whole_programs import compiled


@pytest.mark.parametrize(
    "function",
    [
        lax.digamma,
        lax.lgamma,
        lax.erfc,
        lambda x: lax.erf_inv(x / 100),
        jnp.sinh,
        jnp.cosh,
        special.i1e,
        lambda x: lax.zeta(x + 1, x),
        lambda x: lax.polygamma(jnp.ones_like(x), x),
        jnp.tan,
        jnp.arcsinh,
        special.i0e,
    ],
)
def test_a_sum_is_rounded_where_xla_rounds_it(function: Callable[[Any], Any]) -> None:
    random = np.random.default_rng(0)
    x = (1 + np.abs(2 * random.standard_normal(64))).astype(ml_dtypes.bfloat16)
    y = np.abs(random.standard_normal(64)).astype(ml_dtypes.bfloat16)
    lowered = jax.jit(lambda a, b: function(a + b)).lower(x, y)
    got = np.asarray(compiled(hloforge.as_program(lowered)).load()(x, y))
    np.testing.assert_array_equal(got.astype(np.float32), np.asarray(lowered.compile()(x, y)).astype(np.float32))


_NORMS = {
    "batch_norm_training": ("xff", "xff"),
    "batch_norm_inference": ("xffff", "x"),
    "batch_norm_grad": ("xfffx", "xff"),
}


@pytest.mark.wide(2)
@pytest.mark.parametrize("name", list(_NORMS))
@pytest.mark.parametrize(("shape", "feature"), [((3, 7), 1), ((4, 5, 6, 8), 3), ((2, 3, 4, 5), 1), ((100, 64), 1)])
def test_batch_norms_are_f32_inside(name: str, shape: tuple[int, ...], feature: int) -> None:
    kinds, results = _NORMS[name]
    types = {"x": f"tensor<{'x'.join(map(str, shape))}xbf16>", "f": f"tensor<{shape[feature]}xbf16>"}
    takes, gives = (", ".join(types[kind] for kind in some) for some in (kinds, results))
    names = [f"%a{number}" for number in range(len(kinds))]
    made = ", ".join(f"%r#{number}" for number in range(len(results))) if len(results) > 1 else "%r"
    parameters = ", ".join(f"{one}: {types[kind]}" for one, kind in zip(names, kinds, strict=True))
    program = hloforge.as_program(f"""func.func @main({parameters}) -> ({gives}) {{
      %r{":" + str(len(results)) if len(results) > 1 else ""} = "stablehlo.{name}"({", ".join(names)})
        <{{epsilon = 1.0e-2 : f32, feature_index = {feature} : i64}}> : ({takes}) -> ({gives})
      return {made} : {gives} }}""")
    random = np.random.default_rng(0)
    sizes = {"x": shape, "f": (shape[feature],)}
    # Positive, because one of them is a variance.
    arguments = [(0.5 + np.abs(random.standard_normal(sizes[kind]))).astype(ml_dtypes.bfloat16) for kind in kinds]
    got = jax.tree.leaves(compiled(program).load()(*arguments))
    wanted = jax.tree.leaves(reference("xla", isolated=False).prepare(program)(*arguments))
    steps = [
        np.abs(np.asarray(one).view(np.int16).astype(int) - np.asarray(other).view(np.int16))
        for one, other in zip(got, wanted, strict=True)
    ]
    # In the last bit of f32, before the only rounding, a few may be on its other side.
    assert np.mean(np.concatenate([one.ravel() for one in steps]) != 0) < 0.003
    assert max(one.max() for one in steps) <= 1
