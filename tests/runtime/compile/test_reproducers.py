"""What failed compilations leave: the last few, in the cache, and a command that repeats the failure."""

from __future__ import annotations

import shlex
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest
from click.testing import CliRunner

from hloforge.dialect.errors import CompileError, OptionError
from hloforge.importers.reader import read
from hloforge.pipelines import named
from hloforge.pipelines.framework.defects import DefectError
from hloforge.pipelines.framework.passes import Pass
from hloforge.runtime.compile import by_iree, reproducers
from hloforge.runtime.compile.compiler import compile_program
from hloforge.runtime.compile.ladder import Rung
from hloforge.runtime.options import CompileOptions
from hloforge.tools import opt

ADD = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.add %x, %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}"""


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("HLOFORGE_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def failure(number: int = 0) -> CompileError:
    program = read(ADD, name=f"program {number}\x1b")
    with pytest.raises(CompileError) as caught:
        compile_program(program, "cpu", CompileOptions(flags=("--iree-no-such-flag",)))
    return caught.value


def path_of(error: CompileError | DefectError) -> Path:
    (note,) = [note for note in error.notes if note.startswith("reproduce with: ")]
    return next(Path(word) for word in shlex.split(note) if word.endswith(".repro.mlir"))


def test_a_failure_is_kept_in_the_cache_and_says_where(cache: Path) -> None:
    path = path_of(failure())
    assert path.parent == cache / "failures"
    assert path.name.endswith("-program_0_.repro.mlir")
    assert "main" in path.read_text()
    assert stat.S_IMODE(path.parent.stat().st_mode) & 0o077 == 0


def test_the_last_few_are_kept(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    monkeypatch.setenv("HLOFORGE_KEEP_FAILURES", "2")
    paths = [path_of(failure(number)) for number in range(4)]
    assert sorted((cache / "failures").iterdir()) == paths[2:]


def test_none_is_kept_if_none_is_wanted(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    monkeypatch.setenv("HLOFORGE_KEEP_FAILURES", "0")
    assert "HLOFORGE_KEEP_FAILURES=0: what failed is not kept" in failure().notes
    assert not (cache / "failures").exists()


def test_a_number_that_is_none_is_an_error_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HLOFORGE_KEEP_FAILURES", "many")
    with pytest.raises(OptionError, match="HLOFORGE_KEEP_FAILURES='many' is no number"):
        reproducers.kept()


def test_without_a_cache_they_are_kept_where_temporary_files_go(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HLOFORGE_CACHE_DIR", "")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("HLOFORGE_KEEP_FAILURES", "1")
    assert [path_of(failure(number)).exists() for number in range(2)] == [True, True]
    (home,) = tmp_path.glob("hloforge-failures-*")
    assert len(list(home.iterdir())) == 1


def test_a_folder_that_others_may_write_to_is_not_used(cache: Path) -> None:
    (cache / "failures").mkdir(parents=True)
    (cache / "failures").chmod(0o777)
    (note,) = [note for note in failure().notes if note.startswith("reproduce with: ")]
    assert "the reproducer could not be written" in note and "every user may write to" in note
    assert not list((cache / "failures").iterdir())


@pytest.mark.usefixtures("iree_codegen")
def test_a_failed_attempt_that_another_one_makes_good_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, cache: Path
) -> None:
    made = by_iree._optimizations
    refused = Rung("refused", flags=("--iree-no-such-flag",))
    monkeypatch.setattr(by_iree, "_optimizations", lambda *given: (refused, made(*given)[-1]))
    assert compile_program(read(ADD)).vmfb
    assert not (cache / "failures").exists()


@pytest.mark.usefixtures("iree_codegen")
def test_a_defect_of_a_pass_is_kept_as_the_pass_got_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(name: str, *others: object) -> list[object]:
        return [_Fails()]

    monkeypatch.setattr(named, "pipeline", broken)
    with pytest.raises(DefectError) as caught:
        compile_program(read(ADD))
    assert "pass fails failed: StopIteration" in caught.value.message
    (note,) = [note for note in caught.value.notes if note.startswith("reproduce with: ")]
    assert note.endswith("--pipeline=fails") and "hloforge opt --keep-marks" in note
    result = CliRunner().invoke(opt.command, [str(path_of(caught.value)), "--keep-marks"])
    assert result.exit_code == 0 and "stablehlo.add" in result.stdout


@dataclass(frozen=True)
class _Fails(Pass):
    """A pass with an error in it."""

    name: ClassVar[str] = "fails"

    def run(self, module: object) -> None:
        next(iter(()))
