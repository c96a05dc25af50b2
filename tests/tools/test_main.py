from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest

import hloforge
from hloforge._version import __version__
from hloforge.tools import main, report
from tests.tools.command import Call

COMMAND = [sys.executable, "-m", "hloforge.tools.main"]


def shell(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    words = [*COMMAND, *map(str, arguments)]
    return subprocess.run(words, capture_output=True, text=True, timeout=120, check=False, **options)


@pytest.mark.parametrize("name", main.COMMANDS)
def test_each_command_has_help_with_an_example(call: Call, name: str) -> None:
    result = call(name, "--help")
    assert result.exit_code == 0
    assert f"Example:\n    {'eval' if name == 'completion' else 'hloforge ' + name}" in result.stdout.replace('"$(', "")


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys\nfrom hloforge.tools.main import cli\n"
        "try: cli.main(['--help'])\nexcept SystemExit: pass\n"
        "heavy = {'jaxlib', 'iree', 'numpy', 'rich', 'ml_dtypes'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "inspect" in done.stdout


def test_the_package_is_the_command() -> None:
    done = subprocess.run([sys.executable, "-m", "hloforge", "--version"], capture_output=True, text=True, timeout=60)
    assert done.stdout == f"hloforge, version {__version__}\n"


def test_version(call: Call) -> None:
    assert call("--version").stdout == f"hloforge, version {__version__}\n"


def test_an_unknown_command_is_status_2(call: Call) -> None:
    result = call("complie")
    assert result.exit_code == 2
    assert "did you mean compile or completion? commands: compile, run" in result.stderr


@pytest.mark.parametrize("arguments", [["--debug", "opt"], ["opt", "--debug"]])
def test_debug_shows_the_traceback(call: Call, tmp_path: Path, arguments: list[str]) -> None:
    missing = tmp_path / "missing.hlo"
    assert "Traceback" in call(*arguments, missing).stderr
    assert "Traceback" not in call("opt", missing).stderr


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (KeyError("x"), 1, "internal: KeyError"),
        (MemoryError(), 1, "out of memory"),
        (KeyboardInterrupt(), 130, ""),
        (click.Abort(), 130, ""),
        (click.UsageError("no"), 2, "no"),
    ],
)
def test_what_a_command_may_raise(
    capsys: pytest.CaptureFixture[str], error: BaseException, status: int, message: str
) -> None:
    def fail() -> None:
        raise error

    assert report.run_guarded(fail, debug=False) == status
    said = capsys.readouterr().err
    assert message in said and "Traceback" not in said


def test_the_installed_command_runs_end_to_end(add: Path, tmp_path: Path) -> None:
    command = Path(sys.executable).with_name("hloforge")
    vmfb = tmp_path / "add.vmfb"
    subprocess.run([command, "compile", add, "-o", vmfb], check=True, timeout=120)
    done = subprocess.run(
        [command, "run", vmfb, "--input=iota", "--output=-"], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "4xf32=[0 2 4 6]\n", "")


def test_a_closed_pipe_is_quiet(add: Path) -> None:
    with subprocess.Popen([*COMMAND, "opt", str(add)], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        child.stdout.close()
        said = child.stderr.read()
    assert said == b""


def test_interrupt_is_status_130_without_traceback(tmp_path: Path) -> None:
    fifo = tmp_path / "never.hlo"
    os.mkfifo(fifo)
    command = [*COMMAND, "compile", str(fifo)]
    # Opening the pipe for writing succeeds once the command waits for its input.
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child, fifo.open("wb"):
        time.sleep(0.1)
        child.send_signal(signal.SIGINT)
        said = child.communicate(timeout=60)[1]
    assert (child.returncode, said) == (130, b"interrupted\n")


@pytest.mark.parametrize("seconds", [0.05, 0.3, 0.5, 0.7])
def test_a_killed_compile_leaves_no_part_of_a_file(seconds: float, add: Path, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    with subprocess.Popen([*COMMAND, "compile", str(add), "-o", str(folder / "add.vmfb")]) as child:
        time.sleep(seconds)
        child.kill()
    left = list(folder.iterdir())
    assert left in ([], [folder / "add.vmfb"])
    if left:  # a fast machine was done before
        session, x = hloforge.load(left[0]), np.ones(4, np.float32)
        assert (session(x, x) == 2).all()


@pytest.mark.parametrize("shell_name", ["bash", "zsh", "fish"])
def test_completion_code(call: Call, shell_name: str) -> None:
    result = call("completion", shell_name)
    assert result.exit_code == 0
    assert f"_HLOFORGE_COMPLETE={shell_name}_complete" in result.stdout


def test_completion_offers_commands_and_options() -> None:
    environment = os.environ | {"_HLOFORGE_COMPLETE": "bash_complete", "COMP_CWORD": "1"}
    commands = shell(env=environment | {"COMP_WORDS": "hloforge ", "COMP_CWORD": "1"}).stdout
    assert "plain,compile" in commands and "plain,inspect" in commands
    options = shell(env=environment | {"COMP_WORDS": "hloforge run --ref", "COMP_CWORD": "2"}).stdout
    assert options == "plain,--reference\n"
