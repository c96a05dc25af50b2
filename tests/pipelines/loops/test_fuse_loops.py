"""fuse-loops: which loops become one dispatch, and that IREE then computes what StableHLO's interpreter does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import hloforge
from hloforge import Value, ops
from hloforge.dialect.errors import CompileError
from hloforge.dialect.idioms import for_loop, zeros
from hloforge.dialect.mlir import parse_module
from hloforge.dialect.operations import operations
from hloforge.dialect.program import Program
from hloforge.pipelines.framework import builders
from hloforge.pipelines.framework.machine import AVX2, Machine
from hloforge.pipelines.loops.fuse_loops import FuseLoops
from hloforge.pipelines.named import lower
from hloforge.runtime.compile.by_iree import compile_module
from hloforge.runtime.compile.targets import Target
from hloforge.runtime.options import CompileOptions
from hloforge.runtime.reference.compare import compare
from tests.pipelines.loops.random_loops import random_program

Body = Callable[..., Sequence[Value]]


def fused(program: Program, machine: Machine = AVX2) -> int:
    """How many loops of a program become a dispatch."""
    copy = program.clone()
    lower(copy.module, machine=machine)
    return len(operations(copy.module, {builders.DISPATCH}))


def agree(program: Program, *arguments: Any, device: str | None = None) -> bool:
    """Whether IREE and StableHLO's interpreter agree."""
    got = program.compile("cpu").load(device=device)(*arguments)
    return compare(got, program.evaluate(*arguments, engine="interpreter")).agrees


def loop(body: Body, *shapes: str, turns: int | None = None) -> Program:
    """A program that runs a body over its parameters, and as often as its first one says."""
    with hloforge.Builder("loop") as builder:
        count = builder.parameter(0, "s32[]", "count")
        inits = [builder.parameter(number, shape, f"x{number}") for number, shape in enumerate(shapes, 1)]
        limit = count if turns is None else turns

        def turn(i: Value, *carries: Value) -> list[Value]:
            return [ops.add(i, 1), *body(i, *carries)]

        start = ops.constant(0, "s32")
        _, *results = ops.while_(lambda i, *_: ops.lt(i, limit), turn, [start, *inits])
        return builder.build(tuple(results))


def swap(_: Value, a: Value, b: Value) -> list[Value]:
    return [b, ops.add(a, b)]


def scan(i: Value, total: Value, rows: Value) -> list[Value]:
    """Sums of all the rows before each, written over the rows."""
    row = ops.dynamic_slice(rows, [i, 0], [1, 3])
    return [ops.add(total, ops.reshape(row, [3])), ops.dynamic_update_slice(rows, ops.reshape(total, [1, 3]), [i, 0])]


def flags(i: Value, on: Value, which: Value) -> list[Value]:
    return [ops.not_(on), ops.select(ops.broadcast_in_dim(on, [5], ()), ops.rev(which, [0]), ops.not_(which))]


def wide(i: Value, x: Value) -> list[Value]:
    return [ops.tanh(ops.add(x, ops.rev(x, [0])))]


def product(_: Value, x: Value, w: Value) -> list[Value]:
    return [ops.dot(x, w), w]


def nested(i: Value, rows: Value) -> list[Value]:
    """A loop in a loop that updates the same array."""
    return for_loop(
        3, [rows], lambda j, inner: scan(j, ops.reshape(ops.slice(inner, [39, 0], [40, 3]), [3]), inner)[1:]
    )


CASES = {
    "scalars change places": (swap, ["s32[]", "s32[]"]),
    "vectors change places": (swap, ["f32[3]", "f32[3]"]),
    "a buffer is updated": (scan, ["f32[3]", "f32[2000,3]"]),
    "flags": (flags, ["pred[]", "pred[5]"]),
    "a vector of many registers": (wide, ["f32[1000]"]),
    "a buffer is rewritten": (wide, ["f64[600]"]),
    "a product in parts": (product, ["f32[2,64]", "f32[64,64]"]),
    "a loop in a loop": (nested, ["f32[40,3]"]),
}


def values(shape: str, seed: int) -> np.ndarray[Any, Any]:
    parsed = hloforge.Shape.parse(shape)
    assert parsed.element is not None
    random = np.random.default_rng(seed)
    return (
        random.integers(-2, 3, parsed.dimensions) / 8
        if parsed.element.is_float
        else random.integers(0, 2, parsed.dimensions)
    ).astype(parsed.element.dtype)


# IREE compiles these loops for twenty seconds on two cores.
HEAVY = ("a vector of many registers", "a buffer is rewritten")


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow) if n in HEAVY else n for n in CASES])
def test_a_fused_loop_computes_the_same(name: str) -> None:
    body, shapes = CASES[name]
    program = loop(body, *shapes)
    arguments = [values(shape, seed) for seed, shape in enumerate(shapes)]
    assert fused(program) == 1
    assert agree(program, np.int32(11), *arguments)
    assert agree(program, np.int32(0), *arguments)


