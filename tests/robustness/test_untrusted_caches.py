"""Caches that others may write to, that are exchanged, full, read-only or written to by many processes."""

from __future__ import annotations

import os
import resource
import stat
import tempfile
import time
from pathlib import Path

import pytest

import hloforge
from hloforge.dialect.errors import CompileError
from hloforge.runtime.artifact.executable import Executable
from hloforge.runtime.artifact.manifest import Manifest
from hloforge.runtime.compile import cache
from hloforge.runtime.compile.targets import Target
from hloforge.runtime.data.files import write_atomically
from hloforge.runtime.data.private_folders import distrust
from hloforge.runtime.options import CompileOptions
from tests.robustness.forks import in_fork

ANOTHER_USER = 54321
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(cache.FOLDER_VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache"


def entry(data: bytes = b"x") -> cache.Entry:
    return cache.entry(data, {"file": "p"}, Target.parse("cpu:generic"), CompileOptions())


def executable(fill: bytes = b"\0", size: int = 1000) -> Executable:
    program = hloforge.as_program("HloModule m\nENTRY e { ROOT x = f32[4] parameter(0) }")
    return Executable(fill * size, Manifest("p", program.signature))


def stored(data: bytes = b"x") -> Path:
    place = entry(data)
    place.store(executable(data))
    assert place.find() == executable(data)
    assert place.path is not None
    return place.path


def test_the_folder_is_for_its_user_alone() -> None:
    assert stored().parent.stat().st_mode & 0o777 == 0o700


def test_entries_are_for_their_user_alone(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = folder / "a" / "b"
    monkeypatch.setenv(cache.FOLDER_VARIABLE, str(deep))
    umask = os.umask(0)
    try:
        stored()
    finally:
        os.umask(umask)
    assert {path.stat().st_mode & 0o777 for path in (deep, deep.parent, folder)} == {0o700}
    assert {path.name: path.stat().st_mode & 0o777 for path in deep.iterdir() if path.stat().st_mode & 0o77} == {}


@pytest.mark.parametrize(("mode", "who"), [(0o020, "the group with the number "), (0o002, "every user may write to ")])
def test_what_others_may_write_is_not_read(folder: Path, mode: int, who: str) -> None:
    path = stored()
    path.chmod(0o600 | mode)
    assert entry().find() is None
    path.chmod(0o600)
    assert entry().find() == executable(b"x")
    for place in (folder, folder.parent):
        before = place.stat().st_mode
        # The sticky bit helps above the folder, and not in it: there others would add entries.
        for sticky in (0, stat.S_ISVTX):
            place.chmod(0o700 | mode | sticky)
            if place == folder or not sticky:
                assert distrust(folder).startswith(who) and str(place) in distrust(folder)
                assert entry().find() is None
                entry(b"y").store(executable())
                assert cache.usage(folder)[0] == 1
            else:
                assert entry().find() == executable(b"x")
        place.chmod(before)
    folder.chmod(0o755)
    assert entry().find() == executable(b"x")


def test_a_folder_is_not_made_where_others_may_exchange_it(folder: Path) -> None:
    folder.parent.chmod(0o777)
    entry().store(executable())
    assert not folder.exists() and str(folder.parent) in distrust(folder)
    folder.parent.chmod(0o1777)
    assert stored().parent == folder


def test_links_on_the_way_are_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    public, private = tmp_path / "public", tmp_path / "private"
    for each in (public, private):
        each.mkdir(mode=0o700)
    (public / "link").symlink_to(private)
    (tmp_path / "second").symlink_to("public/link")
    monkeypatch.setenv(cache.FOLDER_VARIABLE, str(tmp_path / "second" / "cache"))
    path = stored()
    assert path.resolve().is_relative_to(private)
    public.chmod(0o777)
    assert str(public) in distrust(path.parent)
    assert entry().find() is None
    public.chmod(0o700)
    assert entry().find() is not None
    (tmp_path / "round").symlink_to("round")
    assert "more links" in distrust(tmp_path / "round" / "cache")


@needs_root
def test_a_link_of_another_user_is_not_followed(tmp_path: Path) -> None:
    shared, own = tmp_path / "shared", tmp_path / "own"
    shared.mkdir(), own.mkdir(mode=0o700)
    shared.chmod(0o1777)
    (shared / "cache").symlink_to(own)
    assert distrust(shared / "cache") == ""
    os.lchown(shared / "cache", ANOTHER_USER, -1)
    assert distrust(shared / "cache") == f"{shared / 'cache'} belongs to the user with the number {ANOTHER_USER}"


def test_what_is_no_file_is_no_entry_and_is_replaced(tmp_path: Path) -> None:
    path = stored()
    for make in (os.mkfifo, lambda place: place.symlink_to(tmp_path / "target")):
        path.unlink()
        make(path)
        assert entry().find() is None
        entry().store(executable(b"x"))
        assert entry().find() == executable(b"x") and path.is_file() and not path.is_symlink()
    assert not (tmp_path / "target").exists()


@needs_root
def test_what_another_user_owns_is_not_read(folder: Path) -> None:
    path = stored()
    os.chown(path, ANOTHER_USER, -1)
    assert entry().find() is None
    os.chown(path, 0, -1)
    os.chown(folder, ANOTHER_USER, -1)
    assert distrust(folder) == f"{folder} belongs to the user with the number {ANOTHER_USER}"
    assert entry().find() is None
    entry(b"y").store(executable())
    assert cache.usage(folder)[0] == 1
    os.chown(folder, 0, -1)
    os.chown(folder.parent, ANOTHER_USER, -1)
    assert entry().find() is None and str(folder.parent) in distrust(folder)
    os.chown(folder.parent, 0, -1)
    assert entry().find() is not None


def test_a_link_to_what_every_user_may_write_is_not_followed(tmp_path: Path) -> None:
    path = stored()
    elsewhere = path.rename(tmp_path / "elsewhere")
    path.symlink_to(elsewhere)
    elsewhere.chmod(0o666)
    assert entry().find() is None


def test_an_entry_under_the_name_of_another_is_none() -> None:
    first, second = stored(b"x"), stored(b"y")
    first.replace(second)
    assert entry(b"y").find() is None


@pytest.mark.parametrize("bit", range(8))
def test_no_flipped_bit_is_believed(bit: int) -> None:
    path = stored()
    data, whole = path.read_bytes(), executable(b"x")
    for place in range(bit, len(data), 41):
        changed = bytearray(data)
        changed[place] ^= 1 << bit
        path.write_bytes(changed)
        found = entry().find()
        assert found is None or found.vmfb == whole.vmfb
    for size in range(0, len(data), 97):
        path.write_bytes(data[:size])
        assert entry().find() is None


def test_a_folder_that_is_read_only(monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory() as home:  # pytest's own folders are closed to others
        folder = Path(home) / "cache"
        monkeypatch.setenv(cache.FOLDER_VARIABLE, str(folder))
        path = stored()
        folder.chmod(0o500)
        place = entry(b"y")

        def check() -> None:
            if os.geteuid() == 0:
                for given in (path, folder, Path(home)):
                    os.chown(given, ANOTHER_USER, -1)
                os.setuid(ANOTHER_USER)
            place.store(executable())
            assert entry().find() == executable(b"x")
            assert cache.usage(folder)[0] == 1

        assert in_fork(check) == 0
        folder.chmod(0o700)


def test_a_full_disk_is_one_error_for_output_and_none_for_the_cache(tmp_path: Path, folder: Path) -> None:
    output = tmp_path / "a.vmfb"
    output.write_bytes(b"old")
    place, made = entry(), executable(size=100_000)

    def check() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
        place.store(made)
        assert place.find() is None
        with pytest.raises(CompileError, match=r"cannot write .*a\.vmfb: File too large"):
            write_atomically(output, made.vmfb)

    assert in_fork(check) == 0
    assert output.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir() if path.suffix != ".vmfb"] == ["cache"]
    assert [path.name for path in folder.iterdir()] == []


def test_processes_write_one_entry_while_it_is_read() -> None:
    place = entry()
    whole = {fill * size for fill, size in ((b"a", 10), (b"b", 200_000))}

    def write(made: Executable) -> None:
        for _ in range(150):
            place.store(made)

    def check() -> None:
        children = []
        for data in whole:
            made = executable(data[:1], len(data))
            child = os.fork()
            if child == 0:
                write(made)
                os._exit(0)
            children.append(child)
        for _ in range(300):
            found = place.find()
            assert found is None or found.vmfb in whole
        for child in children:
            assert os.waitpid(child, 0)[1] == 0
        found = place.find()
        assert found is not None and found.vmfb in whole

    assert in_fork(check) == 0


def test_what_killed_writers_left_is_removed_in_time(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = stored()
    old, new = (folder / f".{path.name}.{name}.tmp" for name in ("old", "new"))
    for left in (old, new):
        left.write_bytes(b"half")
    os.utime(old, (time.time() - 7200,) * 2)
    monkeypatch.setattr(cache, "_GROWTH", cache._Growth())  # a process looks at the folder after its first file
    entry(b"y").store(executable())
    assert (old.exists(), new.exists()) == (False, True)
