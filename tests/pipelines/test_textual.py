"""Textual pipelines: MLIR's grammar over hloforge's and MLIR's passes."""

from __future__ import annotations

import pytest

from hloforge.dialect.errors import PipelineError
from hloforge.pipelines.capability.audit import Audit
from hloforge.pipelines.catalogue import passes_by_name
from hloforge.pipelines.decompose.composites import LowerComposites
from hloforge.pipelines.textual import parse_pipeline


def test_hloforge_and_native_passes_mix_in_order() -> None:
    passes = parse_pipeline("symbol-dce, audit{target=cpu},func.func(cse,canonicalize{max-iterations=3})")
    assert [str(entry) for entry in passes] == ["symbol-dce", "audit", "func.func(cse,canonicalize{max-iterations=3})"]
    assert passes[1] == Audit("cpu")


def test_the_module_wrapper_is_dropped() -> None:
    assert [str(entry) for entry in parse_pipeline("builtin.module(inline,audit)")] == ["inline", "audit"]


def test_a_list_option_splits_at_commas() -> None:
    assert parse_pipeline("lower-composites{keep=a.b,c.d}") == [LowerComposites(keep=("a.b", "c.d"))]


def test_every_pass_prints_as_what_parses_to_itself() -> None:
    for cls in passes_by_name().values():
        entry = cls()
        assert parse_pipeline(str(entry)) == [entry]
    entry = LowerComposites(keep=("x", "y"))
    assert parse_pipeline(str(entry)) == [entry]


@pytest.mark.parametrize(
    ("text", "message", "column", "hint"),
    [
        ("", "expected the name of a pass", 0, ""),
        ("cse,,cse", "expected the name of a pass", 4, ""),
        ("func.func(cse", "'(' is never closed", 9, ""),
        ("inline extra", "expected ',' or the end", 7, ""),
        ("canonicalise", "'canonicalise' does not refer to a registered pass", 0, "canonicalize"),
        ("cse,audit{tagret=cpu}", "unknown option 'tagret'; it has: target", 4, ""),
        ("cse{speed=9}", "no such option speed", 0, ""),
        ("func.func(audit)", "audit works on a module", 0, "outside func.func"),
        ("chlo-legalize-to-stablehlo", "works on a function", 0, "func.func(chlo-legalize-to-stablehlo)"),
    ],
)
def test_an_error_names_what_and_where(text: str, message: str, column: int, hint: str) -> None:
    with pytest.raises(PipelineError) as caught:
        parse_pipeline(text)
    assert message in caught.value.message
    assert caught.value.notes == (text, " " * column + "^")
    assert hint in caught.value.hint
