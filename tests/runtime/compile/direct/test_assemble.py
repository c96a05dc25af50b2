"""Programs of kernels as vmfbs, run on both drivers of processors."""

from __future__ import annotations

import numpy as np
import pytest

import hloforge
from hloforge.runtime.compile.direct.assemble import vmfb
from hloforge.runtime.compile.direct.host import unavailable
from tests.runtime.compile.direct.programs import manifest, sum_of

pytestmark = pytest.mark.skipif(bool(unavailable()), reason=unavailable())


@pytest.mark.parametrize("device", ["local-sync", "local-task"])
def test_elementwise(device: str) -> None:
    data = vmfb(sum_of(), manifest(["f32[64]", "f32[64]"], ["f32[64]"]), "sum", caching=False)
    session = hloforge.load(data, device=device)
    x, y = np.arange(64, dtype=np.float32), np.ones(64, np.float32)
    np.testing.assert_array_equal(session(x, y), x + y)
    assert str(session.signature) == "(x0: f32[64], x1: f32[64]) -> f32[64]"
