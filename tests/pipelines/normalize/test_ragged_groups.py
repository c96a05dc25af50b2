"""Ragged products whose groups have sizes for each row, against numpy."""

from __future__ import annotations

import numpy as np

import hloforge

PROGRAM = """HloModule m
ENTRY e {
  x = f32[2,2,6,4] parameter(0)
  y = f32[3,2,4,5] parameter(1)
  n = s64[2,2,3] parameter(2)
  ROOT r = f32[2,2,6,5] ragged-dot(x, y, n), lhs_batch_dims={1}, rhs_batch_dims={1}, lhs_contracting_dims={3},
    rhs_contracting_dims={2}, lhs_ragged_dims={2}, rhs_group_dims={0}
}"""


def test_each_row_has_groups_of_its_own() -> None:
    generator = np.random.default_rng(0)
    x, y = generator.normal(size=(2, 2, 6, 4)).astype("f"), generator.normal(size=(3, 2, 4, 5)).astype("f")
    # By batch and row: sizes that leave rows out are zeros there.
    sizes = np.array([[[1, 2, 3], [0, 6, 0]], [[2, 2, 1], [3, 0, 3]]])
    got = hloforge.compile(hloforge.read(PROGRAM)).load()(x, y, sizes)
    expected = np.zeros((2, 2, 6, 5), np.float32)
    for batch, row in np.ndindex(2, 2):
        ends = np.cumsum(sizes[batch, row])
        for group, (end, size) in enumerate(zip(ends, sizes[batch, row], strict=True)):
            part = slice(end - size, end)
            expected[batch, row, part] = x[row, batch, part] @ y[group, batch]
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)
