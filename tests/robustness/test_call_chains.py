"""A few kB of text whose functions call the next one twice are a located error about the size, before it is taken."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import hloforge
from hloforge.dialect import inlining
from hloforge.dialect.errors import Error, PassError
from hloforge.dialect.operations import operations
from hloforge.importers.reader import read
from hloforge.pipelines.decompose.composites import LowerComposites
from hloforge.pipelines.normalize.normalization import normalize

ARRAY = "tensor<4xf32>"


def calls(levels: int, call: str = "func.call @f{}({})") -> str:
    """``main`` calls ``f0``, which calls ``f1`` twice, and so on."""
    types = f" : ({ARRAY}) -> {ARRAY}"
    body = f"({{x: {ARRAY}}}) -> {ARRAY}".replace("{x", "%x").replace("}", "", 1)
    text = f"func.func @main{body} {{\n %y = {call.format(0, '%x')}{types}\n return %y : {ARRAY}\n}}\n"
    for level in range(levels):
        text += f"func.func private @f{level}{body} {{\n %a = {call.format(level + 1, '%x')}{types}\n"
        text += f" %b = {call.format(level + 1, '%a')}{types}\n return %b : {ARRAY}\n}}\n"
    return (
        text + f"func.func private @f{levels}{body} {{\n %a = stablehlo.cosine %x : {ARRAY}\n return %a : {ARRAY}\n}}\n"
    )


def composites(levels: int) -> str:
    text = calls(levels, 'stablehlo.composite "a.b" {1} {{decomposition = @f{0}}}')
    return text


def computations(levels: int, call: str) -> str:
    text = "HloModule m\nno {\n x = f32[4] parameter(0)\n ROOT y = pred[] constant(false)\n}\n"
    text += f"g{levels} {{\n x = f32[4] parameter(0)\n ROOT y = f32[4] cosine(x)\n}}\n"
    for level in reversed(range(levels)):
        one, two = call.format("x", level + 1), call.format("a", level + 1)
        text += f"g{level} {{\n x = f32[4] parameter(0)\n a = f32[4] {one}\n ROOT b = f32[4] {two}\n}}\n"
    return text + f"ENTRY e {{\n x = f32[4] parameter(0)\n ROOT y = f32[4] {call.format('x', 0)}\n}}\n"


FORMS: dict[str, Callable[[int], str]] = {
    "functions": calls,
    "composites": composites,
    "calls": lambda levels: computations(levels, "call({}), to_apply=g{}"),
    "fusions": lambda levels: computations(levels, "fusion({}), kind=kLoop, calls=g{}"),
    "whiles": lambda levels: computations(levels, "while({}), condition=no, body=g{}"),
}


@pytest.mark.parametrize("form", FORMS)
def test_calls_that_double_at_each_level(form: str) -> None:
    with pytest.raises(Error, match=r"calls are inlined, and those of \S+ would add [\d,]+ operations") as info:
        hloforge.compile(FORMS[form](30), cache=False)
    assert info.value.location is not None
    assert info.value.location.line > 0
    assert "pass their common results on" in info.value.hint


@pytest.mark.parametrize("form", FORMS)
def test_calls_below_the_limit_are_inlined(form: str) -> None:
    program = read(FORMS[form](4))
    normalize(program.module)
    LowerComposites().run(program.module)
    if form == "whiles":
        assert len(operations(program.module, {"stablehlo.while"})) == 31
    else:
        assert len(operations(program.module, {"stablehlo.cosine"})) == 16


def test_the_limit_counts_what_is_copied_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three levels copy 2 operations into f2, 4 into f1, 8 into f0 and 8 into main."""
    module = read(calls(3)).module
    monkeypatch.setattr(inlining, "COPIES_LIMIT", 21)
    with pytest.raises(PassError, match="would add 22 operations: more than 21"):
        inlining.inline_calls(module)
    monkeypatch.setattr(inlining, "COPIES_LIMIT", 22)
    inlining.inline_calls(module)
    assert len(operations(module.body.operations[0], {"stablehlo.cosine"})) == 8