def test_threads_run_a_fused_loop_once() -> None:
    program = loop(wide, "f32[1000]")
    assert agree(program, np.int32(5), values("f32[1000]", 0), device="local-task")


def test_an_argument_that_a_fused_loop_updates_is_left_as_it_was() -> None:
    rows = values("f32[2000,3]", 0)
    before = rows.copy()
    loop(scan, "f32[3]", "f32[2000,3]").compile("cpu")(np.int32(9), np.zeros(3, np.float32), rows)
    np.testing.assert_array_equal(rows, before)


@pytest.mark.parametrize(
    ("body", "shapes"),
    [
        pytest.param(wide, ["f32[1000000]"], id="much work"),
        pytest.param(wide, ["bf16[8]"], id="bf16"),
        pytest.param(wide, ["c64[8]"], id="complex"),
        pytest.param(wide, ["f32[0]"], id="no elements"),
        pytest.param(swap, ["f64[600]", "f64[600]"], id="buffers change places"),
        pytest.param(product, ["f32[64,64]", "f32[64,64]"], id="a large product"),
    ],
)
def test_other_loops_stay(body: Body, shapes: list[str]) -> None:
    assert fused(loop(body, *shapes)) == 0


@pytest.mark.parametrize(("size", "work", "loops"), [(512, 1 << 16, 1), (600, 1 << 16, 0), (600, 1 << 18, 1)])
def test_larger_products_gain_where_a_dispatch_costs_more(size: int, work: int, loops: int) -> None:
    def body(i: Value, row: Value, matrix: Value) -> list[Value]:
        return [ops.tanh(ops.dot_general(row, matrix, ops.DotDimensionNumbers((1,), (0,)))), matrix]

    program = loop(body, f"f32[1,{size}]", f"f32[{size},{size}]")
    assert fused(program, AVX2.with_settings([f"dispatch-work={work}"])) == loops


def test_dynamic_sizes_stay() -> None:
    module = parse_module(
        """func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
      %y = stablehlo.while(%a = %x) : tensor<?xf32>
        cond { %p = stablehlo.constant dense<false> : tensor<i1> stablehlo.return %p : tensor<i1> }
        do { %b = stablehlo.tanh %a : tensor<?xf32> stablehlo.return %b : tensor<?xf32> }
      return %y : tensor<?xf32> }"""
    )
    FuseLoops().run(module)
    assert not operations(module, {builders.DISPATCH})


def test_a_loop_inside_of_one_with_much_work_is_fused() -> None:
    def body(i: Value, x: Value, s: Value) -> list[Value]:
        (inner,) = for_loop(30, [s], lambda j, v: [ops.tanh(v)])
        return [ops.tanh(x), inner]

    program = loop(body, "f32[100000]", "f32[4]")
    assert fused(program) == 1
    assert agree(program, np.int32(2), values("f32[100000]", 0), values("f32[4]", 1))


def test_what_iree_refuses_fused_is_compiled_unfused() -> None:
    """A sum over the array as it was before its update: IREE wants a second array, which a fused loop lacks."""

    def body(i: Value, rows: Value) -> list[Value]:
        updated = ops.dynamic_update_slice(rows, zeros("f32", [1, 3]), [i, 0])
        sums = ops.sub(ops.reduce(rows, 0.0, ops.add, [0]), ops.reduce(updated, 0.0, ops.add, [0]))
        return [ops.dynamic_update_slice(updated, ops.reshape(sums, [1, 3]), [ops.add(i, 1), 0])]

    program = loop(body, "f32[600,3]")
    copy = program.clone()
    lower(copy.module)
    with pytest.raises(CompileError):
        compile_module(copy, Target(), CompileOptions())
    assert agree(program, np.int32(4), values("f32[600,3]", 0))


@settings(max_examples=6, derandomize=True, database=None)
@given(st.integers(0, 1 << 20))
def test_random_loops(seed: int) -> None:
    program, arguments = random_program(seed)
    assert agree(program, *arguments)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100))
def test_many_random_loops(seed: int) -> None:
    program, arguments = random_program(seed)
    assert agree(program, *arguments)


@pytest.mark.parametrize("shape", ["u8[1]", "u8[]", "f32[40]"])
def test_carries_that_change_places_stay_apart(shape: str) -> None:
    """Both begin as one array, so IREE finds them equal, and gave the first result for both: the counter."""
    with hloforge.Builder("exchanged") as builder:
        x = builder.parameter(0, shape, "x")
        i, a, b = ops.while_(
            lambda i, *_: ops.lt(i, 3), lambda i, a, b: [ops.add(i, 1), b, a], [ops.constant(0, "s32"), x, x]
        )
        program = builder.build((a, b, ops.mul(i, 2)))
    assert agree(program, values(shape, 0))
