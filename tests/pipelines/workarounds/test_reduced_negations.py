"""legalize-reduced-negations: values by StableHLO's interpreter; tests/runtime/vulkan_sessions.py runs some."""

from __future__ import annotations

import numpy as np
import pytest

import hloforge
from hloforge import ops
from hloforge.dialect.operations import operations
from hloforge.pipelines.workarounds.reduced_negations import LegalizeReducedNegations
from tests.engines import interpret


@pytest.mark.parametrize(("element", "left"), [("f32", 1), ("f64", 1), ("s32", 2)])
def test_values(element: str, left: int) -> None:
    """The sum of a reshape of a negation, and a negation that is returned; integers are negated."""
    with hloforge.Builder("program") as builder:
        x = builder.parameter(0, hloforge.Shape.array(element, 4, 6), "x")
        program = builder.build((ops.reduce(ops.reshape(ops.neg(x), [24]), 0, ops.add, [0]), ops.neg(ops.rev(x, [0]))))
    copy = program.clone()
    LegalizeReducedNegations().run(copy.module)
    copy.module.operation.verify()
    assert len(list(operations(copy.module, ["stablehlo.negate"]))) == left
    given = np.arange(-7, 17).reshape(4, 6).astype(x.element_type.dtype)
    for got, want in zip(interpret(copy.module, given), interpret(program.module, given), strict=True):
        np.testing.assert_array_equal(got, want)


def test_products_of_integers_by_minus_one() -> None:
    with hloforge.Builder("program") as builder:
        x = builder.parameter(0, "s32[4,6]", "x")
        program = builder.build(ops.reduce(ops.mul(ops.constant(-1, "s32"), x), 0, ops.add, [0, 1]))
    copy = program.clone()
    LegalizeReducedNegations().run(copy.module)
    assert not list(operations(copy.module, ["stablehlo.multiply"]))
    given = np.arange(-7, 17, dtype=np.int32).reshape(4, 6)
    np.testing.assert_array_equal(interpret(copy.module, given)[0], -given.sum())
