"""A compilation's limits hold in each of its phases, and a signal ends each of them, whatever holds Python's lock."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hloforge
from hloforge.dialect.budget import Budget, spending
from hloforge.dialect.errors import CompileError
from hloforge.dialect.forked import StoppedError, run_forked
from hloforge.importers.guard import guarded
from hloforge.pipelines.framework.passes import NativePass
from hloforge.runtime.compile.assembly import server
from hloforge.runtime.compile.direct import objects
from hloforge.runtime.options import CompileOptions

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="children are forked on Linux only")

TEXT = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = stablehlo.add %x, %x : tensor<4xf32>
  return %y : tensor<4xf32>
}"""
DYNAMIC = TEXT.replace("4xf32", "?xf32")


def hang(*_: Any, **__: Any) -> None:
    """Code that holds Python's lock, as MLIR's does."""
    re.match("(a+)+$", "a" * 64 + "b")


def exhaust(*_: Any, **__: Any) -> None:
    bytearray(1 << 34)[:: 1 << 12] = b"x" * (1 << 22)


def die(*_: Any, **__: Any) -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def compiled(source: Any = TEXT, **options: Any) -> Any:
    return hloforge.compile(source, cache=False, **options)


def given() -> hloforge.Program:
    return hloforge.read(TEXT)


# What is made to hang: a pass of MLIR's, reading, and what stands between.
PHASES = [
    ("hloforge.pipelines.framework.passes.NativePass.run", "the pass "),
    ("hloforge.runtime.compile.by_iree.lower", ""),
    ("hloforge.importers.native.mlir_text_to_bytecode", ""),
    ("hloforge.importers.reader.detect", ""),
    ("hloforge.importers.signature.from_mlir", ""),
    ("hloforge.runtime.compile.compiler.partitioned", ""),
    ("hloforge.runtime.compile.by_iree._compile_once", ""),
]


# The same of programs of our own code generator.
OWN_PHASES = [
    ("hloforge.pipelines.framework.passes.NativePass.run", "the pass "),
    ("hloforge.runtime.compile.generated.lower", ""),
    ("hloforge.runtime.compile.generated.generate", "stopped in kernels"),
    ("hloforge.runtime.compile.direct.machine_code.Compiler.compile", "stopped in machine code: kernel 1 of 1"),
    ("hloforge.runtime.compile.generated.vmfb", "stopped in machine code"),
]


@pytest.fixture
def unknown_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that has no objects of machine code."""
    monkeypatch.setattr(objects, "_STORE", type(objects._STORE)())


@pytest.mark.wide(2)
@pytest.mark.usefixtures("iree_codegen")
@pytest.mark.parametrize(("phase", "says"), PHASES)
def test_the_deadline_holds_in(phase: str, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _check_deadline(phase, says, monkeypatch)


@pytest.mark.wide(2)
@pytest.mark.usefixtures("unknown_kernels")
@pytest.mark.parametrize(("phase", "says"), OWN_PHASES)
def test_the_deadline_of_code_generation_holds_in(phase: str, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _check_deadline(phase, says, monkeypatch)


def _check_deadline(phase: str, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(phase, hang)
    with pytest.raises(CompileError, match=rf"ran out of time \(0\.5 s\).*{says}") as info:
        compiled(timeout=0.5)
    assert "--timeout" in info.value.hint


def test_the_deadline_holds_of_a_program_that_was_read(monkeypatch: pytest.MonkeyPatch) -> None:
    program = given()
    monkeypatch.setattr(NativePass, "run", hang)
    with pytest.raises(CompileError, match=r"ran out of time \(0\.5 s\): stopped in the pass "):
        compiled(program, timeout=0.5)


@pytest.mark.usefixtures("iree_codegen")
def test_one_deadline_for_all_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    """IREE's compiler is run again with other flags where it fails: not when the time is up."""
    runs: list[Any] = []
    monkeypatch.setattr("hloforge.runtime.compile.by_iree.iree.compiler_binary", lambda: "/bin/sleep")
    monkeypatch.setenv(server.VARIABLE, "0")
    monkeypatch.setattr(
        "hloforge.runtime.compile.compiler_process._run", lambda command, *rest: runs.append(command) or slow(*rest)
    )

    def slow(*_: Any) -> tuple[int, bytes, str]:
        time.sleep(2)  # five attempts take twice as long as the deadline
        return 1, b"", f"run {len(runs)}"

    with pytest.raises(CompileError, match=r"ran out of time \(5 s\): stopped in IREE's compiler"):
        compiled(timeout=5)


