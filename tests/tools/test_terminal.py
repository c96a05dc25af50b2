"""Nothing that a file says commands the terminal: escape codes, carriage returns, marks that turn the writing."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hloforge.tools.terminal import GuardedStream, clean, console, guarded_streams, one_line
from tests.tools.command import Call

EVIL = "\x1b[31m\x1b]0;t\x07\r\x9b2J\u202e\u2066\u200b\x00\x7f\u2028"
# As MLIR writes a string; what it calls a file cannot have a zero.
QUOTED = "".join(f"\\{byte:02X}" for byte in EVIL.replace("\x00", "").encode())
COMMANDS = ("\x1b", "\r", "\x07", "\x9b", "\u202e", "\u2066", "\u200b", "\u2028", "\x00", "\x7f")
SCRIPT = "<script>alert(1)</script>"


def program(body: str, name: str = QUOTED) -> str:
    return f"""module @"m{name}" attributes {{hloforge.parameter_names = ["x{name}{SCRIPT}"],
    hloforge.parameter_shapes = ["f32[4]"], hloforge.result_shape = "f32[4]", hloforge.input_output_alias = []}} {{
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{
    {body} loc("scope{name}{SCRIPT}"("file{name}{SCRIPT}.py":3:4))
    return %r : tensor<4xf32>
  }}
}}"""


ADD = program("%r = stablehlo.add %x, %x : tensor<4xf32>")
CALL = program(f'%r = stablehlo.custom_call @"call{QUOTED}{SCRIPT}"(%x) : (tensor<4xf32>) -> tensor<4xf32>')
ODD = program(f'%r = "odd.op"(%x) {{a = "{QUOTED}"}} : (tensor<4xf32>) -> tensor<4xf32>')
MALFORMED = f'func.func @"f{QUOTED}"(%x: tensor<4xf32>) -> tensor<5xf32> {{ return %x : tensor<4xf32> }}'


@pytest.fixture(params=[ADD, CALL, ODD, MALFORMED, EVIL], ids=["add", "call", "odd", "malformed", "garbage"])
def evil(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A file whose name and contents are full of commands."""
    path = tmp_path / f"m{EVIL}.mlir".replace("\x00", "")
    path.write_text(request.param, newline="")
    return path


EACH = {
    "compile": ["compile", "{}", "-o", "{out}"],
    "run": ["run", "{}", "--input=random"],
    "run a wrong input": ["run", "{}", f"--input=x{EVIL}={EVIL}".replace("\x00", "")],
    "verify": ["verify", "{}", "--trials=1"],
    "inspect": ["inspect", "{}"],
    "inspect --json": ["inspect", "{}", "--json"],
    "opt": ["opt", "{}", "--pipeline=normalize", "-o", "{out}"],
    "opt of no pass": ["opt", "{}", f"--pipeline=p{EVIL}".replace("\x00", "")],
    "translate": ["translate", "{}", "--to=hlo", "-o", "{out}"],
    "profile": ["profile", "{}", "--input=random"],
    "sign": ["sign", "{}", "--key={}"],
    "usage": ["compile", f"--no-such-option{EVIL}".replace("\x00", "")],
    "command": [f"no{EVIL}".replace("\x00", "")],
}


@pytest.mark.parametrize("command", EACH)
def test_no_command_prints_what_commands_the_terminal(call: Call, evil: Path, tmp_path: Path, command: str) -> None:
    out = str(tmp_path / "out")
    result = call(*(word.replace("{out}", out).replace("{}", str(evil)) for word in EACH[command]))
    assert result.exception is None or isinstance(result.exception, SystemExit)
    for text in (result.stdout, result.stderr):
        assert not [char for char in COMMANDS if char in text.replace("\r\n", "\n")], text
    if command == "inspect --json" and result.exit_code == 0:
        names = [parameter["name"] for parameter in json.loads(result.stdout)["parameters"]]
        assert names == [f"x{EVIL}{SCRIPT}".replace("\x00", "")]


@pytest.mark.parametrize("command", ["inspect", "run --input=random"])
def test_nor_does_what_a_vmfb_says(call: Call, tmp_path: Path, command: str) -> None:
    source, vmfb = tmp_path / "add.mlir", tmp_path / "add.vmfb"
    source.write_text(ADD)
    assert call("compile", source, "-o", vmfb).exit_code == 0
    result = call(*command.split(), vmfb)
    assert result.exit_code == 0
    assert not [char for char in COMMANDS if char in result.output]
    assert command != "inspect" or "x\\u001b[31m" in result.output


@pytest.mark.parametrize("source", [ADD, CALL], ids=["add", "call"])
def test_pages_show_names_as_text(call: Call, tmp_path: Path, source: str) -> None:
    path, page = tmp_path / "m.mlir", tmp_path / "m.html"
    path.write_text(source)
    assert call("inspect", path, f"--html={page}").exit_code == 0
    assert "alert(1)" in page.read_text()
    assert SCRIPT not in page.read_text() and "<script>alert" not in page.read_text().lower()


def test_text_for_a_terminal_is_clean_and_for_a_pipe_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "add.mlir"
    path.write_text("// \x1b[31m\n" + ADD.replace("\\1B", "\\1B"))
    words = [sys.executable, "-m", "hloforge.tools.main", "opt", str(path), "--locations"]
    piped = subprocess.run(words, capture_output=True, check=True, timeout=60).stdout
    assert b"\\1B[31m" in piped
    terminal, child_side = os.openpty()
    child = subprocess.Popen(words, stdout=child_side, stdin=subprocess.DEVNULL)
    os.close(child_side)
    shown = b""
    while True:
        try:
            part = os.read(terminal, 65536)
        except OSError:
            break
        if not part:
            break
        shown += part
    assert child.wait(60) == 0
    os.close(terminal)
    assert shown.replace(b"\r\n", b"\n") == piped


def test_what_is_escaped_and_what_is_not() -> None:
    assert clean("plain ü € 漢 🎉\n\ttext\r\n") == "plain ü € 漢 🎉\n\ttext\r\n"
    assert clean("\x1b[2J\r\x9b\u202e\udcff") == "\\u001b[2J\\u000d\\u009b\\u202e\\udcff"
    assert json.loads(f'"{clean(chr(0xE0041))}"') == chr(0xE0041)
    assert one_line("x\nerror: forged") == "x\\nerror: forged"


def test_a_stream_escapes_and_its_bytes_are_data() -> None:
    data = io.BytesIO()
    stream = GuardedStream(io.TextIOWrapper(data, encoding="ascii", write_through=True))
    stream.write("ü\x1b\n")
    stream.buffer.write(b"\x1b")
    stream.flush()
    assert data.getvalue() == b"\\xfc\\u001b\n\x1b"


def test_a_console_styles_and_escapes(capsys: pytest.CaptureFixture[str]) -> None:
    with guarded_streams(), guarded_streams():
        console(force_terminal=True, color_system="standard").print(f"[bold]a[/bold] {EVIL}")
        print(EVIL)
    printed = capsys.readouterr().out
    assert "\x1b[1ma\x1b[0m" in printed
    assert "\x1b[31m" not in printed and "\x1b]0" not in printed and "\u202e" not in printed
    assert not isinstance(sys.stdout, GuardedStream)
