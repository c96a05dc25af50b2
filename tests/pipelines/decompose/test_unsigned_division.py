"""decompose-unsigned-division against Python's integers."""

from __future__ import annotations

import numpy as np
import pytest

from hloforge.pipelines.decompose.unsigned_division import DecomposeUnsignedDivision
from tests.elementwise import evaluate


def _pairs(bits: int) -> tuple[np.ndarray, np.ndarray]:
    edges = [0, 1, 2, 3, 2 ** (bits - 1) - 1, 2 ** (bits - 1), 2 ** (bits - 1) + 1, 2**bits - 2, 2**bits - 1]
    drawn = np.random.default_rng(bits).integers(0, 2**bits, 6, np.uint64, endpoint=False) if bits < 64 else []
    values = [*edges, *map(int, drawn)]
    x, y = zip(*((a, b) for a in values for b in values), strict=True)
    return np.array(x, f"u{bits // 8}"), np.array(y, f"u{bits // 8}")


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
@pytest.mark.parametrize("name", ["divide", "remainder"])
def test_every_bit_is_right(name: str, bits: int) -> None:
    x, y = _pairs(bits)
    everything = 2**bits - 1
    want = [
        ((everything if name == "divide" else a) if b == 0 else (a // b if name == "divide" else a % b))
        for a, b in zip(map(int, x), map(int, y), strict=True)
    ]
    got = evaluate(name, (DecomposeUnsignedDivision(),), x, y)
    np.testing.assert_array_equal(got, np.array(want, x.dtype))
