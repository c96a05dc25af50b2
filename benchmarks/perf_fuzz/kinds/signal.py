"""Signals: Fourier transforms, filters, windows."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.perf_fuzz.arguments import normal, weights
from benchmarks.perf_fuzz.drawing import Draw
from benchmarks.perf_fuzz.registry import Drawn, drawn, kind


def _length(draw: Draw, most: int) -> int:
    """Often a power of two."""
    return draw.pick(1 << draw.size(3, max(4, int(np.log2(most)))), draw.size(8, most), draw.size(8, most))


@kind("signals")
def fourier_transform(draw: Draw) -> Drawn:
    length = _length(draw, 4096)
    rows = max(1, int(draw.work(20, 1e6) / length))
    form = draw.pick("fft", "ifft", "rfft", "rfft")
    dtype = "float32" if form == "rfft" else "complex64"
    return drawn(lambda x: getattr(jnp.fft, form)(x), normal(rows, length, dtype=dtype))


@kind("signals")
def transform_of_images(draw: Draw) -> Drawn:
    height, width = draw.image(2e5)
    return drawn(lambda x: jnp.abs(jnp.fft.fftshift(jnp.fft.fft2(x))), normal(height, width))


@kind("signals", gradient=True)
def spectral_filter(draw: Draw) -> Drawn:
    length = _length(draw, 8192)
    rows = max(1, int(draw.work(20, 5e5) / length))

    def function(x: Any, gain: Any) -> Any:
        return jnp.fft.irfft(jnp.fft.rfft(x) * gain, n=length)

    return drawn(function, normal(rows, length), normal(length // 2 + 1))


@kind("signals")
def spectrogram(draw: Draw) -> Drawn:
    window = draw.pick(64, 128, 256, 400, 512)
    hop = max(1, window // draw.pick(2, 3, 4))
    frames = draw.size(2, max(3, int(3e5 / window)))
    length = window + hop * (frames - 1)
    is_log = draw.chance(0.5)

    def function(x: Any) -> Any:
        places = hop * jnp.arange(frames)[:, None] + jnp.arange(window)[None, :]
        shape = np.hanning(window).astype(np.float32)
        power = jnp.square(jnp.abs(jnp.fft.rfft(x[places] * shape)))
        return jnp.log(power + 1e-2) if is_log else power

    return drawn(function, normal(length))


@kind("signals", gradient=True)
def convolution_in_time(draw: Draw) -> Drawn:
    window, step, dilation = draw.size(2, 25), draw.pick(1, 1, 1, 2), draw.pick(1, 1, 2, 4)
    batch, length, channels, filters = draw.sizes(draw.products("float32") / (8 * window), 4)
    length = max(length, 3 * window)
    padding = draw.pick("SAME", [((window - 1) * dilation, 0)])

    def function(x: Any, kernel: Any) -> Any:
        y = jax.lax.conv_general_dilated(
            x, kernel, (step,), padding, rhs_dilation=(dilation,), dimension_numbers=("NWC", "WIO", "NWC")
        )
        return jax.nn.relu(y)

    return drawn(
        function, normal(batch, length, channels), weights(window, channels, filters, inputs=window * channels)
    )


@kind("signals", gradient=True)
def filter_in_time(draw: Draw) -> Drawn:
    """jnp.convolve or correlate of one signal."""
    taps, size = draw.size(2, 64), draw.size(80, 100_000)
    operation, mode = draw.pick(jnp.convolve, jnp.correlate), draw.pick("same", "valid", "full")
    return drawn(lambda x, h: operation(x, h, mode=mode), normal(size), normal(taps))


@kind("signals")
def autocorrelation(draw: Draw) -> Drawn:
    rows, length = draw.size(1, 40), draw.size(16, 5000)
    lags = draw.size(2, 14)
    is_fast = draw.chance(0.5)

    def function(x: Any) -> Any:
        x = x - x.mean(-1, keepdims=True)
        if is_fast:
            spectrum = jnp.fft.rfft(x, n=2 * length)
            return jnp.fft.irfft(spectrum * jnp.conj(spectrum))[:, :lags]
        return jnp.stack([jnp.sum(x[:, : length - lag] * x[:, lag:], -1) for lag in range(lags)], axis=1)

    return drawn(function, normal(rows, length))


@kind("signals", gradient=True)
def resampling(draw: Draw) -> Drawn:
    """Upsampled by zeros, filtered, decimated."""
    up, down, taps = draw.size(1, 4), draw.size(1, 5), draw.size(5, 40)
    size, rows = draw.size(50, 30_000), draw.size(1, 8)

    def function(x: Any, h: Any) -> Any:
        return jax.lax.conv_general_dilated(
            x[:, None, :], h[None, None, :], (down,), [(taps, taps)], lhs_dilation=(up,)
        )[:, 0]

    return drawn(function, normal(rows, size), normal(taps))


@kind("signals", gradient=True)
def cosine_transform(draw: Draw) -> Drawn:
    """Of blocks of an image, as JPEG has it."""
    size = draw.pick(4, 8, 8, 16)
    rows, columns = draw.image(1e6 / size**2, least=2)
    place = np.arange(size)
    basis = np.cos(np.pi * (2 * place[None, :] + 1) * place[:, None] / (2 * size)).astype(np.float32)

    def function(image: Any) -> Any:
        blocks = image.reshape(rows, size, columns, size)
        return jnp.einsum("ui,ribj,vj->rbuv", basis, blocks, basis)

    return drawn(function, normal(rows * size, columns * size))


@kind("signals", gradient=True)
def polynomial(draw: Draw) -> Drawn:
    dtype, degree = draw.precise_type(), draw.size(2, 14)
    shape = draw.shape(draw.pick(1, 2), 3e6)

    def function(x: Any, factors: Any) -> Any:
        total = jnp.zeros_like(x)
        for place in range(degree):
            total = total * x + factors[place]
        return total

    return drawn(function, normal(*shape, dtype=dtype, scale=0.5), normal(degree, dtype=dtype))


@kind("signals")
def envelope(draw: Draw) -> Drawn:
    """Hilbert's transform, and the phase."""
    length = _length(draw, 4096)
    rows = max(1, int(draw.work(20, 2e5) / length))

    def function(x: Any) -> Any:
        steps = np.zeros(length, np.float32)
        steps[0] = 1
        steps[1 : (length + 1) // 2] = 2
        if length % 2 == 0:
            steps[length // 2] = 1
        return jnp.abs(jnp.fft.ifft(jnp.fft.fft(x) * steps))

    return drawn(function, normal(rows, length))


@kind("signals", gradient=True)
def windowed_frames(draw: Draw) -> Drawn:
    """Overlapping frames by gathers, windowed, and added up again."""
    window = draw.pick(16, 32, 50, 64, 128)
    hop, frames = window // 2, draw.size(2, 2000)
    length = window + hop * (frames - 1)

    def function(x: Any) -> Any:
        places = hop * jnp.arange(frames)[:, None] + jnp.arange(window)[None, :]
        shape = np.hamming(window).astype(np.float32)
        return jnp.zeros(length).at[places].add(x[places] * shape)

    return drawn(function, normal(length))


@kind("signals")
def modulation(draw: Draw) -> Drawn:
    """Complex carriers: mixed down, filtered by sums, magnitude and angle."""
    rows, length = draw.shape(2, 1e6)
    block = draw.pick(2, 4, 8)
    length = block * max(1, length // block)
    rate = draw.number(0.01, 3.0)

    def function(x: Any) -> Any:
        carrier = jnp.exp(-1j * rate * jnp.arange(length))
        mixed = (x * carrier).reshape(rows, length // block, block).sum(-1)
        return jnp.abs(mixed), mixed * jnp.conj(jnp.roll(mixed, 1, -1))

    return drawn(function, normal(rows, length, dtype="complex64"))
