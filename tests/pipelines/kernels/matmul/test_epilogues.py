"""What follows products number by number is computed in their dispatches, and right."""

from __future__ import annotations

from typing import Any

import numpy as np

import hloforge
from hloforge import Builder, Value, ops
from hloforge.dialect.operations import operations
from hloforge.dialect.program import Program
from hloforge.pipelines.named import lower
from hloforge.runtime.reference.correctness import judge
from tests.engines import shared_reference

RANDOM = np.random.default_rng(0)
Array = np.ndarray[Any, Any]
ROWS, DEPTH, COLUMNS = 48, 520, 331  # no whole strips, and a last block of lines that is shorter


def built(element: str = "f32") -> tuple[Program, list[Array]]:
    """Products and what is made of them: biases and activations, residuals, gates, and what others read as well."""
    shapes = [(ROWS, DEPTH), (DEPTH, COLUMNS), (DEPTH, COLUMNS), (COLUMNS,), (ROWS, COLUMNS), (ROWS,), ()]
    arrays = [(RANDOM.standard_normal(shape) / 4).astype(element.replace("f", "float")) for shape in shapes]
    with Builder("epilogues") as builder:
        x, w, v, bias, residual, scales, scale = (
            builder.parameter(n, hloforge.Shape.array(element, *array.shape), f"x{n}") for n, array in enumerate(arrays)
        )

        def part(columns: Value, first: int) -> Value:
            lines = ops.slice(columns, [first, 0], [DEPTH, COLUMNS], [1, 1])
            return ops.dot(ops.slice(x, [0, first], [ROWS, DEPTH], [1, 1]), lines)

        biased = ops.add(part(w, 0), bias, broadcast_dimensions=[1])
        exact = biased * 0.5 * (ops.erf(biased * 0.5**0.5) + 1.0)
        second = part(v, 0)
        gated = second * ops.logistic(second) * part(w, 8)
        third = ops.reshape(part(v, 8), [4, ROWS // 4, COLUMNS])
        shifted = ops.max(ops.add(third, bias, broadcast_dimensions=[2]), ops.reshape(residual, third.dims))
        fourth = ops.mul(part(w, 16), scales, broadcast_dimensions=[0]) * scale
        kept = ops.tanh(fourth) + residual
        fifth = part(v, 16) + 1.0
        flags = ops.select(ops.gt(fifth, ops.abs(residual)), fifth, -fifth)
        sums = ops.reduce(fifth, 0.0, ops.add, [1])
        normal = ops.sub(part(w, 200), ops.reduce(kept, 0.0, ops.add, [0]), broadcast_dimensions=[1])
        return builder.build((exact, gated, shifted, kept, fourth, flags, sums, normal)), arrays


def test_what_follows_products_is_right() -> None:
    program, arrays = built()
    executable = program.compile("cpu")
    for device in ("local-sync", "local-task"):
        report = judge(shared_reference("xla"), program, arrays, executable.load(device=device)(*arrays))
        assert report.agrees, report.text()


def test_dispatches_compute_what_only_products_are_read_by() -> None:
    program, _ = built()
    lower(program.module)
    names = [op.name for op in operations(program.module)]
    # A sum that is read twice is stored, and what is made of it is IREE's, as is what is made of reductions.
    assert names.count("flow.dispatch") == 7
    left = {op.name for op in operations(program.module) if op.name.startswith("stablehlo.") and op.results}
    assert not left & {"stablehlo.dot_general", "stablehlo.divide", "stablehlo.logistic", "stablehlo.maximum"}


def test_numbers_of_64_bits_follow_products() -> None:
    text = """func.func @main(%x: tensor<32x520xf64>, %w: tensor<520x171xf64>, %b: tensor<171xf64>)
        -> tensor<32x171xf64> {
      %zero = stablehlo.constant dense<0.0> : tensor<32x171xf64>
      %p = stablehlo.dot %x, %w : (tensor<32x520xf64>, tensor<520x171xf64>) -> tensor<32x171xf64>
      %s = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<171xf64>) -> tensor<32x171xf64>
      %y = stablehlo.add %p, %s : tensor<32x171xf64>
      %z = stablehlo.maximum %y, %zero : tensor<32x171xf64>
      return %z : tensor<32x171xf64>
    }"""
    x, w, b = (RANDOM.standard_normal(shape) for shape in ((32, 520), (520, 171), (171,)))
    np.testing.assert_allclose(hloforge.compile(text)(x, w, b), np.maximum(x @ w + b, 0), atol=1e-12)
