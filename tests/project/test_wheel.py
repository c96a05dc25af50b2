"""The built wheel: README's programs run with it, in the clone's root and elsewhere."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
_SNIPPET = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the wheel holds; its dependencies are those of the tests."""
    folder = tmp_path_factory.mktemp("wheel")
    sources = folder / "sources"
    # setuptools writes beside the sources.
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True)
    if tracked.returncode:
        pytest.skip("the sources are no clone, so that nothing tells which files belong to them")
    for name in filter(None, tracked.stdout.decode().split("\0")):
        if (ROOT / name).is_file() and not name.startswith(("tests/", "docs/", "benchmarks/")):
            (sources / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, sources / name)
    built = subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(sources)],
        capture_output=True,
        text=True,
    )
    if "No matching distribution found for setuptools" in built.stderr:
        pytest.skip("setuptools, which builds the wheel, can be had from no package index")
    assert built.returncode == 0, built.stderr
    (wheel,) = folder.glob("hloforge-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site")
    return folder / "site"


def run(installed: Path, folder: Path, code: str) -> str:
    # An editable installation comes after this path.
    environment = os.environ | {"PYTHONPATH": str(installed)}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_wheel_holds_one_package(installed: Path) -> None:
    assert [path.name for path in installed.iterdir() if not path.name.endswith(".dist-info")] == ["hloforge"]


@pytest.mark.parametrize("snippet", _SNIPPET.findall((ROOT / "README.md").read_text()), ids=("files", "programs"))
@pytest.mark.parametrize("place", ["clone", "elsewhere"])
def test_programs_of_the_readme(installed: Path, tmp_path: Path, place: str, snippet: str) -> None:
    code = snippet.replace('output="model.vmfb"', f"output={str(tmp_path / 'model.vmfb')!r}")
    code = code.replace('load("model.vmfb")', f"load({str(tmp_path / 'model.vmfb')!r})")
    # A function's annotations are read from its source.
    (tmp_path / "snippet.py").write_text(code)
    if place == "elsewhere":
        shutil.copytree(ROOT / "examples", tmp_path / "examples")
    folder = ROOT if place == "clone" else tmp_path
    path = str(tmp_path / "snippet.py")
    code = f"import hloforge, runpy; print(hloforge.__file__); runpy.run_path({path!r})"
    assert str(installed) in run(installed, folder, code).splitlines()[0]
