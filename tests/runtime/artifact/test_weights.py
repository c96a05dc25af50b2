"""Weights beside a program: parameters and constants that a vmfb looks up in a file when it is loaded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from safetensors import safe_open
from safetensors.numpy import save_file

import hloforge
from hloforge.dialect.element_types import element_type
from hloforge.runtime.devices.devices import rt
from hloforge.tools.main import cli

# A layer whose kernel lies column-major in XLA's memory: a file holds logical arrays all the same.
LAYER = """HloModule layer, input_output_alias={ {}: (1, {}, may-alias) }

ENTRY main {
  kernel = f32[16,8]{0,1} parameter(0)
  x = f32[4,16]{1,0} parameter(1)
  mask = pred[8]{0} parameter(2)
  y = f32[4,8]{1,0} dot(x, kernel), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  m = pred[4,8]{1,0} broadcast(mask), dimensions={1}
  zero = f32[] constant(0)
  zeros = f32[4,8]{1,0} broadcast(zero), dimensions={}
  ROOT r = f32[4,8]{1,0} select(m, y, zeros)
}
"""
KERNEL = np.arange(128, dtype=np.float32).reshape(16, 8) / 64
MASK = np.arange(8) % 3 == 0
X = np.linspace(-1, 1, 64, dtype=np.float32).reshape(4, 16)
WANT = np.where(MASK, X @ KERNEL, 0)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "w.safetensors"
    save_file({"kernel": KERNEL, "mask": MASK, "unused": KERNEL}, path)
    return path


def test_parameters_named_like_arrays_leave_the_signature(file: Path, tmp_path: Path) -> None:
    executable = hloforge.compile(LAYER, weights=file, output=tmp_path / "layer.vmfb")
    assert executable.manifest.is_generated
    assert [parameter.name for parameter in executable.manifest.signature.parameters] == ["x"]
    assert [str(alias) for alias in executable.manifest.signature.aliases] == ["{}: (0, {}, may-alias)"]
    assert [(name, str(shape)) for name, shape in executable.manifest.weights] == [
        ("kernel", "f32[16,8]"),
        ("mask", "pred[8]"),
    ]
    np.testing.assert_allclose(executable(X), WANT, rtol=1e-6)
    np.testing.assert_allclose(hloforge.load(tmp_path / "layer.vmfb")(X), WANT, rtol=1e-6)


def test_another_file_of_the_same_arrays_gives_other_results(file: Path, tmp_path: Path) -> None:
    executable = hloforge.compile(LAYER, weights=file)
    archive = tmp_path / "other.irpa"
    rt.save_archive_file({"kernel": KERNEL * 2, "mask": MASK.view(np.uint8)}, archive)
    np.testing.assert_allclose(hloforge.load(executable, weights=archive)(X), 2 * WANT, rtol=1e-6)
    np.testing.assert_allclose(executable(X), WANT, rtol=1e-6)


def test_the_cache_tells_weights_apart(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HLOFORGE_CACHE_DIR", str(tmp_path / "cache"))
    assert hloforge.compile(LAYER, weights=file)(X).shape == (4, 8)
    again = hloforge.compile(LAYER, weights=file)
    np.testing.assert_allclose(again(X), WANT, rtol=1e-6)
    assert len(hloforge.compile(LAYER).manifest.signature.parameters) == 3


# XLA's names, and those of safetensors.
ELEMENTS = {
    "pred": "BOOL",
    "s8": "I8",
    "u8": "U8",
    "u16": "U16",
    "s32": "I32",
    "u64": "U64",
    "bf16": "BF16",
    "f16": "F16",
    "f64": "F64",
    "c64": "C64",
    "f8e4m3fn": "F8_E4M3",
    "f8e8m0fnu": "F8_E8M0",
}


@pytest.mark.parametrize("suffix", ["safetensors", "irpa"])
def test_constants_of_every_element_type_move_to_the_file(suffix: str, tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    arrays = [random.integers(0, 2, 8192).astype(element_type(name).dtype) for name in ELEMENTS]

    @hloforge.program
    def picks(start: hloforge.Shape.parse("s32[]")) -> Any:  # type: ignore[valid-type]
        from hloforge import ops

        few = [ops.dynamic_slice(ops.constant(array), [start], [5]) for array in arrays]
        return (*few, ops.dynamic_slice(ops.constant(np.zeros(8192, np.float32)), [start], [5]))

    path = tmp_path / f"constants.{suffix}"
    executable = hloforge.compile(picks, externalize_weights=path)
    assert len(executable.manifest.weights) == len(arrays)  # one number is no weight, however often it stands
    for got, array in zip(executable(np.int32(77)), arrays, strict=False):
        np.testing.assert_array_equal(got.view(np.uint8), array[77:82].view(np.uint8))
    if suffix == "safetensors":
        with safe_open(path, framework="numpy") as file:
            names = [file.get_slice(name).get_dtype() for name in file.keys()]  # noqa: SIM118 - it is no mapping
        assert sorted(names) == sorted(
            ["BOOL", "I8", "U8", "U16", "I32", "U64", "BF16", "F16", "F64", "C64", "F8_E4M3", "F8_E8M0"]
        )


def _refusal(*arguments: Any, **named: Any) -> str:
    with pytest.raises(hloforge.Error) as caught:
        hloforge.compile(*arguments, **named)
    return str(caught.value)


def test_files_that_do_not_fit_are_refused(file: Path, tmp_path: Path) -> None:
    assert "No such file" in _refusal(LAYER, weights=tmp_path / "none.safetensors")
    (tmp_path / "text.safetensors").write_text("no weights at all")
    assert "no file of weights" in _refusal(LAYER, weights=tmp_path / "text.safetensors")
    (tmp_path / "text.irpa").write_text("no weights at all")
    assert "no file of weights" in _refusal(LAYER, weights=tmp_path / "text.irpa")
    save_file({"kernal": KERNEL}, tmp_path / "names.safetensors")
    message = _refusal(LAYER, weights=tmp_path / "names.safetensors")
    assert "parameters: kernel, x, mask" in message
    assert "arrays: kernal" in message
    save_file({"kernel": KERNEL.T.copy()}, tmp_path / "sizes.safetensors")
    message = _refusal(LAYER, weights=tmp_path / "sizes.safetensors")
    assert "'kernel' is F32[8, 16], and the program takes f32[16,8]" in message
    rt.save_archive_file({"kernel": KERNEL[:3]}, tmp_path / "short.irpa")
    assert "'kernel' has 96 bytes" in _refusal(LAYER, weights=tmp_path / "short.irpa")
    assert "by the suffix" in _refusal(LAYER, externalize_weights=tmp_path / "w.npz")
    assert "one file" in _refusal(LAYER, weights=file, externalize_weights=tmp_path / "w.irpa")


def test_loading_says_what_is_wrong_with_the_weights(file: Path, tmp_path: Path) -> None:
    executable = hloforge.compile(LAYER, weights=file, output=tmp_path / "layer.vmfb")
    save_file({"kernel": KERNEL[:8], "mask": MASK}, file)
    with pytest.raises(hloforge.LoadError, match=r"weight 'kernel', f32\[16,8\], from .* holds 256 bytes"):
        hloforge.load(tmp_path / "layer.vmfb")
    file.unlink()
    with pytest.raises(hloforge.LoadError, match="beside the vmfb"):
        hloforge.load(tmp_path / "layer.vmfb")
    with pytest.raises(hloforge.LoadError, match="cannot be read"):
        hloforge.load(executable)


def test_sessions_share_the_pages_of_a_large_file(tmp_path: Path) -> None:
    """A weight is read where the file is mapped: sessions beyond the first take next to no memory."""
    psutil = pytest.importorskip("psutil")
    rt.save_archive_file({"w": np.ones((4096, 4096), np.float32)}, tmp_path / "w.irpa")
    text = """HloModule m
