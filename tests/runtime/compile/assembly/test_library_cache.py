"""Kernels by their content, and libraries of them."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from hloforge.runtime.compile import cache
from hloforge.runtime.compile.assembly.library_cache import (
    Library,
    LibraryCache,
    canonical,
    chunks,
    key_of,
    library_of,
)

TEXT = "hal.executable private @{0} {{ export @{0}_sum func @{0}_sum call @helper @{0}0_sum }}"
KEYS = st.lists(st.integers(0, 10**6), unique=True).map(
    lambda numbers: [f"kernel_{hashlib.sha256(str(number).encode()).hexdigest()[:24]}" for number in numbers]
)


def test_programs_call_the_same_kernel_differently() -> None:
    first, second = canonical("main_dispatch_1", TEXT.format("main_dispatch_1")), canonical("f", TEXT.format("f"))
    assert first.replace("main_dispatch_10", "f0") == second
    assert "@kernel {" in first and "@kernel_sum" in first and "@main_dispatch_10_sum" in first


def test_a_name_in_quotes_stays() -> None:
    assert canonical("a b", 'hal.executable private @"a b" {}') == 'hal.executable private @"a b" {}'


def test_a_key_depends_on_the_text_and_the_flags_but_not_their_order() -> None:
    assert key_of("a", ["x", "y"]) == key_of("a", ["y", "x"])
    assert len({key_of("a", ["x"]), key_of("b", ["x"]), key_of("a", []), key_of("a", ["x", "y"])}) == 4
    assert library_of(["a", "b"]) != library_of(["b", "a"])


@given(KEYS)
def test_libraries_have_all_kernels_in_their_order(keys: list[str]) -> None:
    found = chunks(keys)
    assert [key for chunk in found for key in chunk] == keys
    assert all(1 <= len(chunk) <= 12 for chunk in found)
    assert len(found) >= min(2, len(keys))


@given(KEYS, KEYS)
def test_what_follows_leaves_finished_libraries_as_they_are(keys: list[str], others: list[str]) -> None:
    first, both = chunks(keys), chunks([*keys, *others])
    if len(first) > 2:
        assert both[: len(first) - 1] == first[:-1]


def test_a_library_is_found_by_another_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(cache.FOLDER_VARIABLE, str(tmp_path / "cache"))
    library = Library("export", b"code")
    LibraryCache().add({"library_1": library})
    assert LibraryCache().find("library_1") == library
    assert LibraryCache().find("library_2") is None
    (path,) = (tmp_path / "cache").glob("*.kernels")
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    assert LibraryCache().find("library_1") is None


def test_what_other_passes_made_is_not_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(cache.FOLDER_VARIABLE, str(tmp_path / "cache"))
    LibraryCache().add({"library_1": Library("export", b"code")})
    monkeypatch.setattr(cache, "sources", lambda: (("passes.py", 1, 2),))
    assert LibraryCache().find("library_1") is None


def test_one_process_needs_no_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(cache.FOLDER_VARIABLE, "")
    libraries = LibraryCache()
    libraries.add({"library_1": Library("export", b"code")})
    assert libraries.find("library_1") == Library("export", b"code")
    assert LibraryCache().find("library_1") is None


def test_what_was_used_longest_ago_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(cache.FOLDER_VARIABLE, "")
    monkeypatch.setattr("hloforge.runtime.compile.assembly.library_cache._MOST", 10)
    libraries = LibraryCache()
    for name in ("a", "b"):
        libraries.add({name: Library("", b"1234")})
    assert libraries.find("a") is not None
    libraries.add({"c": Library("", b"1234")})
    assert libraries.find("b") is None and libraries.find("a") is not None and libraries.find("c") is not None
