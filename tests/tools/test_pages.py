"""The pages of ``hloforge inspect --html`` and ``hloforge verify --html``, in a browser."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support_browser import DESK, PHONE, browser, needs_browser, overflow, page_of
from tests.tools.command import Call

if TYPE_CHECKING:
    from playwright.sync_api import Browser

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)><b id=planted>&\"'"

# Two layers in scopes, a sort that is decomposed, and names that would be HTML.
PROGRAM = """
module @"NAME" {
  func.func @main(%x: tensor<4x8xf32> loc("x"), %w: tensor<8x8xf32> loc("w")) -> tensor<4x8xf32> {
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32> loc("net/first/dot")
    %1 = stablehlo.tanh %0 : tensor<4x8xf32> loc("net/first/tanh")
    %2 = stablehlo.dot_general %1, %w, contracting_dims = [1] x [0] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32> loc("net/second/dot")
    %3 = "stablehlo.sort"(%2) <{dimension = 1 : i64, is_stable = true}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %c = stablehlo.compare LT, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1> loc("net/second/sort/compare")
      stablehlo.return %c : tensor<i1>
    }) : (tensor<4x8xf32>) -> tensor<4x8xf32> loc("net/second/sort")
    %4 = stablehlo.abs %3 : tensor<4x8xf32> loc("WHERE/abs")
    return %4 : tensor<4x8xf32>
  }
}
"""  # noqa: E501

PROFILE = {
    "format": "hloforge.time-profile",
    "version": 1,
    "program": "model.hlo",
    "target": "cpu",
    "device": "local-task",
    "calls": 10,
    "warmup": 2,
    "seconds": 2e-3,
    "dispatch_seconds": 1.5e-3,
    "transfer_seconds": 1e-4,
    "host_seconds": 4e-4,
    "unprofiled_seconds": 1.9e-3,
    "flops": 1024,
    "transcendentals": 32,
    "bytes": 4096,
    "attributed": True,
    "roofline": {"gflops": 50.0, "bandwidth": 20.0, "origin": "measured"},
    "rows": [
        {
            "dispatch": "main$0",
            "kinds": "dot_general+tanh",
            "location": HOSTILE,
            "scope": "net/first",
            "count": 1,
            "seconds": 1e-3,
            "least_seconds": 9e-4,
            "most_seconds": 2e-3,
            "cpu_seconds": 1e-3,
            "share": 0.5,
            "flops": 512,
            "transcendentals": 32,
            "bytes": 2048,
            "roofline_fraction": 0.25,
            "bound": "memory",
            "operations": [0],
        }
    ],
    "operations": [],
    "notes": [],
}


def _escaped(text: str) -> str:
    return text.replace('"', '\\"')


@pytest.fixture(scope="module")
def opened() -> Iterator[Browser]:
    with browser() as found:
        yield found


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "model.mlir"
    path.write_text(PROGRAM.replace("NAME", "two_layers").replace("WHERE", "net/last"))
    return path


def written(call: Call, page: Path, *arguments: object) -> Path:
    result = call("inspect", *arguments, f"--html={page}")
    assert (result.exit_code, result.stdout) == (0, ""), result.stderr
    return page


@needs_browser
def test_scopes_expand_and_collapse(call: Call, opened: Browser, program: Path, tmp_path: Path) -> None:
    file = written(call, tmp_path / "page.html", program)
    with page_of(opened, file) as page:
        scope = page.locator("details.scope > summary", has_text="net").first
        inner = page.locator("details.scope > summary", has_text="first")
        assert inner.count() == 0
        scope.click()
        inner.click()
        product = page.locator("details.operation > summary", has_text="dot_general").first
        # A scope's content is made when the browser tells of its opening: each wait fails after half a minute.
        product.wait_for(state="visible")
        assert "f32[4,8]" in product.inner_text()
        # What an operation reads leads to it.
        product.click()
        page.get_by_role("button", name="w f32[8,8]").last.click()
        assert page.locator("details.parameter.chosen > summary").inner_text().startswith("w")
        scope.click()
        product.wait_for(state="hidden")
        page.get_by_role("button", name="Expand scopes").click()
        product.wait_for(state="visible")
        page.get_by_role("button", name="Collapse all").click()
        product.wait_for(state="hidden")
        page.get_by_label("Find").fill("tanh")
        page.get_by_role("button", name="stablehlo.tanh f32[4,8]").click()
        chosen = page.locator(".chosen > summary", has_text="stablehlo.tanh")
        chosen.wait_for(state="visible")
        assert page.locator(".chosen > summary").count() == 1


@needs_browser
def test_the_graph_is_drawn(call: Call, opened: Browser, program: Path, tmp_path: Path) -> None:
    row = PROFILE["rows"][0] | {"location": "net/first/dot", "scope": ""}  # type: ignore[index]
    profile = tmp_path / "profile.json"
    profile.write_text(json.dumps(PROFILE | {"rows": [row]}))
    file = written(call, tmp_path / "page.html", program, f"--profile={profile}")
    with page_of(opened, file) as page:
        drawing, about = page.locator("#drawing"), page.locator("#about")
        # The scope around the whole program is open; parameters lie outside of it.
        nodes = drawing.locator(".node .title")
        assert sorted(nodes.all_text_contents()) == ["first", "last", "second", "w", "x"]
        assert sorted(drawing.locator(".outside .title").all_text_contents()) == ["w", "x"]
        first = drawing.locator(".node.scope", has_text="first")
        assert "1 ms" in (first.text_content() or "")
        first.click()
        assert drawing.locator(".chosen .title").all_text_contents() == ["first"]
        assert sorted(drawing.locator(".node.reads .title").all_text_contents()) == ["w", "x"]
        assert drawing.locator(".node.feeds .title").all_text_contents() == ["second"]
        assert "1 ms of a call" in about.inner_text()
        # No box lies on another one.
        boxes = [box for box in (node.bounding_box() for node in drawing.locator(".node rect").all()) if box]
        assert len(boxes) == 5
        for n, one in enumerate(boxes):
            for other in boxes[:n]:
                beside = one["x"] >= other["x"] + other["width"] or other["x"] >= one["x"] + one["width"]
                assert beside or one["y"] >= other["y"] + other["height"] or other["y"] >= one["y"] + one["height"]
        # Its reader's inside, by the panel and by a double click; and what passes do to an operation.
        about.get_by_role("button", name="second").click()
        about.get_by_role("button", name="Draw what is inside").click()
        assert sorted(drawing.locator(".node:not(.outside) .title").all_text_contents()) == ["dot_general", "sort"]
        assert sorted(drawing.locator(".outside .title").all_text_contents()) == ["first", "last", "w"]
        sort = drawing.locator(".node", has_text="sort")
        sort.click()
        assert "decompose-sort decomposes" in about.inner_text() and "net/second/sort" in about.inner_text()
        sort.dblclick()
        # Its comparison names a scope of the same name.
        drawing.locator(".node.scope", has_text="sort").dblclick()
        assert "compare" in drawing.locator(".node .title").all_text_contents()
        page.locator("#path").get_by_role("button", name="net").click()
        assert "second" in nodes.all_text_contents()
        before = drawing.locator("svg").bounding_box()
        page.get_by_role("button", name="Smaller").click()
        after = drawing.locator("svg").bounding_box()
        assert before and after and after["width"] < before["width"]


@needs_browser
def test_stages_show_what_passes_did(call: Call, opened: Browser, program: Path, tmp_path: Path) -> None:
    file = written(call, tmp_path / "page.html", program)
    with page_of(opened, file) as page:
        left, right = page.locator("#left"), page.locator("#right")
        names = right.locator("option").all_text_contents()
        place = next(number for number, name in enumerate(names) if name.endswith("decompose-sort"))
        right.select_option(index=place)
        left.select_option(index=place - 1)
        assert "IREE's sort is quadratic" in page.locator("#stage-reason").inner_text()
        gone, come = (page.locator(f"#diff .{kind}").all_inner_texts() for kind in ("gone", "come"))
        assert any("stablehlo.sort" in line for line in gone) and any("bitcast_convert" in line for line in come)
        # The rest of the program is the same, with the same names.
        assert not any("dot_general" in line or "stablehlo.tanh" in line for line in (*gone, *come))
        before = page.locator("#diff").inner_text()
        page.get_by_role("button", name="Next pass").click()
        assert page.locator("#diff").inner_text() != before
        assert right.evaluate("select => select.selectedIndex") == place + 1
        page.get_by_role("link", name="what changed").nth(place - 1).click()
        assert page.locator("#diff").inner_text() == before
        left.select_option(index=0)
        right.select_option(index=0)
        assert page.locator("#diff .gone, #diff .come").count() == 0
        assert "stablehlo.sort" in page.locator("#diff").inner_text()


@needs_browser
def test_hostile_names_are_text_and_fit(call: Call, opened: Browser, tmp_path: Path) -> None:
    path = tmp_path / "hostile.mlir"
    name = _escaped(HOSTILE)
    path.write_text(PROGRAM.replace("NAME", name).replace("WHERE", name + "x" * 400))
    profile = tmp_path / "profile.json"
    profile.write_text(json.dumps(PROFILE))
    numerics, verified = tmp_path / "report.json", tmp_path / "verified.html"
    result = call("verify", path, "--trials=1", f"--json={numerics}", f"--html={verified}")
    assert result.exit_code == 0, result.stderr
    report = json.loads(numerics.read_text()) | {"program": HOSTILE}
    report["trials"][0] |= {"failure": HOSTILE, "notes": [HOSTILE]}
    numerics.write_text(json.dumps(report))
    file = written(call, tmp_path / "page.html", path, f"--numerics={numerics}", f"--profile={profile}")
    for size in (PHONE, DESK):
        with page_of(opened, file, size) as page:
            page.get_by_role("button", name="Expand scopes").click()
            assert HOSTILE in page.locator("h1").inner_text()
            for section in ("graph", "numerics", "profile"):
                assert page.locator(f"#{section}").count() == 1
            assert page.locator("#planted, main img").count() == 0
            assert page.get_by_text("<img src=x").count() >= 4
            assert overflow(page) <= 0
        with page_of(opened, verified, size) as page:
            assert "agrees" in page.locator("h1").inner_text()
            assert overflow(page) <= 0


@needs_browser
def test_headings_and_labels(call: Call, opened: Browser, program: Path, tmp_path: Path) -> None:
    file = written(call, tmp_path / "page.html", program)
    with page_of(opened, file) as page:
        assert page.locator("h1").count() == 1
        for link in page.locator("nav a").all():
            assert page.locator(link.get_attribute("href") or "").count() == 1
        unnamed = (
            "[...document.querySelectorAll('button, select, input')].filter(e => !(e.labels?.length || e.textContent))"
        )
        assert page.evaluate(f"{unnamed}.length") == 0


def test_a_large_program_is_cut_and_says_so(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from hloforge.tools import inspect_page

    for limit, value in (("MOST_OPERATIONS", 20), ("MOST_LINES", 30), ("MOST_TEXT", 4000)):
        monkeypatch.setattr(inspect_page, limit, value)
    path = tmp_path / "long.mlir"
    lines = [f"%{n + 1} = stablehlo.tanh %{n} : tensor<4xf32>" for n in range(60)]
    body = "\n".join(["%0 = stablehlo.abs %x : tensor<4xf32>", *lines, "return %60 : tensor<4xf32>"])
    path.write_text(f"func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{\n{body}\n}}")
    text = written(call, tmp_path / "page.html", path).read_text()
    assert "41 operations are left out: beyond the first 20," in text
    payload = json.loads(re.findall(r'id="payload">(.*?)</script>', text)[0])
    assert sum(map(len, payload["texts"])) <= 4000
    assert f"first {max(len(stage['lines']) // 2 for stage in payload['stages'])} lines" in " ".join(text.split())
    assert [payload["graph"]["words"][node[1]] for node in payload["graph"]["nodes"]].count("stablehlo.tanh") == 19


@pytest.mark.parametrize(
    ("target", "maker", "stage"),
    [("cpu", "hloforge's kernels", "keep-functions"), ("vulkan", "IREE's compiler", "legalize-small-erf")],
)
def test_stages_are_those_of_the_code_generator(
    call: Call, tmp_path: Path, target: str, maker: str, stage: str
) -> None:
    path = tmp_path / "erf.mlir"
    path.write_text(
        "func.func @main(%x: tensor<64xf32>) -> tensor<64xf32> {"
        " %y = chlo.erf %x : tensor<64xf32> -> tensor<64xf32> return %y : tensor<64xf32> }"
    )
    text = html.unescape(written(call, tmp_path / "page.html", path, f"--target={target}").read_text())
    assert maker in text and stage in text


def test_a_refused_program_and_a_vmfb_have_pages(
    call: Call, add: Path, refused: Path, add_vmfb: Path, tmp_path: Path
) -> None:
    text = written(call, tmp_path / "refused.html", refused).read_text()
    assert "Refused" in text and "@unheard_of" in text and 'id="graph"' in text
    text = written(call, tmp_path / "vmfb.html", add_vmfb).read_text()
    assert "f32[4]{0}" in text and 'id="graph"' not in text
    assert "hloforge's kernels" in html.unescape(text)
    by_iree = tmp_path / "iree.vmfb"
    assert call("compile", add, "-o", by_iree, "--no-cache", "--iree-opt-level=O1").exit_code == 0
    text = written(call, tmp_path / "iree.html", by_iree).read_text()
    assert "--iree-input-demote-f64-to-f32=false" in text and "IREE's compiler" in html.unescape(text)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is no JSON"),
        ("[" * 100_000, "is no JSON"),
        ("{}", "is no report of hloforge verify"),
        ('{"format": "hloforge.verification", "version": 2}', "is no report of hloforge verify"),
        ('{"format": "hloforge.verification", "version": 1}', "is damaged: the report lacks fields"),
    ],
)
def test_other_reports_are_refused(call: Call, add: Path, tmp_path: Path, content: str, message: str) -> None:
    report = tmp_path / "report.json"
    report.write_text(content)
    result = call("inspect", add, f"--html={tmp_path / 'page.html'}", f"--numerics={report}")
    assert (result.exit_code, message in result.stderr) == (1, True), result.stderr
    assert not (tmp_path / "page.html").exists()


def test_reports_belong_to_a_page(call: Call, add: Path, tmp_path: Path) -> None:
    assert call("inspect", add, f"--numerics={tmp_path}").exit_code == 2
    missing = call("inspect", add, "--html=-", f"--profile={tmp_path / 'missing.json'}")
    assert (missing.exit_code, "no such file" in missing.stderr) == (1, True), missing.stderr
