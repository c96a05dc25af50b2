"""Versions of the packages below: what pyproject.toml asks for, and what is refused when it is loaded."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from hloforge.dialect.versions import RANGES, InstallationError, check_version

ROOT = Path(__file__).resolve().parents[2]
_SAME = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
"""


def test_the_ranges_are_those_of_the_dependencies() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["torch"]]
    for package, found in RANGES.items():
        (asked,) = (entry.removeprefix(package) for entry in wanted if entry.startswith((f"{package}>", f"{package}=")))
        if asked.startswith("=="):
            # A pinned version is one of those that work.
            assert asked.removeprefix("==") in found
        else:
            assert asked == str(found)


@pytest.mark.parametrize(
    ("package", "version"),
    [
        ("jaxlib", "0.9.0"),
        ("jaxlib", "0.10.1"),
        ("jaxlib", "0.11.0"),
        ("iree-base-runtime", "3.12.0"),
        ("jaxlib", ""),
        ("torch", "2.16.0"),
    ],
)
def test_others_are_refused(package: str, version: str) -> None:
    with pytest.raises(InstallationError, match=f"does not work with {package} {version}") as refused:
        check_version(package, version)
    assert f"pip install '{package}>=" in str(refused.value)
    assert isinstance(refused.value, ImportError)


@pytest.mark.parametrize("version", ["3.13.0", "3.13.0rc20261016", "3.13.2"])
def test_those_that_fit_are_taken(version: str) -> None:
    check_version("iree-base-runtime", version)


@pytest.mark.parametrize("version", ["2.13.0+cpu", "2.14.1+cu130", "2.15.0+cu132"])
def test_releases_of_pytorch(version: str) -> None:
    check_version("torch", version)


@pytest.mark.parametrize(
    ("module", "lines", "package"),
    [
        ("jaxlib.version", ["__version__ = '0.9.0'"], "jaxlib 0.9.0"),
        ("iree.runtime.version", ["VERSION = '3.12.0'"], "iree-base-runtime 3.12.0"),
    ],
)
def test_the_command_says_it_in_one_line(tmp_path: Path, module: str, lines: list[str], package: str) -> None:
    """A package of another version is told by its version, before anything that it may lack is looked for."""
    (tmp_path / "add.mlir").write_text(_SAME)
    code = [
        "import sys, types",
        f"other = types.ModuleType({module!r})",
        f"exec({lines[0]!r}, other.__dict__)",
        f"sys.modules[{module!r}] = other",
        "from hloforge.tools.start import main",
        f"sys.argv[1:] = ['run', {str(tmp_path / 'add.mlir')!r}, '--input=zeros', '--no-cache']",
        "main()",
    ]
    done = subprocess.run([sys.executable, "-c", "\n".join(code)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    first = done.stderr.splitlines()[0]
    assert first.startswith("error: hloforge ") and first.endswith(f"does not work with {package}")
