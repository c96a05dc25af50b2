"""``import hloforge``: every public name is there, and nothing is loaded before it is used."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import hloforge
from hloforge.runtime.compile.generated import unavailable

TEXT = """func.func @main(%a: tensor<3xf32>, %b: tensor<3xf32>) -> tensor<3xf32> {
  %0 = stablehlo.subtract %a, %b : tensor<3xf32>
  return %0 : tensor<3xf32>
}
"""
A, B = np.float32([5, 6, 7]), np.float32([1, 2, 3])


def test_every_name_resolves_and_is_listed() -> None:
    for name in hloforge.__all__:
        assert getattr(hloforge, name) is not None
        assert name in dir(hloforge)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        hloforge.nothing  # noqa: B018


def test_the_type_checkers_names_are_the_lazy_ones() -> None:
    lines = Path(hloforge.__file__).read_text().partition("if TYPE_CHECKING:")[2].partition("\n_HOMES")[0]
    for name, home in hloforge._HOMES.items():
        assert name in hloforge.__all__
        section = lines.partition(f"from {home} import ")[2].partition("from ")[0]
        assert name in section.replace("(", " ").replace(",", " ").split()
    assert set(hloforge.__all__) == {*hloforge._HOMES, "__version__"}


def test_importing_loads_nothing_heavy() -> None:
    code = "import sys, hloforge; dir(hloforge); print({'numpy', 'jaxlib', 'iree', 'click'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def sources(tmp_path: Path) -> dict[str, Any]:
    path = tmp_path / "sub.mlir"
    path.write_text(TEXT)
    program = hloforge.read(TEXT)
    return {
        "path": path,
        "path text": str(path),
        "bytes": TEXT.encode(),
        "text": TEXT,
        "stream": io.BytesIO(TEXT.encode()),
        "Program": program,
        "ir.Module": program.module,
        "as_text": SimpleNamespace(as_text=lambda: TEXT),
        "mlir_module": SimpleNamespace(mlir_module=lambda: TEXT),
    }


def test_a_program_comes_in_any_form(tmp_path: Path) -> None:
    for kind, source in sources(tmp_path).items():
        program = hloforge.as_program(source)
        assert str(program.signature.result).startswith("f32[3]"), kind


def test_compile_load_and_call(tmp_path: Path) -> None:
    output = tmp_path / "sub.vmfb"
    executable = hloforge.compile(TEXT, "cpu:generic", output=output, name="difference", timeout=100)
    assert executable.manifest.name == "difference"
    for session in (executable.load(), hloforge.load(output)):
        np.testing.assert_array_equal(session(A, B), A - B)


def test_fields_go_over_options() -> None:
    options = hloforge.CompileOptions(flags=("--iree-opt-level=O1",), timeout=50)
    executable = hloforge.compile(TEXT, options=options, timeout=100)
    assert executable.manifest.flags[-1] == "--iree-opt-level=O1"


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: hloforge.compile(3), TypeError, "no program in a int"),
        (lambda: hloforge.compile(TEXT, speed=9), TypeError, "no option 'speed'"),
        (lambda: hloforge.compile(TEXT, "abacus"), hloforge.OptionError, "unknown target"),
        (lambda: hloforge.compile("no/such/file.hlo"), hloforge.ImporterError, "no such file"),
        (lambda: hloforge.compile(TEXT, output="no/such/folder/x.vmfb"), hloforge.CompileError, "cannot write"),
    ],
)
def test_wrong_calls(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_errors_are_one_tree() -> None:
    names = [name for name in hloforge.__all__ if name.endswith("Error")]
    assert all(issubclass(getattr(hloforge, name), hloforge.Error) for name in names)


def _ran(code: str, **variables: str) -> str:
    """What a new process prints."""
    environment = os.environ | variables
    done = subprocess.run(
        [sys.executable, "-c", f"import sys\n{code}"], capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


_COMMAND = """import contextlib
from hloforge.tools.start import main
sys.argv[1:] = ["compile", {path!r}, "--no-cache", "-o", {path!r} + ".vmfb"]
with contextlib.suppress(SystemExit):
    main()
"""


@pytest.mark.skipif(bool(unavailable()), reason=unavailable())
@pytest.mark.parametrize("code", ["import hloforge\nhloforge.compile({path!r}, cache=False)\n", _COMMAND])
def test_our_code_generator_loads_nothing_of_irees_way(code: str, tmp_path: Path) -> None:
    """Each process pays for what it loads: half a second for IREE's passes and the importers of models."""
    path = tmp_path / "sub.mlir"
    path.write_text(TEXT)
    unwanted = {
        *("pipelines.named", "pipelines.catalogue", "runtime.compile.by_iree", "pipelines.capability.check_needs"),
        *("importers.onnx.reader", "importers.onnx.graph", "importers.tflite.reader", "importers.tflite.graph"),
    }
    loaded = "print(*(name.removeprefix('hloforge.') for name in sys.modules if name.startswith('hloforge.')))"
    found = set(_ran(code.format(path=str(path)) + loaded).split())
    assert "pipelines.codegen.generate" in found
    assert not unwanted & found


def test_what_was_compiled_before_is_found_without_a_compiler(tmp_path: Path) -> None:
    code = f"import hloforge\nhloforge.compile({TEXT!r})\nprint('hloforge.runtime.compile.compiler' in sys.modules)"
    found = [_ran(code, HLOFORGE_CACHE_DIR=str(tmp_path / "cache")) for _ in range(2)]
    assert found == ["True\n", "False\n"]
