"""legalize-rearranged-operands: functions of reshaped and transposed arrays, beside other readers of these."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from hloforge import Shape, Value, ops, program
from hloforge.dialect.operations import operations
from hloforge.pipelines.framework.manager import PassManager
from hloforge.pipelines.workarounds.rearranged_operands import LegalizeRearrangedOperands

X = np.random.default_rng(0).uniform(0.5, 1.5, (4, 4)).astype(np.float32)


@program
def spread(x: Shape.parse("f32[4,4]")):  # type: ignore[no-untyped-def,valid-type]  # noqa: ANN201
    root = ops.sqrt(ops.transpose(x, [1, 0]))
    shrunk = ops.broadcast_in_dim(ops.exp(ops.neg(root)), [4, 4, 3], [0, 1])
    column = ops.sqrt(ops.reshape(x, [16, 1]))
    logarithm = ops.broadcast_in_dim(ops.log(ops.neg(ops.neg(column))), [16, 3], [0, 1])
    return (
        shrunk,
        -ops.broadcast_in_dim(root, [4, 4, 3], [0, 1]),
        logarithm,
        -ops.broadcast_in_dim(column, [16, 3], [0, 1]),
    )


def test_square_arrays_keep_their_transposition() -> None:
    shrunk, root, logarithm, column = spread.compile()(X)
    whole = np.sqrt(X.T)[:, :, None] + np.zeros(3, np.float32)
    np.testing.assert_allclose(shrunk, np.exp(-whole), rtol=1e-6)
    np.testing.assert_allclose(root, -whole, rtol=1e-6)
    flat = np.sqrt(X.reshape(16, 1)) + np.zeros(3, np.float32)
    np.testing.assert_allclose(logarithm, np.log(flat), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(column, -flat, rtol=1e-6)


@program
def scaled(x: Shape.parse("bf16[]"), y: Shape.parse("f32[9]"), z: Shape.parse("f32[4]")):  # type: ignore[no-untyped-def,valid-type]  # noqa: ANN201
    one = ops.reshape(x, [1])
    long, short = (ops.convert_element_type(ops.broadcast_in_dim(one, [n], [0]), "f32") for n in (9, 4))
    return long * y, short * z


def test_functions_of_what_a_broadcast_spreads_go_before_both() -> None:
    y, z = np.arange(9, dtype=np.float32), np.arange(4, dtype=np.float32)
    long, short = scaled.compile()(np.asarray(1.5, ml_dtypes.bfloat16), y, z)
    np.testing.assert_array_equal(long, 1.5 * y)
    np.testing.assert_array_equal(short, 1.5 * z)


@program
def turned(count: Shape.parse("s32[]"), x: Shape.parse("f32[4,4]")):  # type: ignore[no-untyped-def,valid-type]  # noqa: ANN201
    def turn(number: Value, y: Value, *_: Value) -> tuple[Value, ...]:
        positive = ops.abs(ops.transpose(y, [1, 0]))
        again = ops.abs(ops.neg(positive))
        return (
            ops.add(number, 1),
            y + y,
            ops.broadcast_in_dim(again, [4, 4, 3], [0, 1]),
            -ops.broadcast_in_dim(positive, [4, 4, 3], [0, 1]),
        )

    start = ops.broadcast_in_dim(x, [4, 4, 3], [0, 1])
    results = ops.while_(lambda number, *_: ops.lt(number, count), turn, [ops.constant(0, "s32"), x, start, start])
    return results[2], results[3]


def test_functions_in_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    """IREE left the negation out."""
    monkeypatch.setenv("HLOFORGE_CODEGEN", "iree")
    positive, negative = turned.compile(cache=False)(np.int32(3), X)
    want = 4 * X.T[:, :, None] + np.zeros(3, np.float32)
    np.testing.assert_array_equal(positive, want)
    np.testing.assert_array_equal(negative, -want)


def test_chains_of_functions_go_before_in_one_walk() -> None:
    copy = spread.clone()
    PassManager([LegalizeRearrangedOperands()]).run(copy.module)
    readers = {
        use.owner.name
        for op in operations(copy.module, {"stablehlo.transpose", "stablehlo.reshape"})
        for use in op.results[0].uses
    }
    assert readers == {"stablehlo.broadcast_in_dim"}
