"""Which programs our own code generator takes."""

from __future__ import annotations

import pytest

import hloforge
from hloforge.dialect.host_calls import JAX_CALLBACKS
from hloforge.runtime.compile.generated import is_generated


@pytest.mark.parametrize(("body", "own"), [("stablehlo.negate %x", True), ("stablehlo.custom_call @mine(%x)", False)])
def test_programs_that_may_call_the_host_are_ours_if_they_do_not(body: str, own: bool) -> None:
    """All programs of JAX's backend may."""
    kind = "(tensor<4xf32>) -> tensor<4xf32>"
    text = f"func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{ %r = {body} : {kind}\n return %r : tensor<4xf32> }}"
    made = hloforge.compile(text, host_calls={"mine", *JAX_CALLBACKS})
    assert is_generated(made.manifest) is own
