"""keep-loop-buffers: arrays that loops take and return stay until they are read for the last time."""

from __future__ import annotations

import numpy as np
import pytest

import hloforge
from hloforge import Value, ops
from hloforge.dialect.operations import operations
from hloforge.dialect.program import Program
from hloforge.pipelines.named import lower
from hloforge.runtime.compiler import compile_module
from hloforge.runtime.options import CompileOptions
from hloforge.runtime.targets import Target
from tests.engines import interpret


def grown(x: Value, limit: float) -> Value:
    """``while max(x) < limit: x = reverse(x) * 2 + 1``: perhaps not once."""

    def goes_on(y: Value) -> Value:
        return ops.lt(ops.reduce(y, ops.constant(0.0, "f32"), ops.max, [0]), limit)

    return ops.while_(goes_on, lambda y: [ops.add(ops.mul(ops.rev(y, [0]), 2), 1)], [x])[0]


def returned_unchanged(x: Value) -> Value:
    """Loops that return what they take, which is read again behind them."""
    first, second = ops.mul(ops.rev(x, [0]), 2), ops.add(ops.mul(ops.rev(x, [0]), 3), x)
    a = grown(ops.add(ops.rev(first, [0]), grown(second, 0.0)), 20.0)
    b = grown(ops.add(ops.rev(grown(first, 0.0), [0]), second), 20.0)
    return ops.add(ops.add(a, b), ops.mul(first, ops.rev(second, [0])))


@pytest.fixture(scope="module")
def program() -> Program:
    builder = hloforge.Builder("returned")
    return builder.build(returned_unchanged(builder.parameter(0, "f32[8]")))


def test_arrays_are_read_behind_loops_that_return_them(program: Program) -> None:
    x = np.arange(1, 9, dtype=np.float32) / 4
    unfused = program.clone()
    lower(unfused.module, target="cpu", without=frozenset({"fuse-loops"}))
    got = compile_module(unfused, Target(), CompileOptions()).load(device="local-task")(x)
    np.testing.assert_allclose(got, interpret(program.module, x)[0], rtol=1e-6)


def test_programs_without_loops_outside_of_dispatches_stay_as_they_are(program: Program) -> None:
    fused = program.clone()
    lower(fused.module, target="cpu")
    assert not operations(fused.module, {"util.call", "stablehlo.while"})