ENTRY main {
  x = s32[] parameter(0)
  w = f32[4096,4096]{1,0} parameter(1)
  ROOT r = f32[1,8]{1,0} dynamic-slice(w, x, x), dynamic_slice_sizes={1,8}
}
"""
    executable = hloforge.compile(text, weights=tmp_path / "w.irpa")
    process = psutil.Process()
    before = process.memory_info().rss - process.memory_info().shared
    sessions = [executable.load(device="local-sync") for _ in range(3)]
    assert [session(np.int32(4)).tolist() for session in sessions] == [[[1.0] * 8]] * 3
    assert process.memory_info().rss - process.memory_info().shared - before < 32 << 20


def test_the_command_line_takes_weights(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("layer.hlo").write_text(LAYER)
    run = CliRunner()
    assert run.invoke(cli, ["compile", "layer.hlo", f"--weights={file}"]).exit_code == 0
    facts = json.loads(run.invoke(cli, ["inspect", "layer.vmfb", "--json"]).stdout)
    assert facts["weights"] == {"kernel": "f32[16,8]", "mask": "pred[8]"}
    np.save("x.npy", X)
    done = run.invoke(cli, ["run", "layer.vmfb", "--input=@x.npy", "--output=@y.npy"])
    assert done.exit_code == 0, done.output
    np.testing.assert_allclose(np.load("y.npy"), WANT, rtol=1e-6)


def test_arrays_in_memory_are_weights_too(file: Path) -> None:
    executable = hloforge.compile(LAYER, weights=file)
    arrays = {"kernel": 3 * KERNEL, "mask": MASK}
    np.testing.assert_allclose(executable.load(weights=arrays)(X), 3 * WANT, rtol=1e-6)
    with pytest.raises(hloforge.LoadError, match="'mask', pred\\[8\\], from arrays that hold nothing of that name"):
        executable.load(weights={"kernel": KERNEL})
    with pytest.raises(hloforge.LoadError, match="'kernel' is not C-contiguous"):
        executable.load(weights={"kernel": np.asfortranarray(KERNEL), "mask": MASK})
