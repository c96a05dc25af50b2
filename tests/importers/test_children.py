"""Children that read models of frameworks, and how they end."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from hloforge.dialect.errors import Error
from hloforge.importers import saved_model
from hloforge.importers.reader import read

_TRACEBACK = """Traceback (most recent call last):
  File "model.py", line 7, in forward
    return layer(x)
RuntimeError: no such layer
"""


@pytest.mark.parametrize(
    ("status", "output", "log", "said", "way_out"),
    [
        (1, "", _TRACEBACK, "RuntimeError: no such layer", "in your own process"),
        (-11, "", "", "was ended by SIGSEGV", "in your own process"),
        (-9, "", "", "was ended by SIGKILL", "memory is short"),
        (0, "", "", "it ended without an answer", "in your own process"),
        (0, "a model that prints", "", "it ended without an answer", "in your own process"),
    ],
    ids=["exception", "crash", "killed", "silence", "no answer"],
)
def test_a_child_that_ends_says_the_way_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, status: int, output: str, log: str, said: str, way_out: str
) -> None:
    (tmp_path / "saved_model.pb").write_bytes(b"")
    done = subprocess.CompletedProcess([], status, output, log)
    monkeypatch.setattr(saved_model.subprocess, "run", lambda *_, **__: done)
    with pytest.raises(Error) as raised:
        read(tmp_path)
    assert said in raised.value.message
    assert way_out in raised.value.hint
    assert ("line 7, in forward" in str(raised.value)) == bool(log)


def test_a_model_of_keras_in_hdf5_says_how_to_save_it(tmp_path: Path) -> None:
    path = tmp_path / "model.h5"
    path.write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(64))
    with pytest.raises(Error) as raised:
        read(path)
    assert ".save('model.keras')" in raised.value.hint
