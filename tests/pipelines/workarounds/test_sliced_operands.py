"""legalize-sliced-operands: slices with steps that are read by index compile, and slices that are updated."""

from __future__ import annotations

import numpy as np
import pytest

from hloforge import Builder, Shape, Value, compile, ops, program
from hloforge.dialect.operations import operations
from hloforge.pipelines.framework.manager import PassManager
from hloforge.pipelines.workarounds.sliced_operands import LegalizeSlicedOperands
from tests.engines import interpret

X = np.random.default_rng(0).normal(size=(5, 7)).astype(np.float32)


@program
def thinned(x: Shape.parse("f32[5,7]")):  # type: ignore[no-untyped-def,valid-type]  # noqa: ANN201
    backwards = ops.rev(ops.slice(x, [0, 1], [5, 7], [2, 3]), [0])
    chosen = ops.gather(
        ops.slice(x, [1, 0], [5, 7], [3, 1]),
        np.array([1, 0, 1], np.int32),
        offset_dims=[1],
        collapsed_slice_dims=[0],
        start_index_map=[0],
        index_vector_dim=1,
        slice_sizes=[1, 7],
    )
    even = ops.slice(x, [0, 0], [5, 7], [1, 2])
    rolled = ops.concat_in_dim([ops.slice(even, [0, 3], [5, 4]), ops.slice(even, [0, 0], [5, 3])], 1)
    return backwards, chosen, ops.rev(ops.slice(x, [1, 0], [4, 7], [1, 1]), [1]), rolled


def test_thinned_arrays_are_read_by_index() -> None:
    backwards, chosen, whole, rolled = thinned.compile()(X)
    np.testing.assert_array_equal(rolled, np.roll(X[:, ::2], 1, 1))
    np.testing.assert_array_equal(backwards, X[::2, 1::3][::-1])
    np.testing.assert_array_equal(chosen, X[1::3][[1, 0, 1]])
    np.testing.assert_array_equal(whole, X[1:4, ::-1])


@program
def sought(  # type: ignore[no-untyped-def]  # noqa: ANN201
    x: Shape.parse("f32[5,7]"),  # type: ignore[valid-type]
    start: Shape.parse("s32[]"),  # type: ignore[valid-type]
    places: Shape.parse("s32[4,2]"),  # type: ignore[valid-type]
):
    part = ops.dynamic_slice(x, [start, start], [3, 2])
    chosen = ops.gather(part, places, collapsed_slice_dims=[0, 1], start_index_map=[0, 1], slice_sizes=[1, 1])
    return chosen, start


def test_elements_of_a_part_of_rows_are_found() -> None:
    places = np.array([[0, 0], [2, 1], [1, 1], [2, 0]], np.int32)
    chosen, _ = sought.compile()(X, np.int32(2), places)
    np.testing.assert_array_equal(chosen, X[2:5, 2:4][places[:, 0], places[:, 1]])


@program
def columns(x: Shape.parse("f32[4,5,3]"), places: Shape.parse("s32[4,2]")):  # type: ignore[no-untyped-def,valid-type]  # noqa: ANN201
    column = ops.reshape(ops.slice(x, [0, 0, 1], [4, 5, 2]), [4, 5])
    chosen = ops.gather(column, places, collapsed_slice_dims=[0, 1], start_index_map=[0, 1], slice_sizes=[1, 1])
    part = ops.reshape(ops.dynamic_slice(x, [*(places[0, axis] for axis in (0, 1)), places[1, 1]], [3, 4, 1]), [3, 4])
    return ops.rev(column, [0]), chosen, ops.rev(ops.transpose(column, [1, 0]), [0, 1]), ops.rev(part, [1])


def test_columns_are_read_by_index() -> None:
    x = np.random.default_rng(1).normal(size=(4, 5, 3)).astype(np.float32)
    places = np.array([[0, 0], [3, 1], [1, 4], [2, 2]], np.int32)
    backwards, chosen, turned, part = columns.compile()(x, places)
    np.testing.assert_array_equal(backwards, x[::-1, :, 1])
    np.testing.assert_array_equal(chosen, x[places[:, 0], places[:, 1], 1])
    np.testing.assert_array_equal(turned, x[::-1, ::-1, 1].T)
    np.testing.assert_array_equal(part, x[:3, :4, 1][:, ::-1])


