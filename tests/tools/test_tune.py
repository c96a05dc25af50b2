"""``hloforge tune`` from the command line."""

from __future__ import annotations

import json
from pathlib import Path

from hloforge.runtime.tuning.tuned_profile import Profile
from tests.tools.command import Call


def test_the_fastest_form_and_its_profile_are_written(call: Call, add: Path, tmp_path: Path) -> None:
    vmfb, profile = tmp_path / "add.vmfb", tmp_path / "add.json"
    done = call("tune", add, "-o", vmfb, "--save-tuning", profile, "--budget=0")
    assert done.exit_code == 0, done.output
    assert done.stdout == "nothing is faster than the untuned form (0 forms tried)\n"
    assert "time / best so far" in done.stderr
    done = call("run", vmfb, "--input=4xf32=1", "--input=4xf32=2")
    assert "4xf32=[3 3 3 3]" in done.stdout
    assert json.loads(profile.read_text())["device"] == ""


def test_a_profile_makes_the_program(call: Call, add: Path, tmp_path: Path) -> None:
    Profile(("--iree-opt-level=O1",), device="local-task").save(tmp_path / "p.json")
    vmfb = tmp_path / "add.vmfb"
    assert call("compile", add, "-o", vmfb, "--tuning", tmp_path / "p.json").exit_code == 0
    shown = json.loads(call("inspect", vmfb, "--json").stdout)
    assert shown["flags"][-1] == "--iree-opt-level=O1"
    refused = call("compile", add, "-o", vmfb, "--tuning", add)
    assert refused.exit_code == 1
    assert "is no profile" in refused.stderr
