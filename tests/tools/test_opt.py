from __future__ import annotations

import re
from pathlib import Path

import pytest

from hloforge.dialect.mlir import parse_module
from hloforge.pipelines.catalogue import passes_by_name
from hloforge.pipelines.named import PIPELINES, pipeline
from tests.tools.command import Call


def test_without_passes_the_program_is_printed(call: Call, add: Path) -> None:
    result = call("opt", add)
    assert result.exit_code == 0, result.stderr
    assert "stablehlo.add" in result.stdout
    parse_module(result.stdout)


def test_pipelines_and_passes_run_in_turn(call: Call, add: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.mlir"
    result = call(
        "opt", add, "--pipeline=normalize", "--pipeline=inline-calls,func.func(canonicalize,cse)", "--pass=audit",
        "-o", output, "--timings",
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    assert "stablehlo.add" in output.read_text()
    order = [line.split()[0] for line in result.stderr.splitlines()]
    assert order == [*map(str, pipeline("normalize")), "inline-calls", "func.func(canonicalize,cse)", "audit", "total"]


def test_locations_name_the_users_lines(call: Call, add: Path) -> None:
    assert f'"{add}":5:' in call("opt", add, "--locations").stdout
    assert "loc(" not in call("opt", add).stdout


def test_large_constants_are_elided_on_request(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "c.hlo"
    path.write_text(f"HloModule m\nENTRY e {{ ROOT c = s32[64] constant({{{', '.join(map(str, range(64)))}}}) }}\n")
    assert "63" in call("opt", path).stdout
    assert "63" not in call("opt", path, "--elide=4").stdout


@pytest.mark.parametrize(
    ("pipeline", "message"),
    [
        ("canonicalise", "did you mean canonicalize"),
        ("inline-calls{fast=true}", "unknown option 'fast'"),
        ("func.func(cse", "never closed"),
        ("", "expected the name of a pass"),
    ],
)
def test_a_wrong_pipeline_is_one_error(call: Call, add: Path, pipeline: str, message: str) -> None:
    result = call("opt", add, f"--pipeline={pipeline}")
    assert result.exit_code == 1
    assert message in result.stderr
    assert result.stdout == ""


def test_a_program_is_required(call: Call) -> None:
    assert call("opt").exit_code == 2


def test_every_pass_is_listed_with_what_it_is_for(call: Call) -> None:
    listed = call("opt", "--list-passes").stdout
    for name in passes_by_name():
        assert re.search(rf"^  {name}(\{{.*\}})? +\S", listed, re.MULTILINE), name


def test_every_stage_of_every_pipeline_has_a_reason(call: Call) -> None:
    listed = call("opt", "--list-pipelines").stdout
    for name in PIPELINES:
        section = listed.partition(f"{name}:\n")[2].partition("\n\n")[0].splitlines()
        assert [line.split("  ")[1] for line in section] == [str(entry) for entry in pipeline(name)]
        assert all(len(line.strip().split("  ", 1)) == 2 for line in section)
