"""Completion on TAB: what is offered where, and that nothing heavy is loaded for it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from hloforge.pipelines.catalogue import passes_by_name
from hloforge.pipelines.named import PIPELINES
from hloforge.pipelines.pass_names import PIPELINE_NAMES, pass_names
from hloforge.tools.main import COMMANDS

_ENTRY = """import sys
from hloforge.tools.start import main
try: main()
finally: print(*sorted({'jaxlib', 'iree', 'numpy', 'rich', 'llvmlite'} & set(sys.modules)), file=sys.stderr)
"""


def completed(line: str, number: int | None = None) -> list[str]:
    """What bash is told for a line whose words are apart as bash takes them apart; loads nothing heavy."""
    count = len(line.split(" ")) - 1 if number is None else number
    asked = {"_HLOFORGE_COMPLETE": "bash_complete", "COMP_WORDS": f"hloforge {line}", "COMP_CWORD": str(count + 1)}
    words = [sys.executable, "-c", _ENTRY]
    done = subprocess.run(words, env=os.environ | asked, capture_output=True, text=True, timeout=60)
    assert done.stderr == "\n"
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("prof", ["plain,profile"]),
        ("run --ref", ["plain,--reference"]),
        ("compile mod", ["file,mod"]),
        ("run --library fold", ["file,fold"]),
        ("compile model.hlo -o mod", ["file,mod"]),
        ("compile --target = vul", ["plain,vulkan"]),
        ("compile --target = cpu : aarch", ["plain,aarch64"]),
        ("compile --target cpu,meta", ["plain,cpu,metal"]),
        ("run --device local-s", ["plain,local-sync"]),
        ("opt --pipeline = norm", ["plain,normalize"]),
        ("opt --pass decompose-chol", ["plain,decompose-cholesky"]),
        ("compile --dump-after = cano", ["plain,canonicalize"]),
        ("run --input plau", ["plain,plausible"]),
    ],
)
def test_what_bash_is_offered(line: str, offered: list[str]) -> None:
    found = completed(line)
    assert found[: len(offered)] == offered


def test_options_of_every_command_load_nothing_heavy() -> None:
    code = "\n".join(
        [
            "import os, sys",
            "from hloforge.tools.main import COMMANDS, cli",
            "from click.shell_completion import ShellComplete",
            "for name in COMMANDS:",
            "    found = ShellComplete(cli, {}, 'hloforge', '').get_completions([name], '--')",
            "    assert found, name",
            "heavy = {'jaxlib', 'iree', 'numpy', 'rich', 'llvmlite'} & set(sys.modules)",
            "assert not heavy, heavy",
        ]
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_names_are_those_of_the_registries() -> None:
    # ``native`` holds passes of MLIR and is not written.
    assert set(pass_names()) - {"native"} == passes_by_name().keys() - {"native"}
    assert PIPELINE_NAMES == PIPELINES
    assert "completion" in COMMANDS
