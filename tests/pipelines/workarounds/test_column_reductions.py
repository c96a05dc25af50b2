"""legalize-column-reductions: barriers behind columns' reductions; tests/runtime/vulkan_sessions.py runs one."""

from __future__ import annotations

import numpy as np
import pytest

import hloforge
from hloforge import ops
from hloforge.dialect.operations import operations
from hloforge.pipelines.named import stages
from hloforge.pipelines.workarounds.column_reductions import LegalizeColumnReductions
from tests.engines import interpret


@pytest.mark.parametrize(
    ("shape", "dimensions", "held"),
    [
        ((64, 8), [0], True),
        ((64, 8), [1], False),
        ((64, 8), [0, 1], False),
        ((2, 64, 8), [1], True),
        ((64, 8, 1), [0], True),
        ((64, 1, 1), [0], False),
        ((1, 8), [0], False),
    ],
)
def test_reductions(shape: tuple[int, ...], dimensions: list[int], held: bool) -> None:
    x = np.random.default_rng(0).integers(-9, 9, shape).astype(np.float32)
    with hloforge.Builder("program") as builder:
        given = builder.parameter(0, hloforge.Shape.array("f32", *shape), "x")
        program = builder.build(ops.neg(ops.reduce(given, ops.constant(np.float32(0)), ops.add, dimensions)))
    copy = program.clone()
    LegalizeColumnReductions().run(copy.module)
    np.testing.assert_array_equal(interpret(copy.module, x)[0], interpret(program.module, x)[0])
    (negation,) = operations(copy.module, ["stablehlo.negate"])
    assert (negation.operands[0].owner.name == "stablehlo.optimization_barrier") == held


def test_vulkan_alone_needs_it() -> None:
    named = {target: {str(stage.entry) for stage in stages(target)} for target in ("cpu", "cuda", "vulkan")}
    assert [target for target, found in named.items() if LegalizeColumnReductions.name in found] == ["vulkan"]
