"""decide-updates: arrays that are read after an update of a part of them, and parts that overlap what they replace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hloforge
from hloforge import Value, ops
from hloforge.dialect.operations import operations
from hloforge.dialect.program import Program
from hloforge.pipelines.legalize.decide_updates import DecideUpdates
from hloforge.pipelines.named import lower
from hloforge.runtime.compile.by_iree import compile_module
from hloforge.runtime.compile.targets import Target
from hloforge.runtime.options import CompileOptions
from hloforge.runtime.reference.engines import reference

Build = Callable[[Value], tuple[Value, ...]]


def kept(x: Value) -> tuple[Value, ...]:
    """The array before the update, and a part of what the update leaves."""
    doubled = ops.mul(x, 2)
    updated = ops.dynamic_update_slice(doubled, ops.slice(x, [0, 0], [1, 9]), [1, 0])
    return ops.slice(updated, [0, 0], [1, 9]), doubled


def shifted(x: Value) -> tuple[Value, ...]:
    """In each turn, rows move by one over others."""

    def turn(i: Value, rows: Value) -> list[Value]:
        return [ops.add(i, 1), ops.dynamic_update_slice(rows, ops.slice(rows, [0, 0], [300, 9]), [i, 0])]

    return (ops.while_(lambda i, _: ops.lt(i, 4), turn, [ops.constant(0, "s32"), x])[1],)


def shifted_and_negated(x: Value) -> tuple[Value, ...]:
    """The same, with arithmetic on the way."""

    def turn(i: Value, rows: Value) -> list[Value]:
        return [ops.add(i, 1), ops.dynamic_update_slice(rows, ops.neg(ops.slice(rows, [0, 0], [300, 9])), [i, 0])]

    return (ops.while_(lambda i, _: ops.lt(i, 4), turn, [ops.constant(0, "s32"), x])[1],)


def in_its_place(x: Value) -> tuple[Value, ...]:
    """In each turn, a row is doubled where it is."""

    def turn(i: Value, rows: Value) -> list[Value]:
        row = ops.dynamic_slice(rows, [i, 0], [1, 9])
        return [ops.add(i, 1), ops.dynamic_update_slice(rows, ops.add(row, row), [i, 0])]

    return (ops.while_(lambda i, _: ops.lt(i, 4), turn, [ops.constant(0, "s32"), x])[1],)


def once(x: Value) -> tuple[Value, ...]:
    doubled = ops.mul(x, 2)
    row = ops.neg(ops.slice(x, [0, 0], [1, 9]))
    return (ops.dynamic_update_slice(doubled, row, [1, 0]),)


def exchanged(x: Value) -> tuple[Value, ...]:
    """Two rows change places: the second update's part was read from the array before the first."""
    first, second = ops.slice(x, [0, 0], [1, 9]), ops.slice(x, [1, 0], [2, 9])
    updated = ops.dynamic_update_slice(x, second, [0, 0])
    return (ops.dynamic_update_slice(updated, first, [1, 0]),)


def kept_behind_a_barrier(x: Value) -> tuple[Value, ...]:
    """The array before the update is read by another name."""
    doubled = ops.mul(x, 2)
    same = ops.optimization_barrier(doubled)
    return ops.dynamic_update_slice(doubled, ops.slice(x, [0, 0], [1, 9]), [1, 0]), same


def kept_in_another_shape(x: Value) -> tuple[Value, ...]:
    """What is updated is a reshape of what is read afterwards."""
    doubled = ops.mul(x, 2)
    flat = ops.reshape(doubled, [x.dims[0] * 9])
    return ops.dynamic_update_slice(flat, ops.reshape(ops.slice(x, [0, 0], [1, 9]), [9]), [9]), ops.abs(doubled)


def shifted_as_other_bits(x: Value) -> tuple[Value, ...]:
    """What is updated, and the part of it that is written, are the same array by another type."""
    doubled = ops.mul(x, 2)
    part = ops.bitcast_convert_type(ops.slice(doubled, [0, 0], [1, 9]), "u32")
    return (ops.dynamic_update_slice(ops.bitcast_convert_type(doubled, "u32"), part, [1, 0]),)


