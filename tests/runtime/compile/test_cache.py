"""Compilations on disk: found again, told apart, never believed when damaged."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import hloforge
from hloforge.runtime.artifact.executable import Executable
from hloforge.runtime.artifact.manifest import Manifest
from hloforge.runtime.compile import cache, compiler
from hloforge.runtime.compile.targets import Target
from hloforge.runtime.options import CompileOptions

TEXT = "func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> { return %a : tensor<4xf32> }\n"
X = np.arange(4, dtype=np.float32)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(cache.FOLDER_VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache"


def entry(
    data: bytes = b"x", name: str = "p", target: str = "cpu:generic", options: CompileOptions | None = None
) -> cache.Entry:
    return cache.entry(data, {"file": name}, Target.parse(target), options or CompileOptions())


def executable(size: int = 10) -> Executable:
    program = hloforge.as_program(TEXT)
    return Executable(b"\0" * size, Manifest("p", program.signature))


@pytest.fixture
def compiler_runs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of what was really compiled."""
    names: list[str] = []
    compiled = compiler.compile_program

    def counting(program: hloforge.Program, *rest: object) -> Executable:
        names.append(program.name)
        return compiled(program, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(compiler, "compile_program", counting)
    return names


def test_the_second_compilation_is_read(compiler_runs: list[str]) -> None:
    first, second = hloforge.compile(TEXT), hloforge.compile(TEXT)
    assert len(compiler_runs) == 1
    assert second.vmfb == first.vmfb and second.manifest == first.manifest
    np.testing.assert_array_equal(second(X), X)


def test_a_program_is_found_by_its_module(compiler_runs: list[str]) -> None:
    program = hloforge.as_program(TEXT)
    hloforge.compile(program)
    hloforge.compile(program)
    hloforge.compile(hloforge.as_program(TEXT.replace("4xf32", "5xf32")))
    assert len(compiler_runs) == 2


def test_without_a_cache_everything_is_compiled(compiler_runs: list[str], folder: Path) -> None:
    hloforge.compile(TEXT, cache=False)
    assert not folder.exists()
    hloforge.compile(TEXT)
    hloforge.compile(TEXT, cache=False)
    assert len(compiler_runs) == 3


def test_what_decides_the_vmfb_decides_the_entry() -> None:
    places = [
        entry(),
        entry(b"y"),
        entry(name="q"),
        entry(target="cpu"),
        entry(target="cpu:generic,+avx2"),
        entry(options=CompileOptions(flags=("--iree-opt-level=O1",))),
    ]
    assert len({place.path for place in places}) == len(places)
    assert entry().path == entry(options=CompileOptions(timeout=9, isolation="process")).path


def test_dumps_need_the_passes_to_run() -> None:
    assert entry(options=CompileOptions(dump_after=frozenset({"all"}))).path is None


@pytest.mark.parametrize(
    "damage", [lambda data: data[:-1], lambda data: data[:-1] + b"?", lambda _: b"", lambda _: b"{}\n"]
)
def test_a_damaged_entry_is_none(damage: object) -> None:
    place = entry()
    place.store(executable())
    assert place.find() == executable()
    assert place.path is not None and callable(damage)
    place.path.write_bytes(damage(place.path.read_bytes()))
    assert place.find() is None


def test_the_longest_unused_go_first(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    places = [entry(bytes([number])) for number in range(4)]
    for age, place in enumerate(places[:3]):
        place.store(executable(1000))
        assert place.path is not None
        os.utime(place.path, (age, age))
    assert places[0].find() is not None  # used now
    _, size = cache.usage(folder)
    monkeypatch.setenv(cache.LIMIT_VARIABLE, str(size))
    places[3].store(executable(1000))
    assert [place.find() is not None for place in places] == [True, False, True, True]


def test_few_files_are_no_reason_to_look_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[Path] = []
    monkeypatch.setattr(cache, "trim", looks.append)
    for number in range(60):
        assert entry(bytes([number])).store(executable(1000))
    assert len(looks) <= 1


def test_a_limit_has_to_be_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(cache.LIMIT_VARIABLE, "4G")
    with pytest.raises(hloforge.OptionError, match="'4G' is no number of bytes"):
        entry()


def test_a_folder_that_cannot_be_written_is_no_error(folder: Path) -> None:
    folder.write_text("a file")
    place = entry()
    place.store(executable())
    assert place.find() is None


def test_writers_do_not_disturb_each_other(folder: Path) -> None:
    places = [entry(bytes([number % 3])) for number in range(24)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda place: place.store(executable(50_000)), places))
    assert all(place.find() == executable(50_000) for place in places)
    assert cache.usage(folder)[0] == 3
    cache.clear(folder)
    assert cache.usage(folder) == (0, 0)