@program
def joined(x: Shape.parse("f32[2,7,3]"), y: Shape.parse("f32[2,5]")):  # type: ignore[no-untyped-def,valid-type]  # noqa: ANN201
    column = ops.reshape(ops.slice(x, [0, 1, 1], [2, 7, 2]), [2, 6])
    rows = ops.transpose(column, [1, 0])
    start = ops.constant(1, "s32") + ops.convert_element_type(y[0, 0] > 0, "s32")
    part = ops.reshape(ops.dynamic_slice(x, [start, start, start], [1, 2, 1]), [2])
    return ops.concat_in_dim([column, y], 1), ops.concat_in_dim([rows, rows], 1), ops.concat_in_dim([part, part], 0)


def test_columns_are_joined_with_others() -> None:
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(2, 7, 3)).astype(np.float32), rng.normal(size=(2, 5)).astype(np.float32)
    column = x[:, 1:, 1]
    beside, twice, part = joined.compile()(x, y)
    start = 1 + (y[0, 0] > 0)
    np.testing.assert_array_equal(part, np.tile(x[1, start : start + 2, start], 2))
    np.testing.assert_array_equal(beside, np.concatenate([column, y], 1))
    np.testing.assert_array_equal(twice, np.concatenate([column.T, column.T], 1))


SUMS_FROM_THE_END = """HloModule sums
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
ENTRY e {
  x = f32[4,5,3] parameter(0)
  zero = f32[] constant(0)
  column = f32[4,5,1] slice(x), slice={[0:4], [0:5], [1:2]}
  flat = f32[4,5] reshape(column)
  ROOT sums = f32[4,5] reduce-window(flat, zero), window={size=4x1 pad=0_3x0_0}, to_apply=add
}
"""


def test_columns_are_summed_from_the_end() -> None:
    x = np.random.default_rng(2).normal(size=(4, 5, 3)).astype(np.float32)
    want = x[::-1, :, 1].cumsum(0)[::-1]
    np.testing.assert_allclose(compile(SUMS_FROM_THE_END).load()(x), want, rtol=1e-5, atol=1e-6)


@program
def rearranged(x: Shape.parse("u8[6,7]")):  # type: ignore[no-untyped-def,valid-type]  # noqa: ANN201
    thin = ops.slice(x, [0, 1], [6, 7], [1, 2])
    rows = ops.reshape(ops.transpose(thin, [1, 0]), [2, 9])
    # Unsigned integers are reversed as signed ones.
    return ops.rev(thin, [0]), ops.rev(rows, [1])


def test_thinned_arrays_are_rearranged_before() -> None:
    x = np.arange(42, dtype=np.uint8).reshape(6, 7)
    turned, rows = rearranged.compile()(x)
    np.testing.assert_array_equal(turned, x[::-1, 1::2])
    np.testing.assert_array_equal(rows, x[:, 1::2].T.reshape(2, 9)[:, ::-1])


def test_only_slices_with_steps_are_read_behind_barriers() -> None:
    copy = thinned.clone()
    PassManager([LegalizeSlicedOperands()]).run(copy.module)
    assert len(operations(copy.module, {"stablehlo.optimization_barrier"})) == 4


@program
def updated(x: Shape.parse("f32[5,7]"), at: Shape.parse("s32[1]")):  # type: ignore[no-untyped-def,valid-type]  # noqa: ANN201
    def put(array: ops.Value) -> ops.Value:
        numbers = {"inserted_window_dims": [0], "scatter_dims_to_operand_dims": [0]}
        return ops.scatter(array, at, ops.constant(0.0, "f32"), lambda old, new: new, **numbers)

    row = put(ops.reshape(ops.slice(x, [0, 0], [1, 7]), [7]))
    column = put(ops.reshape(ops.slice(x, [0, 1], [5, 2]), [5]))
    start = ops.reshape(at, [])
    chosen = put(ops.reshape(ops.dynamic_slice(x, [start, start], [1, 6]), [6]))
    return row, column, chosen, x + 1


