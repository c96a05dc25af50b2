"""HLO whose instructions contradict their computations is refused at its line."""

from __future__ import annotations

import pytest

import hloforge

PARTS = {
    "negated": "a = f32[4] parameter(0)\n ROOT r = f32[4] negate(a)",
    "truth": "a = f32[4] parameter(0)\n ROOT r = pred[] constant(true)",
    "shorter": "a = f32[5] parameter(0)\n ROOT r = pred[] constant(true)",
    "one": "a = f32[4] parameter(0)\n ROOT r = s32[] constant(1)",
    "longer": "a = f32[4] parameter(0)\n ROOT r = f32[5] constant({1, 2, 3, 4, 5})",
}
PARAMETERS = ("x = f32[4]", "y = f32[5]", "i = s32[4]", "p = pred[]", "t = (f32[4], f32[4])", "q = s32[]")


def program(line: str) -> str:
    parts = [f"{name} {{ {body} }}" for name, body in PARTS.items() if name in line]
    parameters = [f"{given} parameter({number})" for number, given in enumerate(PARAMETERS)]
    return "\n".join(["HloModule m", *parts, "ENTRY e {", *parameters, line, "}"])


REFUSED = {
    "r = f32[4] fusion(y), kind=kLoop, calls=negated": r"operand 0 is f32\[5\], and parameter 0 of .* negated f32\[4\]",
    "r = f32[4] fusion(i), kind=kLoop, calls=negated": r"operand 0 is s32\[4\]",
    "r = f32[4] fusion(x, x), kind=kLoop, calls=negated": "2 operands, and its computation negated 1 parameters",
    "r = f32[4] fusion(), kind=kLoop, calls=negated": "0 operands",
    "r = f32[5] fusion(x), kind=kLoop, calls=negated": r"its shape is f32\[5\], and its computation negated returns",
    "r = s32[4] fusion(x), kind=kLoop, calls=negated": r"its shape is s32\[4\]",
    "r = (f32[4]) fusion(x), kind=kLoop, calls=negated": r"its shape is \(f32\[4\]\)",
    "r = f32[4] call(y), to_apply=negated": "operand 0",
    "r = f32[5] call(x), to_apply=negated": "its shape is",
    "r = f32[5] while(y), condition=truth, body=negated": "operand 0",
    "r = f32[4] while(x), condition=truth, body=longer": "its computation longer returns",
    "r = f32[4] while(x), condition=one, body=negated": r"its condition one returns s32\[\]",
    "r = f32[4] while(x), condition=shorter, body=negated": "parameter 0 of its computation shorter",
    "r = f32[5] while(x), condition=truth, body=negated": "its shape is",
    "r = f32[4] conditional(p, y, x), true_computation=negated, false_computation=negated": "operand 0",
    "r = f32[5] conditional(p, x, x), true_computation=negated, false_computation=negated": "its shape is",
    "r = f32[4] conditional(q, x, y), branch_computations={negated, negated}": "operand 0",
    "r = f32[5] get-tuple-element(t), index=0": "and the element",
    "r = f32[4] get-tuple-element(t), index=7": "index=7 of a tuple of 2",
    "r = (f32[5]) tuple(x)": "its operands are",
    "r = f32[5] opt-barrier(x)": "and its operand",
}


@pytest.mark.parametrize("line", REFUSED)
def test_a_contradiction_is_refused_at_its_line(line: str) -> None:
    text = program(f"ROOT {line}")
    with pytest.raises(hloforge.ImporterError, match=f"r: .*{REFUSED[line]}") as caught:
        hloforge.read(text)
    assert caught.value.location is not None
    assert caught.value.location.line == text.splitlines().index(f"ROOT {line}") + 1


@pytest.mark.parametrize(
    "line",
    [
        "r = f32[4] fusion(x), kind=kLoop, calls=negated",
        "r = f32[4]{0:T(128)} fusion(x), kind=kLoop, calls=negated",
        "r = f32[4] call(x), to_apply=negated",
        "r = f32[4] while(x), condition=truth, body=negated",
        "r = f32[4] conditional(p, x, x), true_computation=negated, false_computation=negated",
        "r = f32[4] get-tuple-element(t), index=1",
        "r = ((f32[4], f32[4]), f32[4]) tuple(t, x)",
    ],
)
def test_what_agrees_is_read(line: str) -> None:
    assert hloforge.read(program(f"ROOT {line}")).signature


def test_the_fused_product_of_a_scalar_by_an_array() -> None:
    """Its operand is an array where the computation takes a number: XLA's converter made a program of it."""
    text = """HloModule m
%f {
  %a = s32[8] parameter(0)
  %b = s32[] parameter(1)
  %d = s32[8] broadcast(%b)
  ROOT %r = s32[8] multiply(%a, %d)
}
ENTRY main {
  %a = s32[8] parameter(0)
  %b = s32[8] parameter(1)
  ROOT %x = s32[8] fusion(%a, %b), kind=kLoop, calls=%f
}"""
    with pytest.raises(hloforge.ImporterError, match=r"operand 1 is s32\[8\], and parameter 1 of") as caught:
        hloforge.read(text)
    assert caught.value.location is not None and caught.value.location.line == 11
