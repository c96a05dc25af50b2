"""Files are written whole or not at all."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path
from unittest import mock

import pytest

from hloforge.dialect.errors import CompileError
from hloforge.runtime.data.files import write_atomically


def test_replaces_and_keeps_permissions(tmp_path: Path) -> None:
    path = tmp_path / "a.vmfb"
    write_atomically(path, b"old")
    assert stat.S_IMODE(path.stat().st_mode) & 0o077 != 0 or os.umask(os.umask(0o22)) == 0o077
    path.chmod(0o640)
    write_atomically(path, b"new")
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"new", 0o640)
    assert list(tmp_path.iterdir()) == [path]


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "a.vmfb"
    path.write_bytes(b"old")
    with (
        mock.patch("os.replace", side_effect=OSError(28, "No space left on device")),
        pytest.raises(CompileError, match="No space left"),
    ):
        write_atomically(path, b"new")
    with mock.patch("os.replace", side_effect=KeyboardInterrupt), pytest.raises(KeyboardInterrupt):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_is_missing_or_in_the_way(tmp_path: Path) -> None:
    with pytest.raises(CompileError, match=r"cannot write .*a\.vmfb: No such file or directory"):
        write_atomically(tmp_path / "none" / "a.vmfb", b"x")
    with pytest.raises(CompileError, match=r"cannot write .*: Is a directory"):
        write_atomically(tmp_path, b"x")
    with pytest.raises(CompileError, match="cannot write"):
        write_atomically(tmp_path / ("long" * 100), b"x")
    with pytest.raises(CompileError, match="cannot write"):
        write_atomically(tmp_path / "nul\0byte", b"x")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_read_only_folder(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(CompileError, match="Permission denied"):
        write_atomically(tmp_path / "a.vmfb", b"x")


def test_a_link_keeps_pointing(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"old")
    link = tmp_path / "link"
    link.symlink_to("real")
    write_atomically(link, b"new")
    assert link.is_symlink()
    assert (tmp_path / "real").read_bytes() == b"new"


def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    received: list[bytes] = []
    reader = threading.Thread(target=lambda: received.append(pipe.read_bytes()))
    reader.start()
    write_atomically(pipe, b"data")
    reader.join(10)
    assert received == [b"data"]
    assert pipe.is_fifo()
