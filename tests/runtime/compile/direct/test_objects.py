"""Objects of machine code: what is kept, and under which circumstances."""

from __future__ import annotations

import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from hloforge.dialect.forked import run_forked
from hloforge.runtime.compile import cache
from hloforge.runtime.compile.direct import machine_code, objects
from hloforge.runtime.compile.direct.host import DirectError, unavailable
from hloforge.runtime.compile.direct.processors import AARCH64, HOST, Processor
from tests.runtime.compile.direct.programs import loop

pytestmark = pytest.mark.skipif(bool(unavailable()), reason=unavailable())

TEXT = loop(17, 2, "  %r = fmul float %x0, %x1")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and a process that knows nothing."""
    monkeypatch.setenv(cache.FOLDER_VARIABLE, str(tmp_path / "cache"))
    _forget(monkeypatch)
    return tmp_path / "cache"


def _forget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(objects, "_STORE", type(objects._STORE)())


def _compiles(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that are compiled from now on."""
    seen: list[str] = []
    compile_ = machine_code.Compiler.compile

    def noted(self: machine_code.Compiler, text: str) -> bytes:
        seen.append(text)
        return compile_(self, text)

    monkeypatch.setattr(machine_code.Compiler, "compile", noted)
    return seen


def test_known_objects_are_not_made_again(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = _compiles(monkeypatch)
    first = objects.objects_of([TEXT, TEXT], caching=True)
    assert objects.objects_of([TEXT], caching=True) == first[:1] and first[0] == first[1]
    _forget(monkeypatch)
    assert objects.objects_of([TEXT], caching=True) == first[:1]
    assert seen == [TEXT]
    assert len(list(home.glob(f"*{cache.KERNELS_SUFFIX}"))) == 1


def test_without_caching_no_file_is_read_or_written(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    objects.objects_of([TEXT], caching=False)
    assert not home.exists()
    objects.objects_of([TEXT], caching=True)
    _forget(monkeypatch)
    seen = _compiles(monkeypatch)
    objects.objects_of([TEXT], caching=False)
    assert seen == [TEXT]


def test_a_damaged_file_is_not_used(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (made,) = objects.objects_of([TEXT + "\n; one"], caching=True)
    (path,) = home.glob(f"*{cache.KERNELS_SUFFIX}")
    data = bytearray(path.read_bytes())
    data[-20] ^= 1
    path.write_bytes(bytes(data))
    _forget(monkeypatch)
    seen = _compiles(monkeypatch)
    assert objects.objects_of([TEXT + "\n; one"], caching=True) == [made] and len(seen) == 1


def test_other_settings_make_other_objects(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    objects.objects_of([TEXT], caching=True)
    monkeypatch.setattr(objects, "SETTINGS", ("others",))
    objects._facts.cache_clear()
    try:
        objects.objects_of([TEXT], caching=True)
    finally:
        objects._facts.cache_clear()
    assert len(list(home.glob(f"*{cache.KERNELS_SUFFIX}"))) == 2


def test_the_oldest_objects_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    _forget(monkeypatch)
    monkeypatch.setattr(objects, "_MOST", 3000)
    seen = _compiles(monkeypatch)
    texts = [loop(100 + number, 1, "  %r = fadd float %x0, 1.0") for number in range(12)]
    objects.objects_of(texts, caching=False)
    objects.objects_of(texts, caching=False)
    assert len(texts) < len(seen) <= 2 * len(texts)


def test_several_threads_make_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    _forget(monkeypatch)
    texts = [loop(200 + number, 2, "  %r = fadd float %x0, %x1") for number in range(8)]
    alone = [machine_code.Compiler().compile(text) for text in texts]
    found: list[list[bytes]] = []
    threads = [
        threading.Thread(target=lambda: found.append(objects.objects_of(texts, caching=False))) for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [alone] * 3


def test_a_forked_child_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    (made,) = objects.objects_of([TEXT], caching=False)
    other = TEXT + "\n; in a child"
    with objects._STORE._lock:  # as another thread may at the moment of a fork
        assert run_forked(lambda: objects.objects_of([TEXT, other], caching=False), seconds=30) == [made, made]


def test_a_text_that_llvm_refuses() -> None:
    with pytest.raises(DirectError, match="LLVM refuses"):
        objects.objects_of(["define i32 @kernel() { ret i64 0 }"], caching=False)
    with pytest.raises(DirectError, match="LLVM refuses"):
        objects.objects_of([TEXT, "nonsense"], caching=False)


def test_code_is_for_this_processor() -> None:
    name, features = machine_code.named(HOST)
    assert name and "+sse2" in features


def test_code_for_another_processor_is_another_object(home: Path) -> None:
    own, other = (
        objects.objects_of([TEXT], caching=True, processor=one)[0] for one in (HOST, Processor(AARCH64, "generic"))
    )
    assert (own[18], other[18]) == (62, 183)  # ELF's numbers of the architectures
    assert objects.objects_of([TEXT], caching=True) == [own]


def test_an_option_of_llvm_is_changed_while_code_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    llvm = SimpleNamespace(llvm_version_info=(22, 1, 0), set_option=lambda _, option: said.append(option))
    monkeypatch.setattr(machine_code, "_llvm", lambda: llvm)
    addresses = machine_code._PlainAddresses()
    with addresses.kept(), addresses.kept():
        assert said == ["--disable-lsr=true"]
    assert said == ["--disable-lsr=true", "--disable-lsr=false"]
    llvm.llvm_version_info = (23, 0, 0)
    with addresses.kept():
        assert len(said) == 2
