"""Fourier transforms, and operators on windows of a signal."""

from __future__ import annotations

import numpy as np

from hloforge.dialect import ops
from hloforge.dialect.values import Value
from hloforge.importers.onnx.node import Node
from hloforge.importers.onnx.registry import operator
from hloforge.importers.onnx.roundings import rounds_once
from hloforge.importers.tensors import Array, axis_of, broadcast_to, cast, fill, lift, take


@operator("DFT")
@rounds_once
def fourier(node: Node) -> Value:
    """Along an axis; the last dimension holds a real number, or the parts of a complex one.

    In f64: ONNX's own tests allow an error of 1e-7 beside sums of a thousand.
    """
    row, x = node.row(0), cast(node.value(0), "f64")
    if node.version >= 20:
        axis = int(node.known(2).reshape(())) if node.has(2) else -2
    else:
        axis = int(node.attribute("axis", 1))
    axis = axis_of(axis, x.rank)
    onesided, inverse = bool(node.attribute("onesided", 0)), bool(node.attribute("inverse", 0))
    length = int(node.known(1).reshape(())) if node.has(1) else 0
    signal = to_complex(x)
    last = signal.rank - 1
    order = [*(d for d in range(last + 1) if d != axis), axis]
    moved = ops.transpose(signal, order)
    if inverse and onesided:
        length = length or 2 * (moved.dims[-1] - 1)
        result = ops.fft(_sized(moved, length // 2 + 1), "IRFFT", [length])
        result = ops.transpose(result, _back(order))
        return cast(ops.reshape(result, [*result.dims, 1]), row)
    moved = _sized(moved, length or moved.dims[-1])
    result = ops.fft(moved, "IFFT" if inverse else "FFT", [moved.dims[-1]])
    if onesided:
        result = _sized(result, result.dims[-1] // 2 + 1)
    return cast(to_parts(ops.transpose(result, _back(order))), row)


def _back(order: list[int]) -> list[int]:
    return [int(d) for d in np.argsort(order)]


def _sized(x: Value, length: int) -> Value:
    """Cut off, or filled up with zeros, along the last axis."""
    change = length - x.dims[-1]
    return ops.pad(x, fill([], 0, x.element_type), [(0, 0, 0)] * (x.rank - 1) + [(0, change, 0)]) if change else x


def to_complex(x: Value) -> Value:
    """``[..., 1]`` or ``[..., 2]`` as complex numbers ``[...]``."""
    dims = x.dims[:-1]
    if x.element_type.bits < 32:
        x = cast(x, "f32")
    parts = [
        ops.reshape(ops.slice(x, [0] * (x.rank - 1) + [number], [*dims, number + 1]), dims)
        for number in range(x.dims[-1])
    ]
    return ops.complex(parts[0], parts[1] if len(parts) > 1 else parts[0] * 0)


def to_parts(x: Value) -> Value:
    """Complex numbers ``[...]`` as ``[..., 2]``."""
    return ops.concat_in_dim([ops.reshape(part, [*x.dims, 1]) for part in (ops.real(x), ops.imag(x))], x.rank)


@operator("STFT")
@rounds_once
def short_time_fourier(node: Node) -> Value:
    """``[batch, samples, 1 or 2]`` to ``[batch, frames, frequencies, 2]``."""
    signal = to_complex(node.value(0))
    step = int(node.known(1).reshape(()))
    window = node.value(2) if node.has(2) else None
    length = int(node.known(3).reshape(())) if node.has(3) else (window.dims[0] if window is not None else 0)
    frames = (signal.dims[1] - length) // step + 1
    places = np.arange(frames)[:, None] * step + np.arange(length)
    taken = take(signal, lift(places.astype(np.int32)), 1)
    if window is not None:
        window = cast(window, ops.real(taken).element_type)
        taken = taken * ops.complex(broadcast_to(window, taken.dims), broadcast_to(window * 0, taken.dims))
    result = ops.fft(taken, "FFT", [length])
    return to_parts(_sized(result, length // 2 + 1) if node.attribute("onesided", 1) else result)


@operator("MelWeightMatrix")
def mel_weights(node: Node) -> Array:
    """Triangles, equally wide on the mel scale, over the frequencies of a transform; of known numbers alone."""
    bins, length, rate, low, high = (float(node.known(number).reshape(())) for number in range(5))
    count = int(bins)

    def mel(hertz: float) -> float:
        return float(2595 * np.log10(1 + hertz / 700))

    edges = np.arange(count + 2) * ((mel(high) - mel(low)) / (count + 2)) + mel(low)
    places = ((int(length) + 1) * (700 * (10 ** (edges / 2595) - 1)) // int(rate)).astype(np.int64)
    weights = np.zeros((int(length) // 2 + 1, count))
    for number in range(count):
        left, center, right = places[number : number + 3]
        if center == left:
            weights[center, number] = 1
        else:
            weights[left : center + 1, number] = (np.arange(left, center + 1) - left) / (center - left)
        if right > center:
            weights[center:right, number] = (right - np.arange(center, right)) / (right - center)
    return weights.astype(node.dtype("output_datatype", "f32").dtype)
