"""Programs that call the host, from the command line alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.runtime.native_libraries import built
from tests.tools.command import Call

PROGRAM = """HloModule my
ENTRY e {
  x = f32[2] constant({1, 2})
  y = f32[2,3] parameter(0)
  ROOT z = f32[3,3] custom-call(x, y), custom_call_target="myfunc"
}
"""
INPUT = "--input=2x3xf32=10 20 30 40 50 60"
RESULT = "3x3xf32=[42 43 44][45 46 47][48 49 50]\n"


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "my.hlo"
    path.write_text(PROGRAM)
    return path


def test_compile_here_and_run_there(call: Call, program: Path, tmp_path: Path) -> None:
    library, vmfb = built("functions.c"), tmp_path / "my.vmfb"
    for known in ("--host-call=myfunc", f"--library={library}"):
        result = call("compile", program, known, "-o", vmfb)
        assert result.exit_code == 0, result.stderr
    assert call("run", vmfb, f"--library={library}", INPUT).stdout == RESULT
    assert call("run", program, f"--library={library}", INPUT).stdout == RESULT
    shown = json.loads(call("inspect", vmfb, "--json").stdout)
    assert shown["host_calls"] == ["@myfunc(f32[2], f32[2,3]) -> f32[3,3]"]


def test_what_is_missing_is_said_at_the_first_moment(call: Call, program: Path, tmp_path: Path) -> None:
    vmfb = tmp_path / "my.vmfb"
    refused = call("compile", program, "--host-call=myfnc", "-o", vmfb)
    assert refused.exit_code == 1 and not vmfb.exists()
    assert f"{program}:5:8: error: custom_call @myfunc is not supported" in refused.stderr
    assert "similar names: myfnc" in refused.stderr
    call("compile", program, "--host-call=myfunc", "-o", vmfb)
    result = call("run", vmfb, INPUT)
    assert result.exit_code == 1
    assert "calls host functions that are not registered: myfunc" in result.stderr
    nowhere = call("run", vmfb, INPUT, "--library=./none.so")
    assert nowhere.exit_code == 1 and "cannot load the library none.so" in nowhere.stderr


def test_a_library_gives_what_it_defines_and_what_is_listed(call: Call, tmp_path: Path) -> None:
    library, path = built("names.c"), tmp_path / "p.mlir"
    text = """func.func @main(%x: tensor<8xi8>) -> tensor<8xi8> {
      %y = stablehlo.custom_call @NAME(%x) : (tensor<8xi8>) -> tensor<8xi8>
      return %y : tensor<8xi8> }"""
    path.write_text(text.replace("NAME", "system"))
    refused = call("run", path, f"--library={library}", "--input=random")
    assert refused.exit_code == 1 and refused.stderr.count("error:") == 1
    assert f"{path}:2:12: error: custom_call @system is not supported" in refused.stderr
    path.write_text(text.replace("NAME", "copied"))
    assert call("run", path, f"--library={library}:copied", "--input=random").exit_code == 0
    assert call("run", path, f"--library={library}:weak", "--input=random").exit_code == 1
