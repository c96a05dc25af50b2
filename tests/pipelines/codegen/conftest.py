"""What all tests of generated code have."""

from __future__ import annotations

from zlib import crc32

import numpy as np
import pytest

from tests.pipelines.codegen.jax_programs import RANDOM


@pytest.fixture(autouse=True)
def numbers_of_its_own(request: pytest.FixtureRequest) -> None:
    """A test draws the same numbers whatever ran before it in its process."""
    RANDOM.bit_generator.state = np.random.default_rng(crc32(request.node.nodeid.encode())).bit_generator.state
