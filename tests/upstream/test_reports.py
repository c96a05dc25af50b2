"""Each fault that a reproducer shows and that IREE does not know of has a report that says what the reproducer says."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import pytest

from hloforge.runtime.upstream.ledger import Workaround
from tests.upstream import report
from tests.upstream.report import SECTIONS, unreported
from tests.upstream.reproducer import FOLDER, GONE, THERE, Outcome, Reproducer, Tools

# Folders of a machine, which no reader has.
_PLACES = re.compile(r"(?<![\w.])/(?:home|root|tmp|work|usr|opt)/")


def _text(record: Workaround) -> str:
    return (FOLDER / record.reproducer).with_suffix(".md").read_text()


def _sections(text: str) -> dict[str, str]:
    parts = re.split(r"^## (.+)\n", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], (part.strip() for part in parts[2::2]), strict=True))


def _blocks(text: str, language: str = "") -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def test_each_report_is_of_such_a_fault() -> None:
    names = {Path(record.reproducer).with_suffix(".md").name for record in unreported()}
    assert len(names) >= 30
    assert names == {path.name for path in FOLDER.glob("*.md")}, "run: python -m tests.upstream.report"


@pytest.mark.parametrize("record", unreported(), ids=lambda record: record.name)
def test_a_report_says_what_the_reproducer_says(record: Workaround) -> None:
    reproducer, text = Reproducer.read(FOLDER / record.reproducer), _text(record)
    sections = _sections(text)
    assert tuple(sections) == SECTIONS
    assert all(sections.values())
    title = text.partition("\n")[0]
    assert title.startswith("# [") and reproducer.summary.rstrip(".") in title
    steps = sections["Steps to reproduce your issue"]
    assert _blocks(steps, "mlir") == [reproducer.program]
    (typed,) = _blocks(steps, "sh")
    lines = [shlex.split(line) for line in typed.replace("\\\n", "").splitlines()]
    assert [line[0] for line in lines] == ["iree-compile", "iree-run-module"][: 1 + reproducer.runs]
    assert set(reproducer.compilation) <= set(lines[0])
    if reproducer.runs:
        assert set(reproducer.call) <= set(lines[1])
        assert _blocks(sections["Expected"]) == ["\n".join(reproducer.expected) + "\n"]
    assert _blocks(sections["Got"]) and _blocks(sections["Got"])[0].strip()
    assert re.search(r"iree-compile \d+\.\d+", sections["Version information"])
    assert sections["Additional context"] == reproducer.cause != ""


@pytest.mark.parametrize("record", unreported(), ids=lambda record: record.name)
def test_a_report_names_no_place_of_a_machine(record: Workaround) -> None:
    assert not _PLACES.search(_text(record))


def _reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, header: str, state: str) -> str:
    """The report of a program of one addition, as if IREE had that fault."""
    (tmp_path / "sum.mlir").write_text(
        f"// A sum is wrong.\n{header}// fault: wrong\n// input: 2xf32=1 2\n// expected: 2xf32=2 5\n"
        "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n"
        "  %r = stablehlo.add %x, %x : tensor<2xf32>\n  return %r : tensor<2xf32>\n}\n"
    )
    monkeypatch.setattr(report, "FOLDER", tmp_path)
    monkeypatch.setattr(report, "judged", lambda *_: Outcome(state, "as in a test"))
    return report.report(Workaround("sum", "adds wrongly", reproducer="sum.mlir"), Tools.found())


def test_what_iree_answers_is_in_the_report(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    sections = _sections(_reported(monkeypatch, tmp_path, "// cause: two lines,\n// cause: joined.\n", THERE))
    assert "2xf32=2 4" in sections["Got"]
    assert "2xf32=2 5" in sections["Expected"]
    assert sections["Additional context"] == "two lines, joined."


@pytest.mark.parametrize(
    ("header", "state", "message"), [("", THERE, "cause"), ("// cause: unknown.\n", GONE, "the fault is gone")]
)
def test_no_report_without_a_cause_or_the_fault(
    header: str, state: str, message: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=message):
        _reported(monkeypatch, tmp_path, header, state)


def test_records_with_an_issue_have_no_report(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["report", "gather-out-of-bounds"])
    with pytest.raises(SystemExit):
        report.main()
