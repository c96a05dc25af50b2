"""Several functions in one file, and weights that they share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors
from click.testing import CliRunner
from safetensors.numpy import save_file

import hloforge
from hloforge.runtime.artifact.functions import functions_of
from hloforge.tools.main import cli

TABLE = np.arange(2048, dtype=np.float32).reshape(64, 32) % 7


def program(text: str, table: str = "") -> str:
    return f"""func.func @main(%x: tensor<4x64xf32>{table}) -> tensor<4x32xf32> {{
      {text}
      %1 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
        : (tensor<4x64xf32>, tensor<64x32xf32>) -> tensor<4x32xf32>
      %2 = stablehlo.OP %1, %1 : tensor<4x32xf32>
      return %2 : tensor<4x32xf32>
    }}"""


HEX = TABLE.tobytes().hex().upper()
CONSTANT = program(f'%w = stablehlo.constant dense<"0x{HEX}"> : tensor<64x32xf32>')
ARGUMENT = program("", ", %w: tensor<64x32xf32>")
X = np.linspace(-2, 2, 256, dtype=np.float32).reshape(4, 64)
PRODUCT = X @ TABLE


def both(text: str) -> dict[str, str]:
    return {"sum": text.replace("OP", "add"), "square": text.replace("OP", "multiply")}


def check(source: Any, **options: Any) -> None:
    np.testing.assert_allclose(hloforge.load(source, **options)(X), 2 * PRODUCT, rtol=1e-5)
    np.testing.assert_allclose(hloforge.load(source, function="sum", **options)(X), 2 * PRODUCT, rtol=1e-5)
    np.testing.assert_allclose(hloforge.load(source, function="square", **options)(X), PRODUCT**2, rtol=1e-5)


def test_functions_are_loaded_by_name(tmp_path: Path) -> None:
    executable = hloforge.compile(both(CONSTANT), output=tmp_path / "both.vmfb")
    assert functions_of(executable.vmfb) == functions_of(tmp_path / "both.vmfb") == ("sum", "square")
    check(executable)
    check(tmp_path / "both.vmfb")
    check((tmp_path / "both.vmfb").read_bytes())
    # Both runtimes read what is appended, and what it is appended to.
    check(executable, deadline=100)


def test_constants_of_functions_are_in_one_file_once(tmp_path: Path) -> None:
    path = tmp_path / "w.safetensors"
    executable = hloforge.compile(both(CONSTANT), externalize_weights=path, output=tmp_path / "both.vmfb")
    with safetensors.safe_open(path, framework="numpy") as file:
        (name,) = file.keys()
        np.testing.assert_array_equal(file.get_tensor(name), TABLE)
    assert HEX.encode() not in executable.vmfb.hex().upper().encode()
    check(executable)
    check(tmp_path / "both.vmfb")


def test_parameters_of_functions_are_in_one_file(tmp_path: Path) -> None:
    path = tmp_path / "w.safetensors"
    save_file({"arg1": TABLE}, path)
    executable = hloforge.compile(both(ARGUMENT), weights=path, output=tmp_path / "both.vmfb")
    assert [parameter.name for parameter in executable.manifest.signature.parameters] == ["arg0"]
    check(tmp_path / "both.vmfb")


def test_vmfbs_are_joined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in both(CONSTANT).items():
        hloforge.compile(text, output=f"{name}.vmfb")
    run = CliRunner()
    assert run.invoke(cli, ["join", "sum.vmfb", "square=square.vmfb", "-o", "both.vmfb"]).exit_code == 0
    check("both.vmfb")
    np.save("x.npy", X)
    call = ["run", "both.vmfb", "--function=square", "--input=@x.npy", "--output=@y.npy"]
    assert run.invoke(cli, call).exit_code == 0
    np.testing.assert_allclose(np.load("y.npy"), PRODUCT**2, rtol=1e-5)
    told = run.invoke(cli, ["inspect", "both.vmfb"])
    assert "function square" in told.stdout
    assert hloforge.join({"one": "sum.vmfb", "two": hloforge.compile(both(CONSTANT)["square"])}).vmfb


def test_several_targets_of_functions() -> None:
    executable = hloforge.compile(both(CONSTANT), ["cpu", "cpu:generic"])
    check(executable)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: hloforge.load(hloforge.compile(both(CONSTANT)), function="product"), "no function 'product'"),
        (lambda: hloforge.load(hloforge.compile(both(CONSTANT)["sum"]), function="sum"), "one program, without a name"),
        (lambda: hloforge.compile({"a b": both(CONSTANT)["sum"]}), "'a b' is no name of a function"),
        (lambda: hloforge.compile({}), "needs one at least"),
        (lambda: hloforge.join({"a": hloforge.compile(both(CONSTANT))}), "a file of functions already"),
    ],
)
def test_what_is_refused(make: Any, message: str) -> None:
    with pytest.raises(hloforge.Error, match=message):
        make()


def test_files_of_weights_are_one(tmp_path: Path) -> None:
    for name, text in both(ARGUMENT).items():
        save_file({"arg1": TABLE}, tmp_path / f"{name}.safetensors")
        hloforge.compile(text, weights=tmp_path / f"{name}.safetensors", output=tmp_path / f"{name}.vmfb")
    with pytest.raises(hloforge.OptionError, match=r"several files: square\.safetensors, sum\.safetensors"):
        hloforge.join({name: tmp_path / f"{name}.vmfb" for name in ("sum", "square")})
