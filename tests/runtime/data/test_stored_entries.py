"""Entries of a zip where they lie."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from hloforge.runtime.data.aligned import ALIGNMENT
from hloforge.runtime.data.integrity import DAMAGE
from hloforge.runtime.data.stored_entries import entry_bytes


@settings(max_examples=30, deadline=None)
@given(
    first=st.binary(max_size=90),
    data=st.binary(min_size=1, max_size=300),
    name=st.text("abc/", min_size=1, max_size=70),
)
def test_files_and_bytes_have_the_same_entry(
    tmp_path_factory: pytest.TempPathFactory, first: bytes, data: bytes, name: str
) -> None:
    path = tmp_path_factory.mktemp("zips") / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("first", first)
        archive.writestr(f"second{name}", data)
    for source in (path, str(path), path.read_bytes()):
        found = entry_bytes(source, f"second{name}")
        assert found.tobytes() == data
        assert found.ctypes.data % ALIGNMENT == 0


def test_what_is_no_zip_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    path.write_bytes(b"PK\3\4" + bytes(60))
    for source in (path, path.read_bytes()):
        with pytest.raises(DAMAGE):
            entry_bytes(source, "a")


def test_large_files_are_mapped(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    header = 30 + len("a")
    with zipfile.ZipFile(path, "w") as archive:
        entry = zipfile.ZipInfo("a")
        entry.extra = bytes((3, 0xD9)) + (ALIGNMENT - header - 4).to_bytes(2, "little") + bytes(ALIGNMENT - header - 4)
        archive.writestr(entry, bytes(1 << 16))
    assert isinstance(entry_bytes(path, "a"), np.memmap)