@pytest.mark.usefixtures("iree_codegen")
@pytest.mark.parametrize("phase", [phase for phase, _ in PHASES])
def test_the_memory_limit_holds_in(phase: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _check_memory_limit(phase, monkeypatch)


@pytest.mark.usefixtures("unknown_kernels")
@pytest.mark.parametrize("phase", [phase for phase, _ in OWN_PHASES])
def test_the_memory_limit_of_code_generation_holds_in(phase: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _check_memory_limit(phase, monkeypatch)


def _check_memory_limit(phase: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(phase, exhaust)
    with pytest.raises(CompileError, match=r"ran out of memory \(536870912 bytes\)") as info:
        compiled(memory_limit=512 << 20)
    assert "--memory-limit" in info.value.hint


@pytest.mark.parametrize(
    "phase", ["hloforge.pipelines.framework.passes.NativePass.run", "hloforge.importers.signature.from_mlir"]
)
def test_a_crash_within_limits_is_an_error(phase: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(phase, die)
    with pytest.raises(CompileError, match=r"the compilation crashed \(SIGSEGV\)"):
        compiled(timeout=60)


@pytest.mark.usefixtures("either_codegen")
@pytest.mark.parametrize("source", [TEXT, "a program"])
def test_what_is_compiled_within_limits_is_what_is_compiled_without(source: str) -> None:
    program = TEXT if source == TEXT else given()
    limited, free = compiled(program, timeout=120, memory_limit=8 << 30), compiled(program)
    assert limited.vmfb == free.vmfb
    assert limited.manifest == free.manifest


@pytest.mark.wide(2)
@pytest.mark.usefixtures("either_codegen")
@pytest.mark.parametrize("dynamic_shapes", ["keep", "specialize", "auto"])
def test_dynamic_programs_within_limits(dynamic_shapes: str) -> None:
    session = compiled(DYNAMIC, timeout=120, dynamic_shapes=dynamic_shapes).load()
    for size in (2, 3):
        assert session(np.ones(size, np.float32)).tolist() == [2.0] * size


@pytest.mark.parametrize("phase", ["generated.generate", "by_iree._compile_once"])
def test_each_form_of_a_dynamic_program_has_the_limits(phase: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HLOFORGE_CODEGEN", "own" if phase.startswith("generated") else "iree")
    session = compiled(DYNAMIC, timeout=30, dynamic_shapes="specialize").load()
    session(np.ones(2, np.float32))
    monkeypatch.setattr(f"hloforge.runtime.compile.{phase}", die)
    with pytest.raises(CompileError, match="crashed"):
        session(np.ones(3, np.float32))


def test_errors_come_as_they_are() -> None:
    with pytest.raises(hloforge.ImporterError, match="retrn"):
        compiled(TEXT.replace("return", "retrn"), timeout=60)
    with pytest.raises(hloforge.UnsupportedError, match="no_such_function"):
        compiled(
            TEXT.replace("stablehlo.add %x, %x : ", "stablehlo.custom_call @no_such_function(%x) : (").replace(
                "(tensor<4xf32>\n", "(tensor<4xf32>) -> tensor<4xf32>\n"
            ),
            timeout=60,
        )


def test_limits_without_a_process_are_refused() -> None:
    with pytest.raises(hloforge.OptionError, match="isolation"):
        CompileOptions(isolation="none", timeout=1)


def test_readers_share_the_deadline() -> None:
    with spending(Budget(0.3, None)), pytest.raises(hloforge.Error, match=r"ran out of time \(0\.3 s\)"):
        guarded(hang)


def test_a_child_that_is_stopped_leaves_no_process(tmp_path: Path) -> None:
    def work() -> None:
        child = subprocess.Popen(["sleep", "600"])
        (tmp_path / "pid").write_text(str(child.pid))
        hang()

    with pytest.raises(StoppedError):
        run_forked(work, seconds=1, on_end=lambda: None)
    assert gone(int((tmp_path / "pid").read_text()))


def test_a_child_that_is_stopped_cleans_up(tmp_path: Path) -> None:
    path = tmp_path / "half"

    def work() -> None:
        path.touch()
        time.sleep(600)

    with pytest.raises(StoppedError):
        run_forked(work, seconds=0.5, on_end=path.unlink)
    assert not path.exists()


COMMAND = """
import re, sys
sys.argv = ["hloforge", *sys.argv[1:]]
from hloforge.pipelines.framework.passes import NativePass
def hang(*_):
    open("hangs", "w").close()
    re.match("(a+)+$", "a" * 64 + "b")
NativePass.run = hang
from hloforge.tools.start import main
main()
"""


def hanging(tmp_path: Path, *arguments: object) -> subprocess.Popen[bytes]:
    (tmp_path / "p.mlir").write_text(TEXT)
    (tmp_path / "tmp").mkdir()
    environment = os.environ | {"TMPDIR": str(tmp_path / "tmp"), "HLOFORGE_CACHE_DIR": ""}
    command = [sys.executable, "-c", COMMAND, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path, env=environment)


def family(pid: int) -> list[int]:
    """A process and all that it started."""
    children = Path(f"/proc/{pid}/task").glob("*/children")
    return [pid, *(one for path in children for child in path.read_text().split() for one in family(int(child)))]


def wait_until_it_hangs(process: subprocess.Popen[bytes], folder: Path) -> list[int]:
    end = time.monotonic() + 60
    while not (folder / "hangs").exists():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.02)
    (folder / "hangs").unlink()
    return family(process.pid)


@pytest.mark.wide(2)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("limit", [(), ("--timeout=100",)])
def test_a_signal_ends_a_pass_that_hangs(number: signal.Signals, limit: tuple[str, ...], tmp_path: Path) -> None:
    process = hanging(tmp_path, "compile", "p.mlir", "-o", "p.vmfb", *limit)
    pids = wait_until_it_hangs(process, tmp_path)
    process.send_signal(number)
    process.communicate(timeout=20)
    # Where no child runs the pass, the process that waits beside it has to end it.
    assert process.returncode == 128 + number
    assert all(map(gone, pids))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["p.mlir", "tmp"]
    assert not list((tmp_path / "tmp").iterdir())


def test_nothing_outlives_a_command_that_is_killed(tmp_path: Path) -> None:
    process = hanging(tmp_path, "compile", "p.mlir", "--timeout=100")
    pids = wait_until_it_hangs(process, tmp_path)
    assert len(pids) >= 3
    process.kill()
    process.communicate(timeout=20)
    assert all(map(gone, pids))


def gone(pid: int) -> bool:
    """Whether a process has ended; it may wait for an init that is none."""
    for _ in range(200):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
        time.sleep(0.05)
    return False
