"""``stablehlo.fft`` of all kinds, as code of our own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hloforge
from hloforge.runtime.native.calls import native_program
from tests.pipelines.codegen.jax_programs import check, normal
from tests.pipelines.codegen.whole_programs import compiled


@pytest.mark.parametrize("n", [1, 2, 8, 17, 100, 1024])
def test_one_dimension(n: int) -> None:
    check(lambda x: jnp.fft.fft(x), normal(5, n, dtype=np.complex64))


@pytest.mark.parametrize("n", [2, 7, 1000])
def test_real_numbers_and_back(n: int) -> None:
    check(lambda x: jnp.fft.rfft(x), normal(5, n))
    check(lambda x: jnp.fft.irfft(x, n=n), normal(5, n // 2 + 1, dtype=np.complex64))


_SEVERAL: dict[str, tuple[Callable[..., Any], Sequence[int], Any]] = {
    "fft2": (jnp.fft.fft2, (3, 8, 12), np.complex64),
    "ifftn": (jnp.fft.ifftn, (4, 6, 5), np.complex64),
    "rfft2": (jnp.fft.rfft2, (3, 8, 12), np.float32),
    "rfftn": (jnp.fft.rfftn, (4, 6, 9), np.float32),
    "irfft2": (jnp.fft.irfft2, (3, 8, 7), np.complex64),
    "irfftn": (jnp.fft.irfftn, (4, 6, 5), np.complex64),
    "f64": (jnp.fft.fft2, (3, 8, 12), np.complex128),
    "nothing": (jnp.fft.fft, (0, 8), np.complex64),
}


@pytest.mark.parametrize("name", _SEVERAL)
def test_several_dimensions(name: str) -> None:
    function, shape, dtype = _SEVERAL[name]
    check(lambda x: function(x), normal(*shape, dtype=dtype))


def test_a_transform_in_a_loop() -> None:
    def smoothed(x: Any) -> Any:
        spectrum = jnp.fft.rfft(x)
        return jnp.fft.irfft(spectrum * (jnp.arange(spectrum.shape[-1]) < 5), n=x.shape[-1])

    def repeated(x: Any) -> Any:
        return jax.lax.fori_loop(0, 3, lambda _, y: smoothed(y) + 1, x)

    check(repeated, normal(4, 30))


@pytest.mark.parametrize(
    ("function", "element"), [(jnp.fft.fft2, np.complex64), (jnp.fft.rfft2, np.float32), (jnp.fft.irfft2, np.complex64)]
)
def test_each_dimension_of_a_transform_is_shared_out(function: Callable[..., Any], element: Any) -> None:
    program = hloforge.as_program(jax.jit(function).lower(np.zeros((512, 512), element)))
    native = native_program(compiled(program).vmfb)
    assert native is not None
    assert len([part for part in native.schedule.parts if part.threads > 1]) >= 2
