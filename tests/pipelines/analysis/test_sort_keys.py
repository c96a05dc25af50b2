"""What comparators order by."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import hloforge
from hloforge import Value, ops
from hloforge.dialect.mlir import in_context, ir
from hloforge.dialect.operations import operations
from hloforge.dialect.program import Program
from hloforge.pipelines.analysis.sort_keys import SortKey, sort_keys


def sorting(comparator: Callable[..., Value], *types: str) -> Program:
    with hloforge.Builder("sorting") as builder:
        operands = [builder.parameter(n, f"{name}[5]", f"x{n}") for n, name in enumerate(types)]
        return builder.build(ops.sort(operands, comparator))


def keys_of(comparator: Callable[..., Value], *types: str) -> list[tuple[int | None, bool]] | None:
    """Of each key the operand that it is, and whether it descends; None if no keys are found."""
    program = sorting(comparator, *types)
    with in_context(program.module):
        (op,) = operations(program.module, {"stablehlo.sort"})
        keys = sort_keys(op.regions[0])
        return None if keys is None else [(_operand(key), key.descending) for key in keys]


def _operand(key: SortKey) -> int | None:
    """The number of the operand that a key is; None if it is computed."""
    return key.value.arg_number // 2 if isinstance(key.value.owner, ir.Block) else None


def absolute(a: Value, b: Value) -> Value:
    return ops.abs(a) < ops.abs(b)


def canonical(a: Value) -> Value:
    """As JAX compares floats: one zero, one NaN."""
    number = ops.select(a.eq(0), ops.mul(a, 0), a)
    return ops.select(a.ne(a), ops.constant(np.nan, "f32"), number)


SINGLE = {
    "less": (ops.lt, [(0, False)]),
    "greater": (ops.gt, [(0, True)]),
    "swapped": (lambda a, b: b < a, [(0, True)]),
    "function": (absolute, [(None, False)]),
    "constant": (lambda a, b: ops.mul(a, 3) > ops.mul(b, 3), [(None, True)]),
    "not strict": (ops.le, None),
    "different functions": (lambda a, b: a < ops.abs(b), None),
    "different constants": (lambda a, b: ops.add(a, 1) < ops.add(b, 2), None),
    "one record twice": (lambda a, b: a < ops.mul(a, 2), None),
    "both records": (lambda a, b: ops.sub(a, b) < ops.sub(b, a), None),
    "negated": (lambda a, b: ops.not_(a < b), None),
}


@pytest.mark.parametrize("name", SINGLE)
def test_keys_of_one_operand(name: str) -> None:
    comparator, expected = SINGLE[name]
    assert keys_of(comparator, "s32") == expected


SEVERAL = {
    "or": (lambda a, b, c, d: (a < b) | (a.eq(b) & (c > d)), [(0, False), (1, True)]),
    "other side": (lambda a, b, c, d: ((c > d) & b.eq(a)) | (b > a), [(0, False), (1, True)]),
    "select": (lambda a, b, c, d: ops.select(a.eq(b), c < d, a > b), [(0, True), (1, False)]),
    "second only": (lambda a, b, c, d: c < d, [(1, False)]),
    "sum": (lambda a, b, c, d: ops.add(a, c) < ops.add(b, d), [(None, False)]),
    "tie of another key": (lambda a, b, c, d: (a < b) | (c.eq(d) & (c > d)), None),
    "no tie": (lambda a, b, c, d: (a < b) | (c > d), None),
    "crossed": (lambda a, b, c, d: a < d, None),
}


@pytest.mark.parametrize("name", SEVERAL)
def test_keys_of_two_operands(name: str) -> None:
    comparator, expected = SEVERAL[name]
    assert keys_of(comparator, "s32", "s32") == expected


def test_keys_of_floats_may_be_computed() -> None:
    assert keys_of(ops.lt, "f32") == [(0, False)]
    assert keys_of(lambda a, b: ops.compare("LT", a, b, "TOTALORDER"), "f32") == [(0, False)]
    assert keys_of(lambda a, b: ops.compare("LT", canonical(a), canonical(b), "TOTALORDER"), "f32") == [(None, False)]


def test_real_parts_are_keys() -> None:
    assert keys_of(lambda a, b: ops.real(a) < ops.real(b), "c64") == [(None, False)]
