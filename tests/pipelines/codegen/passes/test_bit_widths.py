"""decompose-bit-widths: bytes of numbers, and numbers of bytes."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

from tests.pipelines.codegen.jax_programs import check, normal

_BYTES = np.random.default_rng(1).integers(0, 256, (3, 2, 4)).astype(np.uint8)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (normal(5), np.uint8),
        (normal(5, dtype=np.float64), np.uint32),
        (normal(5, dtype=np.float64), np.float16),
        (normal(2, 3).astype(np.int32), np.int16),
        (_BYTES, np.int32),
        (_BYTES.view(np.uint16), np.float32),
        (_BYTES.view(np.int16)[0], np.uint32),
        (np.zeros((0, 4), np.uint8), np.uint32),
    ],
)
def test_bits_are_the_same(given: Any, wanted: Any) -> None:
    check(lambda x: jax.lax.bitcast_convert_type(jax.lax.bitcast_convert_type(x, wanted), given.dtype), given)
