"""Files and streams without an end, of other kinds and larger than memory: one located error, or what they hold."""

from __future__ import annotations

import io
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

import hloforge
from hloforge.dialect.bounded_reading import SIZE_LIMIT, TooLargeError, read_path, size_limit
from hloforge.dialect.errors import ArgumentError, CompileError, ImporterError, LoadError
from hloforge.dialect.program import Parameter
from hloforge.dialect.shapes import Shape
from hloforge.importers.source import load
from hloforge.runtime.data.inputs import parse_input
from hloforge.runtime.debug.reproducer import recorded_inputs
from hloforge.tools.main import cli

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /dev/zero and pipes with names")

TEXT = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = stablehlo.add %x, %x : tensor<4xf32>
  return %y : tensor<4xf32>
}"""
ZERO = Path("/dev/zero")


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments)


class Endless(io.RawIOBase):
    """A stream that always has more."""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        buffer[:] = b"x" * len(buffer)
        return len(buffer)


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    return path


def written(path: Path, data: bytes) -> Path:
    """A pipe that somebody writes this to, once."""
    threading.Thread(target=path.write_bytes, args=(data,), daemon=True).start()
    return path


@pytest.mark.parametrize("source", [ZERO, Endless(), io.TextIOWrapper(Endless())], ids=["device", "bytes", "text"])
def test_sources_without_an_end(source: Any) -> None:
    with size_limit(1 << 20), pytest.raises(ImporterError, match="it has more than 1 MiB") as info:
        load(source)
    assert info.value.location is not None
    assert "--size-limit" in info.value.hint


def test_the_limit_of_a_stream_is_there_without_an_option(monkeypatch: pytest.MonkeyPatch) -> None:
    assert SIZE_LIMIT == 2 << 30
    monkeypatch.setattr("hloforge.dialect.bounded_reading.SIZE_LIMIT", 3 << 20)
    with pytest.raises(TooLargeError, match="more than 3 MiB"):
        read_path(ZERO)


def test_a_file_of_more_holes_than_memory(tmp_path: Path) -> None:
    path = tmp_path / "holes.mlir"
    with path.open("wb") as file:
        file.truncate(1 << 42)
    with pytest.raises(ImporterError, match="it has more than"):
        hloforge.read(path)


def test_a_file_has_no_limit_but_memory_unless_one_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hloforge.dialect.bounded_reading.SIZE_LIMIT", 10)
    path = tmp_path / "p.mlir"
    path.write_text(TEXT)
    assert read_path(path) == TEXT.encode()
    with pytest.raises(ImporterError, match="more than 20 bytes"):
        hloforge.compile(path, size_limit=20, cache=False)
    with pytest.raises(hloforge.OptionError, match="size_limit must be positive"):
        hloforge.compile(path, size_limit=0)


def test_sockets_and_folders(tmp_path: Path) -> None:
    place = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(place))
        with pytest.raises(ImporterError, match="no such device or address"):
            load(place)
    with pytest.raises(ImporterError, match="is a directory"):
        load(tmp_path)


def test_a_pipe_is_read_once_and_whole(pipe: Path) -> None:
    assert load(written(pipe, TEXT.encode() * 5000)) == (TEXT.encode() * 5000, str(pipe))


def test_a_vmfb_and_an_array_come_by_pipes(pipe: Path) -> None:
    vmfb = hloforge.compile(TEXT).vmfb
    assert hloforge.load(written(pipe, vmfb))(np.ones(4, np.float32)).tolist() == [2.0] * 4
    saved = io.BytesIO()
    np.save(saved, np.arange(4, dtype=np.float32))
    written(pipe, saved.getvalue())
    assert parse_input(f"@{pipe}", Parameter("x", Shape.parse("f32[4]"))).tolist() == [0, 1, 2, 3]


def test_arrays_and_vmfbs_without_an_end() -> None:
    with size_limit(1 << 20):
        with pytest.raises(ArgumentError, match="cannot read /dev/zero: it has more than 1 MiB") as info:
            parse_input("@/dev/zero", Parameter("x", Shape.parse("f32[4]")))
        assert "--size-limit" in info.value.hint
        with pytest.raises(LoadError, match="cannot read /dev/zero: it has more than 1 MiB"):
            hloforge.load(ZERO)


def test_a_deadline_holds_while_a_pipe_is_silent(pipe: Path) -> None:
    with pytest.raises(CompileError, match=r"ran out of time \(0\.3 s\)"):
        hloforge.compile(pipe, timeout=0.3)
    reader, writer = os.pipe()
    with os.fdopen(reader, "rb") as stream, pytest.raises(CompileError, match="ran out of time"):
        hloforge.compile(stream, timeout=0.3)
    os.close(writer)


@pytest.mark.parametrize("command", [["inspect"], ["opt"], ["translate", "--to=stablehlo"], ["run", "--input=zeros"]])
def test_commands_take_programs_from_pipes(command: list[str], pipe: Path) -> None:
    done = invoke(*command, str(written(pipe, TEXT.encode())))
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize(
    "command", [["inspect"], ["opt"], ["run", "--input=zeros"], ["compile"], ["verify"], ["bisect"]]
)
def test_commands_end_at_the_limit(command: list[str]) -> None:
    done = invoke(*command, "/dev/zero", "--size-limit=1M")
    assert done.exit_code == 1
    assert "/dev/zero: error: cannot read the file: it has more than 1 MiB" in done.output
    assert "--size-limit" in done.output


def test_standard_input_without_an_end() -> None:
    command = [sys.executable, "-m", "hloforge.tools.start", "compile", "-", "--size-limit=1M"]
    with ZERO.open("rb") as zero:
        done = subprocess.run(command, stdin=zero, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("<stdin>: error: cannot read the file: it has more than 1 MiB")


@pytest.mark.parametrize("command", ["verify", "bisect"])
@pytest.mark.parametrize("spec", ["@{}", "4xf32=@{}", "4xf32= @{}:x"])
def test_comments_of_a_program_open_no_files(command: str, spec: str, tmp_path: Path, pipe: Path) -> None:
    path = tmp_path / "p.mlir"
    path.write_text(f"// a remark\n// hloforge-input: {spec.format(pipe)}\n{TEXT}\n")
    start = time.monotonic()
    done = invoke(command, str(path))
    assert done.exit_code == 1
    assert f"{path}:2: error: a comment of the program names a file as its argument" in done.output
    assert "--input=" in done.output
    assert time.monotonic() - start < 60  # opening the pipe would wait for ever


def test_values_in_comments_are_taken() -> None:
    assert recorded_inputs(b"// hloforge-input: 2xf32=[1 2]\n// hloforge-input: random:7\n", "f") == (
        "2xf32=[1 2]",
        "random:7",
    )
