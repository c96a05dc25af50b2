"""The examples of every command's help run as printed, in a folder with the files that they name."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519

from hloforge.tools.main import COMMANDS, cli

pytestmark = pytest.mark.wide(6)

_TWICE = """HloModule twice
ENTRY e {
  x = f32[2,3] parameter(0)
  y = f32[2,3] tanh(x)
  ROOT z = f32[2,3] add(y, y)
}
"""
_FED = """HloModule fed
ENTRY e { t0 = token[] after-all()
  i = (f32[3], token[]) infeed(t0)
  x = f32[3] get-tuple-element(i), index=0
  t1 = token[] get-tuple-element(i), index=1
  j = (f32[3], token[]) infeed(t1)
  y = f32[3] get-tuple-element(j), index=0
  t2 = token[] get-tuple-element(j), index=1
  r = (f32[2], u32[], token[]) recv(t2), channel_id=7, is_host_transfer=true
  d = (f32[2], token[]) recv-done(r), channel_id=7, is_host_transfer=true
  z = f32[2] get-tuple-element(d), index=0
  s = f32[3] add(x, y)
  ROOT both = (f32[3], f32[2]) tuple(s, z) }
"""
_SHARED = """HloModule shared
sum { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
ENTRY e { x = f32[8] parameter(0)
  ROOT s = f32[8] all-reduce(x), replica_groups={}, to_apply=sum }
"""
# Programs for lines that need another one, by a part of the line; with the array in x.npy.
_OTHERS = {
    "--infeed": (_FED, np.ones(3, np.float32)),
    "--replicas": (_SHARED, np.ones((2, 8), np.float32)),
}
# What would take long: a bound that goes with the line.
_BOUNDS = {"tune": "--budget=0", "profile": "--seconds=0.05", "verify": "--trials=1", "bisect": "--trials=1"}
# What needs more than this folder; other tests run these.
_ELSEWHERE = ("mpiexec", "cuda", "--warm", "model.onnx")


def examples() -> list[tuple[str, ...]]:
    """The lines of each command's help that begin with ``hloforge``: a later line may need files of an earlier one."""
    found = []
    for name in COMMANDS:
        text = CliRunner().invoke(cli, [name, "--help"]).stdout
        lines = re.search(r"Example:\n((?:    .*\n)+)", text)
        assert lines, name
        chosen = [line.strip() for line in lines[1].splitlines()]
        found.append(tuple(line for line in chosen if line.startswith("hloforge ")))
    return [lines for lines in found if lines]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    key = ed25519.Ed25519PrivateKey.generate()
    form = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    (tmp_path / "key.pem").write_bytes(key.private_bytes(serialization.Encoding.PEM, *form))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HLOFORGE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path))
    _place(tmp_path, _TWICE, np.ones((2, 3), np.float32))
    (tmp_path / "other.hlo").write_text(_TWICE)
    for words in (
        *(["compile", "model.hlo", "-o", f"{name}.vmfb"] for name in ("model", "prefill", "decode")),
        ["translate", "model.hlo", "--to=stablehlo", "-o", "model.mlir"],
        ["verify", "model.hlo", "--trials=1", "--json=report.json"],
    ):
        assert CliRunner().invoke(cli, words).exit_code == 0
    return tmp_path


def _place(folder: Path, program: str, array: np.ndarray) -> None:
    (folder / "model.hlo").write_text(program)
    np.save(folder / "x.npy", array)


@pytest.mark.parametrize("lines", examples(), ids=lambda lines: shlex.split(lines[0])[1])
def test_the_examples_run(folder: Path, lines: tuple[str, ...]) -> None:
    for line in lines:
        if any(word in line for word in _ELSEWHERE):
            continue
        program = next(
            (found for word, found in _OTHERS.items() if word in line), (_TWICE, np.ones((2, 3), np.float32))
        )
        _place(folder, *program)
        words = shlex.split(line.partition(">")[0])[1:]
        bound = _BOUNDS.get(words[0])
        if bound and bound.partition("=")[0] not in line:
            words.append(bound)
        done = CliRunner().invoke(cli, words)
        assert done.exit_code == 0, (line, done.output)
