"""Files whose names are no UTF-8 text: they are read and written as any other, and named with their bytes escaped."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import hloforge
from tests.tools.command import Call
from tests.tools.conftest import ADD

NAME = os.fsdecode(b"m\xff\xfe\xc3")
STABLEHLO = "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / NAME
    folder.mkdir()
    (folder / f"{NAME}.hlo").write_text(ADD)
    (folder / f"{NAME}.mlir").write_text(STABLEHLO)
    np.save(folder / f"{NAME}.npy", np.ones(4, np.float32))
    np.savez(folder / f"{NAME}.npz", x=np.ones(4, np.float32))
    return folder


WORKS = (
    "compile {}.hlo -o {}.vmfb",
    "compile {}.mlir -o {}.vmfb --no-cache",
    "run {}.hlo --input=@{}.npy --input=@{}.npz:x --output=@{}.out.npy",
    "run {}.mlir --input=@{}.npy --expected-output=@{}.npy",
    "verify {}.hlo --trials=1 --json={}.json",
    "inspect {}.hlo",
    "inspect {}.mlir --html={}.html",
    "opt {}.hlo --pipeline=normalize --locations -o {}.out.mlir --dump-after=all --dump-to={}.dumps",
    "translate {}.hlo --to=hlo-proto -o {}.pb",
    "profile {}.mlir --input=random --json={}.json --trace={}.trace",
)
FAILS = (
    "compile {}.none",
    "compile {}.hlo -o {}.none/x.vmfb",
    "compile {}.hlo --tuning={}.npz",
    "compile {}.hlo --weights={}.npz",
    "compile {}.hlo --weights={}.irpa",
    "compile {}.npz",
    "compile {}.hlo --reproducer-dir={}.rep --iree-no-such-flag",
    "run {}.hlo --input={}",
    "run {}.hlo --input=@{}.none",
    "sign {}.hlo --key={}.pem",
    "inspect {}.hlo --html={}.html --numerics={}.npz",
)


def called(call: Call, folder: Path, line: str) -> tuple[int, str]:
    result = call(*(word.replace("{}", str(folder / NAME)) for word in line.split()))
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert "internal" not in result.stderr and "Traceback" not in result.stderr
    result.output.encode()
    return result.exit_code, result.stderr


@pytest.mark.wide(4)
@pytest.mark.parametrize("line", WORKS)
def test_it_works(call: Call, folder: Path, line: str) -> None:
    assert called(call, folder, line) == (0, "")


@pytest.mark.parametrize("line", FAILS)
def test_an_error_is_one_of_ours(call: Call, folder: Path, line: str) -> None:
    status, errors = called(call, folder, line)
    assert status in (1, 2) and "rror: " in errors


def test_a_vmfb(call: Call, folder: Path) -> None:
    assert called(call, folder, "compile {}.mlir -o {}.vmfb")[0] == 0
    for line in ("run {}.vmfb --input=random", "inspect {}.vmfb --json", "profile {}.vmfb --input=random"):
        assert called(call, folder, line)[0] == 0
    session = hloforge.load(folder / f"{NAME}.vmfb")
    assert (session(np.ones(4, np.float32)) == 1).all()
    assert session.manifest.source == r"m\xff\xfe\xc3.mlir"


def test_messages_and_locations_escape_the_bytes(folder: Path) -> None:
    with pytest.raises(hloforge.ImporterError) as caught:
        hloforge.read(folder / f"{NAME}.npz")
    assert r"m\xff\xfe\xc3.npz" in str(caught.value)
    text = hloforge.read(folder / f"{NAME}.hlo").text(locations=True)
    assert r"m\\xff\\xfe\\xc3.hlo" in text


def test_the_cache_and_temporary_files(call: Call, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HLOFORGE_CACHE_DIR", str(folder / "cache"))
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", None)
    for _ in range(2):
        assert called(call, folder, "run {}.mlir --input=random") == (0, "")
    assert called(call, folder, "cache")[0] == 0
    assert called(call, folder, "compile {}.mlir --iree-no-such-flag")[0] == 1
