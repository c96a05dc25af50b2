"""Ctrl-C and SIGTERM at any time: status and one line say so, and no file and no process is left."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import hloforge

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc")

COMMAND = [sys.executable, "-m", "hloforge.tools.start"]
SIGNALS = [signal.SIGINT, signal.SIGTERM]
LINES = {signal.SIGINT: b"interrupted\n", signal.SIGTERM: b"terminated\n"}

ENDLESS = """HloModule endless
more {
  s = (s32[], f32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(2000000000)
  ROOT r = pred[] compare(i, n), direction=LT
}
step {
  s = (s32[], f32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[] get-tuple-element(s), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  y = f32[] tanh(x)
  ROOT t = (s32[], f32[]) tuple(j, y)
}
ENTRY main {
  x = f32[] parameter(0)
  zero = s32[] constant(0)
  t = (s32[], f32[]) tuple(zero, x)
  w = (s32[], f32[]) while(t), condition=more, body=step
  ROOT r = f32[] get-tuple-element(w), index=1
}
"""


@pytest.fixture(scope="module")
def endless(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("endless") / "endless.vmfb"
    hloforge.compile(ENDLESS, output=path)
    return path


class Command:
    """A running command with folders of its own, which are empty."""

    def __init__(self, home: Path, *arguments: object) -> None:
        self.folders = [home / name for name in ("tmp", "out", "cache")]
        for folder in self.folders:
            folder.mkdir()
        environment = os.environ | {"TMPDIR": str(home / "tmp"), "HLOFORGE_CACHE_DIR": str(home / "cache")}
        pipe = subprocess.PIPE
        command = [*COMMAND, *map(str, arguments)]
        self.process = subprocess.Popen(command, stdout=pipe, stderr=pipe, env=environment, cwd=home / "out")

    def wait_until(self, condition: Callable[[], object]) -> None:
        end = time.monotonic() + 60
        while not condition():
            assert self.process.poll() is None, self.process.communicate()
            assert time.monotonic() < end
            time.sleep(0.01)

    def children(self) -> list[int]:
        return [
            int(pid) for pid in Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        ]

    def has_mapped(self, library: str) -> bool:
        return library in Path(f"/proc/{self.process.pid}/maps").read_text()

    def end(self, number: signal.Signals) -> tuple[int, bytes, bytes]:
        self.process.send_signal(number)
        try:
            output, errors = self.process.communicate(timeout=20)
        finally:
            self.process.kill()
        return self.process.returncode, output, errors

    def files(self) -> list[Path]:
        return [path for folder in self.folders for path in folder.rglob("*")]

    def unfinished(self) -> list[Path]:
        """What it wrote beside kernels' code, which is kept as soon as it is made, and the cache's lock."""
        return [path for path in self.files() if path.suffix != ".kernels" and path.name != ".lock"]


def command_line(pid: int) -> str:
    """Nothing for a process that ended meanwhile."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text()
    return ""


def gone(pid: int) -> bool:
    """Whether a process has ended; it may wait for an init that is none."""
    for _ in range(100):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
        time.sleep(0.05)
    return False


def program(tmp_path: Path) -> Path:
    path = tmp_path / "endless.hlo"
    path.write_text(ENDLESS)
    return path


@pytest.mark.usefixtures("iree_codegen")
@pytest.mark.parametrize("number", SIGNALS)
def test_while_the_compiler_runs(number: signal.Signals, tmp_path: Path) -> None:
    command = Command(tmp_path, "compile", program(tmp_path), "-o", tmp_path / "out" / "a.vmfb")
    compilers: list[int] = []

    def compiles() -> bool:
        compilers[:] = [pid for pid in command.children() if "iree-compile" in command_line(pid)]
        return bool(compilers)

    command.wait_until(compiles)
    assert command.end(number) == (128 + number, b"", LINES[number])
    assert all(map(gone, compilers))
    assert command.files() == []


@pytest.mark.parametrize("number", SIGNALS)
def test_while_llvm_makes_the_code_of_kernels(number: signal.Signals, tmp_path: Path) -> None:
    path = tmp_path / "sorts.mlir"
    path.write_text(many_kernels())
    command = Command(tmp_path, "compile", path, "-o", tmp_path / "out" / "a.vmfb")
    command.wait_until(lambda: command.has_mapped("libllvmlite"))
    assert command.end(number) == (128 + number, b"", LINES[number])
    assert command.unfinished() == []


def many_kernels() -> str:
    """A program whose machine code takes seconds: sorts of different sizes."""
    types = [f"tensor<{size}xf32>" for size in range(1000, 1040)]
    lines = [
        f"""%r{n} = "stablehlo.sort"(%x{n}) <{{dimension = 0 : i64}}> ({{
        ^bb0(%a: tensor<f32>, %b: tensor<f32>):
          %p = stablehlo.compare GT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
          stablehlo.return %p : tensor<i1>
        }}) : ({type_}) -> {type_}"""
        for n, type_ in enumerate(types)
    ]
    parameters = ", ".join(f"%x{n}: {type_}" for n, type_ in enumerate(types))
    results = ", ".join(f"%r{n}" for n in range(len(types)))
    body = "\n".join([*lines, f"return {results} : {', '.join(types)}"])
    return f"func.func @main({parameters}) -> ({', '.join(types)}) {{\n{body}\n}}"


@pytest.mark.parametrize("number", SIGNALS)
def test_while_a_program_runs_that_does_not_end(number: signal.Signals, endless: Path, tmp_path: Path) -> None:
    command = Command(tmp_path, "run", endless, "--input=zeros", "-o", "@y.npy")
    command.wait_until(lambda: command.has_mapped("_runtime_libs"))
    time.sleep(0.5)
    start = time.monotonic()
    assert command.end(number) == (128 + number, b"", LINES[number])
    assert time.monotonic() - start < 10
    assert command.unfinished() == []


@pytest.mark.parametrize("number", SIGNALS)
def test_while_extension_modules_are_imported(number: signal.Signals, tmp_path: Path) -> None:
    command = Command(tmp_path, "compile", program(tmp_path))
    command.wait_until(lambda: command.has_mapped("_multiarray"))
    assert command.end(number) == (128 + number, b"", LINES[number])
    assert command.files() == []


@pytest.mark.slow
@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("step", range(25))
def test_at_any_time(number: signal.Signals, step: int, tmp_path: Path) -> None:
    command = Command(tmp_path, "compile", program(tmp_path), "-o", tmp_path / "out" / "a.vmfb")
    command.wait_until(lambda: command.has_mapped("_multiarray"))
    time.sleep(0.1 * step)
    status: Any = command.end(number)
    files = [path.name for path in command.unfinished()]
    assert status in ((128 + number, b"", LINES[number]), (0, b"", b""))
    assert set(files) <= {"a.vmfb"} | {name for name in files if name.endswith(".cached")}
    assert all(path.stat().st_size > 1000 for path in command.files() if path.suffix in (".vmfb", ".cached"))


@pytest.mark.parametrize("number", SIGNALS)
def test_while_native_code_holds_pythons_lock(number: signal.Signals, tmp_path: Path) -> None:
    """As MLIR's passes do: no Python runs there, and the folder is removed by another process."""
    code = (
        "import ctypes\n"
        "from hloforge.runtime.data.files import temporary_folder\n"
        "from hloforge.tools.interrupts import end_on_signals\n"
        "end_on_signals()\n"
        "with temporary_folder() as folder:\n"
        "    (folder / 'file').touch()\n"
        "    print(flush=True)\n"
        "    mutex = ctypes.create_string_buffer(64)\n"
        "    for _ in range(2): ctypes.PyDLL(None).pthread_mutex_lock(mutex)\n"
    )
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    pipe = subprocess.PIPE
    child = subprocess.Popen([sys.executable, "-c", code], stdout=pipe, stderr=pipe, env=environment)
    assert child.stdout is not None and child.stdout.read(1) == b"\n"
    assert len(list(tmp_path.iterdir())) == 1
    time.sleep(0.2)
    child.send_signal(number)
    output, errors = child.communicate(timeout=30)
    assert (child.returncode, output, errors) == (128 + number, b"", LINES[number])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.wide(4)
@pytest.mark.parametrize("command", ["compile", "run", "verify", "bisect", "profile", "tune"])
def test_ctrl_c_in_a_terminal(command: str, tmp_path: Path) -> None:
    """It goes to all that run there: the command, its guard, compilers, workers and reference engines."""
    home = {name: tmp_path / name for name in ("tmp", "cache", "out")}
    for folder in home.values():
        folder.mkdir()
    mark = uuid.uuid4().hex
    places = {"TMPDIR": str(home["tmp"]), "HLOFORGE_CACHE_DIR": str(home["cache"]), "HLOFORGE_TEST": mark}
    # Our own code generator would have ended too soon.
    places |= {"HLOFORGE_CODEGEN": "iree"} if command == "compile" else {}
    words = [*COMMAND, command, str(program(tmp_path))] + ["--input=zeros"] * (command == "run")
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(home["out"])
        os.execve(words[0], words, os.environ | places | {"TERM": "xterm"})
    if command == "compile":
        wait_for(lambda: any(b"iree-compile" in words_of(pid) for pid in marked(mark)))
    else:
        time.sleep(4.0)  # while reading, compiling or running: none of them comes to an end
    os.write(terminal, b"\x03")
    said = b""
    with suppress(OSError):  # the terminal is gone
        while part := os.read(terminal, 1 << 16):
            said += part
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status == 130, said
    assert said.endswith(b"interrupted\r\n") and said.count(b"interrupted") == 1
    assert b"Traceback" not in said
    assert all(map(gone, marked(mark)))
    assert list(home["tmp"].rglob("*")) + list(home["out"].rglob("*")) == []


def wait_for(condition: Callable[[], object]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def words_of(pid: int) -> bytes:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


def marked(mark: str) -> list[int]:
    """The processes with a mark in their environment."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if mark.encode() in (folder / "environ").read_bytes():
                found.append(int(folder.name))
    return found


def test_a_fork_of_the_command_takes_signals_for_itself() -> None:
    code = (
        "import os, signal, time\n"
        "from hloforge.tools.interrupts import end_on_signals\n"
        "end_on_signals()\n"
        "reader, writer = os.pipe()\n"
        "child = os.fork()\n"
        "if child == 0: os.write(writer, b'1'), time.sleep(60)\n"
        "os.read(reader, 1)\n"
        "os.kill(child, signal.SIGTERM)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, f"{-signal.SIGTERM}\n")


@pytest.mark.parametrize("arguments", [["opt"], ["compile", "-o", "-"]])
def test_standard_output_on_a_full_disk(arguments: list[str], tmp_path: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [*COMMAND, *arguments, program(tmp_path)], stdout=full, stderr=subprocess.PIPE, timeout=120, check=False
        )
    assert (done.returncode, done.stderr) == (1, b"error: cannot write: No space left on device\n")


def test_ctrl_c_while_python_loads_the_command_prints_nothing(tmp_path: Path) -> None:
    """At any time after the entry point has begun; before it Python itself is interrupted."""
    for milliseconds in (0, 10, 30, 60):
        script = f"""
import os, signal, sys, threading, time
sys.argv = ["hloforge", "--version"]
from hloforge.tools import start
def kill():
    time.sleep({milliseconds} / 1000)
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=kill, daemon=True).start() if {milliseconds} else None
import builtins
true_import = builtins.__import__
def slow(name, *rest):
    if name.startswith(("hloforge", "click")):
        time.sleep(0.02)
        if not {milliseconds}:
            os.kill(os.getpid(), signal.SIGINT)
    return true_import(name, *rest)
builtins.__import__ = slow
start.main()
"""
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode in (-signal.SIGINT, 130)
        assert (done.stdout, done.stderr) == ("", "")
