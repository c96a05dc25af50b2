"""The commands of docs/targets.md run, as a reader would type them; its tables name what there is."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from hloforge.runtime.compile.cpu_targets import ARCHITECTURES
from hloforge.runtime.compile.targets import KINDS
from hloforge.tools.main import cli

ROOT = Path(__file__).resolve().parents[2]
GUIDE = (ROOT / "docs" / "targets.md").read_text()


def test_its_commands_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    lines = [line for block in re.findall(r"^```sh\n(.*?)^```", GUIDE, re.M | re.S) for line in block.splitlines()]
    assert len(lines) >= 6
    for line in lines:
        words = shlex.split(line, comments=True)
        result = CliRunner().invoke(cli, words[1:])
        assert result.exit_code == 0, (line, result.stderr)
        if words[1:] == ["inspect", "both.vmfb"]:
            assert re.search(r"target: +cuda:sm_90, cpu:host", result.stdout)


def test_its_table_is_complete() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| ([^|]*) \|", GUIDE, re.M))
    assert set(KINDS) <= set(rows)
    assert set(ARCHITECTURES) <= set(re.findall(r"`([\w-]+)`", rows["cpu"]))
