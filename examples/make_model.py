"""Writes examples/model.hlo: a small convolutional network that reads digits, as XLA's HLO text.

Two layers of seeded random filters make features; the last layer is fitted to drawn digits by least squares. The
program is written as StableHLO and printed by XLA. Run it again and the same file comes out:

    python examples/make_model.py
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from digits import SIZE, draw
from numpy.typing import NDArray

from hloforge.importers.reader import read
from hloforge.pipelines.framework.passes import NativePass
from hloforge.tools.forms import translate

MODEL = Path(__file__).with_name("model.hlo")
BATCH = 10

Array = NDArray[Any]


def weights() -> dict[str, Array]:
    """The network's weights in f32, rounded so that every machine finds the same ones."""
    random = np.random.default_rng(7)
    filters1 = np.round(random.standard_normal((3, 3, 1, 8)) / 3, 3)
    filters2 = np.round(random.standard_normal((3, 3, 8, 16)) / 8, 3)
    labels = random.integers(0, 10, 3000)
    found = features(draw(labels, seed=1).astype(np.float64), filters1, filters2)
    found = np.concatenate([found, np.ones((len(found), 1))], axis=1)
    targets = 8.0 * np.eye(10)[labels]
    ridge = 0.5 * np.eye(found.shape[1])
    dense = np.round(np.linalg.solve(found.T @ found + ridge, found.T @ targets), 3)
    named = {"filters1": filters1, "filters2": filters2, "dense": dense[:-1], "bias": dense[-1]}
    return {name: value.astype(np.float32) for name, value in named.items()}


def features(images: Array, filters1: Array, filters2: Array) -> Array:
    """What the program computes before its last layer, in numpy: [n, 256]."""
    hidden = images
    for filters in (filters1, filters2):
        padded = np.pad(hidden, ((0, 0), (1, 1), (1, 1), (0, 0)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))
        hidden = np.maximum(np.einsum("nhwcij,ijco->nhwo", windows, filters, optimize=True), 0)
        n, height, width, channels = hidden.shape
        hidden = hidden.reshape(n, height // 2, 2, width // 2, 2, channels).max(axis=(2, 4))
    return hidden.reshape(len(images), -1)


def constant(name: str, value: Array) -> str:
    """A StableHLO constant, its bytes in hexadecimal."""
    type_ = f"tensor<{'x'.join(map(str, value.shape))}xf32>"
    return f'%{name} = stablehlo.constant dense<"0x{value.tobytes().hex()}"> : {type_}'


def layer(number: int, size: int, inputs: int, outputs: int) -> str:
    """Convolution 3x3, rectifier, max-pooling 2x2: %h{n-1} to %h{n}."""
    before, wide = f"tensor<{BATCH}x{size}x{size}x{inputs}xf32>", f"tensor<{BATCH}x{size}x{size}x{outputs}xf32>"
    half = f"tensor<{BATCH}x{size // 2}x{size // 2}x{outputs}xf32>"
    return f"""
    %c{number} = stablehlo.convolution(%h{number - 1}, %filters{number})
      dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
      window = {{stride = [1, 1], pad = [[1, 1], [1, 1]]}}
      {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}}
      : ({before}, tensor<3x3x{inputs}x{outputs}xf32>) -> {wide}
    %z{number} = stablehlo.broadcast_in_dim %zero, dims = [] : (tensor<f32>) -> {wide}
    %r{number} = stablehlo.maximum %c{number}, %z{number} : {wide}
    %h{number} = "stablehlo.reduce_window"(%r{number}, %lowest) ({{
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %m = stablehlo.maximum %a, %b : tensor<f32>
        stablehlo.return %m : tensor<f32>
    }}) {{window_dimensions = array<i64: 1, 2, 2, 1>, window_strides = array<i64: 1, 2, 2, 1>}}
      : ({wide}, tensor<f32>) -> {half}"""


def program() -> str:
    """The network in StableHLO: images to the digits' probabilities, and the surest digit."""
    constants = "\n    ".join(constant(name, value) for name, value in weights().items())
    scores = f"tensor<{BATCH}x10xf32>"
    return f"""
module @digits {{
  func.func @main(%h0: tensor<{BATCH}x{SIZE}x{SIZE}x1xf32> loc("images")) -> ({scores}, tensor<{BATCH}xi32>) {{
    {constants}
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %lowest = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %none = stablehlo.constant dense<0> : tensor<i32>
    {layer(1, SIZE, 1, 8)}
    {layer(2, SIZE // 2, 8, 16)}
    %flat = stablehlo.reshape %h2 : (tensor<{BATCH}x4x4x16xf32>) -> tensor<{BATCH}x256xf32>
    %product = stablehlo.dot_general %flat, %dense, contracting_dims = [1] x [0]
      : (tensor<{BATCH}x256xf32>, tensor<256x10xf32>) -> {scores}
    %biases = stablehlo.broadcast_in_dim %bias, dims = [1] : (tensor<10xf32>) -> {scores}
    %scores = stablehlo.add %product, %biases : {scores}
    %highest = stablehlo.reduce(%scores init: %lowest) applies stablehlo.maximum across dimensions = [1]
      : ({scores}, tensor<f32>) -> tensor<{BATCH}xf32>
    %shift = stablehlo.broadcast_in_dim %highest, dims = [0] : (tensor<{BATCH}xf32>) -> {scores}
    %shifted = stablehlo.subtract %scores, %shift : {scores}
    %exp = stablehlo.exponential %shifted : {scores}
    %sum = stablehlo.reduce(%exp init: %zero) applies stablehlo.add across dimensions = [1]
      : ({scores}, tensor<f32>) -> tensor<{BATCH}xf32>
    %sums = stablehlo.broadcast_in_dim %sum, dims = [0] : (tensor<{BATCH}xf32>) -> {scores}
    %probabilities = stablehlo.divide %exp, %sums : {scores}
    %indices = stablehlo.iota dim = 1 : tensor<{BATCH}x10xi32>
    %best:2 = "stablehlo.reduce"(%probabilities, %indices, %lowest, %none) ({{
      ^bb0(%a: tensor<f32>, %i: tensor<i32>, %b: tensor<f32>, %j: tensor<i32>):
        %first = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
        %value = stablehlo.select %first, %a, %b : tensor<i1>, tensor<f32>
        %index = stablehlo.select %first, %i, %j : tensor<i1>, tensor<i32>
        stablehlo.return %value, %index : tensor<f32>, tensor<i32>
    }}) {{dimensions = array<i64: 1>}}
      : ({scores}, tensor<{BATCH}x10xi32>, tensor<f32>, tensor<i32>) -> (tensor<{BATCH}xf32>, tensor<{BATCH}xi32>)
    return %probabilities, %best#1 : {scores}, tensor<{BATCH}xi32>
  }}
}}
"""


def hlo() -> bytes:
    """The model as HLO text, without the lines of the text above."""
    digits = read(program(), name="digits")
    NativePass("strip-debuginfo").run(digits.module)
    return translate(digits, "hlo")


if __name__ == "__main__":
    MODEL.write_bytes(hlo())
    print(f"wrote {MODEL} ({MODEL.stat().st_size} bytes)")
