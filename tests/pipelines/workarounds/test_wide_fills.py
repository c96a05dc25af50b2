"""legalize-wide-fills: arrays padded with the same number of 64 bits keep what is written into each."""

from __future__ import annotations

import numpy as np
import pytest

from hloforge import Builder, ops, random_inputs


@pytest.mark.parametrize("element", ["f64", "s64", "c128"])
def test_equal_fills(element: str) -> None:
    with Builder("filled") as builder:
        x, y = builder.parameter(0, f"{element}[19]"), builder.parameter(1, f"{element}[7]")
        given = builder.parameter(2, f"{element}[]")
        made = []
        for value in (ops.constant(3, element), given):
            made += [
                ops.pad(x + x, value, [(2, 0, 0)]),
                ops.pad(y + y, value, [(2, 0, 2)]),
                ops.pad(x, value, [(0, 2, 0)]),
            ]
        program = builder.build(tuple(made))
    inputs = random_inputs(program.signature)
    expected = program.evaluate(*inputs, engine="xla")
    for found, right in zip(program.compile()(*inputs), expected, strict=True):
        np.testing.assert_array_equal(found, right)


def test_windows_padded_alike() -> None:
    with Builder("pooled") as builder:
        x, y = builder.parameter(0, "f64[6,6]"), builder.parameter(1, "f64[6,6]")
        made = [
            ops.reduce_window(image, -np.inf, ops.max, [3, 3], [step, step], [(1, 1), (1, 1)])
            for image, step in ((x + y, 1), (x - y, 1), (x * y, 2))
        ]
        program = builder.build(tuple(made))
    inputs = random_inputs(program.signature)
    expected = program.evaluate(*inputs, engine="xla")
    for found, right in zip(program.compile()(*inputs), expected, strict=True):
        np.testing.assert_array_equal(found, right)
