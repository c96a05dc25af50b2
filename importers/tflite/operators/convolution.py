"""Convolutions, plain and transposed, and products of matrices. Images are ``[n, spatial..., channels]``."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from hloforge.dialect import ops
from hloforge.dialect.errors import ImporterError
from hloforge.dialect.values import Value
from hloforge.importers.tensors import matmul
from hloforge.importers.tflite.node import Node
from hloforge.importers.tflite.products import linear
from hloforge.importers.tflite.registry import operator
from hloforge.importers.tflite.window_padding import SAME, pads_of


def _convolve(
    strides: Sequence[int],
    pads: Sequence[tuple[int, int]],
    dilations: Sequence[int] = (),
    groups: int = 1,
    lhs_dilation: Sequence[int] = (),
) -> Callable[[Value, Value], Value]:
    """``[n, spatial..., c]`` by ``[spatial..., c / groups, o]`` to ``[n, spatial..., o]``."""

    def multiply(x: Value, kernel: Value) -> Value:
        places = tuple(range(1, x.rank - 1))
        last = x.rank - 1
        kernel_places = tuple(range(last - 1))
        layout = ops.ConvolutionDimensionNumbers(0, last, places, last - 1, last, kernel_places, 0, last, places)
        return ops.conv_with_general_padding(
            x, kernel, strides, pads, lhs_dilation, dilations, groups, 1, layout, precision="HIGHEST"
        )

    return multiply


def _factors(node: Node, kind: str, axes: str) -> list[int]:
    return [int(node.option(f"{kind}{axis}" if kind == "Stride" else f"{kind}{axis}Factor", 1)) for axis in axes]


@operator("CONV_2D", "DEPTHWISE_CONV_2D", "CONV_3D")
def convolution(node: Node) -> Value:
    """The weights are ``[o, h, w, c]``, of each channel alone ``[1, h, w, o]``, with three axes ``[d, h, w, c, o]``."""
    axes = "DHW" if node.name == "CONV_3D" else "HW"
    order = {"CONV_2D": [1, 2, 3, 0], "DEPTHWISE_CONV_2D": [1, 2, 0, 3], "CONV_3D": None}[node.name]
    dims, kernel = node.dims(0), node.dims(1)
    if order is not None:
        kernel = tuple(kernel[d] for d in order)
    strides, dilations = _factors(node, "Stride", axes), _factors(node, "Dilation", axes)
    reach = [(size - 1) * step + 1 for size, step in zip(kernel, dilations, strict=False)]
    pads = pads_of(node.option("Padding"), dims[1:-1], reach, strides)
    if not kernel[-2] or dims[-1] % kernel[-2]:
        raise ImporterError(f"a kernel of {kernel[-2]} channels over {dims[-1]}")
    multiply = _convolve(strides, pads, dilations, dims[-1] // kernel[-2])
    return linear(node, 0, 1, 2, multiply, order, by_range=node.name != "CONV_3D")


@operator("TRANSPOSE_CONV", "CONV_3D_TRANSPOSE")
def transposed(node: Node) -> Value:
    """A convolution of the input with holes between its elements and the kernel turned around; the size is an input."""
    wanted = node.integers(0)[1:-1]
    solid = node.name == "CONV_3D_TRANSPOSE"
    order = [0, 1, 2, 4, 3] if solid else [1, 2, 3, 0]
    kernel = [node.dims(1)[d] for d in order]
    spatial = node.dims(2)[1:-1]
    strides = _factors(node, "Stride", "DHW" if solid else "HW")
    pads = []
    for size, target, reach, stride in zip(spatial, wanted, kernel, strides, strict=False):
        spread = (size - 1) * stride + 1
        cut = max(spread + reach - 1 - target, 0) // 2 if node.option("Padding") == SAME else 0
        low = reach - 1 - cut
        pads.append((low, target - spread - low + reach - 1))
    multiply = _convolve([1] * len(pads), pads, lhs_dilation=strides)
    return linear(node, 2, 1, 3, multiply, order, list(range(len(pads))), by_range=not solid)


@operator("FULLY_CONNECTED")
def fully_connected(node: Node) -> Value:
    """Rows of the input by the rows of the weights ``[out, in]``."""
    if node.option("WeightsFormat"):
        raise ImporterError("weights in a shuffled format", hint="convert the model again")
    dims, (out, width) = node.dims(0), node.dims(1)
    rows = math.prod(dims) // width if width else 0
    kept = dims[:-1] if node.option("KeepNumDims") else (rows,)

    def multiply(x: Value, w: Value) -> Value:
        return ops.dot_general(x, w, ops.DotDimensionNumbers([1], [1]), "HIGHEST")

    return ops.reshape(linear(node, 0, 1, 2, multiply, dims=[rows, width], by_range=True), [*kept, out])


@operator("BATCH_MATMUL")
def batch_matmul(node: Node) -> Value:
    def multiply(x: Value, y: Value) -> Value:
        sides = [_swapped(side) if node.option(name) else side for side, name in ((x, "AdjX"), (y, "AdjY"))]
        return matmul(*sides)

    return linear(node, 0, 1, 2, multiply)


def _swapped(x: Value) -> Value:
    return ops.transpose(x, [*range(x.rank - 2), x.rank - 1, x.rank - 2])