def test_slices_are_updated() -> None:
    row, column, chosen, x = updated.compile()(X, np.array([1], np.int32))
    np.testing.assert_array_equal(row, np.where(np.arange(7) == 1, 0, X[0]))
    np.testing.assert_array_equal(column, np.where(np.arange(5) == 1, 0, X[:, 1]))
    np.testing.assert_array_equal(chosen, np.where(np.arange(6) == 1, 0, X[1, 1:]))
    np.testing.assert_array_equal(x, X + 1)


@pytest.mark.parametrize(("narrow", "wide"), [("bf16", "f32"), ("s8", "s32"), ("u8", "s32")])
def test_slices_with_steps_of_what_is_widened_keep_their_steps(narrow: str, wide: str) -> None:
    """IREE repeats the conversion in the dispatch of the sum, and took the first elements there."""
    with Builder("widened") as builder:
        x = builder.parameter(0, f"{narrow}[7,3]", "x")
        y = x.astype(wide)
        first, second = ops.slice(y, [0, 0], [7, 3], [2, 1]), ops.slice(y, [1, 0], [5, 3])
        doubled = ops.slice(x + x, [0, 0], [7, 3], [3, 2])
        made = builder.build((ops.add(first, first), ops.add(first, second), doubled, y))
    given = np.arange(21).reshape(7, 3).astype(made.signature.parameters[0].shape.element.dtype)
    y = given.astype(np.float32)
    expected = (2 * y[::2], y[::2] + y[1:5], 2 * y[::3, ::2], y)
    for found, want in zip(compile(made, cache=False).load()(given), expected, strict=True):
        np.testing.assert_array_equal(np.asarray(found, np.float32), want)


def _replaced(x: Value, rows: Value) -> Value:
    places = ops.constant(np.array([[2], [0]], np.int32))
    return ops.scatter(
        x, places, rows, lambda _, new: new,
        update_window_dims=[1], inserted_window_dims=[0], scatter_dims_to_operand_dims=[0],
    )  # fmt: skip


