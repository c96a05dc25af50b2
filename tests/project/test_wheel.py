"""The built wheel, and the README's quick start with it: in a clone, elsewhere, and in a new environment."""

from __future__ import annotations

import configparser
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.project import quickstart

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"


@dataclass(frozen=True)
class Installed:
    """A clone without tests, what its wheel holds, and its commands."""

    clone: Path
    site: Path
    commands: Path

    def environment(self) -> dict[str, str]:
        # An editable installation comes after this path.
        path = f"{self.commands}{os.pathsep}{os.environ.get('PATH', '')}"
        return os.environ | {"PYTHONPATH": str(self.site), "PATH": path}


def _cloned(folder: Path, *, whole: bool = False) -> Path:
    """A copy of the tracked files: setuptools writes beside the sources, and so do readers who follow the README.

    Args:
        whole: also what a wheel is not made of.
    """
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True)
    if tracked.returncode:
        pytest.skip("the sources are no clone, so that nothing tells which files belong to them")
    for name in filter(None, tracked.stdout.decode().split("\0")):
        if (ROOT / name).is_file() and (whole or not name.startswith(("tests/", "docs/", "benchmarks/"))):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    return folder


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The wheel's dependencies are those of the tests."""
    folder = tmp_path_factory.mktemp("wheel")
    clone = _cloned(folder / "clone")
    built = subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(clone)],
        capture_output=True,
        text=True,
    )
    if "No matching distribution found for setuptools" in built.stderr:
        pytest.skip("setuptools, which builds the wheel, can be had from no package index")
    assert built.returncode == 0, built.stderr
    (wheel,) = folder.glob("hloforge-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site")
    return Installed(clone, folder / "site", _commands(folder / "site", folder / "bin"))


def _commands(site: Path, folder: Path) -> Path:
    """The wheel's console scripts, as pip would write them."""
    folder.mkdir()
    points = configparser.ConfigParser()
    points.read(next(site.glob("*.dist-info/entry_points.txt")))
    for name, place in points["console_scripts"].items():
        module, _, function = place.partition(":")
        script = folder / name
        script.write_text(f"#!{sys.executable}\nfrom {module} import {function}\n{function}()\n")
        script.chmod(0o755)
    return folder


def test_the_wheel_holds_one_package(installed: Installed) -> None:
    names = [path.name for path in installed.site.iterdir() if not path.name.endswith(".dist-info")]
    assert names == ["hloforge"]


def test_the_wheel_holds_what_runs(installed: Installed) -> None:
    suffixes = {path.suffix for path in (installed.site / "hloforge").rglob("*") if path.is_file()}
    assert suffixes - {".py", ".pyi", ".typed", ".so", ".js", ".css", ".html", ".svg", ".j2", ""} == set()
    (metadata,) = installed.site.glob("*.dist-info/METADATA")
    text = metadata.read_text()
    for line in ("Operating System :: POSIX :: Linux", "Programming Language :: Python :: 3.11", "License-Expression:"):
        assert line in text


def test_the_wheel_serves_each_python_since_311(installed: Installed) -> None:
    (metadata,) = installed.site.glob("*.dist-info/WHEEL")
    assert f"Tag: cp311-abi3-linux_{platform.machine()}" in metadata.read_text().splitlines()
    assert [path.suffixes for path in installed.site.rglob("*.so")] in ([[".abi3", ".so"]], [])


@pytest.mark.parametrize("place", ["clone", "elsewhere"])
def test_the_quick_start(installed: Installed, tmp_path: Path, place: str) -> None:
    folder = installed.clone if place == "clone" else tmp_path
    environment = installed.environment()
    imported = quickstart.Step("python", "import hloforge; print(hloforge.__file__)", "")
    assert str(installed.site) in quickstart.run(imported, folder, environment, sys.executable)
    assert list(quickstart.differing(README, folder, environment, sys.executable)) == []


@pytest.mark.slow
def test_the_source_distribution_is_the_clone(tmp_path: Path) -> None:
    clone = _cloned(tmp_path / "clone", whole=True)
    words = [sys.executable, "-m", "build", "--sdist", "--no-isolation", "--outdir", str(tmp_path / "dist"), str(clone)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300)
    if "Missing dependencies" in done.stderr + done.stdout:
        pytest.skip("setuptools is not installed here")
    assert done.returncode == 0, done.stderr
    (archive,) = (tmp_path / "dist").glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        found = {name.partition("/")[2] for name in opened.getnames()}
    tracked = {str(path.relative_to(clone)) for path in clone.rglob("*") if path.is_file()}
    wanted = {name for name in tracked if not name.startswith((".", "build/")) and ".egg-info/" not in name}
    assert wanted <= found


@pytest.mark.slow
def test_the_quick_start_in_a_new_environment(tmp_path: Path) -> None:
    """As a newcomer types it: nothing is installed but what ``pip install .`` brings."""
    clone = _cloned(tmp_path / "clone")
    home = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", str(home)], check=True, timeout=300)
    # No settings of this process, such as a path to the tests' own packages.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    environment["PATH"] = f"{home / 'bin'}{os.pathsep}{environment['PATH']}"
    (install,) = (step for step in quickstart.steps(README) if step.mark == "install")
    done = subprocess.run(["bash", "-euc", install.code], cwd=clone, env=environment, capture_output=True, text=True)
    if "No matching distribution found" in done.stderr:
        pytest.skip("the dependencies can be had from no package index")
    assert done.returncode == 0, done.stderr
    python = str(home / "bin" / "python")
    assert list(quickstart.differing(README, clone, environment, python)) == []
    subprocess.run([python, "examples/demo.py"], cwd=clone, env=environment, check=True, timeout=300)
