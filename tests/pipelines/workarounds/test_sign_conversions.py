"""legalize-sign-conversions: the low bits of every value, judged by numpy's casts."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from hloforge.dialect.element_types import element_type
from hloforge.dialect.mlir import parse_module
from hloforge.dialect.operations import operations
from hloforge.pipelines.framework.manager import PassManager
from hloforge.pipelines.workarounds.sign_conversions import LegalizeSignConversions
from tests.engines import interpret

INTEGERS = ["i8", "i32", "i64", "ui8", "ui32", "ui64"]


@pytest.mark.parametrize(("source", "target"), list(itertools.permutations(INTEGERS, 2)))
def test_conversions_keep_the_low_bits(source: str, target: str) -> None:
    module = parse_module(f"""func.func @main(%x: tensor<5x{source}>) -> tensor<5x{target}> {{
      %r = stablehlo.convert %x : (tensor<5x{source}>) -> tensor<5x{target}> return %r : tensor<5x{target}> }}""")
    PassManager([LegalizeSignConversions()]).run(module)
    for op in operations(module, {"stablehlo.convert"}):
        assert ("<5xui" in str(op.operands[0].type)) == ("<5xui" in str(op.results[0].type))
    limits = np.iinfo(element_type(source).dtype)
    x = np.array([limits.min, limits.max, 0, 1, limits.max // 3], element_type(source).dtype)
    np.testing.assert_array_equal(interpret(module, x)[0], x.astype(element_type(target).dtype))
