"""Random bits and distributions of JAX's own generators, and Fourier transforms."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from tests.sweep.case import FLOATS, INTEGERS, Case, array, case

_KEY = np.array([17, 42], np.uint32)
_SHAPES: tuple[tuple[int, ...], ...] = ((), (1,), (7,), (20, 20), (3, 0), (129,))


def cases() -> Iterator[Case]:
    for shape in _SHAPES:
        for dtype in ("uint8", "uint16", "uint32", "uint64"):
            yield case(f"bits/{dtype}{list(shape)}", _bits(shape, dtype), _KEY)
        for dtype in FLOATS:
            yield case(f"uniform/{dtype}{list(shape)}", _draw(jax.random.uniform, shape, dtype), _KEY)
            yield case(f"normal/{dtype}{list(shape)}", _draw(jax.random.normal, shape, dtype), _KEY)
        for algorithm in ("RNG_THREE_FRY", "RNG_PHILOX", "RNG_DEFAULT"):
            for dtype in ("uint32", "uint64", "uint8", "uint16"):
                key = np.array([1, 2], np.uint64) if algorithm == "RNG_THREE_FRY" else np.arange(1, 5, dtype=np.uint32)
                yield case(f"generator_{algorithm}/{dtype}{list(shape)}", _generator(algorithm, shape, dtype), key)
    draws: dict[str, Callable[[Any], Any]] = {
        "bernoulli": lambda k: jax.random.bernoulli(k, 0.3, (33,)),
        "categorical": lambda k: jax.random.categorical(k, jnp.arange(5.0), shape=(33,)),
        "choice": lambda k: jax.random.choice(k, 9, (4,), replace=False),
        "permutation": lambda k: jax.random.permutation(k, 33),
        "exponential": lambda k: jax.random.exponential(k, (33,), jnp.float32),
        "gumbel": lambda k: jax.random.gumbel(k, (33,), jnp.float32),
        "laplace": lambda k: jax.random.laplace(k, (33,), jnp.float32),
        "cauchy": lambda k: jax.random.cauchy(k, (33,), jnp.float64),
        "truncated_normal": lambda k: jax.random.truncated_normal(k, -1, 2, (33,), jnp.float32),
        "gamma": lambda k: jax.random.gamma(k, 2.5, (9,), jnp.float32),
        "beta": lambda k: jax.random.beta(k, 2.5, 0.5, (9,), jnp.float32),
        "poisson": lambda k: jax.random.poisson(k, 3.0, (9,)),
        "dirichlet": lambda k: jax.random.dirichlet(k, jnp.ones(4, jnp.float32), (3,)),
        "split": lambda k: jax.random.split(k, 5),
        "fold_in": lambda k: jax.random.fold_in(k, 9),
        "orthogonal": lambda k: jax.random.rademacher(k, (9,)),
        "t": lambda k: jax.random.t(k, 3.0, (9,), jnp.float32),
        "complex": lambda k: jax.random.normal(k, (9,), jnp.complex64),
    }
    for name, function in draws.items():
        yield case(f"distributions/{name}", function, _KEY)
    for dtype in (*INTEGERS,):
        yield case(f"randint/{dtype}", _randint(dtype), _KEY)
    yield from _transforms()


def _bits(shape: Any, dtype: str) -> Callable[[Any], Any]:
    return lambda key: jax.random.bits(key, shape, getattr(jnp, dtype))


def _draw(function: Callable[..., Any], shape: Any, dtype: str) -> Callable[[Any], Any]:
    return lambda key: function(key, shape, getattr(jnp, dtype))


def _generator(algorithm: str, shape: Any, dtype: str) -> Callable[[Any], Any]:
    return lambda key: lax.rng_bit_generator(key, shape, getattr(jnp, dtype), getattr(lax.RandomAlgorithm, algorithm))


def _randint(dtype: str) -> Callable[[Any], Any]:
    return lambda key: jax.random.randint(key, (33,), 0, 100, getattr(jnp, dtype))


def _transforms() -> Iterator[Case]:
    for dims, lengths in (
        ((8,), (8,)),
        ((3, 12), (12,)),
        ((2, 5, 6), (5, 6)),
        ((4, 3, 5, 2), (3, 5, 2)),
        ((17,), (17,)),
        ((1,), (1,)),
        ((0, 4), (4,)),
    ):
        for real, complex_ in (("float32", "complex64"), ("float64", "complex128")):
            for kind in ("FFT", "IFFT"):
                yield case(f"fft/{kind}_{complex_}{list(dims)}", _fft(kind, lengths), array(*dims), dtype=complex_)
            yield case(f"fft/RFFT_{real}{list(dims)}", _fft("RFFT", lengths), array(*dims), dtype=real)
            half = (*dims[:-1], dims[-1] // 2 + 1)
            yield case(f"fft/IRFFT_{complex_}{list(dims)}", _fft("IRFFT", lengths), array(*half), dtype=complex_)


def _fft(kind: str, lengths: Any) -> Callable[[Any], Any]:
    return lambda x: lax.fft(x, getattr(lax.FftType, kind), lengths)
