"""``hloforge.jax.compile``, and the exports of JAX, which need no JAX to run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import hloforge
from hloforge.importers.jax_export import unwrap
from hloforge.tools.main import cli

jax = pytest.importorskip("jax")
pytest.importorskip("flatbuffers")
from jax import export  # noqa: E402

X, Y = np.random.RandomState(0).randn(3, 3).astype(np.float32), np.ones((3, 2), np.float32)


def function(x: Any, *, y: Any, unused: Any) -> Any:
    return {"product": jax.numpy.sin(x) @ y, "values": jax.numpy.linalg.eigvalsh(x @ x.T)}


def softmax(x: Any) -> Any:
    return jax.nn.softmax(x) + jax.numpy.arange(x.shape[0])[:, None]


def polymorphic(**options: Any) -> Any:
    return export.export(jax.jit(softmax), **options)(jax.ShapeDtypeStruct(export.symbolic_shape("b, 4"), np.float32))


def test_programs_of_jax_are_called_with_pytrees() -> None:
    jitted = jax.jit(function)
    expected = jitted(X, y=Y, unused=1.0)
    exported = export.export(jitted)(X, y=Y, unused=1.0)
    sources = [
        jitted.lower(X, y=Y, unused=1.0),
        jitted.trace(X, y=Y, unused=1.0),
        exported,
        bytes(exported.serialize()),
    ]
    for source in sources:
        compiled = hloforge.jax.compile(source)
        got = compiled(X, y=Y, unused=1.0)
        assert got.keys() == expected.keys()
        for name in got:
            np.testing.assert_allclose(got[name], expected[name], rtol=1e-5)
    with pytest.raises(hloforge.ArgumentError, match="structure"):
        compiled(X, Y, 1.0)
    with pytest.raises(hloforge.ArgumentError, match="int32"):
        compiled(X.astype(np.int32), y=Y, unused=1.0)
    with pytest.raises(TypeError, match="not int"):
        hloforge.jax.compile(3)


def test_polymorphic_exports_take_any_size() -> None:
    compiled = hloforge.jax.compile(polymorphic())
    for rows in (1, 3):
        x = np.random.RandomState(rows).randn(rows, 4).astype(np.float32)
        np.testing.assert_allclose(compiled(x), softmax(x), rtol=1e-5)


def test_an_export_called_in_a_function_runs() -> None:
    called = export.deserialize(bytearray(polymorphic(platforms=["cpu"]).serialize()))
    np.testing.assert_allclose(hloforge.jit(lambda x: called.call(x) * 2)(X[:, :1] @ Y[:1].repeat(2, 1)).shape, (3, 4))


def test_an_export_for_hloforge_has_no_calls_of_lapack() -> None:
    hloforge.jax.register()
    exported = export.export(jax.jit(function), platforms=["hloforge"])(X, y=Y, unused=1.0)
    assert "@lapack" not in exported.mlir_module()
    values = hloforge.jax.compile(bytes(exported.serialize()))(X, y=Y, unused=1.0)["values"]
    np.testing.assert_allclose(values, np.linalg.eigvalsh(X @ X.T), rtol=1e-5)


def test_exports_for_other_platforms_are_refused(tmp_path: Path) -> None:
    exported = polymorphic(platforms=["tpu", "cuda"])
    (tmp_path / "model").write_bytes(exported.serialize())
    for compile in (hloforge.jax.compile, lambda _: hloforge.compile(tmp_path / "model")):
        with pytest.raises(hloforge.UnsupportedError, match="tpu, cuda"):
            compile(exported)


def test_a_file_runs_without_jax(tmp_path: Path) -> None:
    path = tmp_path / "model.jax_export"
    path.write_bytes(polymorphic(platforms=["tpu", "cpu"]).serialize())
    code = (
        "import sys, numpy as np, hloforge\n"
        f"found = hloforge.compile({str(path)!r})(np.zeros((2, 4), np.float32))\n"
        "assert found.tolist() == [[0.25] * 4, [1.25] * 4], found\n"
        "assert 'jax' not in sys.modules and 'flatbuffers' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    result = CliRunner().invoke(cli, ["compile", str(path), "-o", str(tmp_path / "model.vmfb")])
    assert result.exit_code == 0, result.stderr
    assert str(hloforge.load(tmp_path / "model.vmfb").signature.result).startswith("f32[?,4]")


def test_damaged_files_are_errors(tmp_path: Path) -> None:
    data = bytes(polymorphic().serialize())
    unwrapped = unwrap(data)
    assert unwrapped and unwrapped.platforms == ("cpu",) and unwrapped.name == "softmax"
    random = np.random.RandomState(0)
    for length in (*range(64), *random.randint(64, len(data), 40)):
        unwrap(data[:length])
    for _ in range(300):
        changed = bytearray(data)
        changed[random.randint(len(data))] ^= 1 << random.randint(8)
        unwrap(bytes(changed))
    with pytest.raises(hloforge.ImporterError):
        hloforge.read(data[: len(data) // 2])
