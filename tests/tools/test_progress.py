"""The line that says on a terminal what a command does, and the times of its steps."""

from __future__ import annotations

import os
import pty
import re
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from hloforge.runtime.compile.assembly import libraries, server
from hloforge.runtime.compile.assembly.library_cache import LibraryCache
from hloforge.runtime.compile.direct import objects
from hloforge.tools import progress as progress_of_tools
from hloforge.tools.progress import progress, silent
from tests.tools.command import Call

SAYS = """
import sys, time
from hloforge.tools.progress import progress
with progress("compiling p.hlo") as say:
    with progress("again") as inner:
        assert inner is say
    say("the pass audit")
    time.sleep({seconds})
    say({long} * "long " + "\\x1b[2J")
    time.sleep(0.5)
print("done", file=sys.stderr)
"""


def in_a_terminal(code: str) -> str:
    """What a program of Python shows in a terminal of 80 columns."""
    child, terminal = pty.fork()
    if child == 0:
        os.execve(sys.executable, [sys.executable, "-c", code], os.environ | {"TERM": "xterm", "COLUMNS": "80"})
    shown = b""
    with suppress(OSError):  # the terminal is gone
        while part := os.read(terminal, 1 << 16):
            shown += part
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, shown
    return shown.decode()


def test_a_line_is_shown_from_one_second_on() -> None:
    shown = in_a_terminal(SAYS.format(seconds=1.3, long=1))
    assert "compiling p.hlo (1 s): the pass audit" in shown
    # What a file says is no command of the terminal's.
    assert "\x1b[2J" not in shown and r"\u001b[2J" in shown
    # The line is gone when there is nothing more to say.
    assert shown.endswith("\x1b[2Kdone\r\n") or re.search(r"\x1b\[2K[^\n]*done\r\n$", shown)


def test_nothing_is_shown_before() -> None:
    assert in_a_terminal(SAYS.format(seconds=0.1, long=1)) == "done\r\n"


def test_a_long_line_stays_one() -> None:
    shown = in_a_terminal(SAYS.format(seconds=1.3, long=50))
    lines = re.split(r"\r|\x1b\[2K", shown)
    assert any("long long" in line and "…" in line for line in lines)
    assert "\n" not in shown.rpartition("…")[0]


def test_nothing_is_shown_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("compiling") as say:
        assert say is silent
        say("the pass audit")
        time.sleep(1.2)
    assert capsys.readouterr() == ("", "")


BY_PARTS = ("  dispatches", "  code generation", "  LLVM and linker", "  bytecode")
WHOLE = ("  input", "  executable-targets (code generation)", "  hal", "    LLVM", "    linker", "  vm")


@pytest.mark.usefixtures("iree_codegen")
@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        pytest.param("", BY_PARTS, marks=pytest.mark.skipif(not server.is_available(), reason="Linux alone")),
        ("0", WHOLE),
    ],
    ids=["by parts", "by iree-compile"],
)
def test_timings_have_phases_and_the_cache(
    chosen: str, expected: tuple[str, ...], call: Call, add: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HLOFORGE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv(server.VARIABLE, chosen)
    # Another test of this process may have compiled the same.
    monkeypatch.setattr(libraries, "known", LibraryCache())
    vmfb = tmp_path / "a.vmfb"
    first = call("compile", add, "-o", vmfb, "--timings", "--timeout=100")
    assert first.exit_code == 0, first.stderr
    names = re.findall(r"^( *\S.*?) +\d+\.\d ms", first.stderr, re.MULTILINE)
    inside = names[names.index("iree-compile") + 1 :]
    assert [name for name in inside if name in expected] == list(expected), first.stderr
    assert {"read", "look up", "store", "write"} <= set(names)
    (entry,) = (tmp_path / "cache").glob("*.cached")
    assert f"note: cpu:host: not found in the cache, now in it: {entry}\n" in first.stderr
    compiled = vmfb.read_bytes()

    second = call("compile", add, "-o", vmfb, "--timings")
    assert f"note: cpu:host: found in the cache: {entry}\n" in second.stderr
    assert "iree-compile" not in second.stderr
    assert vmfb.read_bytes() == compiled

    without = call("compile", add, "-o", vmfb, "--timings", "--no-cache")
    assert "note: cpu:host: the cache is off\n" in without.stderr
    assert vmfb.read_bytes() == compiled


def test_timings_have_the_parts_of_code_generation(
    call: Call, add: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HLOFORGE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(objects, "_STORE", type(objects._STORE)())
    monkeypatch.setattr(progress_of_tools, "_SHOWN", 0)
    words = ("compile", add, "-o", tmp_path / "a.vmfb", "--timings")
    parts = ["  lowering", "    legalize-entry-abi", "  kernels", "  machine code"]

    def inside(said: str) -> list[str]:
        names = re.findall(r"^( *\S.*?) +\d+\.\d ms", said, re.MULTILINE)
        assert {"read", "look up", "store", "write"} <= set(names) and "iree-compile" not in names
        return names[names.index("code generation") + 1 : names.index("store")]

    found = inside(call(*words, "--timeout=100").stderr)
    assert [name for name in found if name in parts] == parts
    assert found[-2:] == ["    known kernels (0 of 1)", "    LLVM (1 kernel)"]
    # Another program of the same kernel.
    add.write_text(add.read_text().replace("HloModule add", "HloModule other"))
    assert inside(call(*words).stderr)[-1] == "    known kernels (1 of 1)"


def test_a_failure_of_iree_is_told_with_timings_as_without(call: Call, add: Path, tmp_path: Path) -> None:
    words = ("compile", add, "-o", tmp_path / "a.vmfb", "--no-cache", "--iree-llvmcpu-stack-allocation-limit=nonsense")
    plain, timed = (call(*words, f"--reproducer-dir={tmp_path / 'r'}", *more) for more in ((), ("--timings",)))
    assert plain.exit_code == timed.exit_code == 1
    assert timed.stderr.splitlines()[0] == plain.stderr.splitlines()[0]
    assert "Execution time report" not in timed.stderr
