"""keep-loop-buffers: arrays that loops take and return stay until they are read, and are waited for."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest

import hloforge
from hloforge import Value, ops
from hloforge.dialect.mlir import ir
from hloforge.dialect.operations import operations
from hloforge.dialect.program import Program
from hloforge.importers.reader import read
from hloforge.pipelines.framework.manager import PassManager
from hloforge.pipelines.named import lower
from hloforge.pipelines.workarounds.loop_buffers import KeepLoopBuffers, without_calls_in_loops
from hloforge.runtime.compile.by_iree import compile_module
from hloforge.runtime.compile.targets import Target
from hloforge.runtime.options import CompileOptions
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
    lowered = program.clone()
    lower(lowered.module, target="cpu")
    got = compile_module(lowered, Target(), CompileOptions()).load(device="local-task")(x)
    np.testing.assert_allclose(got, interpret(program.module, x)[0], rtol=1e-6)


def exchanged(x: Value) -> Value:
    """A loop that updates one carry, and keeps in the other what it was."""

    def turn(i: Value, new: Value, old: Value) -> list[Value]:
        del old
        return [ops.add(i, 1), ops.dynamic_update_slice(new, ops.constant(np.full(9000, 7, np.float32)), [i]), new]

    first = ops.mul(x, 2)
    _, new, old = ops.while_(lambda i, *_: ops.lt(i, 4), turn, [ops.constant(0, "s32"), first, first])
    return ops.sub(new, old)


def summed(x: Value) -> Value:
    """A loop in a loop, whose array the outer one reads before and after."""

    def inner(j: Value, y: Value) -> list[Value]:
        return [ops.add(j, 1), ops.dynamic_update_slice(y, ops.constant(np.ones(3, np.float32)), [j])]

    def outer(i: Value, y: Value, total: Value) -> list[Value]:
        updated = ops.while_(lambda j, _: ops.lt(j, ops.add(i, 3)), inner, [i, y])[1]
        return [ops.add(i, 1), updated, ops.add(total, ops.mul(y, updated))]

    first = ops.mul(x, 2)
    return ops.while_(lambda i, *_: ops.lt(i, 4), outer, [ops.constant(0, "s32"), first, ops.mul(x, 0)])[2]


@pytest.mark.parametrize(("build", "size"), [(exchanged, 20000), (summed, 30)])
def test_carries_are_waited_for(build: Callable[[Value], Value], size: int) -> None:
    with hloforge.Builder(build.__name__) as builder:
        program = builder.build(build(builder.parameter(0, f"f32[{size}]")))
    x = np.arange(size, dtype=np.float32) / 4
    lowered = program.clone()
    lower(lowered.module, target="cpu")
    session = compile_module(lowered, Target(), CompileOptions()).load(device="local-task")
    want = interpret(program.module, x)[0]
    for _ in range(5):
        np.testing.assert_allclose(session(x), want, rtol=1e-6)


def held(x: Value) -> Value:
    """Barriers on what a loop carries: a number and an array."""

    def turn(i: Value, y: Value) -> list[Value]:
        number, array = ops.optimization_barrier([i, y])
        return [ops.add(number, 1), ops.add(ops.rev(array, [0]), ops.convert_element_type(number, "f32"))]

    return ops.while_(lambda i, _: ops.lt(i, 4), turn, [ops.constant(0, "s32"), ops.mul(x, 2)])[1]


def test_no_barrier_stands_on_a_carry() -> None:
    with hloforge.Builder("held") as builder:
        program = builder.build(held(builder.parameter(0, "f32[30]")))
    x = np.arange(30, dtype=np.float32) / 4
    lowered = program.clone()
    lower(lowered.module, target="cpu")
    barriers = operations(lowered.module, {"stablehlo.optimization_barrier"})
    carried = [op for op in barriers for operand in op.operands if isinstance(operand.owner, ir.Block)]
    assert not any(op.block.owner.name == "stablehlo.while" for op in carried)
    got = compile_module(lowered, Target(), CompileOptions()).load(device="local-task")(x)
    np.testing.assert_allclose(got, interpret(program.module, x)[0], rtol=1e-6)


def test_programs_without_loops_stay_as_they_are() -> None:
    with hloforge.Builder("reversed") as builder:
        program = builder.build(ops.rev(builder.parameter(0, "f32[8]"), [0]))
    lower(program.module, target="cpu")
    assert not operations(program.module, {"util.call"})


def test_complex_numbers_that_a_loop_carries_behind_barriers() -> None:
    """One number of c128, of which IREE has no constants."""

    def turn(i: Value, x: Value, y: Value) -> list[Value]:
        old = ops.optimization_barrier(y)
        return [ops.add(i, 1), ops.add(ops.mul(x, old), x), x]

    with hloforge.Builder("carried") as builder:
        x = builder.parameter(0, "c128[1]")
        first = [ops.constant(0, "s32"), x, ops.add(x, x)]
        program = builder.build(ops.while_(lambda i, *_: ops.lt(i, 3), turn, first)[1])
    given = np.array([0.5 - 0.25j])
    lowered = program.clone()
    lower(lowered.module, target="cpu")
    want, old = given, 2 * given
    for _ in range(3):
        want, old = want * old + want, want
    got = compile_module(lowered, Target(), CompileOptions()).load()(given)
    np.testing.assert_allclose(got, want, rtol=1e-14)


def test_branches_hand_on_copies_of_what_is_read_behind_them() -> None:
    """Such an array lost its register to the conditional's result, where that came from another branch."""
    with hloforge.Builder("handed_on") as builder:
        which, x = builder.parameter(0, "s32[]"), builder.parameter(1, "f32[300]")
        y = ops.mul(x, 2)
        branches: list[Callable[[Value], Value]] = [lambda y: y, ops.cos, ops.sin]
        chosen = ops.conditional(which, branches, [y, y, x])
        program = builder.build((y, chosen))
    copy = program.clone()
    lower(copy.module)
    (conditional,) = operations(copy.module, {"stablehlo.case"})
    ends = [list(region.blocks[0].operations)[-1] for region in conditional.regions]
    assert all(end.operands[0].owner.operation.parent.operation == conditional for end in ends)
    run = program.compile("cpu").load()
    numbers = np.linspace(-3, 3, 300, dtype=np.float32)
    for n in range(3):
        arguments = (np.int32(n), numbers)
        for found, expected in zip(run(*arguments), program.evaluate(*arguments, engine="xla"), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


_FOUND_TO_BE_ONE: dict[str, Callable[[Value], Value]] = {
    "as it is": lambda y: y,
    "not less than 0": lambda y: ops.max(y, 0),
    "behind a barrier": lambda y: ops.optimization_barrier(y),
    "chosen": lambda y: ops.select(ops.broadcast(ops.constant(True, "pred"), [300]), y, ops.mul(y, 0)),
    "slice of a broadcast": lambda y: ops.reshape(
        ops.slice(ops.broadcast_in_dim(y, [2, 300], [1]), [0, 0], [1, 300]), [300]
    ),
}


@pytest.mark.parametrize("name", _FOUND_TO_BE_ONE)
def test_branches_hand_on_copies_of_what_may_be_read_behind_them(name: str) -> None:
    """IREE finds these to be the array itself: "ref is null" (``jax`` 1550072)."""
    with hloforge.Builder("handed_on") as builder:
        which, x = builder.parameter(0, "s32[]"), builder.parameter(1, "u32[300]")
        y = ops.mul(x, 3)
        branches: list[Callable[[Value], Value]] = [_FOUND_TO_BE_ONE[name], lambda y: y * y]
        program = builder.build((y, ops.conditional(which, branches, [y, y])))
    lower(program.module)
    (conditional,) = operations(program.module, {"stablehlo.case", "stablehlo.if"})
    made = [list(region.blocks[0].operations)[-1].operands[0].owner for region in conditional.regions]
    assert all(op.name == "stablehlo.select" and op.parent == conditional for op in made)


def test_what_is_apart_is_not_copied() -> None:
    with hloforge.Builder("apart") as builder:
        which, x, z = (builder.parameter(n, text) for n, text in enumerate(("s32[]", "u32[300]", "u32[300]")))
        y = ops.mul(x, 3)
        chosen = ops.conditional(which, [lambda y: y * 5, lambda y: y * y], [y, y])
        program = builder.build((ops.add(z, z), chosen))
    lower(program.module)
    (conditional,) = operations(program.module, {"stablehlo.case", "stablehlo.if"})
    made = [list(region.blocks[0].operations)[-1].operands[0].owner.name for region in conditional.regions]
    assert made == ["stablehlo.multiply"] * 2


def counted(*first: Value, turn: Callable[..., list[Value]]) -> list[Value]:
    """What a loop of three turns makes of arrays, given its counter and them."""
    start = ops.constant(0, "s32")
    found = ops.while_(
        lambda i, *_: ops.lt(i, 3), lambda i, *arrays: [ops.add(i, 1), *turn(i, *arrays)], [start, *first]
    )
    return [found[1 + n] for n in range(len(first))]


def read_behind_the_loop(x: Value) -> Value:
    """The loop's first value is a product, which another one reads beside the loop's result."""
    y = ops.dot(x, x)
    (z,) = counted(y, turn=lambda _, c: [ops.dot(c, x)])
    return ops.dot(z, y)


def read_in_the_loop(x: Value) -> Value:
    """The loop reads a product, and so do a later loop and a product of both."""
    y = ops.dot(x, x)
    (z,) = counted(x, turn=lambda _, c: [ops.dot(c, y)])
    (w,) = counted(x, turn=lambda _, c: counted(c, turn=lambda _, d: [ops.add(ops.dot(d, z), y)]))
    return ops.dot(w, y)


def chosen_by_the_counter(x: Value) -> Value:
    """A conditional in the loop, whose branches the host knows."""
    y = ops.dot(x, x)

    def turn(i: Value, c: Value) -> list[Value]:
        z = ops.dot(c, y)
        first = ops.eq(ops.rem(i, 2), 0)
        chosen = ops.conditional(first, z, lambda z: ops.dot(z, x), z, lambda z: ops.dot(c, z))
        return [ops.dot(chosen, z)]

    (z,) = counted(y, turn=turn)
    return ops.dot(z, y)


def while_any_is_less(x: Value) -> Value:
    """The condition is computed from arrays, as of loops under ``vmap``: ``habits`` 920094."""
    start = ops.broadcast(ops.constant(0, "s32"), [8])
    last = ops.iota("s32", [8], 0)

    def turn(i: Value, c: Value) -> list[Value]:
        return [ops.add(i, 1), ops.rev(c, [0])]

    found = ops.while_(lambda i, _: ops.reduce(ops.lt(i, last), False, ops.or_, [0]), turn, [start, x])
    return found[1]


def while_any_is_less_in_such_a_loop(x: Value) -> Value:
    """In a loop of that kind, a loop whose first value is read behind it: ``algorithms`` 990007."""
    start = ops.broadcast(ops.constant(0, "s32"), [8])
    last = ops.iota("s32", [8], 0)

    def until(most: Value, first: Value, turn: Callable[[Value], Value]) -> Value:
        found = ops.while_(
            lambda i, _: ops.reduce(ops.lt(i, most), False, ops.or_, [0]),
            lambda i, c: [ops.add(i, 1), turn(c)],
            [start, first],
        )
        return found[1]

    def outer(c: Value) -> Value:
        y = ops.dot(c, x)
        return ops.dot(until(last, y, lambda d: ops.dot(d, x)), y)

    return ops.dot(until(ops.rem(last, 3), x, outer), x)


_BUILDERS = (
    read_behind_the_loop, read_in_the_loop, chosen_by_the_counter, while_any_is_less, while_any_is_less_in_such_a_loop,
)  # fmt: skip


@pytest.mark.wide(3)
@pytest.mark.parametrize("build", _BUILDERS)
def test_nothing_moves_across_loops_of_known_length(build: Callable[[Value], Value]) -> None:
    """IREE joins what is before and behind them, and refuses it: "circular dependency"."""
    with hloforge.Builder(build.__name__) as builder:
        program = builder.build(build(builder.parameter(0, "f32[8,8]")))
    x = np.linalg.qr(np.random.default_rng(1).normal(size=(8, 8)))[0].astype(np.float32)
    lowered = program.clone()
    lower(lowered.module, target="cpu")
    got = compile_module(lowered, Target(), CompileOptions()).load()(x)
    np.testing.assert_allclose(got, interpret(program.module, x)[0], rtol=1e-4, atol=1e-6)
    for target in ("vulkan", "cuda:sm_80"):
        assert program.compile(target).vmfb


NESTED = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %end = stablehlo.constant dense<100.0> : tensor<f32>
  %none = stablehlo.constant dense<0.0> : tensor<f32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %r = stablehlo.while(%a = %x) : tensor<4xf32>
  cond {
    %s = stablehlo.reduce(%a init: %none) applies stablehlo.add across dimensions = [0]
      : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
    %c = stablehlo.compare LT, %s, %end : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %i:2 = stablehlo.while(%n = %one, %b = %a) : tensor<i32>, tensor<4xf32>
    cond {
      %c = stablehlo.compare GT, %n, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %d = stablehlo.add %b, %b : tensor<4xf32>
      %m = stablehlo.subtract %n, %one : tensor<i32>
      stablehlo.return %m, %d : tensor<i32>, tensor<4xf32>
    }
    stablehlo.return %i#1 : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}"""


def calls_in(block: ir.Block) -> list[str]:
    """The name of what is behind each call in a block, calls in its loops left out."""
    names = [op.operation.name for op in block.operations]
    return [behind for name, behind in pairwise(names) if name == "util.call"]


def test_calls_inside_of_loops_can_go() -> None:
    module = read(NESTED).module
    PassManager((KeepLoopBuffers(),)).run(module)
    inner, outer = operations(module, {"stablehlo.while"})
    body = outer.regions[1].blocks[0]
    assert calls_in(outer.block)[-1] == "stablehlo.while"
    assert len(calls_in(inner.regions[1].blocks[0])) == 1
    assert without_calls_in_loops(module)
    assert calls_in(outer.block)[-1] == "stablehlo.while"
    assert not calls_in(body)
    assert not calls_in(inner.regions[1].blocks[0])
    assert not without_calls_in_loops(module)


def _part_or_reversed(which: Value, part: Value) -> Value:
    return ops.conditional(which, [lambda y: ops.rev(y, [0]), lambda y: y], [part, part])


def beside_another(which: Value, x: Value) -> tuple[Value, ...]:
    return ops.mul(x, 2), _part_or_reversed(which, ops.add(ops.slice(x, [0], [3], [1]), 1))


def beside_one_around(which: Value, x: Value) -> tuple[Value, ...]:
    other, part = ops.mul(x, 2), ops.add(ops.slice(x, [0], [3], [1]), 1)
    chosen = ops.conditional(which, [lambda y: _part_or_reversed(which, y), lambda y: y * 3], [part, part])
    return other, chosen


def in_a_loop(which: Value, x: Value) -> tuple[Value, ...]:
    part = ops.add(x, 1)
    return tuple(counted(x, turn=lambda i, c: [ops.add(c, _part_or_reversed(ops.rem(i + which, 2), part))]))


def beside_none(which: Value, x: Value) -> tuple[Value, ...]:
    return (_part_or_reversed(which, ops.add(ops.slice(x, [0], [3], [1]), 1)),)


def of_a_parameter(which: Value, x: Value) -> tuple[Value, ...]:
    return ops.add(ops.slice(x, [0], [3], [1]), 1), _part_or_reversed(which, x)


@pytest.mark.parametrize(
    ("build", "is_copied"),
    [
        (beside_another, True),
        (beside_one_around, True),
        (in_a_loop, True),
        (beside_none, False),
        (of_a_parameter, False),
    ],
)
def test_parts_of_one_allocation_are_handed_on_as_copies(
    build: Callable[..., tuple[Value, ...]], is_copied: bool
) -> None:
    """IREE's VM gave the conditional's result the register of the allocation: ``short`` 1550089 to 1550092."""
    with hloforge.Builder("parts") as builder:
        program = builder.build(build(builder.parameter(0, "s32[]"), builder.parameter(1, "f32[5]")))
    lower(program.module, target="cuda")
    for conditional in operations(program.module, {"stablehlo.case", "stablehlo.if"}):
        maker = list(conditional.regions[1].blocks[0].operations)[-1].operands[0].owner
        assert (not isinstance(maker, ir.Block) and maker.parent.operation == conditional) is is_copied
