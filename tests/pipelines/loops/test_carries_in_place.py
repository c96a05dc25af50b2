"""carries-in-place: loops update large arrays where they are, and nobody sees it who should not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import hloforge
from hloforge import Value, ops
from hloforge.dialect.program import Program
from hloforge.pipelines.named import lower
from hloforge.runtime.compile.by_iree import compile_module
from hloforge.runtime.compile.targets import Target
from hloforge.runtime.options import CompileOptions
from tests.engines import interpret

SIZE = (40, 2048)


def turns(body: Callable[..., list[Value]], *carries: Value) -> tuple[Value, ...]:
    """Six turns of a loop, without its counter."""

    def turn(i: Value, *carried: Value) -> list[Value]:
        return [ops.add(i, 1), *body(i, *carried)]

    results = ops.while_(lambda i, *_: ops.lt(i, 6), turn, [ops.constant(0, "s32"), *carries])
    return tuple(results[number] for number in range(1, len(carries) + 1))


def row(rows: Value, number: Value) -> Value:
    return ops.dynamic_slice(rows, [number, 0], [1, SIZE[1]])


def updated(x: Value) -> tuple[Value, ...]:
    """A row of an argument, from the one behind it."""
    return turns(lambda i, y: [ops.dynamic_update_slice(y, ops.add(row(y, ops.add(i, 1)), 1), [i, 0])], x)


def stacked(x: Value) -> tuple[Value, ...]:
    """The states of a recurrence."""

    def body(i: Value, state: Value, states: Value) -> list[Value]:
        following = ops.add(ops.rev(state, [1]), 1)
        return [following, ops.dynamic_update_slice(states, following, [i, 0])]

    return turns(body, ops.slice(x, [0, 0], [1, SIZE[1]]), ops.broadcast(ops.constant(0.0, "f32"), SIZE))


def kept(x: Value) -> tuple[Value, ...]:
    """The array before the loop, and the one before each turn, are read again."""
    first = ops.mul(x, 2)

    def body(i: Value, y: Value, total: Value) -> list[Value]:
        return [ops.dynamic_update_slice(y, ops.neg(row(y, i)), [ops.add(i, 1), 0]), ops.add(total, y)]

    return (*turns(body, first, ops.mul(x, 0)), first)


def twice(x: Value) -> tuple[Value, ...]:
    """Two carries start from one array; the copy that one of them needs may hold up what reads the other."""
    first = ops.mul(x, 2)

    def body(i: Value, y: Value, z: Value) -> list[Value]:
        return [
            ops.dynamic_update_slice(y, row(z, ops.add(i, 2)), [i, 0]),
            ops.dynamic_update_slice(z, row(y, ops.add(i, 3)), [i, 0]),
        ]

    return turns(body, first, first)


def captured(x: Value) -> tuple[Value, ...]:
    """A turn reads the argument from which a carry starts."""

    def body(i: Value, y: Value, _: Value) -> list[Value]:
        return [ops.dynamic_update_slice(y, ops.broadcast(ops.constant(5.0, "f32"), [1, 7]), [i, 0]), ops.neg(x)]

    return turns(body, x, ops.mul(x, 0))


def nested(x: Value) -> tuple[Value, ...]:
    """An inner loop takes what the outer one reads again."""

    def inner(_: Value, y: Value) -> list[Value]:
        return [ops.dynamic_update_slice(y, ops.add(row(y, ops.constant(3, "s32")), 1), [3, 0])]

    def outer(i: Value, y: Value) -> list[Value]:
        (changed,) = turns(inner, y)
        return [ops.dynamic_update_slice(y, row(changed, ops.constant(3, "s32")), [i, 0])]

    return turns(outer, ops.mul(x, 2))


def built(build: Callable[[Value], tuple[Value, ...]]) -> Program:
    with hloforge.Builder(build.__name__) as builder:
        return builder.build(build(builder.parameter(0, f"f32[{SIZE[0]},{SIZE[1]}]")))


@pytest.mark.parametrize("build", [updated, stacked, kept, twice, captured, nested])
def test_updated_carries(build: Callable[[Value], tuple[Value, ...]]) -> None:
    program = built(build)
    x = np.arange(SIZE[0] * SIZE[1], dtype=np.float32).reshape(SIZE)
    before = x.copy()
    unfused = program.clone()
    lower(unfused.module, target="cpu", without=frozenset({"fuse-loops"}))
    assert "stream.topology" in unfused.module.operation.attributes
    executable = compile_module(unfused, Target(), CompileOptions())
    want = interpret(program.module, x)
    for device in ("local-sync", "local-task"):
        session = executable.load(device=device)
        for _ in range(2):
            for got, expected in zip(session(x), want, strict=True):
                np.testing.assert_allclose(got, expected, rtol=1e-6)
    np.testing.assert_array_equal(x, before)
