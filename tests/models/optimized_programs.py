"""Random programs of JAX as XLA leaves them: optimized HLO text (fusions, calls, its own layouts), compiled again.

``python -m tests.models.optimized_programs 0 200`` runs the seeds 0 to 199. Expected values are XLA's, of the
executable that the text was taken from.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import hloforge
from hloforge.runtime.reference.compare import compare
from hloforge.runtime.reference.correctness import second_opinions

Made: TypeAlias = tuple[Callable[..., Any], tuple[Any, ...]]

_UNARY: tuple[Callable[..., Any], ...] = (
    jnp.sin, jnp.tanh, jnp.exp, jnp.sqrt, jnp.floor, jnp.sinh, jnp.cosh, jax.nn.gelu, jax.nn.softmax, jax.nn.silu,
    jax.scipy.special.erf, jax.scipy.special.gammaln, lambda x: jnp.log1p(jnp.abs(x)), lambda x: jnp.cumsum(x, 0),
    lambda x: jnp.sort(x, -1), lambda x: x - x.mean(-1, keepdims=True), lambda x: x[::-1], lambda x: jnp.roll(x, 1, 0),
)  # fmt: skip
# The number of a function whose value changes by more than bf16 rounds, near its poles.
_GAMMA = 11


class _Draw:
    """Random sizes and arrays of a seed."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def sizes(self, count: int, least: int = 2, end: int = 24) -> list[int]:
        return [int(size) for size in self.rng.integers(least, end, count)]

    def floats(self, *sizes: int) -> Any:
        return self.rng.normal(size=sizes).astype(np.float32)

    def halves(self, *sizes: int) -> Any:
        return self.floats(*sizes).astype(jnp.bfloat16)

    def complexes(self, *sizes: int) -> Any:
        return self.floats(*sizes) + 1j * self.floats(*sizes)

    def integers(self, end: int, *sizes: int) -> Any:
        return self.rng.integers(0, end, sizes).astype(np.int32)


def _chain(draw: _Draw) -> Made:
    chosen = [_UNARY[number] for number in draw.rng.integers(0, len(_UNARY), 3)]

    def function(x: Any) -> Any:
        for one in chosen:
            x = jnp.clip(one(x), -8, 8)
        return x, x.sum(0), jnp.argmax(x, -1), x.max()

    return function, (draw.floats(*draw.sizes(2)),)


def _gradient(draw: _Draw) -> Made:
    n, a, b, c = draw.sizes(4)
    loss = jax.value_and_grad(lambda w, x: (jax.nn.softmax(jnp.tanh(x @ w[0]) @ w[1]) ** 2).mean())
    return lambda v, w, x: loss([v, w], x), (draw.floats(a, b), draw.floats(b, c), draw.floats(n, a))


def _attention(draw: _Draw) -> Made:
    batch, heads, time, width = draw.sizes(4, 1, 9)

    def function(q: Any, k: Any, v: Any) -> Any:
        scores = jnp.einsum("bhtd,bhsd->bhts", q, k) / np.sqrt(width)
        scores = jnp.where(jnp.tril(jnp.ones((time, time), bool)), scores, -1e9)
        return jnp.einsum("bhts,bhsd->bhtd", jax.nn.softmax(scores), v)

    return function, tuple(draw.floats(batch, heads, time, width) for _ in range(3))


