"""Damaged files of every form, a few here and many in `make test-all`; docs/robustness.md has the long runs."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest

import hloforge
from hloforge.runtime.data.array_files import Archive, FormatError, load_arrays
from tests.robustness.fuzz_readers import fuzz
from tests.robustness.samples import READERS

# What each reader needs beside hloforge's own packages.
NEEDS = {
    "jax-export": "jax",
    "onnx": "onnx",
    "tflite": "tflite",
    "torch-export": "torch",
    "keras": "keras",
    "tensorflow": "tensorflow",
}


def check(name: str, count: int, seed: int) -> None:
    pytest.importorskip(NEEDS.get(name.split(" ")[0].split(".")[0], "numpy"), reason="a framework is not installed")
    result = fuzz(name, count, seed)
    assert not result.findings
    assert sum(result.counts.values()) == count


@pytest.mark.filterwarnings("ignore:os.fork")
@pytest.mark.parametrize("name", [name for name, reader in READERS.items() if not reader.slow and "torch" not in name])
def test_a_few_damaged_files(name: str) -> None:
    check(name, 12, 7)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:os.fork")
@pytest.mark.parametrize("name", READERS)
def test_many_damaged_files(name: str) -> None:
    check(name, 12 if READERS[name].slow else 400, 11)


def bomb(name: str, header: bytes, size: int) -> bytes:
    """A zip with a file of so many zeros behind a header."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, header + b"\0" * size)
    return stream.getvalue()


def test_an_archive_of_arrays_is_not_unpacked_before_its_sizes_fit(tmp_path: Path) -> None:
    path, header = tmp_path / "a.npz", io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f4", "fortran_order": False, "shape": (4,)})
    path.write_bytes(bomb("x.npy", header.getvalue(), 1 << 24))
    archive = load_arrays(path)
    assert isinstance(archive, Archive)
    with pytest.raises(FormatError, match="an array of 144 bytes in an entry of"):
        archive["x"]


def test_a_vmfb_with_a_compressed_entry_is_not_unpacked(tmp_path: Path) -> None:
    vmfb = hloforge.compile("HloModule m\nENTRY e { ROOT x = f32[4] parameter(0) }").vmfb
    stream = io.BytesIO(vmfb)
    with zipfile.ZipFile(stream, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("targets/cpu-generic.vmfb", b"\0" * (1 << 24))
    with pytest.raises(hloforge.LoadError, match="its entries are larger than itself"):
        hloforge.load(stream.getvalue())


@pytest.mark.parametrize(
    ("kind", "numbers", "elements"),
    [("Expand", [1 << 17, 1 << 10], 1), ("Tile", [1 << 27], 1), ("Pad", [0, 1 << 27], 1), ("Add", [], 1 << 14)],
)
def test_a_small_model_of_onnx_takes_little_memory(kind: str, numbers: list[int], elements: int) -> None:
    """Nodes of constants whose results are gigabytes are operations of the program, and not computed by numpy."""
    onnx = pytest.importorskip("onnx")
    from onnx import TensorProto, helper, numpy_helper

    data = numpy_helper.from_array(np.ones(elements, np.float32).reshape(-1, *[1] * (elements > 1)), "c")
    other = np.array(numbers, np.int64) if numbers else np.ones(elements, np.float32)
    nodes = [helper.make_node(kind, ["c", "s"], ["y"])]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    graph = helper.make_graph(nodes, "g", [], outputs, [data, numpy_helper.from_array(other, "s")])
    model = onnx.helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])
    program = hloforge.read(model.SerializeToString())
    assert program.signature.result.element_count >= 1 << 27
    assert len(program.text()) < 10_000


def test_soak_for_a_moment(tmp_path: Path) -> None:
    """The long run is `make soak`."""
    from tests.robustness import soak

    executables = soak.compiled()
    for report in (
        soak.soak_calls(executables, 2000, 8),
        soak.soak_loads(executables, 60, tmp_path),
        soak.soak_forks(executables, 10),
    ):
        assert not report.leaks, str(report)


@pytest.mark.slow
def test_soak_for_a_minute(tmp_path: Path) -> None:
    from tests.robustness import soak

    executables = soak.compiled()
    reports = (
        soak.soak_calls(executables, 20_000, 8),
        soak.soak_loads(executables, 500, tmp_path),
        soak.soak_compiles(10),
    )
    assert not [str(report) for report in reports if report.leaks]
