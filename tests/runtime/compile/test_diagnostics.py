"""What IREE's compiler prints becomes one error."""

from __future__ import annotations

import pytest

from hloforge.dialect.errors import Location
from hloforge.runtime.compile.diagnostics import failure


def test_the_first_diagnostic_leads_and_others_follow() -> None:
    text = """m.hlo:3:5: error: 'stablehlo.foo' op is bad
    %0 = stablehlo.foo
    ^
m.hlo:3:5: note: see current operation: %0 = "stablehlo.foo"() : () -> tensor<4xf32>
m.hlo:9:1: error: failed to translate executables
m.hlo:9:1: error: failed to translate executables
other.hlo:1:1: error: third
other.hlo:2:1: error: fourth
"""
    error = failure(text, "failed", ("reproduce",))
    assert error.location == Location("m.hlo", 3, 5)
    assert error.message == "IREE's compiler failed: 'stablehlo.foo' op is bad"
    assert error.notes == ("m.hlo:9:1: failed to translate executables", "other.hlo:1:1: third", "reproduce")


def test_a_fused_location_gives_its_file_position() -> None:
    error = failure('loc(callsite("dot.3"("m.hlo":7:3) at "main")): error: no\n', "failed")
    assert error.location == Location("m.hlo", 7, 3)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "a:1:2: error: failed to legalize 'x.y': %2 = \"x.y\"(%1) <{m = [#a<(d0) -> (d0)>]}> ({...}) : (i1) -> i1",
            "failed to legalize 'x.y'",
        ),
        ("a:1:2: error: failed to run on #hal.executable.target<'llvm-cpu', {a = b}>", "failed to run on"),
        ("a:1:2: error: operand #0 must be: a tensor, not (x)", "operand #0 must be: a tensor, not (x)"),
        ("a:1:2: error: " + "x" * 5000, "x" * 300),
    ],
)
def test_ir_is_cut_off(line: str, message: str) -> None:
    assert failure(line, "failed").message == f"IREE's compiler failed: {message}"


@pytest.mark.parametrize(
    ("text", "summary", "message", "hint"),
    [
        (
            "ld.lld: error: undefined symbol: sin\nld: undefined symbol: cos\n",
            "failed",
            "misses cos, sin",
            "no library of mathematics",
        ),
        ("x:1:1: error: exceeded stack allocation limit of 32768", "failed", "32768", "stack-allocation-limit=BYTES"),
        ("terminate: std::bad_alloc\n", "crashed (SIGABRT)", "bad_alloc", "memory limit"),
        ("terminate called without an active exception\n", "crashed (SIGABRT)", "terminate", "memory limit"),
        ("", "crashed (SIGKILL)", "crashed (SIGKILL)", "when memory runs out"),
        ("", "ran out of time", "ran out of time", "time limit"),
        (
            "/a/b/iree-compile: Unknown command line argument '--x'.  Try: 'y'\ntail\n",
            "failed",
            "failed: Unknown",
            "--help",
        ),
        ("first\nlast\n\n", "failed", "failed: last", ""),
    ],
)
def test_known_causes_have_a_way_out(text: str, summary: str, message: str, hint: str) -> None:
    error = failure(text, summary)
    assert message in error.message
    assert hint in error.hint
    assert bool(hint) == bool(error.hint)