def test_paddings_that_slice_stand_apart_from_gathers_and_scatters() -> None:
    with Builder("padded") as builder:
        x, start = builder.parameter(0, "f32[5,7]"), builder.parameter(1, "s32[1,2]")
        cut = ops.pad(x, 1.0, [(2, -1, 0), (1, -1, 0)])
        gathered = ops.gather(
            cut, start, offset_dims=[0, 1], collapsed_slice_dims=[], start_index_map=[0, 1], slice_sizes=[3, 2],
            index_vector_dim=1,
        )  # fmt: skip
        spread = ops.pad(_replaced(x, ops.slice(x, [3, 0], [5, 7])), 2.0, [(1, 3, 0), (0, 2, 1)])
        program = builder.build((gathered, _replaced(cut, ops.slice(x, [0, 0], [2, 7])), spread))
    inputs = (X, np.array([[2, 4]], np.int32))
    for found, expected in zip(program.compile()(*inputs), program.evaluate(*inputs, engine="xla"), strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("edges", [(1, 0), (0, 3)])
def test_paddings_of_scatters(edges: tuple[int, int]) -> None:
    with Builder("padded") as builder:
        x, rows = builder.parameter(0, "f32[5,7]"), builder.parameter(1, "f32[2,7]")
        program = builder.build(ops.pad(_replaced(x, rows), 1.0, [(0, 0, 0), (*edges, 0)]))
    inputs = (X, -X[:2])
    np.testing.assert_array_equal(program.compile()(*inputs), program.evaluate(*inputs, engine="xla"))


def test_windows_and_paddings_of_what_a_padding_slices() -> None:
    with Builder("padded") as builder:
        cut = ops.pad(ops.sin(builder.parameter(0, "f32[5,7]")), 0.0, [(1, 1, 0), (-1, 0, 0)])
        windows = ops.reduce_window(cut, 0.0, ops.add, [2, 2], [1, 1], [(1, 0), (2, 2)])
        program = builder.build((windows, ops.pad(cut, 1.0, [(2, 0, 0), (0, 1, 0)])))
    for found, expected in zip(program.compile()(X), program.evaluate(X, engine="xla"), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_gathered_booleans_as_bytes_beside_themselves() -> None:
    with Builder("bytes") as builder:
        x, start = builder.parameter(0, "pred[9]"), builder.parameter(1, "s32[4,1]")
        found = ops.gather(
            x, start, offset_dims=[], collapsed_slice_dims=[0], start_index_map=[0], slice_sizes=[1],
            index_vector_dim=1,
        )  # fmt: skip
        program = builder.build((found, ops.convert_element_type(found, "s8")))
    given = (np.arange(9) % 3 == 0, np.array([[3], [1], [6], [8]], np.int32))
    picked, converted = program.compile()(*given)
    np.testing.assert_array_equal(picked, [True, False, True, False])
    np.testing.assert_array_equal(converted, [1, 0, 1, 0])


def test_parts_of_floats_as_integers() -> None:
    with Builder("integers") as builder:
        x = builder.parameter(0, "bf16[7]")
        y = ops.convert_element_type(x, "s32")
        program = builder.build((ops.slice(y, [1], [7], [3]), y))
    given = np.array([1.5, np.inf, -2.5, 3, np.nan, -1e30, 6], program.signature.parameters[0].shape.element.dtype)
    for found, expected in zip(program.compile()(given), program.evaluate(given, engine="xla"), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_what_windows_skip_is_computed_too() -> None:
    with Builder("skipping") as builder:
        x = builder.parameter(0, "s32[5,5]")
        y = ops.mul(x, 3)
        program = builder.build((ops.reduce_window(y, 0, ops.add, [1, 1], [2, 2]), y))
    given = np.arange(25, dtype=np.int32).reshape(5, 5)
    skipped, whole = program.compile()(given)
    np.testing.assert_array_equal(whole, 3 * given)
    np.testing.assert_array_equal(skipped, 3 * given[::2, ::2])


@pytest.mark.parametrize(
    ("dims", "row", "start"), [((2, 16), 1, 0), ((1, 17), 0, 0), ((2, 3, 16), 1, 1), ((2, 64), None, 3)], ids=str
)
def test_steps_of_one_row_for_vulkan(dims: tuple[int, ...], row: int | None, start: int) -> None:
    """IREE has no SPIR-V for ``-x[1, ::2]``. Without a number, the row is known at run time."""
    with Builder("row") as builder:
        x, place = builder.parameter(0, Shape.array("f32", *dims)), builder.parameter(1, "s32[]")
        first = [0 if row is None else row] * (len(dims) - 1)
        if row is None:
            x = ops.dynamic_slice(x, [place, ops.constant(0, "s32")], [1, dims[-1]])
        steps = ops.slice(x, [*first, start], [*(n + 1 for n in first), dims[-1]], [*(1 for _ in first), 2])
        built = builder.build(ops.neg(ops.reshape(steps, [steps.dims[-1]])))
    copy = built.clone()
    PassManager([LegalizeSlicedOperands(for_gpus=True)]).run(copy.module)
    (taken,) = operations(copy.module, {"stablehlo.slice"})
    assert taken.operands[0].type.rank == 1
    array = np.random.default_rng(1).normal(size=dims).astype(np.float32)
    (got,) = interpret(copy.module, array, np.int32(1))
    np.testing.assert_array_equal(got, -array[(1 if row is None else row,) * (len(dims) - 1)][start::2])
    assert built.compile("vulkan").vmfb


def test_what_vulkan_shares_out_reads_steps_from_memory() -> None:
    """IREE forgot them: ``x[::2].sum(0)`` added the first rows up."""
    with Builder("steps") as builder:
        x = builder.parameter(0, "f32[16,3]")
        sums = ops.reduce(ops.mul(ops.slice(x, [0, 0], [16, 3], [2, 1]), 2.0), 0.0, ops.add, [0])
        first, second = (ops.slice(x, [0, n], [16, n + 1], [2, 1]) for n in (0, 1))
        across = ops.broadcast_in_dim(ops.reshape(second, [8]), [8, 8], [1])
        outer = ops.mul(ops.broadcast_in_dim(first, [8, 8], [0, 1]), across)
        joined = ops.reduce(ops.concat_in_dim([ops.slice(x, [0, 0], [8, 3]), x], 0), 0.0, ops.add, [0])
        built = builder.build((sums, outer, joined))
    copy = built.clone()
    PassManager([LegalizeSlicedOperands(for_gpus=True)]).run(copy.module)
    stepped = [op for op in operations(copy.module, {"stablehlo.slice"}) if 2 in op.attributes["strides"]]
    readers = {use.owner.operation.name for op in stepped for use in op.results[0].uses}
    assert len(stepped) == 3
    assert readers == {"stablehlo.optimization_barrier"}
    array = np.arange(48, dtype=np.float32).reshape(16, 3)
    got = interpret(copy.module, array)
    np.testing.assert_array_equal(got[0], 2 * array[::2].sum(0))
    np.testing.assert_array_equal(got[1], np.outer(array[::2, 0], array[::2, 1]))
    np.testing.assert_array_equal(got[2], array[:8].sum(0) + array.sum(0))
    assert built.compile("vulkan").vmfb


@pytest.mark.parametrize("start", [None, 1])
def test_steps_of_a_row_that_a_slice_takes(start: int | None) -> None:
    """``-x[1][::2]``; without a number, the row is known at run time: ``short`` 920025."""
    with Builder("row") as builder:
        x, place = builder.parameter(0, "f32[2,16]"), builder.parameter(1, "s32[]")
        row = (
            ops.dynamic_slice(x, [place, ops.constant(0, "s32")], [1, 16])
            if start is None
            else ops.slice(x, [start, 0], [start + 1, 16])
        )
        built = builder.build(ops.neg(ops.slice(ops.reshape(row, [16]), [3], [14], [2])))
    copy = built.clone()
    PassManager([LegalizeSlicedOperands(for_gpus=True)]).run(copy.module)
    array = np.random.default_rng(2).normal(size=(2, 16)).astype(np.float32)
    (got,) = interpret(copy.module, array, np.int32(1))
    np.testing.assert_array_equal(got, -array[1, 3:14:2])
    assert built.compile("vulkan").vmfb


@pytest.mark.parametrize("target", ["vulkan", "cuda:sm_90"])
def test_one_element_that_a_dispatch_computes_with_and_returns(target: str) -> None:
    """Two patterns of IREE took the element for an array of the same rank: ``hlo`` 995042."""
    with Builder("element") as builder:
        x, y = builder.parameter(0, "s32[3]"), builder.parameter(1, "s32[1,1]")
        element = ops.reshape(ops.slice(x, [1], [2], [1]), [1, 1])
        built = builder.build((element, ops.xor(element, y)))
    copy = built.clone()
    PassManager([LegalizeSlicedOperands(for_gpus=True)]).run(copy.module)
    (barrier,) = operations(copy.module, {"stablehlo.optimization_barrier"})
    assert barrier.operands[0].owner.operation.name == "stablehlo.slice"
    got = interpret(copy.module, np.array([4, 5, 6], np.int32), np.array([[3]], np.int32))
    assert [int(each.item()) for each in got] == [5, 5 ^ 3]
    assert built.compile(target).vmfb


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_parts_of_rows_are_in_memory_before_gathers(order: tuple[int, int]) -> None:
    """``x[:, :3][i]`` and ``x[:, :3].T[i]`` read the part as if it were the whole, for CUDA: ``algorithms`` 1550143."""
    with Builder("part") as builder:
        x, at = builder.parameter(0, "f32[8,4]"), builder.parameter(1, "s32[1]")
        part = ops.transpose(ops.slice(x, [0, 0], [8, 3]), order)
        row = [1, part.dims[1]]
        built = builder.build(
            ops.gather(part, at, offset_dims=[0], collapsed_slice_dims=[0], start_index_map=[0], slice_sizes=row)
        )
    copy = built.clone()
    PassManager([LegalizeSlicedOperands(for_gpus=True)]).run(copy.module)
    (barrier,) = operations(copy.module, {"stablehlo.optimization_barrier"})
    assert [use.owner.operation.name for use in barrier.results[0].uses] == ["stablehlo.gather"]
    array = np.arange(32, dtype=np.float32).reshape(8, 4)
    (got,) = interpret(copy.module, array, np.array([2], np.int32))
    np.testing.assert_array_equal(got, array[:, :3].transpose(order)[2])
