"""legalize-strided-slices: slices with steps that are read by index compile."""

from __future__ import annotations

import numpy as np

from hloforge import Shape, ops, program
from hloforge.dialect.operations import operations
from hloforge.pipelines.legalize.strided_slices import LegalizeStridedSlices
from hloforge.pipelines.manager import PassManager

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
    return backwards, chosen, ops.rev(ops.slice(x, [1, 0], [4, 7], [1, 1]), [1])


def test_thinned_arrays_are_read_by_index() -> None:
    backwards, chosen, whole = thinned.compile()(X)
    np.testing.assert_array_equal(backwards, X[::2, 1::3][::-1])
    np.testing.assert_array_equal(chosen, X[1::3][[1, 0, 1]])
    np.testing.assert_array_equal(whole, X[1:4, ::-1])


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


def test_only_slices_with_steps_are_kept_apart() -> None:
    copy = thinned.clone()
    PassManager([LegalizeStridedSlices()]).run(copy.module)
    assert len(operations(copy.module, {"stablehlo.optimization_barrier"})) == 2
