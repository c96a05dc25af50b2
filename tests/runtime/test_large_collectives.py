"""Collectives that are made in parts, in threads: against XLA's client on as many devices."""

from __future__ import annotations

import numpy as np

import hloforge
from hloforge import ops
from tests.replicated_engine import run_on_grid
from tests.runtime.large_collectives import LARGE, MEMBERS, PROGRAM, inputs


def test_large_collectives_are_those_of_xla() -> None:
    program = hloforge.replicate(PROGRAM, replicas=MEMBERS, cache=False, timeout=20)
    for actual, expected in zip(program(*inputs()), run_on_grid(PROGRAM, MEMBERS, 1, inputs()), strict=True):
        np.testing.assert_array_equal(actual, expected)


def test_members_of_a_group_have_the_same_bits_of_several_arrays() -> None:
    """Sums that round, of a large array and a small one, each pair of devices for itself and in a loop."""
    builder = hloforge.Builder("pairs")
    with builder:
        x, y = builder.parameter(0, f"f32[{LARGE // 4 + 1}]", "x"), builder.parameter(1, "f32[3]", "y")

        def turn(number: ops.Value, *arrays: ops.Value) -> list[ops.Value]:
            total = ops.cross_replica_sum(arrays, [[0, 1], [3, 2]])
            return [number + 1, total[0], total[1]]

        _, *totals = ops.while_(lambda number, *_: number < 2, turn, [ops.constant(np.int32(0)), x, y])
        program = builder.build(totals)
    random = np.random.default_rng(5)
    given = [random.normal(size=(4, size)).astype(np.float32) for size in (LARGE // 4 + 1, 3)]
    executable = hloforge.compile(program, replicas=4, cache=False)
    sums = hloforge.Replicas(executable, 4, timeout=20, check_lifetimes=True)(*given)
    for actual, one in zip(sums, given, strict=True):
        pairs = one.astype(np.float64).reshape(2, 2, -1).sum(1)
        np.testing.assert_allclose(actual, np.repeat(2 * pairs, 2, axis=0), rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(actual[::2].view(np.int32), actual[1::2].view(np.int32))
