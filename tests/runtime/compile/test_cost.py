"""How much programs compute, and which are worth IREE's search for constant expressions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from hloforge import Builder, Value, ops
from hloforge.pipelines.weights import take_parameters
from hloforge.runtime.compile.cost import heaviest_operation, hoists_in_vain


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


def _masked(x: Value) -> Value:
    return ops.select(ops.lt(ops.iota("s32", [512], 0), 100), x, ops.neg(x))


def _with_positions(x: Value) -> Value:
    return ops.add(x, ops.sin(ops.iota("f32", [512], 0)))


@pytest.mark.parametrize(
    ("build", "in_vain"),
    [
        (_long, True),
        (ops.sin, True),
        (_masked, True),
        (_with_positions, False),
        (_with_table, False),
        (_with_loop, False),
        (_with_update, False),
    ],
)
def test_programs_without_tables_loops_updates_and_functions_of_constants_are_not_searched(
    build: object, in_vain: bool
) -> None:
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


SIZE = 64 * 1024


def test_elementwise_operations_of_one_pass_weigh_together() -> None:
    def four(x: Value) -> Value:
        return ops.exp(ops.tanh(ops.sin(ops.cos(x))))

    # Half an element for what is read and written, half of one for each function, and little for arithmetic.
    copied = SIZE // 2
    assert copied < _elements(lambda x: x + 1.0) < 0.6 * SIZE
    assert _elements(ops.tanh) == SIZE
    assert 2.5 * SIZE < _elements(lambda x: ops.exp(ops.tanh(x) + ops.log(x)) * ops.sin(x)) < 2.6 * SIZE
    # A sum reads what the first pass stores.
    assert _elements(lambda x: ops.exp(x + ops.reduce(four(x), 0.0, ops.add, [0, 1]))) == 2.5 * SIZE
    assert _elements(lambda x: ops.tanh(ops.reshape(ops.tanh(x), [1024, 64]))) == SIZE


def test_sums_weigh_half_and_those_of_rows_as_part_of_what_rows_become() -> None:
    assert _elements(lambda x: ops.reduce(x, 0.0, ops.add, [0])) == SIZE // 2
    scaled = _elements(lambda x: x * ops.broadcast_in_dim(ops.rsqrt(_sums(x, 1)), [64, 1024], [0]))
    assert SIZE < scaled < 1.1 * SIZE
    by_columns = _elements(lambda x: x * ops.broadcast_in_dim(ops.rsqrt(_sums(x, 0)), [64, 1024], [1]))
    assert by_columns < 0.6 * SIZE


def _sums(x: Value, dimension: int) -> Value:
    return ops.reduce(x, 0.0, ops.add, [dimension])


def test_what_is_named_but_not_read_weighs_nothing() -> None:
    assert _elements(lambda x: ops.reshape(ops.broadcast(ops.slice(x, [0, 0], [1, 1], [1, 1]), [SIZE]), [SIZE])) == 0
    assert _elements(lambda x: ops.dynamic_update_slice(x, np.ones((1, 8), np.float32), [np.int32(1)] * 2)) == 8


def test_numbers_weigh_more_than_rows_and_integer_divisions_more_than_floats() -> None:
    rows = _elements(lambda x: ops.transpose(ops.reshape(x, [8, 8, 1024]), [1, 0, 2]))
    assert _elements(lambda x: ops.transpose(x, [1, 0])) == 2 * rows == 2 * SIZE

    by_floats = _elements(lambda x: x / (x + 1.0))
    by_seven = _elements(lambda x: x.astype("s32") / np.full((64, 1024), 7, np.int32))
    by_any = _elements(lambda x: x.astype("s32") / (x + 1.0).astype("s32"))
    assert by_floats < by_seven < by_any // 4


@pytest.mark.parametrize(("beside", "weight"), [(0, 6), (40, 1)])
def test_middling_operations_of_loops_weigh_more_if_not_lost_among_light_ones(beside: int, weight: int) -> None:
    with Builder("turns") as builder:
        x, w = builder.parameter(0, "f32[16,1024]", "x"), builder.parameter(1, "f32[1024,1024]", "w")

        def turn(y: Value) -> Value:
            y = ops.dot(y, w)
            for _ in range(beside):
                y = ops.rev(ops.tanh(y), [0])
            return y

        program = builder.build(ops.while_(lambda y: ops.lt(y[0, 0], 1.0), turn, x))
    assert heaviest_operation(program.module) == weight * 16 * 1024 * 1024 * 2 // 32
