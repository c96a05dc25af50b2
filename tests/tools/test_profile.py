"""``hloforge profile``: its table, its files, and what it refuses; the guide's examples run."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from tests.tools.command import Call

S, L = "f32[64,64]", "f32[768,768]"
PRODUCTS = f"""HloModule products
ENTRY e {{
  x = {S} parameter(0)
  y = {L} parameter(1)
  small = {S} dot(x, x), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  large = {L} dot(y, y), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}, metadata={{op_name="net/layer/dot"}}
  t = {L} tanh(large), metadata={{op_name="net/layer/tanh"}}
  ROOT r = ({S}, {L}) tuple(small, t)
}}
"""
GUIDE = Path(__file__).resolve().parents[2] / "docs" / "profiling.md"
FAST = ("--device=local-sync", "--iterations=3", "--warmup=1")


@pytest.fixture
def products(tmp_path: Path) -> Path:
    path = tmp_path / "products.hlo"
    path.write_text(PRODUCTS)
    return path


# What the dispatch of the large product computes, and its counts: IREE's compiler adds to it what follows.
LARGE = {"own": ("dot", "906 M"), "iree": ("dot+tanh", "907 M")}


def test_the_large_product_stands_first_with_its_line(
    call: Call, products: Path, either_codegen: str, tmp_path: Path
) -> None:
    kinds, counts = LARGE[either_codegen]
    files = {name: tmp_path / name for name in ("p.json", "t.json", "s.folded")}
    result = call(
        "profile",
        products,
        *FAST,
        *("--peak-gflops=100", "--peak-bandwidth=10"),
        *(f"--json={files['p.json']}", f"--trace={files['t.json']}", f"--flame={files['s.folded']}"),
    )
    assert result.exit_code == 0, result.stderr
    first = result.stdout.splitlines()[1]
    assert f" {kinds} " in first and "products.hlo:6:3" in first and counts in first
    assert "roofline: 100 G flop/s, 10 G B/s, given" in result.stdout
    found = json.loads(files["p.json"].read_text())
    assert found["calls"] == 3 and found["warmup"] == 1 and found["rows"][0]["scope"] == "net/layer"
    assert {event["ph"] for event in json.loads(files["t.json"].read_text())["traceEvents"]} == {"M", "X"}
    stack = rf"^products\.hlo;net;layer;products\.hlo:6:3;{re.escape(kinds)} \d+$"
    assert re.search(stack, files["s.folded"].read_text(), re.M)


def test_lines_of_the_table(call: Call, products: Path, either_codegen: str) -> None:
    for by, wanted in (("op", LARGE[either_codegen][0]), ("scope", "net/layer")):
        result = call("profile", products, *FAST, "--no-roofline", f"--by={by}", "--top=1")
        assert result.exit_code == 0 and wanted in result.stdout.splitlines()[1], result.stderr
        assert "1 more: " in result.stdout and "roofline" not in result.stdout


def test_json_on_standard_output_stands_alone(call: Call, add_vmfb: Path) -> None:
    result = call("profile", add_vmfb, *FAST, "--json=-")
    found = json.loads(result.stdout)
    assert found["attributed"] is False and found["roofline"] is None and len(found["rows"]) == 1
    assert "a vmfb alone tells no operations" in found["notes"][0]


def test_wrong_command_lines_and_programs(call: Call, products: Path, refused: Path, tmp_path: Path) -> None:
    assert call("profile", products, "--peak-gflops=3").exit_code == 2
    assert call("profile", products, "--by=line").exit_code == 2
    assert call("profile", products, "--iterations=0").exit_code == 2
    result = call("profile", tmp_path / "none.hlo")
    assert result.exit_code == 1 and "no such file" in result.stderr
    result = call("profile", refused)
    assert result.exit_code == 1 and "unheard_of" in result.stderr
    result = call("profile", products, "--input=3xf32=1")
    assert result.exit_code == 1 and "takes 2 inputs" in result.stderr
    result = call("profile", products, "--replicas=2")
    assert result.exit_code == 1 and "--fold-replicas" in result.stderr
    result = call("profile", products, *FAST, "--json=/nowhere/p.json")
    assert result.exit_code == 1 and "cannot write" in result.stderr


def test_the_examples_of_the_guide(call: Call, products: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = GUIDE.read_text()
    monkeypatch.chdir(tmp_path)
    products.rename(tmp_path / "model.hlo")
    (commands,) = re.findall(r"^```sh\n(.*?)^```", text, re.M | re.S)
    for line in commands.splitlines():
        result = call(*shlex.split(line)[1:], *FAST, *("--peak-gflops=100", "--peak-bandwidth=10"))
        assert result.exit_code == 0, result.stderr
    assert (tmp_path / "trace.json").exists() and (tmp_path / "stacks.folded").exists()
    (code,) = re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)
    exec(compile(code, str(GUIDE), "exec"), {})
    columns = re.findall(r"^\| `(\w+)`(?:, `(\w+)`)?(?:, `(\w+)`)? \|", text[text.index("## The layout") :], re.M)
    described = {name for names in columns for name in names if name}
    assert json.loads((tmp_path / "profile.json").read_text()).keys() == described
