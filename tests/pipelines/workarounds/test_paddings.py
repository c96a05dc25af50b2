"""legalize-paddings: paddings with steps keep them, whatever brings two together; rows of them compile for Vulkan."""

from __future__ import annotations

import numpy as np
import pytest

from hloforge import Builder, Shape, ops, random_inputs
from hloforge.dialect.operations import operations
from hloforge.pipelines.framework.manager import PassManager
from hloforge.pipelines.workarounds.paddings import LegalizePaddings
from tests.engines import interpret


@pytest.mark.wide(2)
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


@pytest.mark.wide(2)
@pytest.mark.parametrize("element", ["f32", "s32"])
@pytest.mark.parametrize(
    ("dims", "edges"),
    [
        ([8, 1], [(0, 0, 0), (1, 0, 1)]),
        ([1, 16], [(1, 0, 0), (0, 2, 1)]),
        ([1, 8, 1], [(0, 1, 0), (3, 0, 2), (0, 1, 1)]),
    ],
    ids=str,
)
def test_rows_spread_by_steps_for_vulkan(dims: list[int], edges: list[tuple[int, int, int]], element: str) -> None:
    """IREE has no SPIR-V for them where they are computed: the end of ``habits`` 970011."""
    with Builder("row") as builder:
        x, y = (builder.parameter(number, Shape.array(element, *dims)) for number in (0, 1))
        zero = ops.constant(0, element)
        first = ops.reshape(ops.slice(x, [0] * len(dims), [1] * len(dims)), [])
        sums = ops.reduce_window(ops.min(x, y), zero, ops.add, [1] * len(dims), base_dilations=[2] * len(dims))
        made = [ops.pad(row, zero, edges) for row in (ops.min(x, y), ops.broadcast(first, dims))]
        built = builder.build((*made, sums))
    copy = built.clone()
    PassManager([LegalizePaddings(for_vulkan=True)]).run(copy.module)
    spread = [*operations(copy.module, {"stablehlo.pad", "stablehlo.reduce_window"})]
    assert len(spread) == 3
    assert {op.operands[0].owner.name for op in spread} == {"stablehlo.optimization_barrier"}
    given = random_inputs(built.signature)
    for found, right in zip(interpret(copy.module, *given), built.evaluate(*given, engine="xla"), strict=True):
        np.testing.assert_array_equal(found, right)
    assert built.compile("vulkan").vmfb


def test_only_computed_rows_wait_for_vulkan() -> None:
    with Builder("apart") as builder:
        x, rows = builder.parameter(0, "f32[8,1]"), builder.parameter(1, "f32[8,2]")
        made = [ops.pad(x, 0.0, [(0, 0, 0), (0, 1, 1)]), ops.pad(ops.neg(rows), 0.0, [(0, 0, 0), (0, 1, 1)])]
        made += [ops.pad(ops.neg(x), 0.0, [(0, 0, 0), (1, 0, 0)])]
        built = builder.build(tuple(made))
    PassManager([LegalizePaddings(for_vulkan=True)]).run(built.module)
    assert not [*operations(built.module, {"stablehlo.optimization_barrier"})]