def in_a_branch(x: Value) -> tuple[Value, ...]:
    """An update in one of two branches, of an array that nobody reads afterwards."""
    doubled = ops.mul(x, 2)
    is_large = ops.reshape(ops.gt(ops.slice(x, [0, 0], [1, 1]), ops.constant(3, "s32")), [])

    def changed(y: Value) -> Value:
        return ops.dynamic_update_slice(y, ops.broadcast(ops.constant(5, "s32"), [1, 9]), [1, 0])

    return (ops.conditional(is_large, doubled, changed, doubled, lambda y: y),)


def kept_beside_a_branch(x: Value) -> tuple[Value, ...]:
    """The same array is returned as it was."""
    doubled = ops.mul(x, 2)
    is_large = ops.reshape(ops.gt(ops.slice(x, [0, 0], [1, 1]), ops.constant(3, "s32")), [])

    def changed(y: Value) -> Value:
        return ops.dynamic_update_slice(y, ops.broadcast(ops.constant(5, "s32"), [1, 9]), [1, 0])

    return ops.conditional(is_large, doubled, changed, doubled, ops.neg), doubled


def permuted(x: Value) -> tuple[Value, ...]:
    """Rows change places in the array that they were read from, also by another name."""
    places = ops.constant(np.random.default_rng(0).permutation(x.dims[0])[:, None].astype(np.int32))
    return tuple(
        ops.scatter(
            x,
            places,
            rows,
            lambda _, new: new,
            update_window_dims=[1],
            inserted_window_dims=[0],
            scatter_dims_to_operand_dims=[0],
            unique_indices=True,
        )
        for rows in (x, ops.optimization_barrier(x))
    )


def built(build: Build, rows: int, element: str = "s32") -> Program:
    with hloforge.Builder(build.__name__) as builder:
        return builder.build(build(builder.parameter(0, f"{element}[{rows},9]", "x")))


@pytest.mark.parametrize(
    ("build", "copies"),
    [
        *((kept, 1), (shifted, 2), (shifted_and_negated, 2), (once, 0), (exchanged, 3), (kept_behind_a_barrier, 1)),
        *((kept_in_another_shape, 1), (shifted_as_other_bits, 1), (in_a_branch, 0), (kept_beside_a_branch, 1)),
    ],
)
def test_copies(build: Build, copies: int) -> None:
    copy = built(build, 400).clone()
    DecideUpdates().run(copy.module)
    assert len(operations(copy.module, {"stablehlo.select"})) == copies


_ROWS = {
    **dict.fromkeys((kept, exchanged, in_a_branch, kept_beside_a_branch), 2),
    **dict.fromkeys((shifted, shifted_and_negated, in_its_place), 900),
}


