"""legalize-paddings: paddings of paddings with steps keep the steps, whatever brings the two together."""

from __future__ import annotations

import numpy as np
import pytest

from hloforge import Builder, ops, random_inputs


@pytest.mark.parametrize("element", ["f32", "c64", "c128", "u8"])
def test_padded_twice(element: str) -> None:
    with Builder("padded") as builder:
        x = builder.parameter(0, f"{element}[16]")
        zero = ops.constant(0, element)
        spread = ops.pad(x + x, zero, [(0, 0, 1)])
        row = ops.reshape(spread, [1, 31])
        turned = ops.transpose(ops.reshape(spread, [31, 1]), [1, 0])
        made = [ops.pad(spread, zero, [(0, 1, 0)])]
        made += [ops.pad(seen, zero, [(0, 0, 0), (0, high, 0)]) for seen in (row, turned) for high in (-1, 1)]
        # Changed, so that complex numbers are taken apart.
        program = builder.build(tuple(y + y for y in made))
    (given,) = random_inputs(program.signature)
    expected = program.evaluate(given, engine="xla")
    for found, right in zip(program.compile()(given), expected, strict=True):
        np.testing.assert_array_equal(found, right)


@pytest.mark.parametrize("element", ["f32", "c64", "c128"])
def test_padded_windows(element: str) -> None:
    """IREE pads windows itself, of complex numbers the windows of both parts."""
    with Builder("padded") as builder:
        x = builder.parameter(0, f"{element}[1,6]")
        zero = ops.constant(0, element)
        spread = ops.pad(x, zero, [(1, 1, 0), (0, -1, 1)])
        sums = ops.reduce_window(spread, zero, ops.add, [2, 1], padding=[(1, 1), (0, 0)])
        program = builder.build(sums)
    (given,) = random_inputs(program.signature)
    expected = program.evaluate(given, engine="xla")
    np.testing.assert_array_equal(program.compile()(given), expected)
