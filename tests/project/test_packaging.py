"""What the wheel will hold: the list in pyproject.toml against the folders, and the versions against each other."""

from __future__ import annotations

import tomllib
from importlib.metadata import version
from pathlib import Path
from typing import Any

import hloforge

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("src/hloforge", "dialect", "importers", "pipelines", "runtime", "tools")


def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def package_of(folder: Path) -> str:
    parts = folder.relative_to(ROOT).parts
    return ".".join(parts[1:] if parts[0] == "src" else ("hloforge", *parts))


def test_every_folder_with_modules_is_a_listed_package() -> None:
    folders = {path.parent for name in FOLDERS for path in (ROOT / name).rglob("*.py")}
    assert sorted(map(package_of, folders)) == sorted(project()["tool"]["setuptools"]["packages"])


def test_every_package_has_an_init_file() -> None:
    without = [
        p
        for name in FOLDERS
        for p in {f.parent for f in (ROOT / name).rglob("*.py")}
        if not (p / "__init__.py").exists()
    ]
    assert without == []


def test_the_mapping_names_every_top_level_folder() -> None:
    mapping = project()["tool"]["setuptools"]["package-dir"]
    assert mapping == {"hloforge": "src/hloforge"} | {f"hloforge.{name}": name for name in FOLDERS[1:]}


def test_the_version_stands_in_one_place() -> None:
    assert hloforge.__version__ == version("hloforge")


def test_every_dependency_is_pinned() -> None:
    constraints = (ROOT / "constraints.txt").read_text().lower().split()
    pinned = {line.partition("==")[0].replace("-", "_") for line in constraints}
    metadata = project()["project"]
    wanted = [*metadata["dependencies"], *metadata["optional-dependencies"]["dev"]]
    names = {entry.split("=")[0].split(">")[0].split("<")[0].lower().replace("-", "_") for entry in wanted}
    assert names <= pinned


def test_the_licence_is_whole() -> None:
    text = (ROOT / "LICENSE").read_text()
    assert "Apache License" in text and "END OF TERMS AND CONDITIONS" in text
