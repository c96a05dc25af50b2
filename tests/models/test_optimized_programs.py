"""HLO that XLA has optimized agrees with the executable that it is of: a program of each kind."""

from __future__ import annotations

import pytest

from tests.models.optimized_programs import KINDS, check


@pytest.mark.wide(4)
@pytest.mark.parametrize("seed", range(len(KINDS)))
def test_it_agrees(seed: int) -> None:
    check(seed)
