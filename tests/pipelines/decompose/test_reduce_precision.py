"""decompose-reduce-precision: StableHLO's interpreter judges, on every float format and special value."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from hloforge.dialect.element_types import element_type
from hloforge.dialect.mlir import parse_module
from hloforge.importers.reader import read
from hloforge.pipelines.decompose.reduce_precision import DecomposeReducePrecision
from hloforge.pipelines.framework.manager import PassManager
from hloforge.runtime.compile.compiler import compile_program
from hloforge.runtime.options import CompileOptions
from tests.engines import interpret

FORMATS = [(5, 2), (8, 7), (8, 0), (3, 0), (1, 1), (11, 5), (4, 3), (5, 10), (8, 23), (11, 52), (2, 60)]


@pytest.mark.parametrize("name", ["bf16", "f16", "f32", "f64"])
def test_every_format(name: str) -> None:
    row = element_type(name)
    info = ml_dtypes.finfo(row.dtype)
    rng = np.random.default_rng(0)
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 1.0, -1.5, 1.25, 1.75, info.max, -info.max]
    special += [info.smallest_normal, info.smallest_subnormal, 2.0**-14, 2.0**-15, 65504.0, 65519.0, 65520.0]
    values = np.array([*map(float, special), *(rng.normal(size=200) * 2.0 ** rng.integers(-20, 20, 200))])
    with np.errstate(over="ignore"):
        x = values.astype(row.dtype)
    tensor = f"tensor<{len(x)}x{row.mlir}>"
    lines = [f"%r{e}_{m} = stablehlo.reduce_precision %x, format = e{e}m{m} : {tensor}" for e, m in FORMATS]
    names, types = ", ".join(f"%r{e}_{m}" for e, m in FORMATS), ", ".join([tensor] * len(FORMATS))
    text = f"func.func @main(%x: {tensor}) -> ({types}) {{\n" + "\n".join(lines) + f"\nreturn {names} : {types} }}"
    module = parse_module(text)
    PassManager([DecomposeReducePrecision()]).run(module)
    for format_, got, want in zip(FORMATS, interpret(module, x), interpret(text, x), strict=True):
        wide = got.astype(np.float64), want.astype(np.float64)
        np.testing.assert_array_equal(*wide, str(format_))
        number = ~np.isnan(wide[1])
        np.testing.assert_array_equal(np.signbit(wide[0])[number], np.signbit(wide[1])[number], str(format_))


def test_bf16_of_dynamic_size() -> None:
    text = """func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
      %r = stablehlo.reduce_precision %x, format = e8m7 : tensor<?xf32>
      return %r : tensor<?xf32> }"""
    x = np.array([1.0, -0.0, 3.14159, np.inf, np.nan, 1e38], np.float32)
    got = compile_program(read(text), options=CompileOptions(dynamic_shapes="keep"))(x)
    np.testing.assert_array_equal(got, x.astype(ml_dtypes.bfloat16).astype(np.float32))
