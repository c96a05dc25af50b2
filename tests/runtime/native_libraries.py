"""The libraries of ``native/``, built by the system's compiler once a test process."""

from __future__ import annotations

import functools
import shutil
import subprocess
import tempfile
from pathlib import Path

import jaxlib
import pytest

_SOURCES = Path(__file__).parent / "native"
_INCLUDE = Path(jaxlib.__file__).parent / "include"


def built(source: str) -> Path:
    """The shared library of a source file; skips the test where there is no compiler."""
    compiler = "c++" if source.endswith(".cc") else "cc"
    if shutil.which(compiler) is None:
        pytest.skip(f"no compiler is installed: {compiler}")
    return _built(source, compiler)


@functools.cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    """A folder that is gone when the process ends."""
    return tempfile.TemporaryDirectory(prefix="hloforge-test-")


@functools.cache
def _built(source: str, compiler: str) -> Path:
    library = Path(_folder().name) / f"lib{Path(source).stem}.so"
    standard = ["-std=c++17"] if compiler == "c++" else []
    command = [compiler, "-shared", "-fPIC", "-w", *standard, f"-I{_INCLUDE}", _SOURCES / source, "-o", library]
    subprocess.run(command, check=True)
    return library
