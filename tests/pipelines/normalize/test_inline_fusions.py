"""inline-fusions: nested and tuple fusions compute the same without the fusions."""

from __future__ import annotations

import numpy as np

from hloforge.dialect.operations import location_of, operations
from hloforge.importers.reader import read
from hloforge.pipelines.framework.manager import PassManager
from hloforge.pipelines.normalize.inline_fusions import InlineFusions
from tests.engines import interpret

HLO = """inner {
  a = f32[4] parameter(0)
  b = f32[4] parameter(1)
  ROOT s = f32[4] subtract(a, b)
}

outer {
  a = f32[4] parameter(0)
  b = f32[4] parameter(1)
  f = f32[4] fusion(b, a), kind=kLoop, calls=inner
  ROOT t = (f32[4], f32[4]) tuple(f, a)
}

ENTRY main {
  x = f32[4] parameter(0)
  y = f32[4] parameter(1)
  two = (f32[4], f32[4]) fusion(x, y), kind=kLoop, calls=outer
  d = f32[4] get-tuple-element(two), index=0
  ROOT r = f32[4] fusion(d, y), kind=kInput, calls=inner
}
"""


def test_nested_and_tuple_fusions() -> None:
    module = read(HLO).module
    PassManager([InlineFusions()]).run(module)
    x = np.array([1, -0.0, np.inf, 5], np.float32)
    y = np.array([2, 0.0, 1, np.nan], np.float32)
    np.testing.assert_array_equal(interpret(module, x, y)[0], (y - x) - y)


def test_operations_keep_the_line_inside_the_fusion() -> None:
    module = read(HLO).module
    PassManager([InlineFusions()]).run(module)
    main = next(op for op in operations(module, {"func.func"}) if "main" in str(op.attributes["sym_name"]))
    lines = {location_of(op).line for op in operations(main, {"stablehlo.subtract"})}  # type: ignore[union-attr]
    assert lines == {4}
