"""Passes make a number of calls that is linear in the length of a program: of Python's functions, and of MLIR's.

Seconds would tell more, because MLIR's functions may walk through the whole program, but differ from run to run.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from hloforge import Builder, Computation, Value, ops
from hloforge.pipelines.framework import manager
from hloforge.pipelines.framework.manager import PassManager
from hloforge.pipelines.framework.passes import Pass
from hloforge.pipelines.named import pipeline
from hloforge.pipelines.workarounds.long_chains import LegalizeLongChains

TIMES = 3
# Passes may look at everything twice where they find much, and some at nothing in programs of few operations.
SLACK, LEAST = 1.4, 2000


def softmax(x: Value, _: int) -> Value:
    peaks = ops.broadcast_in_dim(ops.reduce(x, -np.inf, ops.max, [1]), x.dims, [0])
    exponentials = ops.exp(ops.sub(x, peaks))
    return ops.div(exponentials, ops.broadcast_in_dim(ops.reduce(exponentials, 0.0, ops.add, [1]), x.dims, [0]))


def columns(x: Value, _: int) -> Value:
    return ops.sub(x, ops.broadcast_in_dim(ops.reduce(x, 0.0, ops.add, [0]), x.dims, [1]))


def product(x: Value, n: int) -> Value:
    return ops.max(ops.add(ops.dot(x, x), float(n)), 0.0)


def slices(x: Value, n: int) -> Value:
    rows = x.dims[0]
    cut = n % (rows - 1) + 1
    upper, lower = ops.slice(x, [0, 0], [cut, x.dims[1]]), ops.slice(x, [cut, 0], x.dims)
    return ops.pad(ops.concat_in_dim([ops.neg(lower), upper], 0), 0.0, [[0, 0, 0], [1, -1, 0]])


def gathered(x: Value, n: int) -> Value:
    places = ops.reshape(ops.rem(ops.mul(ops.iota("s32", [x.dims[0]], 0), n), x.dims[0]), [x.dims[0], 1])
    return ops.gather(
        x, places, offset_dims=[1], collapsed_slice_dims=[0], start_index_map=[0], index_vector_dim=1,
        slice_sizes=[1, x.dims[1]],
    )  # fmt: skip


def scattered(x: Value, n: int) -> Value:
    rows = ops.constant(np.array([[n % 8], [3]], np.int32))
    part = ops.mul(ops.slice(x, [0, 0], [2, x.dims[1]]), 0.5)
    added = ops.scatter(
        x, rows, part, ops.add, update_window_dims=[1], inserted_window_dims=[0], scatter_dims_to_operand_dims=[0],
        index_vector_dim=1,
    )  # fmt: skip
    return ops.add(x, added)


def updated(x: Value, n: int) -> Value:
    """Rows that nothing of the next update needs, and places that the host waits for."""
    row = ops.slice(x, [0, 0], [1, x.dims[1]])
    place = ops.convert_element_type(ops.reduce(ops.slice(x, [1, 0], [2, 3]), 0.0, ops.add, [0, 1]), "s32")
    known = ops.broadcast(ops.constant(float(n), "f32"), [1, x.dims[1]])
    changed = ops.dynamic_update_slice(x, known, [place, ops.constant(0, "s32")])
    return ops.dynamic_update_slice(changed, ops.tanh(row), [2, 0])


def loop(x: Value, n: int) -> Value:
    def body(state: Value) -> Value:
        return ops.tuple([ops.add(state[0], 1), ops.tanh(ops.dot(state[1], x))])

    return ops.while_(lambda state: ops.lt(state[0], n + 9), body, (ops.constant(0, "s32"), x))[1]


def branch(x: Value, n: int) -> Value:
    flag = ops.gt(ops.reduce(x, 0.0, ops.add, [0, 1]), float(n))
    return ops.conditional(flag, x, ops.neg, x, lambda y: ops.dot(y, y))


def sorted_rows(x: Value, n: int) -> Value:
    return ops.add(ops.sort(x, dimension=1), n)


def arithmetic(x: Value, n: int) -> Value:
    return ops.tanh(ops.add(ops.mul(x, x), float(n)))


def function(x: Value, n: int) -> Value:
    """Which becomes some hundred operations."""
    return ops.sin(ops.mul(x, float(n)))


@dataclass(frozen=True)
class Kind:
    """A step of which programs are made, one after the other.

    Attributes:
        few: how many steps the shorter of two programs has.
    """

    step: Callable[[Value, int], Value]
    shape: str = "f32[16,16]"
    few: int = 40


KINDS = {
    "softmax": Kind(softmax, "f32[512,512]", 12),
    "columns": Kind(columns, "f32[512,512]"),
    "products": Kind(product, "f32[128,128]"),
    "slices": Kind(slices),
    "gathers": Kind(gathered),
    "scatters": Kind(scattered),
    "updates": Kind(updated),
    "loops": Kind(loop),
    "branches": Kind(branch),
    "sorts": Kind(sorted_rows, "s32[16,128]"),
    "arithmetic": Kind(arithmetic, few=100),
    "arithmetic of bf16": Kind(arithmetic, "bf16[16,16]", 100),
    "arithmetic of dynamic sizes": Kind(arithmetic, "f32[<=64,16]", 100),
    "functions of dynamic sizes": Kind(function, "f32[<=64,16]", 8),
}


def program(kind: Kind, steps: int) -> Computation:
    with Builder("long") as builder:
        x = builder.parameter(0, kind.shape)
        for number in range(steps):
            x = kind.step(x, number)
        return builder.build(x)


def calls(made: Computation) -> Counter[str]:
    """How many functions each pass calls."""
    found: Counter[str] = Counter()
    running = ""

    def enter(entry: Pass) -> None:
        nonlocal running
        running = str(entry)

    def count(_frame: Any, event: str, _argument: Any) -> None:
        if event in ("call", "c_call"):
            found[running] += 1

    # Split where the shorter programs are long enough, too.
    passes = [LegalizeLongChains(32) if isinstance(entry, LegalizeLongChains) else entry for entry in pipeline("cpu")]
    runner = PassManager(passes, verify=False, on_pass=enter)
    before = sys.getprofile()
    sys.setprofile(count)
    try:
        runner.run(made.module)
    finally:
        sys.setprofile(before)
    return found


@pytest.mark.wide(2)
@pytest.mark.parametrize("name", KINDS)
def test_calls_grow_with_the_program(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # In short programs the manager skips passes.
    monkeypatch.setattr(manager, "is_large", lambda _: True)
    kind = KINDS[name]
    few, many = (calls(program(kind, count)) for count in (kind.few, kind.few * TIMES))
    too_many = {
        entry: (few[entry], count) for entry, count in many.items() if count > SLACK * TIMES * few[entry] + LEAST
    }
    assert not too_many
