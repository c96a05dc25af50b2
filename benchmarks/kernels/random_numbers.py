"""Random numbers and Fourier transforms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.cases import Body, Case, kernel, lowered
from hloforge import ops


def bits(algorithm: str) -> Body:
    """The bits alone: they follow from the state in every engine."""
    return lambda nn: ops.rng_bit_generator(algorithm, nn.new("u64[2]"), "u32[1048576]")[1]


def uniform(nn: Any) -> Any:
    return ops.rng_uniform(0.0, 1.0, "f32[1048576]")


def normal() -> Callable[[Any], Any]:
    import jax

    return lambda key: jax.random.normal(jax.random.wrap_key_data(key, impl="threefry2x32"), (1 << 20,))


def fft(*dims: int, axes: int = 1) -> Body:
    return lambda nn: nn.fft(nn.new(f"c64[{','.join(map(str, dims))}]"), axes)


CASES: tuple[Case, ...] = (
    kernel("Threefry bits 1,048,576", bits("THREE_FRY"), eager=None),
    kernel("Philox bits 1,048,576", bits("PHILOX"), eager=None),
    kernel("uniform numbers 1,048,576", uniform, eager=None, compared=False),
    lowered("jax.random.normal 1,048,576", "kernels", normal, ["u32[2]"]),
    kernel("FFT 1,000", fft(1000)),
    kernel("FFT 1,024", fft(1024)),
    kernel("FFT 4,099", fft(4099)),
    kernel("FFT 64×1,000", fft(64, 1000)),
    kernel("FFT 64×1,024", fft(64, 1024)),
    kernel("FFT 64×4,099", fft(64, 4099)),
    kernel("FFT 256²", fft(256, 256, axes=2)),
)