def _convolution(draw: _Draw) -> Made:
    batch, inputs, outputs, window = draw.sizes(4, 1, 4)
    (size,), (stride,) = draw.sizes(1, 8, 17), draw.sizes(1, 1, 3)

    def function(x: Any, w: Any) -> Any:
        y = lax.conv_general_dilated(x, w, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        return lax.reduce_window(jax.nn.relu(y), -np.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")

    arguments = draw.floats(batch, size, size, inputs), draw.floats(window, window, inputs, outputs)
    if draw.rng.random() < 0.5:
        return jax.grad(lambda x, w: (function(x, w) ** 2).sum(), (0, 1)), arguments
    return function, arguments


def _scan(draw: _Draw) -> Made:
    n, m, steps = draw.sizes(3, 2, 16)

    def function(x: Any, w: Any, h: Any) -> Any:
        return lax.scan(lambda h, y: ((new := jnp.tanh(y @ w + h)), new.sum(-1)), h, x)

    return function, (draw.floats(steps, n, m), draw.floats(m, m) * np.float32(0.3), draw.floats(n, m))


def _while(draw: _Draw) -> Made:
    def function(x: Any) -> Any:
        return lax.while_loop(
            lambda carry: (carry[0] < 20) & (carry[1].sum() < 1e3), lambda c: (c[0] + 1, c[1] * 1.25 + 1), (0, x)
        )

    return function, (draw.floats(*draw.sizes(1)),)


def _tables(draw: _Draw) -> Made:
    n, m, count = draw.sizes(3, 3)

    def function(table: Any, index: Any, update: Any) -> Any:
        return table[index], table.at[index].add(update), table.at[index, 0].max(update[:, 0])

    return function, (draw.floats(n, m), draw.integers(n, count), draw.floats(count, m))


def _linear_algebra(draw: _Draw) -> Made:
    (n,) = draw.sizes(1, 2, 12)

    def function(a: Any, b: Any) -> Any:
        square = a @ a.T + jnp.eye(n) * n
        return jnp.linalg.cholesky(square), jnp.linalg.solve(square, b), jnp.linalg.slogdet(square)

    return function, (draw.floats(n, n), draw.floats(n, 3))


def _transform(draw: _Draw) -> Made:
    n, m = draw.sizes(2, 2, 40)
    return lambda x: (jnp.abs(jnp.fft.rfft(x)), jnp.fft.irfft(jnp.fft.rfft(x), n=m)), (draw.floats(n, m),)


def _integers(draw: _Draw) -> Made:
    def function(a: Any, b: Any) -> Any:
        return a // jnp.maximum(b, 1), a % 7, a << 2, a ^ b, jnp.cumsum(a, 1), (a > b).sum(0), lax.top_k(a, 2)

    n, m = draw.sizes(2)
    return function, (draw.integers(100, n, m), draw.integers(50, n, m))


def _random(draw: _Draw) -> Made:
    (n,) = draw.sizes(1, 3, 40)

    def function(key: Any) -> Any:
        return jax.random.normal(key, (n,)), jax.random.randint(key, (n,), 0, 9), jax.random.permutation(key, n)

    return function, (np.array([0, n], np.uint32),)


def _branches(draw: _Draw) -> Made:
    def function(x: Any, number: Any) -> Any:
        return lax.switch(number, [jnp.sin, lambda x: x @ x.T @ x, lambda x: x.at[0].set(1.0)], x)

    return function, (draw.floats(*draw.sizes(2)), np.int32(draw.rng.integers(-1, 4)))


def _parts(draw: _Draw) -> Made:
    def function(x: Any) -> Any:
        return jnp.pad(x, ((1, 2), (0, 3)), mode="edge"), jnp.diff(x, axis=0), jnp.tile(x, (2, 1)), x[1:, ::2]

    return function, (draw.floats(*draw.sizes(2, 3)),)


def _halves(draw: _Draw) -> Made:
    """Inference and training of small parts of networks in bf16."""
    n, a, b, kind = *draw.sizes(3), int(draw.rng.integers(0, 4))

    def norm(x: Any) -> Any:
        wide = x.astype(jnp.float32)
        return (wide * lax.rsqrt((wide**2).mean(-1, keepdims=True) + 1e-5)).astype(x.dtype)

    def layer(x: Any, w: Any, v: Any) -> Any:
        return norm(x) + jax.nn.gelu(norm(x) @ w) @ v

    def attention(x: Any, w: Any, v: Any) -> Any:
        return jax.nn.softmax((x @ w) @ (x @ w).T / np.sqrt(b)) @ x, (w @ v).sum(0)

    def chain(x: Any, w: Any, v: Any) -> Any:
        y = x
        for number in draw_of_chain:
            y = jnp.clip(_UNARY[number](y), -8, 8)
        return y, jnp.cumsum(w, 1), jnp.maximum(v, 0).mean(1)

    draw_of_chain = draw.rng.choice([n for n in range(len(_UNARY)) if n != _GAMMA], 3)
    loss = jax.value_and_grad(lambda w, x, v: (layer(x, w, v).astype(jnp.float32) ** 2).mean())
    function = (layer, attention, chain, lambda x, w, v: loss(w, x, v))[kind]
    return function, (draw.halves(n, a), draw.halves(a, b), draw.halves(b, a))


def _complexes(draw: _Draw) -> Made:
    """Elementwise functions, products, transforms, parts and sums of complex numbers."""
    unary = (jnp.exp, jnp.log, jnp.sin, jnp.tanh, jnp.sqrt, jnp.log1p, jnp.expm1, jnp.square, jnp.conj, jnp.sinh)
    chosen = [unary[number] for number in draw.rng.integers(0, len(unary), 2)]
    n, m = draw.sizes(2)

    def function(x: Any, y: Any) -> Any:
        z = x
        for one in chosen:
            z = one(z)
            z = z / (1 + jnp.abs(z))
        return z, x @ y, jnp.fft.ifft(x * z), jnp.angle(z), x.sum(0), jnp.prod(y, 1), y.real > y.imag, x**2 / (y.T + 2)

    return function, (draw.complexes(n, m), draw.complexes(m, n))


KINDS: tuple[Callable[[_Draw], Made], ...] = (
    _chain, _gradient, _attention, _convolution, _scan, _while, _tables, _linear_algebra, _transform, _integers,
    _random, _branches, _parts, _halves, _complexes,
)  # fmt: skip


def _widened(array: Any) -> Any:
    """Floats as f64, complex numbers as c128; others as they are."""
    if jnp.issubdtype(array.dtype, jnp.floating):
        return array.astype(np.float64)
    return array.astype(np.complex128) if array.dtype.kind == "c" else array


def check(seed: int) -> None:
    """Compile the optimized text of a seed's program and compare its results. Raises AssertionError, or hloforge's."""
    function, arguments = KINDS[seed % len(KINDS)](_Draw(seed))
    compiled = jax.jit(function).lower(*arguments).compile()
    want = [np.asarray(leaf) for leaf in jax.tree.leaves(compiled(*arguments))]
    text = str(compiled.as_text()).encode()
    call = hloforge.load(hloforge.compile(text))
    got = [np.asarray(leaf) for leaf in jax.tree.leaves(call(*arguments))]
    assert [(x.shape, x.dtype) for x in got] == [(x.shape, x.dtype) for x in want]
    report = compare(tuple(got), tuple(want))
    if not report.agrees:
        # Chains of functions amplify roundings: the function in f64 says which of the engines is the nearer.
        with jax.enable_x64(True):
            truth = jax.tree.leaves(jax.jit(function)(*map(_widened, arguments)))
        report = second_opinions(report, tuple(got), tuple(want), tuple(map(np.asarray, truth)))
    assert report.agrees, report.text()


def main(first: int, end: int) -> None:
    """Check some seeds and say which do not agree."""
    for seed in range(first, end):
        try:
            check(seed)
        except (AssertionError, hloforge.Error) as error:
            print(f"{seed} ({KINDS[seed % len(KINDS)].__name__}): {error}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))
