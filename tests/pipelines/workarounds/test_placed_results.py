"""legalize-placed-results: which parts are in memory, and values; tests/runtime/vulkan_sessions.py runs some."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import hloforge
from hloforge import Value, ops
from hloforge.dialect.operations import operations
from hloforge.pipelines.named import stages
from hloforge.pipelines.workarounds.placed_results import LegalizePlacedResults
from tests.engines import interpret


def _padded(*edges: tuple[int, int, int]) -> Callable[[Value], Value]:
    return lambda x: ops.pad(x + x, 0, edges)


def _joined(along: int, size: int) -> Callable[[Value], Value]:
    def join(x: Value) -> Value:
        first = ops.slice(x, [0] * x.rank, [size if d == along else n for d, n in enumerate(x.dims)])
        return ops.concat_in_dim([first, x + x], along)

    return join


def _updated(*starts: int) -> Callable[[Value], Value]:
    def update(x: Value) -> Value:
        wide = ops.broadcast(ops.constant(7, x.element_type.name), [n + 9 for n in x.dims])
        return ops.dynamic_update_slice(wide, x + x, [ops.constant(n, "s32") for n in starts])

    return update


def _updated_at_run_time(x: Value) -> Value:
    return ops.dynamic_update_slice(ops.concat_in_dim([x, x], 0), x + x, [ops.reduce(x, 0, ops.add, [0])])


@pytest.mark.parametrize(
    ("element", "shape", "function", "barriers"),
    [
        ("s32", (8,), _padded((3, 0, 0)), 1),
        ("s32", (8,), _padded((4, 3, 0)), 0),
        ("f64", (8,), _padded((2, 0, 0)), 0),
        ("f64", (8,), _padded((3, 0, 0)), 1),
        ("u8", (8,), _padded((8, 0, 0)), 1),
        ("s32", (3, 6), _padded((1, 0, 0), (0, 0, 0)), 1),
        ("s32", (3, 4), _padded((1, 0, 0), (0, 0, 0)), 0),
        # Its rows are no neighbours.
        ("s32", (3, 6), _padded((1, 0, 0), (1, 0, 0)), 0),
        ("s32", (1, 6), _padded((1, 0, 0), (1, 0, 0)), 1),
        ("s32", (8,), _joined(0, 3), 1),
        ("s32", (8,), _joined(0, 4), 0),
        ("s32", (3, 8), _joined(1, 3), 0),
        ("s32", (8,), _updated(7), 1),
        ("s32", (8,), _updated(8), 0),
        ("s32", (8,), _updated_at_run_time, 1),
    ],
)
def test_parts(element: str, shape: tuple[int, ...], function: Callable[[Value], Value], barriers: int) -> None:
    with hloforge.Builder("program") as builder:
        program = builder.build(function(builder.parameter(0, hloforge.Shape.array(element, *shape), "x")))
    copy = program.clone()
    LegalizePlacedResults().run(copy.module)
    assert len(list(operations(copy.module, ["stablehlo.optimization_barrier"]))) == barriers
    given = np.arange(np.prod(shape)).reshape(shape).astype(np.dtype({"s32": "i4", "f64": "f8", "u8": "u1"}[element]))
    np.testing.assert_array_equal(interpret(copy.module, given)[0], interpret(program.module, given)[0])


def test_vulkan_alone_needs_it() -> None:
    named = {target: {str(stage.entry) for stage in stages(target)} for target in ("cpu", "cuda", "vulkan")}
    assert [target for target, found in named.items() if LegalizePlacedResults.name in found] == ["vulkan"]
