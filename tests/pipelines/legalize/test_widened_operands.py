"""legalize-widened-operands: which operands get a barrier; tests/runtime/vulkan_sessions.py has values."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import hloforge
from hloforge import Value, ops
from hloforge.dialect.operations import operations
from hloforge.dialect.program import Program
from hloforge.pipelines.legalize.widened_operands import LegalizeWidenedOperands
from hloforge.pipelines.named import lower, stages
from tests.engines import interpret

Build = Callable[[Value, Value], Value]
_ROWS = ops.DotDimensionNumbers([1], [0])
_RNG = np.random.default_rng(0)
X, Y = (_RNG.integers(0, 9, shape).astype(np.uint8) for shape in ((5, 7), (7, 9)))


def wide(x: Value) -> Value:
    return ops.convert_element_type(x, "f32")


def widened_twice(x: Value, y: Value) -> Value:
    return ops.dot_general(ops.sqrt(wide(x)) + 1.0, ops.transpose(-wide(ops.transpose(y, [1, 0])), [1, 0]), _ROWS)


def converted_results(x: Value, y: Value) -> Value:
    return ops.dot_general(wide(x + x), wide(y), _ROWS)


def converted_arguments(x: Value, y: Value) -> Value:
    return ops.dot_general(wide(x), wide(y), _ROWS)


def of_one_type(x: Value, y: Value) -> Value:
    return wide(ops.dot_general(x + x, y + y, _ROWS))


def window(x: Value, _: Value) -> Value:
    return ops.reduce_window(wide(x), 0.0, ops.add, (3, 3), (1, 1), "VALID")


def _program(build: Build) -> Program:
    with hloforge.Builder("program") as builder:
        given = [builder.parameter(n, hloforge.Shape.array("u8", *a.shape), f"p{n}") for n, a in enumerate((X, Y))]
        return builder.build(build(*given))


@pytest.mark.parametrize(
    ("build", "behind"),
    [
        (widened_twice, ["stablehlo.add", "stablehlo.transpose"]),
        (converted_results, ["stablehlo.add"]),
        (converted_arguments, []),
        (of_one_type, []),
        (window, ["stablehlo.convert"]),
    ],
)
def test_barriers(build: Build, behind: list[str]) -> None:
    copy = _program(build).clone()
    before = interpret(copy.module, X, Y)
    LegalizeWidenedOperands().run(copy.module)
    held = [op.operands[0].owner.name for op in operations(copy.module, ["stablehlo.optimization_barrier"])]
    assert sorted(held) == behind
    np.testing.assert_array_equal(interpret(copy.module, X, Y)[0], before[0])


def test_the_narrow_array_is_read_where_a_conversion_is_the_last_step() -> None:
    copy = _program(converted_results).clone()
    LegalizeWidenedOperands().run(copy.module)
    (barrier,) = operations(copy.module, ["stablehlo.optimization_barrier"])
    assert str(barrier.results[0].type) == "tensor<5x7xui8>"


def test_vulkan_alone_needs_it() -> None:
    named = {target: {str(stage.entry) for stage in stages(target)} for target in ("cpu", "cuda", "vulkan")}
    assert [target for target, found in named.items() if LegalizeWidenedOperands.name in found] == ["vulkan"]
    copy = _program(widened_twice).clone()
    lower(copy.module, target="vulkan")
    assert len(operations(copy.module, ["stablehlo.optimization_barrier"])) >= 2
