"""legalize-batch-groups: groups of features for those of images; tests/cuda_emulator/cuda_sessions.py runs some."""

from __future__ import annotations

import numpy as np
import pytest

from hloforge.dialect.operations import integer, operations
from hloforge.importers.reader import read
from hloforge.pipelines.named import stages
from hloforge.pipelines.workarounds.batch_groups import LegalizeBatchGroups
from tests.engines import interpret

_WINDOW = "window = {stride = [2, 1], pad = [[-1, 3], [0, 1]], lhs_dilate = [1, 3], rhs_dilate = [1, 2]}"


# Images and features in any order, neighbours or not.
@pytest.mark.parametrize(
    ("order", "shape"),
    [
        ("b, 0, 1, f", (6, 4, 5, 2)),
        ("f, b, 0, 1", (2, 6, 4, 5)),
        ("0, f, b, 1", (4, 2, 6, 5)),
        ("b, 0, f, 1", (6, 4, 2, 5)),
    ],
)
def test_groups(order: str, shape: tuple[int, ...]) -> None:
    x, k = "x".join(map(str, shape)), "2x2x2x9"
    rng = np.random.default_rng(0)
    given = rng.integers(-3, 4, shape).astype(np.float32), rng.integers(-3, 4, (2, 2, 2, 9)).astype(np.float32)
    text = f"""func.func @main(%x: tensor<{x}xf32>, %k: tensor<{k}xf32>) -> tensor<2x9x3x12xf32> {{
      %y = stablehlo.convolution(%x, %k) dim_numbers = [{order}]x[0, 1, i, o]->[b, f, 0, 1], {_WINDOW}
        {{batch_group_count = 3 : i64, feature_group_count = 1 : i64}}
        : (tensor<{x}xf32>, tensor<{k}xf32>) -> tensor<2x9x3x12xf32>
      return %y : tensor<2x9x3x12xf32> }}"""
    program = read(text)
    copy = program.clone()
    LegalizeBatchGroups().run(copy.module)
    (convolution,) = operations(copy.module, ["stablehlo.convolution"])
    assert [integer(convolution, f"{kind}_group_count") for kind in ("batch", "feature")] == [1, 3]
    np.testing.assert_array_equal(interpret(copy.module, *given)[0], interpret(program.module, *given)[0])


def test_cuda_alone_needs_it() -> None:
    named = {target: {str(stage.entry) for stage in stages(target)} for target in ("cpu", "cuda", "vulkan")}
    assert [target for target, found in named.items() if LegalizeBatchGroups.name in found] == ["cuda"]
