"""legalize-concatenations: arrays that begin alike keep what they hold, whatever the host waits for."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import hloforge
from hloforge import Builder, Value, ops
from hloforge.dialect.operations import operations
from hloforge.dialect.program import Program
from hloforge.pipelines.named import lower

Array = np.ndarray[Any, Any]
RANDOM = np.random.default_rng(0)
DTYPES = (
    np.bool_,
    np.int8,
    np.uint16,
    np.uint32,
    np.int64,
    ml_dtypes.bfloat16,
    np.float64,
    np.complex64,
    np.complex128,
)


def arrays(size: int) -> list[Array]:
    return [(RANDOM.standard_normal(size) * 9).astype(np.float32) for _ in range(3)]


def slices(size: int) -> list[tuple[int, int, int]]:
    """Of both arrays, of the first, and of the second one."""
    return [(1, size + 1, 1), (0, size, 2), (size + 1, 2 * size, 1)]


def begin_alike(size: int, known: bool) -> Program:
    """Two arrays that begin alike; where a slice of the earlier one starts is computed from the later one.

    If not ``known``, only IREE finds that they do.
    """
    with Builder("alike") as builder:
        x, p, q = (builder.parameter(n, hloforge.Shape.array("f32", size), name) for n, name in enumerate("xpq"))
        earlier = ops.concat_in_dim([ops.abs(x), p], 0)
        begin = ops.abs(x) if known else ops.select(ops.le(ops.constant(1), 2), ops.abs(x), q)
        later = ops.concat_in_dim([begin, q], 0)
        start = ops.convert_element_type(ops.reduce(later, -1e30, ops.max, [0]), "s32")
        part = ops.dynamic_slice(earlier, [start], [size])
        return builder.build((ops.neg(earlier), part, *(ops.slice(later, [a], [b], [c]) for a, b, c in slices(size))))


@pytest.mark.parametrize(("size", "known"), [(4, True), (500, True), (500, False)])
def test_arrays_that_begin_alike_hold_the_same_in_every_call(size: int, known: bool) -> None:
    program = begin_alike(size, known)
    executable = program.compile("cpu")
    x, p, q = arrays(size)
    earlier, later = np.concatenate([abs(x), p]), np.concatenate([abs(x), q])
    start = min(max(int(later.max()), 0), size)
    for device in ("local-sync", "local-task"):
        session = executable.load(device=device)
        for _ in range(3):
            # Memory that is free again holds no zeros.
            for number in range(3):
                session.put(np.full(size, 7e7, np.float32), number)
            got = session(x, p, q)
            want = (-earlier, earlier[start : start + size], *(later[slice(*part)] for part in slices(size)))
            for result, expected in zip(got, want, strict=True):
                np.testing.assert_array_equal(result, expected)


def test_small_arrays_of_any_element_type_stand_in_order() -> None:
    sizes = [(2, 1, 3), (2, 3, 3), (2, 1, 3), (2, 2, 3)]
    groups = [[(RANDOM.standard_normal(dims) * 50).astype(dtype) for dims in sizes] for dtype in DTYPES]
    with Builder("small") as builder:
        joined: list[Value] = []
        for number, group in enumerate(groups):
            shapes = [hloforge.Shape.array(array.dtype, *array.shape) for array in group]
            values = [builder.parameter(4 * number + n, shape, f"x{number}_{n}") for n, shape in enumerate(shapes)]
            joined.append(ops.concat_in_dim(values, 1))
        program = builder.build(tuple(joined))
    results = program.compile("cpu").load()(*(array for group in groups for array in group))
    for got, group in zip(results, groups, strict=True):
        np.testing.assert_array_equal(got, np.concatenate(group, 1))


def test_large_arrays_that_nobody_waits_for_stay_as_they_are() -> None:
    with Builder("different") as builder:
        x, y = (builder.parameter(n, hloforge.Shape.array("f32", 500), name) for n, name in enumerate("xy"))
        program = builder.build((ops.concat_in_dim([x, y], 0), ops.concat_in_dim([ops.neg(x), y], 0)))
    lower(program.module, target="cpu")
    assert len(operations(program.module, {"stablehlo.concatenate"})) == 2
    assert not operations(program.module, {"stablehlo.optimization_barrier"})
