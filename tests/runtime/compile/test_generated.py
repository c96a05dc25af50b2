"""Which programs our own code generator takes."""

from __future__ import annotations

import pytest

import hloforge
from hloforge.dialect.host_calls import JAX_CALLBACKS


@pytest.mark.parametrize("body", ["stablehlo.negate %x", "stablehlo.custom_call @mine(%x)"])
def test_programs_that_may_call_the_host_are_ours(body: str) -> None:
    """All programs of JAX's backend may, whether they do or not."""
    kind = "(tensor<4xf32>) -> tensor<4xf32>"
    text = f"func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{ %r = {body} : {kind}\n return %r : tensor<4xf32> }}"
    made = hloforge.compile(text, host_calls={"mine", *JAX_CALLBACKS})
    assert made.manifest.is_generated