@pytest.mark.wide(2)
@pytest.mark.parametrize(("build", "rows"), _ROWS.items())
def test_compiled_updates(build: Build, rows: int) -> None:
    program = built(build, rows)
    x = np.arange(rows * 9, dtype=np.int32).reshape(rows, 9)
    for got, want in zip(program.compile("cpu")(x), program.evaluate(x, engine="interpreter"), strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.wide(2)
@pytest.mark.parametrize("element", ["f32", "c128"])
@pytest.mark.parametrize("build", [kept, kept_behind_a_barrier, permuted])
def test_wide_elements_and_barriers(build: Build, element: str) -> None:
    """IREE fills no arrays of 128 bits an element with a constant, and copies nothing for a barrier."""
    program = built(build, 40, element)
    inputs = hloforge.random_inputs(program.signature)
    for got, want in zip(program.compile("cpu")(*inputs), program.evaluate(*inputs, engine="xla"), strict=True):
        np.testing.assert_array_equal(got, want)


def test_an_array_is_read_before_an_update_that_the_host_waits_for() -> None:
    """Where a slice starts is computed from the updated array; what is sliced, from the array before."""
    with hloforge.Builder("waits") as builder:
        x = builder.parameter(0, hloforge.Shape.array("f32", 256), "x")
        part = builder.parameter(1, hloforge.Shape.array("f32", 8), "part")
        old = ops.cos(x)
        square = ops.reshape(old, [16, 16])
        product = ops.reshape(ops.dot(square, square), [256])
        updated = ops.dynamic_update_slice(old, part, [3])
        start = ops.convert_element_type(ops.reduce(updated, 0.0, ops.max, [0]), "s32")
        sliced = ops.dynamic_slice(product, [start], [8])
        program = builder.build((sliced, ops.add(sliced, ops.slice(updated, [5], [13]))))
    executable = program.compile("cpu")
    values = np.random.default_rng(3).standard_normal(256).astype(np.float32)
    before = np.cos(values.astype(np.float64))
    want = (before.reshape(16, 16) @ before.reshape(16, 16)).ravel()[4:12]
    after = np.concatenate([before[:3], np.full(8, 4.5), before[11:]])
    for device in ("local-sync", "local-task"):
        session = executable.load(device=device)
        for _ in range(3):
            got = session(values, np.full(8, 4.5, np.float32))
            np.testing.assert_allclose(got[0], want, rtol=1e-5, atol=1e-5)
            np.testing.assert_allclose(got[1], want + after[5:13], rtol=1e-5, atol=1e-5)


_EIGH = """func.func @main(%a: tensor<2x2xcomplex<f32>>) -> (tensor<2x2xcomplex<f32>>, tensor<2xf32>) {
  %0:3 = stablehlo.custom_call @hloforge.heevd(%a) {mhlo.backend_config = {mode = 86 : ui8, uplo = 76 : ui8}}
    : (tensor<2x2xcomplex<f32>>) -> (tensor<2x2xcomplex<f32>>, tensor<2xf32>, tensor<i32>)
  return %0#0, %0#1 : tensor<2x2xcomplex<f32>>, tensor<2xf32>
}"""


def test_parts_are_read_before_updates_of_the_same_array() -> None:
    """The loops of an eigendecomposition move real rows, then imaginary ones, that they read before both."""
    draw = np.random.default_rng(0)
    a = (draw.normal(size=(2, 2)) + 1j * draw.normal(size=(2, 2))).astype(np.complex64)
    a += a.conj().T
    program = hloforge.read(_EIGH)
    lower(program.module)
    vectors, values = compile_module(program, Target(), CompileOptions()).load()(a)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(a), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(a @ vectors, vectors * values, atol=1e-5)
    np.testing.assert_allclose(vectors.conj().T @ vectors, np.eye(2), atol=1e-5)


def scattered(x: Any) -> Any:
    """Three updates of one array, of which the first waits longest for its places."""
    first = jnp.place(x, x > 0, jnp.array([1, 2]).astype(x.dtype), inplace=False)
    second = jnp.put(x, np.array([0, 5]), 9, inplace=False)
    third = jnp.put_along_axis(x, np.array([[0], [1], [2], [5]]), 4, 1, inplace=False)
    return first, second, third


def test_the_last_of_several_updates_waits_for_copies_that_run_late() -> None:
    x = np.random.default_rng(0).normal(size=(4, 6)) * 3
    arrays = (x, x.astype(np.int8))
    with jax.enable_x64(True):
        program = jax.jit(lambda a, b: (*scattered(a), *scattered(b)))
        found = hloforge.compile(program.lower(*arrays), cache=False).load()(*arrays)
        for array, expected in zip(found, program(*arrays), strict=True):
            np.testing.assert_array_equal(array, expected)


@pytest.mark.parametrize("element", ["f16", "bf16", "f32", "c64"])
def test_zeros_that_only_iree_finds_are_copied(element: str) -> None:
    """A copy is a choice; of two equal arrays it would be none."""
    with hloforge.Builder("zeros") as builder:
        part = builder.parameter(0, hloforge.Shape.array(element, 8, 4))
        start = builder.parameter(1, "s32[]")
        threes = ops.broadcast(ops.constant(3, element), (16, 8))
        nothing = ops.sub(threes, threes)
        program = builder.build((ops.dynamic_update_slice(nothing, part, [start, start]), nothing))
    given = np.ones((8, 4), program.signature.parameters[0].shape.element.dtype), np.int32(2)
    expected = reference("xla", isolated=False).prepare(program)(*given)
    for one, other in zip(hloforge.compile(program, cache=False).load()(*given), expected, strict=True):
        np.testing.assert_array_equal(one, other)
