"""Every ``.mlir`` and ``.hlo`` file of this folder, by its RUN lines; and the runner's own behaviour."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.filecheck.runner import check_file, run_lines

HERE = Path(__file__).parent
FILES = sorted([*HERE.rglob("*.mlir"), *HERE.rglob("*.hlo")])


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(HERE)))
def test_file(path: Path, tmp_path: Path) -> None:
    check_file(path, tmp_path)


PROGRAM = "func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {\n  return %a : tensor<4xf32>\n}\n"


def write(folder: Path, *lines: str) -> Path:
    path = folder / "case.mlir"
    path.write_text("".join(f"// {line}\n" for line in lines) + PROGRAM)
    return path


def test_a_wrong_check_fails(tmp_path: Path) -> None:
    path = write(tmp_path, "RUN: hloforge opt %s | filecheck %s", "CHECK: stablehlo.add")
    with pytest.raises(AssertionError, match=r"stablehlo\.add"):
        check_file(path, tmp_path)


def test_a_forbidden_line_fails(tmp_path: Path) -> None:
    path = write(tmp_path, "RUN: hloforge opt %s | filecheck %s", "CHECK-NOT: return")
    with pytest.raises(AssertionError):
        check_file(path, tmp_path)


def test_a_text_that_is_forbidden_everywhere_fails(tmp_path: Path) -> None:
    path = write(tmp_path, "RUN: hloforge opt %s | filecheck %s --implicit-check-not=return", "CHECK: return")
    with pytest.raises(AssertionError, match="forbidden, but found: return"):
        check_file(path, tmp_path)
    path = write(tmp_path, "RUN: hloforge opt %s | filecheck %s --implicit-check-not=stablehlo.add", "CHECK: return")
    check_file(path, tmp_path)


def test_a_failing_program_fails(tmp_path: Path) -> None:
    path = write(tmp_path, "RUN: hloforge opt %s --pass=no-such-pass | filecheck %s", "CHECK: main")
    with pytest.raises(AssertionError, match="no-such-pass"):
        check_file(path, tmp_path)


def test_a_program_that_should_fail_and_does_not_fails(tmp_path: Path) -> None:
    path = write(tmp_path, "RUN: not hloforge opt %s")
    with pytest.raises(AssertionError, match="wanted failure"):
        check_file(path, tmp_path)


def test_lines_are_continued(tmp_path: Path) -> None:
    path = write(tmp_path, "RUN: hloforge opt %s \\", "RUN:   | filecheck %s", "CHECK: main")
    assert len(run_lines(path)) == 1
    check_file(path, tmp_path)


def test_a_file_without_run_line_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="RUN"):
        run_lines(write(tmp_path, "CHECK: main"))
