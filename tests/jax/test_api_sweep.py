"""JAX's interface on hloforge and on JAX's CPU; ``python -m tests.jax.api_sweep`` tells what differs."""

from __future__ import annotations

import pytest

pytest.importorskip("jax")

from tests.jax.api_sweep import differences


@pytest.mark.slow
def test_what_the_interface_does_is_what_it_does_on_the_cpu() -> None:
    assert not differences()
