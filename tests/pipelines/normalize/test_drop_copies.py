"""drop-copies: copies, dependencies and domains are their operand; barriers stay."""

from __future__ import annotations

import numpy as np

from hloforge.dialect.operations import operations
from hloforge.importers.reader import read
from hloforge.pipelines.framework.manager import PassManager
from hloforge.pipelines.normalize.drop_copies import DropCopies
from tests.engines import interpret

HLO = """ENTRY main {
  x = f32[2,3]{1,0} parameter(0)
  c = f32[2,3]{0,1} copy(x)
  after = token[] after-all()
  d = f32[2,3]{0,1} add-dependency(c, after)
  b = f32[2,3]{0,1} opt-barrier(d)
  m = f32[2,3]{0,1} domain(b), domain={kind="sharding", entry={maximal device=0}, exit={maximal device=1}}
  ROOT r = f32[2,3]{1,0} copy(m)
}
"""


def test_values_are_the_same() -> None:
    module = read(HLO).module
    assert len(operations(module, DropCopies.removes)) == 4
    PassManager([DropCopies()]).run(module)
    x = np.array([[1, np.nan, -0.0], [np.inf, 5, 6]], np.float32)
    (barrier,) = operations(module, {"stablehlo.optimization_barrier"})
    barrier.results[0].replace_all_uses_with(barrier.operands[0])
    barrier.erase()
    # The interpreter knows no tokens; this one is unused now.
    (token,) = operations(module, {"stablehlo.create_token"})
    token.erase()
    np.testing.assert_array_equal(interpret(module, x)[0], x)
