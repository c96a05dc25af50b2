"""Files with flipped bits and lost ends: one error each, never a crash and never a wrong number."""

from __future__ import annotations

import io
import random
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

import hloforge
from hloforge import ImporterError, LoadError
from hloforge.importers.exported_program import vet
from hloforge.runtime.artifact import weights
from hloforge.runtime.codegen_fixes import bytecode
from hloforge.runtime.data.array_files import Archive, FormatError, load_arrays
from hloforge.runtime.session.modules import read_manifest
from tests.robustness.forks import in_fork, in_spawned

TEXT = """HloModule product
ENTRY main {
  x = f32[8,8] parameter(0)
  c = f32[8,8] constant({%s})
  ROOT d = f32[8,8] dot(x, c), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""
C = np.random.default_rng(0).integers(-4, 5, (8, 8)).astype(np.float32)
X = np.random.default_rng(1).integers(-4, 5, (8, 8)).astype(np.float32)


@pytest.fixture(scope="module")
def vmfb() -> bytes:
    rows = ",".join("{" + ",".join(map(str, row)) + "}" for row in C.tolist())
    return hloforge.compile(TEXT % rows).vmfb


def damaged(data: bytes, generator: random.Random) -> bytes:
    """A few bits flipped, or the end cut off."""
    if generator.randrange(5) == 0:
        return data[: generator.randrange(1, len(data))]
    changed = bytearray(data)
    for _ in range(generator.choice((1, 1, 2, 4))):
        changed[generator.randrange(len(changed))] ^= 1 << generator.randrange(8)
    return bytes(changed)


def test_a_damaged_vmfb_computes_nothing_wrong(vmfb: bytes, tmp_path: Path) -> None:
    generator = random.Random(3)

    def check() -> None:
        refused = 0
        for number in range(300):
            path = tmp_path / "damaged.vmfb"
            data = damaged(vmfb, generator)
            path.write_bytes(data)
            try:
                result = hloforge.load(path if number % 2 else data)(X)
            except hloforge.LoadError:
                refused += 1
                continue
            np.testing.assert_array_equal(result, X @ C)
        assert refused > 200

    assert in_fork(check) == 0


def test_a_damaged_vmfb_has_no_manifest(vmfb: bytes) -> None:
    changed = bytearray(vmfb)
    changed[vmfb.index(b"hloforge.manifest") + 60] ^= 1
    with pytest.raises(hloforge.LoadError, match=r"its entry module\.fb is damaged"):
        read_manifest(bytes(changed))


def _beyond(name: str) -> bytes:
    """A zip archive whose only entry begins at 2⁶⁴ - 1."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr(name, b"1")
    data, extra = bytearray(stream.getvalue()), struct.pack("<HHQ", 1, 8, (1 << 64) - 1)
    start, end = data.index(b"PK\x01\x02"), data.index(b"PK\x05\x06")
    struct.pack_into("<I", data, end + 12, end - start + len(extra))
    struct.pack_into("<H", data, start + 30, len(extra))
    struct.pack_into("<I", data, start + 42, 0xFFFFFFFF)
    return bytes(data[:end] + extra + data[end:])


def test_an_entry_beyond_all_files_is_damage(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match="damaged"):
        hloforge.load(_beyond("module.fb"))
    (tmp_path / "x.npz").write_bytes(_beyond("x.npy"))
    with pytest.raises(FormatError, match="damaged"):
        assert load_arrays(tmp_path / "x.npz")["x"]
    with pytest.raises(ImporterError):
        vet(_beyond("archive/data/weights/model_weights_config.json"))


def test_a_vmfb_without_check_sums_loads(vmfb: bytes) -> None:
    made = hloforge.compile("HloModule m\nENTRY e { ROOT x = f32[4] parameter(0) }", flags=(NO_ZIP,))
    assert not made.vmfb.startswith(b"PK")
    np.testing.assert_array_equal(hloforge.load(made.vmfb)(X[0, :4]), X[0, :4])


NO_ZIP = "--iree-vm-emit-polyglot-zip=false"


@pytest.mark.parametrize("version", [0x100000, 0x120000, 0x110001])
def test_another_version_of_iree_is_named(iree_codegen: None, version: int) -> None:
    vmfb = hloforge.compile("HloModule m\nENTRY e { ROOT x = f32[4] parameter(0) }").vmfb
    changed = bytearray(vmfb)
    start = vmfb.find(b"IREE") - 4
    place = bytecode._field(changed, start + bytecode._u32(changed, start), bytecode._VERSION)
    struct.pack_into("<I", changed, place, version)
    bytecode._refresh_check_sum(changed)
    with pytest.raises(hloforge.LoadError, match=r"of another version of IREE: .*17") as caught:
        hloforge.load(bytes(changed))
    assert "compile again" in str(caught.value)


def _arrays(path: Path) -> None:
    arrays = load_arrays(path)
    if isinstance(arrays, Archive):
        for name in arrays.names:
            arrays[name]


def _weights(path: Path) -> None:
    weights.described(path)
    weights._opened(path).items()


def _save(path: Path) -> None:
    arrays = {"x": np.arange(12, dtype=np.float32), "y": np.ones((3, 4), np.float32)}
    savers: dict[str, Callable[[], Any]] = {
        ".npy": lambda: np.save(path, arrays["y"]),
        ".npz": lambda: np.savez(path, **arrays),  # type: ignore[arg-type]
        ".packed.npz": lambda: np.savez_compressed(path, **arrays),  # type: ignore[arg-type]
        ".safetensors": lambda: save_file(arrays, path),
        ".irpa": lambda: weights.write(path, ".irpa", arrays),
    }
    savers["".join(path.suffixes)]()


def _read_damaged(read: Callable[[Path], None], errors: type[Exception], path: Path) -> None:
    data, generator = path.read_bytes(), random.Random(5)
    refused = 0
    for _ in range(300):
        path.write_bytes(damaged(data, generator))
        try:
            read(path)
        except errors:
            refused += 1
    assert refused > 10  # an archive is mostly padding and numbers, which have no check sum


@pytest.mark.parametrize(
    ("name", "read", "errors"),
    [
        ("a.npy", _arrays, FormatError),
        ("a.npz", _arrays, FormatError),
        ("a.packed.npz", _arrays, FormatError),
        ("a.safetensors", _weights, hloforge.Error),
        ("a.irpa", _weights, hloforge.Error),
    ],
)
def test_damaged_arrays_are_refused(
    name: str, read: Callable[[Path], None], errors: type[Exception], tmp_path: Path
) -> None:
    path = tmp_path / name
    _save(path)
    read(path)
    assert in_spawned(_read_damaged, read, errors, path) == 0


def test_names_of_weights_that_are_no_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.irpa"
    weights.write(path, ".irpa", {"a long name": np.ones(3, np.float32)})
    path.write_bytes(path.read_bytes().replace(b"a long name", b"a \xff\xfe name"))
    with pytest.raises(LoadError, match="is no file of weights"):
        weights._opened(path)


def test_compilers_write_check_sums(vmfb: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.vmfb").write_bytes(vmfb)
    with zipfile.ZipFile(tmp_path / "a.vmfb") as archive:
        assert archive.testzip() is None
        assert "module.fb" in archive.namelist()
