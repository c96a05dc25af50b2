"""How much programs compute, and which are worth IREE's search for constant expressions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from hloforge import Builder, Value, ops
from hloforge.pipelines.weights import take_parameters
from hloforge.runtime.work import heaviest_operation, hoists_in_vain


def _long(x: Value) -> Value:
    for _ in range(300):
        x = ops.sin(x)
    return x


def _with_table(x: Value) -> Value:
    return ops.add(_long(x), np.arange(512, dtype=np.float32))


def _with_loop(x: Value) -> Value:
    return ops.while_(lambda y: ops.lt(y[0], 1.0), lambda y: y + 1, _long(x))


def _with_update(x: Value) -> Value:
    return ops.dynamic_update_slice(_long(x), np.ones(4, np.float32), [np.int32(1)])


@pytest.mark.parametrize(
    ("build", "in_vain"),
    [(_long, True), (ops.sin, False), (_with_table, False), (_with_loop, False), (_with_update, False)],
)
def test_long_programs_without_tables_loops_and_updates_are_not_searched(build: object, in_vain: bool) -> None:
    with Builder("searched") as builder:
        x = builder.parameter(0, "f32[512]", "x")
        assert callable(build)
        program = builder.build(build(x))
    assert hoists_in_vain(program.module) is in_vain


def test_what_is_computed_of_weights_is_worth_the_search() -> None:
    with Builder("weighted") as builder:
        x, w = (builder.parameter(number, "f32[512]", name) for number, name in enumerate("xw"))
        program = builder.build(ops.add(_long(x), w))
    assert hoists_in_vain(program.module)
    assert not hoists_in_vain(take_parameters(program, {"w"}).module)


def _elements(build: Callable[[Value], Value]) -> int:
    with Builder("weighed") as builder:
        program = builder.build(build(builder.parameter(0, "f32[64,1024]", "x")))
    return heaviest_operation(program.module)


def test_elementwise_operations_of_one_pass_weigh_together() -> None:
    size = 64 * 1024

    def four(x: Value) -> Value:
        return ops.exp(ops.tanh(ops.sin(ops.cos(x))))

    assert _elements(lambda x: x + 1.0) == size
    assert _elements(lambda x: ops.exp(ops.tanh(x) + ops.log(x)) * ops.sin(x)) == 2 * size
    # A sum reads what the first pass stores.
    assert _elements(lambda x: ops.exp(x + ops.reduce(four(x), 0.0, ops.add, [0, 1]))) == 2 * size
    assert _elements(lambda x: ops.tanh(ops.reshape(ops.tanh(x), [1024, 64]))) == size
