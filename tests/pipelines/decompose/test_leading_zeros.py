"""decompose-leading-zeros against Python's integers, through StableHLO's interpreter."""

from __future__ import annotations

import numpy as np
import pytest

from hloforge.pipelines.decompose.leading_zeros import DecomposeLeadingZeros
from tests.elementwise import evaluate


@pytest.mark.parametrize("bits", [8, 16, 64])
@pytest.mark.parametrize("kind", ["i", "u"])
def test_every_count_is_right(kind: str, bits: int) -> None:
    edges = {0, 2 ** (bits - 1) + 1, *(2**k for k in range(bits)), *(2**k - 1 for k in range(1, bits + 1))}
    values = sorted(edges) if bits > 8 else list(range(256))
    x = np.array(values, f"u{bits // 8}").view(f"{kind}{bits // 8}")
    want = np.array([bits - value.bit_length() for value in values], x.dtype)
    got = evaluate("count_leading_zeros", (DecomposeLeadingZeros(),), x)
    np.testing.assert_array_equal(got, want)
