"""sink-transposes: x @ w.T, (x @ w).T and what gradients make of them need no transposed copies."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import hloforge
from hloforge import Builder, Value, ops
from hloforge.dialect.operations import operations
from hloforge.pipelines.framework.passes import NativePass
from hloforge.pipelines.optimize.sink_transposes import SinkTransposes
from tests.engines import shared_reference

RANDOM = np.random.default_rng(0)


def turned(x: Value) -> Value:
    return ops.transpose(x, [1, 0])


@pytest.mark.parametrize(
    ("form", "dims", "left"),
    [
        pytest.param(lambda x, w: ops.dot(x, turned(w)), [(4, 6), (5, 6)], 0, id="right"),
        pytest.param(lambda x, w: ops.dot(turned(x), w), [(6, 4), (6, 5)], 0, id="left"),
        pytest.param(lambda x, w: turned(ops.dot(x, w)), [(4, 6), (6, 5)], 0, id="result"),
        pytest.param(lambda x, w: turned(ops.dot(turned(x), turned(w))), [(6, 4), (5, 6)], 0, id="all"),
        pytest.param(lambda x, w: ops.dot(x, turned(turned(w))), [(4, 6), (6, 5)], 0, id="twice"),
        # The product is read as it is, too.
        pytest.param(lambda x, w: (y := ops.dot(x, w), turned(y)), [(4, 6), (6, 5)], 1, id="both"),
        # A batch of products has an order of its own.
        pytest.param(
            lambda x, w: ops.dot_general(
                x, ops.transpose(w, [0, 2, 1]), ops.DotDimensionNumbers((2,), (1,), (0,), (0,))
            ),
            [(2, 4, 6), (2, 5, 6)],
            1,
            id="batch",
        ),
    ],
)
def test_transposes_of_matrices_disappear(form: Callable[..., Value], dims: list[tuple[int, ...]], left: int) -> None:
    arrays = [RANDOM.standard_normal(size).astype(np.float32) for size in dims]
    with Builder("products") as builder:
        values = [builder.parameter(n, hloforge.Shape.array("f32", *size), f"x{n}") for n, size in enumerate(dims)]
        program = builder.build(form(*values))
    expected = shared_reference("interpreter").prepare(program)(*arrays)
    copy = program.clone()
    SinkTransposes().run(copy.module)
    # What nobody reads any more disappears here.
    NativePass("func.func(canonicalize)").run(copy.module)
    assert len(operations(copy.module, {"stablehlo.transpose"})) == left
    for got, want in zip(_flat(hloforge.compile(copy).load()(*arrays)), _flat(expected), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def _flat(result: object) -> tuple[object, ...]:
    return result if isinstance(result, tuple) else (result,)
