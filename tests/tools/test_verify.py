"""``hloforge verify``, on programs that are right and on ones that a plugin's pass makes wrong."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from tests.tools.command import Call

pytestmark = pytest.mark.wide(2)

# A pass of the user's own that makes every addition a subtraction.
WRONG = """
from dataclasses import dataclass
from typing import Any, ClassVar
from hloforge.dialect.mlir import in_context, ir
from hloforge.dialect.operations import operations
from hloforge.pipelines import named
from hloforge.pipelines.framework.passes import Pass

@dataclass(frozen=True)
class Subtract(Pass):
    name: ClassVar[str] = "subtract"

    def run(self, module: Any) -> None:
        with in_context(module):
            for op in operations(module, ["stablehlo.add"]):
                with ir.InsertionPoint(op), op.location:
                    made = ir.Operation.create(
                        "stablehlo.subtract", results=[op.results[0].type], operands=list(op.operands))
                op.results[0].replace_all_uses_with(made.results[0])
                op.erase()

named.NORMALIZE = (*named.NORMALIZE, named.Stage(Subtract(), "a planted fault"))
"""


FEED = """HloModule feed
ENTRY e {
  t = token[] after-all()
  i = (f32[3], token[]) infeed(t)
  v = f32[3] get-tuple-element(i), index=0
  ROOT r = f32[3] add(v, v)
}
"""


@pytest.fixture
def wrong(tmp_path: Path, iree_codegen: None) -> Path:
    path = tmp_path / "wrong.py"
    path.write_text(WRONG)
    return path


class _Links(HTMLParser):
    """What a page loads from elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [
            f"{tag} {name}={value}"
            for name, value in attrs
            if name in ("src", "href", "action") and not (value or "").startswith(("#", "data:"))
        ]


def test_a_right_program_agrees_and_is_reported(call: Call, pair: Path, tmp_path: Path) -> None:
    report, page = tmp_path / "report.json", tmp_path / "report.html"
    result = call("verify", pair, "--trials=3", f"--json={report}", f"--html={page}")
    assert result.exit_code == 0, result.stderr
    kinds = re.findall(r"^trial \d: (\w+) values", result.stdout, re.MULTILINE)
    assert kinds == ["plausible", "random", "special"]
    found = json.loads(report.read_text())
    assert found["agrees"] and found["format"] == "hloforge.verification"
    assert [entry["name"] for entry in found["trials"][2]["results"]] == ["result{0}", "result{1,0}"]
    links = _Links()
    links.feed(page.read_text())
    assert links.found == []
    assert "result{1,0} s32" in page.read_text()


def test_a_wrong_program_is_told_with_its_errors(call: Call, add: Path, wrong: Path, tmp_path: Path) -> None:
    arguments = ("--input=1 2 3 4", "--input=0 0 1 1", f"--plugin={wrong}", "--json=-")
    result = call("verify", add, *arguments)
    assert result.exit_code == 1
    assert result.stderr.startswith("error: 1 of 1 trials went wrong; in trial 0 (given values) result differs")
    (found,) = json.loads(result.stdout)["trials"][0]["results"]
    assert (found["mismatch_count"], found["count"]) == (2, 4)
    assert found["mismatches"][0] == {"index": [2], "got": "2", "want": "4"}
    got, want = np.float32([1, 2, 2, 3]), np.float32([1, 2, 4, 5])
    assert found["statistics"]["mean_absolute"] == np.abs(got - want).mean()
    assert found["statistics"]["worst"] == [2]


def test_a_program_may_hold_its_inputs(call: Call, tmp_path: Path, wrong: Path) -> None:
    path = tmp_path / "program.mlir"
    add = "%0 = stablehlo.add %x, %x : tensor<2xi32>\n return %0 : tensor<2xi32>"
    text = f"func.func @main(%x: tensor<2xi32>) -> tensor<2xi32> {{\n {add}\n}}"
    path.write_text(f"// hloforge-input: 2xs32=[0 0]\n{text}\n")
    # With zeros the planted fault does not show; with any other number it does.
    assert call("verify", path, f"--plugin={wrong}").exit_code == 0
    assert call("verify", path, f"--plugin={wrong}", "--input=1").exit_code == 1


@pytest.mark.parametrize(
    ("options", "status", "message"),
    [
        (["--range=0.5"], 2, "is no range"),
        (["--range=x=1:0"], 2, "is no range"),
        (["--range=unknown=0:1"], 1, "no parameter is called 'unknown'"),
        (["--without=unknown"], 1, "no pass is called 'unknown'"),
        (["--plugin=missing.py"], 1, "the plugin missing.py failed: FileNotFoundError"),
        (["--trials=0"], 2, "--trials"),
    ],
)
def test_bad_options(call: Call, add: Path, options: list[str], status: int, message: str) -> None:
    result = call("verify", add, *options)
    assert (result.exit_code, message in result.stderr) == (status, True), result.stderr


def test_a_program_that_waits_for_its_host_is_refused(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "feed.hlo"
    path.write_text(FEED)
    for command in ("verify", "bisect"):
        result = call(command, path)
        assert result.exit_code == 1
        assert "feed.hlo:4:3: error: stablehlo.infeed exchanges items with the host" in result.stderr


def test_sizes_come_from_inputs(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "dynamic.mlir"
    body = "%0 = stablehlo.tanh %x : tensor<?x4xf32>\n return %0 : tensor<?x4xf32>"
    path.write_text(f"func.func @main(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {{\n {body}\n}}")
    result = call("verify", path, "--input=3x4xf32=random")
    assert result.exit_code == 0 and "result 3x4xf32: agrees" in result.stdout, result.stderr
    assert "--shape NAME=8x4" in call("verify", path).stderr


def test_the_plugin_of_the_guide(call: Call, add: Path, tmp_path: Path) -> None:
    guide = (Path(__file__).resolve().parents[2] / "docs" / "debugging.md").read_text()
    (code,) = re.findall(r"^```python\n(.*?)^```", guide, re.M | re.S)
    plugin = tmp_path / "nothing.py"
    plugin.write_text(code)
    assert call("verify", add, f"--plugin={plugin}", "--trials=1").exit_code == 0
    # Only with it there is a pass to leave out.
    assert call("verify", add, f"--plugin={plugin}", "--trials=1", "--without=nothing").exit_code == 0
    assert "no pass is called 'nothing'" in call("verify", add, "--trials=1", "--without=nothing").stderr
