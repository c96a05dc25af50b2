"""Programs of many equal steps, as loops of Python that are traced: chains thousands of operations long."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

import hloforge
from hloforge.pipelines.codegen.generate import generate
from hloforge.pipelines.codegen.lowering import lower
from hloforge.runtime.compile.targets import parse_targets
from tests.pipelines.codegen.whole_programs import compiled

STEPS = 24


def steps(x: jax.Array, w: jax.Array) -> jax.Array:
    """A recurrence that begins with zeros, whose factors are no known numbers however far one looks back."""
    state, memory, made = jnp.zeros_like(x[0]), jnp.zeros_like(x[0]), []
    for row in x:
        gate = jax.nn.sigmoid((state * 0.5) @ (w * 0.25) + row)
        for _ in range(8):
            memory = memory * gate + row
            memory = memory * 0.5 - gate
        state = jnp.tanh(memory) * gate
        made.append(state)
    return jnp.stack(made)


def test_long_chains_stay_with_code_generation() -> None:
    generator = np.random.default_rng(2)
    x, w = generator.normal(size=(STEPS, 3, 16)).astype(np.float32), generator.normal(size=(16, 16)).astype(np.float32)
    session = compiled(hloforge.as_program(jax.jit(steps).lower(x, w))).load()
    np.testing.assert_allclose(session(x, w), jax.jit(steps)(x, w), rtol=2e-5, atol=2e-5)


def rows(x: jax.Array, w: jax.Array) -> jax.Array:
    """Steps that read the rows of an argument from its end, and those of an array that the program makes."""
    both, state, made = x @ w, x[0], []
    for number in reversed(range(len(x))):
        gate = jax.nn.sigmoid(state @ w + both[number]) * x[number, :, ::-1]
        state = jnp.tanh(state @ (w * 0.5) + x[number] * both[number, ::-1]) + gate
        made.append(state)
    return jnp.stack(made)


def test_equal_steps_have_equal_kernels() -> None:
    generator = np.random.default_rng(3)
    w = generator.normal(size=(16, 16)).astype(np.float32)
    counts = []
    for count in (12, 24):
        x = generator.normal(size=(count, 3, 16)).astype(np.float32)
        program = hloforge.as_program(jax.jit(rows).lower(x, w))
        np.testing.assert_allclose(compiled(program).load()(x, w), jax.jit(rows)(x, w), rtol=2e-5, atol=2e-5)
        copy = program.clone()
        lower(copy.module)
        made = generate(copy.module, parse_targets("cpu")[0].machine)
        counts.append(len(made.kernels) + len(made.parts))
    assert counts[1] <= counts[0] + 2
