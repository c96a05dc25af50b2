"""Operators on images, and convolutions."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.perf_fuzz.arguments import integers, normal, uniform, weights
from benchmarks.perf_fuzz.drawing import Draw
from benchmarks.perf_fuzz.kinds.dense import activation
from benchmarks.perf_fuzz.registry import Drawn, drawn, kind

_LAYOUT = ("NHWC", "HWIO", "NHWC")


@kind("images", gradient=True)
def resize(draw: Draw) -> Drawn:
    channels = draw.pick(1, 3, 3, 4, 16)
    height, width = draw.image(1e6 / channels)
    to = draw.image(1e6 / channels)
    method = draw.pick("linear", "linear", "cubic", "nearest", "lanczos3")
    smooth = draw.chance(0.5)
    return drawn(
        lambda x: jax.image.resize(x, (*to, channels), method, antialias=smooth), uniform(height, width, channels)
    )


@kind("images", gradient=True)
def bilinear_upsampling(draw: Draw) -> Drawn:
    """By gathers, as written by hand."""
    channels, factor = draw.pick(1, 3, 8), draw.number(1.2, 3.0)
    height, width = draw.image(3e5 / channels)
    to = int(height * factor), int(width * factor)

    def function(image: Any) -> Any:
        y = jnp.linspace(0.0, height - 1.0, to[0])
        x = jnp.linspace(0.0, width - 1.0, to[1])
        y0, x0 = jnp.floor(y).astype(jnp.int32), jnp.floor(x).astype(jnp.int32)
        y1, x1 = jnp.minimum(y0 + 1, height - 1), jnp.minimum(x0 + 1, width - 1)
        dy, dx = (y - y0)[:, None, None], (x - x0)[None, :, None]
        top = image[y0][:, x0] * (1 - dx) + image[y0][:, x1] * dx
        bottom = image[y1][:, x0] * (1 - dx) + image[y1][:, x1] * dx
        return top * (1 - dy) + bottom * dy

    return drawn(function, uniform(height, width, channels))


@kind("images", gradient=True)
def warp(draw: Draw) -> Drawn:
    height, width = draw.image(3e5)
    order, mode = draw.pick(1, 1, 0), draw.pick("constant", "nearest", "mirror")
    angle, shift = draw.number(-1.0, 1.0), draw.number(-5.0, 5.0)

    def function(image: Any) -> Any:
        y, x = jnp.meshgrid(jnp.arange(height) - height / 2, jnp.arange(width) - width / 2, indexing="ij")
        sine, cosine = np.float32(np.sin(angle)), np.float32(np.cos(angle))
        places = [cosine * y - sine * x + height / 2 + shift, sine * y + cosine * x + width / 2]
        return jax.scipy.ndimage.map_coordinates(image, places, order=order, mode=mode)

    return drawn(function, uniform(height, width))


@kind("images", gradient=True)
def pooling(draw: Draw) -> Drawn:
    channels, window = draw.size(1, 64), draw.pick(2, 2, 3, 3, 5)
    step, padding = draw.pick(1, 2, window), draw.pick("SAME", "VALID")
    height, width = draw.image(4e6 / channels)
    is_max = draw.chance(0.5)

    def function(x: Any) -> Any:
        sizes, steps = (window, window, 1), (step, step, 1)
        if is_max:
            return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, sizes, steps, padding)
        return jax.lax.reduce_window(x, 0.0, jax.lax.add, sizes, steps, padding) / window**2

    return drawn(function, normal(height, width, channels))


def _convolution(draw: Draw, products: float, step: int, window: int) -> tuple[int, int, int, int, int]:
    """Batch, height, width, channels, filters."""
    batch, channels, filters = draw.size(1, 4), draw.size(1, 96), draw.size(1, 96)
    height, width = draw.image(products * step**2 / (batch * channels * filters * window**2), least=8)
    return batch, height, width, channels, filters


@kind("images", gradient=True)
def convolution(draw: Draw) -> Drawn:
    dtype, window = draw.pick("float32", "float32", "float32", "bfloat16"), draw.pick(1, 3, 3, 5, 7)
    padding, dilation = draw.pick("SAME", "VALID"), draw.pick(1, 1, 1, 2)
    padding = "SAME" if dilation * (window - 1) >= 8 else padding
    batch, height, width, channels, filters = _convolution(draw, draw.products(dtype), 1, window)
    act = activation(draw)

    def function(x: Any, kernel: Any, bias: Any) -> Any:
        y = jax.lax.conv_general_dilated(
            x, kernel, (1, 1), padding, rhs_dilation=(dilation, dilation), dimension_numbers=_LAYOUT
        )
        return act(y + bias)

    return drawn(
        function,
        normal(batch, height, width, channels, dtype=dtype),
        weights(window, window, channels, filters, dtype=dtype, inputs=window**2 * channels),
        normal(filters, dtype=dtype),
    )


@kind("images", gradient=True)
def strided_convolution(draw: Draw) -> Drawn:
    window, step = draw.pick(3, 3, 5, 7), draw.pick(2, 2, 3, 4)
    batch, height, width, channels, filters = _convolution(draw, draw.products("float32"), step, window)
    is_first = draw.chance(0.3)
    layout = ("NCHW", "OIHW", "NCHW") if is_first else _LAYOUT

    def function(x: Any, kernel: Any) -> Any:
        return jax.nn.relu(jax.lax.conv_general_dilated(x, kernel, (step, step), "SAME", dimension_numbers=layout))

    inputs = window**2 * channels
    if is_first:
        return drawn(
            function,
            normal(batch, channels, height, width),
            weights(filters, channels, window, window, inputs=inputs),
        )
    return drawn(
        function, normal(batch, height, width, channels), weights(window, window, channels, filters, inputs=inputs)
    )


@kind("images", gradient=True)
def depthwise_convolution(draw: Draw) -> Drawn:
    window, step, channels = draw.pick(3, 3, 5, 7), draw.pick(1, 1, 2), draw.size(2, 200)
    height, width = draw.image(1.5e7 / (channels * window**2 * draw.scale))

    def function(x: Any, kernel: Any, bias: Any) -> Any:
        y = jax.lax.conv_general_dilated(
            x, kernel, (step, step), "SAME", dimension_numbers=_LAYOUT, feature_group_count=channels
        )
        return jnp.clip(y + bias, 0, 6)

    return drawn(
        function,
        normal(draw.size(1, 3), height, width, channels),
        weights(window, window, 1, channels, inputs=window**2),
        normal(channels),
    )


@kind("images", gradient=True)
def transposed_convolution(draw: Draw) -> Drawn:
    window, step = draw.pick((2, 2), (3, 2), (4, 2), (5, 3))
    batch, height, width, channels, filters = _convolution(draw, draw.products("float32") / 2, 1, window)
    return drawn(
        lambda x, kernel: jax.lax.conv_transpose(x, kernel, (step, step), "SAME"),
        normal(batch, height, width, channels),
        weights(window, window, channels, filters, inputs=window**2 * channels),
    )


@kind("images", gradient=True)
def separable_blur(draw: Draw) -> Drawn:
    height, width = draw.image(1e6, least=12)
    radius, deviation = draw.size(1, 5), draw.number(0.7, 3.0)
    weights_of = np.exp(-0.5 * (np.arange(-radius, radius + 1) / deviation) ** 2)
    weights_of = (weights_of / weights_of.sum()).astype(np.float32)

    def function(image: Any) -> Any:
        for axis in (0, 1):
            wide = jnp.pad(image, [(radius, radius) if place == axis else (0, 0) for place in (0, 1)], mode="reflect")
            image = sum(
                float(weight) * jax.lax.slice_in_dim(wide, place, place + image.shape[axis], axis=axis)
                for place, weight in enumerate(weights_of)
            )
        return image

    return drawn(function, uniform(height, width))


@kind("images")
def histogram_of_image(draw: Draw) -> Drawn:
    height, width = draw.image(3e5)
    is_equalized = draw.chance(0.5)

    def function(image: Any) -> Any:
        counts = jnp.zeros(256, jnp.int32).at[image.astype(jnp.int32)].add(1)
        if not is_equalized:
            return counts
        shares = jnp.cumsum(counts).astype(jnp.float32) / (height * width)
        return shares[image.astype(jnp.int32)]

    return drawn(function, integers(height, width, high=256, dtype="uint8"))


@kind("images", gradient=True)
def edges(draw: Draw) -> Drawn:
    height, width = draw.image(2e6)

    def function(image: Any) -> Any:
        kernel = np.array([[1, 0, -1], [2, 0, -2], [1, 0, -1]], np.float32)
        kernels = jnp.stack([jnp.asarray(kernel), jnp.asarray(kernel.T)])[:, None]
        slopes = jax.lax.conv(image[None, None], kernels, (1, 1), "SAME")[0]
        return jnp.sqrt(jnp.sum(jnp.square(slopes), axis=0) + 1e-6)

    return drawn(function, uniform(height, width))


@kind("images")
def colours(draw: Draw) -> Drawn:
    """From bytes to normalized numbers in another colour space."""
    height, width = draw.image(1e6)
    matrix = np.array([[0.299, 0.587, 0.114], [-0.169, -0.331, 0.5], [0.5, -0.419, -0.081]], np.float32)
    is_gamma = draw.chance(0.5)

    def function(image: Any) -> Any:
        x = image.astype(jnp.float32) / 255
        if is_gamma:
            x = jnp.where(x <= 0.04045, x / 12.92, ((x + 0.055) / 1.055) ** 2.4)
        y = jnp.einsum("hwc,dc->hwd", x, matrix) + np.array([0, 0.5, 0.5], np.float32)
        return (y - 0.45) / 0.22

    return drawn(function, integers(height, width, 3, high=256, dtype="uint8"))


@kind("images")
def median_filter(draw: Draw) -> Drawn:
    height, width = draw.image(1e5)
    dtype = draw.pick("float32", "uint8")

    def function(image: Any) -> Any:
        shifted = [jnp.roll(image, (a, b), (0, 1)) for a in (-1, 0, 1) for b in (-1, 0, 1)]
        return jnp.sort(jnp.stack(shifted), axis=0)[4]

    return drawn(function, integers(height, width, high=256, dtype=dtype))


@kind("images")
def box_filter(draw: Draw) -> Drawn:
    """By sums over both axes."""
    height, width = draw.image(1e6, least=16)
    size = draw.size(2, 12)

    def function(image: Any) -> Any:
        sums = jnp.pad(jnp.cumsum(jnp.cumsum(image, 0), 1), ((1, 0), (1, 0)))
        total = sums[size:, size:] - sums[:-size, size:] - sums[size:, :-size] + sums[:-size, :-size]
        return total // size**2

    return drawn(function, integers(height, width, high=256))


@kind("images", gradient=True)
def patches(draw: Draw) -> Drawn:
    """Of a vision transformer; or pixels shuffled into channels."""
    size, channels, batch = draw.pick(2, 4, 7, 8, 16), draw.pick(1, 3, 12), draw.size(1, 8)
    rows, columns = draw.image(3e6 / (size**2 * channels * batch), least=2)
    width = draw.size(8, 128)

    def function(image: Any, kernel: Any) -> Any:
        split = image.reshape(batch, rows, size, columns, size, channels).transpose(0, 1, 3, 2, 4, 5)
        return split.reshape(batch, rows * columns, -1) @ kernel

    return drawn(function, normal(batch, rows * size, columns * size, channels), weights(size**2 * channels, width))


@kind("images", gradient=True)
def structural_similarity(draw: Draw) -> Drawn:
    height, width = draw.image(4e5, least=12)

    def function(a: Any, b: Any) -> Any:
        def mean(x: Any) -> Any:
            return jax.lax.reduce_window(x, 0.0, jax.lax.add, (7, 7), (1, 1), "VALID") / 49

        p, q = mean(a), mean(b)
        va, vb, cov = mean(a * a) - p * p, mean(b * b) - q * q, mean(a * b) - p * q
        return jnp.mean((2 * p * q + 1e-2) * (2 * cov + 3e-2) / ((p * p + q * q + 1e-2) * (va + vb + 3e-2)))

    return drawn(function, uniform(height, width), uniform(height, width))


@kind("images", batch=False)
def crops(draw: Draw) -> Drawn:
    """Augmentation: crops at places of each image, some mirrored."""
    batch, channels = draw.size(1, 32), draw.pick(1, 3)
    height, width = draw.image(2e6 / (batch * channels), least=12)
    crop = max(4, int(height * 0.8)), max(4, int(width * 0.7))

    def function(images: Any, places: Any, mirrored: Any) -> Any:
        def one(image: Any, place: Any, flip: Any) -> Any:
            part = jax.lax.dynamic_slice(image, (place[0], place[1], 0), (*crop, channels))
            return jnp.where(flip == 1, part[:, ::-1], part)

        return jax.vmap(one)(images, places, mirrored)

    return drawn(
        function,
        uniform(batch, height, width, channels),
        integers(batch, 2, high=max(1, min(height - crop[0], width - crop[1]))),
        integers(batch, high=2),
    )


@kind("images", gradient=True)
def residual_block(draw: Draw) -> Drawn:
    batch, channels = draw.size(1, 3), draw.size(4, 48)
    height, width = draw.image(min(1e4, 1e8 / (batch * channels**2 * 18)), least=6)

    def norm(x: Any, scale: Any) -> Any:
        return (x - x.mean((0, 1, 2))) * jax.lax.rsqrt(x.var((0, 1, 2)) + 1e-3) * scale

    def function(x: Any, first: Any, second: Any, a: Any, b: Any) -> Any:
        y = jax.nn.relu(norm(jax.lax.conv_general_dilated(x, first, (1, 1), "SAME", dimension_numbers=_LAYOUT), a))
        y = norm(jax.lax.conv_general_dilated(y, second, (1, 1), "SAME", dimension_numbers=_LAYOUT), b)
        return jax.nn.relu(x + y)

    kernel = weights(3, 3, channels, channels, inputs=9 * channels)
    return drawn(function, normal(batch, height, width, channels), kernel, kernel, normal(channels), normal(channels))
