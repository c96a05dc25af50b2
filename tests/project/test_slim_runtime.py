"""Where vmfbs are only run: ``load`` and calls need neither jaxlib nor a compiler, and do not load what is there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import hloforge
from hloforge.dialect.mlir import ir
from hloforge.dialect.shapes import _UNBOUNDED

_ADD = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.add %x, %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""
# Packages that docs/deployment.md does not install.
_ABSENT = ("jaxlib", "iree.compiler", "llvmlite", "click", "rich", "jinja2", "markupsafe")
_CALL = """
import numpy as np
import hloforge
with hloforge.load({path!r}) as session:
    print(session(np.float32([1, 2, 3, 4])), session.signature)
"""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("slim") / "add.vmfb"
    hloforge.compile(_ADD, output=path)
    return path


def _ran(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_vmfb_runs_without_what_compiles(path: Path) -> None:
    absent = f"import sys\nfor name in {_ABSENT!r}: sys.modules[name] = None\n"
    assert _ran(absent + _CALL.format(path=str(path))) == "[2. 4. 6. 8.] (arg0: f32[4]) -> f32[4]\n"


def test_a_vmfb_runs_without_loading_what_compiles(path: Path) -> None:
    loaded = f"import sys\nprint(sorted({set(_ABSENT) - {'llvmlite'}!r} & set(sys.modules)))"
    assert _ran(_CALL.format(path=str(path)) + loaded).splitlines()[-1] == "[]"


def test_a_vmfb_is_opened_for_reading_alone(path: Path) -> None:
    # Others own what is installed, and volumes of containers cannot be written.
    code = (
        "import sys\nmodes = []\n"
        f"sys.addaudithook(lambda event, of: event == 'open' and of[0] == {str(path)!r} and modes.append(of[1]))\n"
    )
    printed = _ran(code + _CALL.format(path=str(path)) + "print(sorted({mode for mode in modes if mode}))")
    assert printed.splitlines()[-1] == "['r']"


def test_the_command_runs_a_vmfb_without_loading_what_compiles(path: Path, tmp_path: Path) -> None:
    expected = tmp_path / "expected.npy"
    np.save(expected, np.float32([2, 4, 6, 8]))
    run = ["run", str(path), "--input=4xf32=1 2 3 4", f"--expected-output=@{expected}", "--time", "--repeat=2"]
    code = (
        "import sys\nfrom hloforge.tools.main import main\n"
        f"sys.argv[1:] = {run!r}\ntry: main()\nfinally: print(sorted({{'jaxlib', 'iree.compiler'}} & set(sys.modules)))"
    )
    assert _ran(code).splitlines()[-1] == "[]"


def test_compiling_there_says_what_is_missing(path: Path) -> None:
    code = (
        "import sys\nsys.modules['jaxlib'] = None\nimport hloforge\n"
        f"try: hloforge.compile({_ADD!r})\nexcept ImportError as error: print(error)"
    )
    said = _ran(code)
    assert said.startswith(
        "error: jaxlib, which reads programs, is not installed: this installation runs vmfbs alone\n"
    )


def test_the_unbounded_size_is_mlirs() -> None:
    assert ir.ShapedType.get_dynamic_size() == _UNBOUNDED
