"""dispatch-concatenations: arrays joined by one dispatch stand where XLA puts them."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

import hloforge
from hloforge import Builder, ops
from hloforge.dialect.operations import operations
from hloforge.dialect.program import Program
from hloforge.pipelines.named import lower

RANDOM = np.random.default_rng(0)
Array = np.ndarray[Any, Any]

# The sizes of the arrays, the dimension along which they are joined, their type, and whether a dispatch does it.
CASES: list[tuple[list[tuple[int, ...]], int, Any, bool]] = [
    ([(64, 1, 32)] * 27, 1, np.float32, True),
    ([(20, n) for n in (1, 3, 16, 17, 100, 129)], 1, np.float32, True),  # parts of vectors, and rows of several
    ([(70, 5, 13), (70, 1, 13), (70, 4, 13)], 1, np.float64, True),
    ([(12, 9), (12, 70), (12, 300)], 1, np.int8, True),
    ([(100, 2), (100, 40), (100, 8)], 1, ml_dtypes.bfloat16, True),
    ([(2, 700), (5, 700), (4, 700)], 0, np.float32, False),  # rows that lie behind each other
    ([(80, 30), (80, 40)], 1, np.float32, False),
    ([(4, 100)] * 12, 1, np.float32, False),
    ([(9, 3)] * 4, 1, np.float32, False),  # too little
    ([(800, 3), (800, 0), (800, 4)], 1, np.float32, False),
]


def program_of(cases: list[tuple[list[tuple[int, ...]], int, Any, bool]]) -> tuple[Program, list[list[Array]]]:
    groups = [[(RANDOM.standard_normal(dims) * 50).astype(dtype) for dims in sizes] for sizes, _, dtype, _ in cases]
    with Builder("joined") as builder:
        number, results = 0, []
        for group, (_, dimension, dtype, _) in zip(groups, cases, strict=True):
            values = []
            for array in group:
                values.append(builder.parameter(number, hloforge.Shape.array(dtype, *array.shape), f"x{number}"))
                number += 1
            results.append(ops.concat_in_dim(values, dimension))
        return builder.build(tuple(results)), groups


def test_joined_arrays_stand_in_order() -> None:
    program, groups = program_of(CASES)
    executable = program.compile("cpu")
    for device in ("local-sync", "local-task"):
        results = executable.load(device=device)(*(array for group in groups for array in group))
        for group, (_, dimension, _, _), got in zip(groups, CASES, results, strict=True):
            np.testing.assert_array_equal(got, np.concatenate(group, dimension))
    for case in CASES:
        module = program_of([case])[0].module
        lower(module)
        assert bool(operations(module, {"flow.dispatch.workgroups"})) == case[-1], case


def test_computed_arrays_and_repeated_ones_are_joined() -> None:
    x = RANDOM.standard_normal((60, 20)).astype(np.float32)
    with Builder("computed") as builder:
        value = builder.parameter(0, hloforge.Shape.array("f32", 60, 20), "x")
        joined = ops.concat_in_dim([value, value * 2.0, value, ops.abs(value)], 1)
        program = builder.build(joined + 1.0)
    want = np.concatenate([x, x * 2, x, np.abs(x)], 1) + 1
    np.testing.assert_array_equal(program.compile("cpu").load()(x), want)
