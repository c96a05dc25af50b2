"""The documents do what they say: the tour's commands run, links lead somewhere, tables are the generated ones.

The README's quick start is run with the built wheel (test_wheel.py).
"""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519

from benchmarks import render
from hloforge.tools.main import COMMANDS, cli

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
TOUR = (ROOT / "docs" / "command-line.md").read_text()
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "examples").glob("*.md")])


def commands(document: str = TOUR) -> list[list[str]]:
    """The words of every ``hloforge`` line, comments left out."""
    blocks = re.findall(r"^```sh\n(.*?)^```", document, re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    return [shlex.split(line, comments=True)[1:] for line in lines if line.startswith("hloforge ")]


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    key = ed25519.Ed25519PrivateKey.generate()
    form = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    (tmp_path / "key.pem").write_bytes(key.private_bytes(serialization.Encoding.PEM, *form))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_tours_commands_run(workplace: Path) -> None:
    assert len(commands()) >= 8
    assert {words[0] for words in commands()} == set(COMMANDS) - {"completion"}
    for words in commands():
        result = CliRunner().invoke(cli, words)
        assert result.exit_code == 0, (words, result.stderr)
    assert (workplace / "model.vmfb").exists()


@pytest.mark.slow
def test_the_tutorial_runs(workplace: Path) -> None:
    text = (ROOT / "docs" / "tutorial.md").read_text()
    for words in commands(text):
        result = CliRunner().invoke(cli, words)
        assert result.exit_code == 0, (words, result.stderr)
    (code,) = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    exec(compile(code, "tutorial.md", "exec"), {})


def test_every_page_is_in_the_navigation() -> None:
    """`make docs` checks the links of the pages that it has."""
    shown = set(re.findall(r"[\w/-]+\.md", (ROOT / "mkdocs.yml").read_text()))
    made = {"quickstart.md", "commands.md", "api.md", "changelog.md", "contributing.md", "errors.md"}
    pages = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")}
    assert shown == pages | made


def test_the_readme_fits_on_few_screens() -> None:
    assert len(README.splitlines()) < 120


def test_its_make_targets_exist() -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for document in DOCUMENTS:
        assert set(re.findall(r"(?:^|`)make ([\w-]+)", document.read_text(), re.MULTILINE)) <= targets, document


def test_the_workflows_run_targets_of_the_makefile() -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    workflows = list((ROOT / ".github" / "workflows").glob("*.yml"))
    assert workflows
    for path in workflows:
        text = path.read_text()
        named = " ".join(re.findall(r"\bmake ([\w -]+)", text) + re.findall(r"target: \[(.*)\]", text)).replace(
            ",", " "
        )
        assert set(named.split()) - {""} <= targets, path


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_to_files(document: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)", document.read_text())
    assert [link for link in links if "://" not in link and not (document.parent / link).exists()] == []


def test_the_tables_are_the_generated_ones() -> None:
    results = json.loads(render.RESULTS.read_text())
    assert render.fill(README, {"headline": render.headline(results)}) == README, "run: make tables"
    comparison = render.COMPARISON.read_text()
    assert render.fill(comparison, render.comparison_tables(results)) == comparison, "run: make tables"
    assert render.DOCUMENT.read_text() == render.document(results, render.explanations()), "run: make tables"


def test_markers_that_are_missing_are_an_error() -> None:
    with pytest.raises(ValueError, match="no markers for speed"):
        render.fill("# no tables", {"speed": ""})
