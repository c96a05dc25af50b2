"""Updates of donated arguments are made in place: those of large ones by IREE's compiler, to which we leave them."""

from __future__ import annotations

import pytest

import hloforge

DONATION = ", input_output_alias={ {}: (0, {}, must-alias) }"


@pytest.mark.parametrize(("rows", "donation", "own"), [(1000, DONATION, False), (10, DONATION, True), (1000, "", True)])
def test_updates_of_large_donated_arguments_are_not_copies(rows: int, donation: str, own: bool) -> None:
    text = f"""HloModule m{donation}
ENTRY e {{
  x = f32[{rows},100] parameter(0)
  u = f32[1,100] parameter(1)
  i = s32[] parameter(2)
  zero = s32[] constant(0)
  ROOT r = f32[{rows},100] dynamic-update-slice(x, u, i, zero)
}}"""
    assert hloforge.compile(text).manifest.is_generated is own
