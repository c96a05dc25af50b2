"""One file of all buckets: weights once, chosen by size, the same results as the programs it was made of."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import hloforge
from hloforge.dialect.errors import ArgumentError, LoadError, OptionError
from hloforge.runtime.artifact.bucket_file import BucketTable, table_of, weights_in
from hloforge.runtime.options import CompileOptions
from hloforge.tools.main import cli

WEIGHTS = np.random.default_rng(0).normal(size=(128, 128)).astype(np.float32) / 8


def _program() -> str:
    elements = WEIGHTS.tobytes().hex().upper()
    return f"""
    func.func @main(%x: tensor<?x?x128xf32, #stablehlo.bounds<8, 16, ?>>)
      -> tensor<?x128xf32, #stablehlo.bounds<8, ?>> {{
      %w = stablehlo.constant dense<"0x{elements}"> : tensor<128x128xf32>
      %zero = stablehlo.constant dense<0.0> : tensor<f32>
      %y = stablehlo.dot_general %x, %w, contracting_dims = [2] x [0]
        : (tensor<?x?x128xf32, #stablehlo.bounds<8, 16, ?>>, tensor<128x128xf32>)
        -> tensor<?x?x128xf32, #stablehlo.bounds<8, 16, ?>>
      %e = stablehlo.exponential %y : tensor<?x?x128xf32, #stablehlo.bounds<8, 16, ?>>
      %r = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1]
        : (tensor<?x?x128xf32, #stablehlo.bounds<8, 16, ?>>, tensor<f32>) -> tensor<?x128xf32, #stablehlo.bounds<8, ?>>
      return %r : tensor<?x128xf32, #stablehlo.bounds<8, ?>>
    }}"""


def _expected(x: Any) -> Any:
    return np.exp(x @ WEIGHTS).sum(1)


def _arguments(rows: int, length: int) -> Any:
    return np.random.default_rng(rows * length).normal(size=(rows, length, 128)).astype(np.float32) / 4


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("buckets") / "model.vmfb"
    buckets = {"arg0.0": [1, 4], "arg0.1": [8, 16]}
    hloforge.compile(_program(), buckets=buckets, output=path)
    return path


@pytest.mark.parametrize("given", [lambda path: path, lambda path: path.read_bytes()], ids=["path", "bytes"])
def test_each_call_takes_the_smallest_bucket(made: Path, given: Callable[[Path], Any]) -> None:
    session = hloforge.load(given(made))
    for sizes, bucket in [((1, 1), (1, 8)), ((2, 8), (4, 8)), ((4, 9), (4, 16)), ((1, 16), (1, 16)), ((3, 5), (4, 8))]:
        x = _arguments(*sizes)
        np.testing.assert_allclose(session(x), _expected(x), rtol=1e-4)
        assert tuple(session.last_bucket.sizes.values()) == bucket  # type: ignore[attr-defined]
    assert sum(bucket.calls for bucket in session.buckets) == 5
    with pytest.raises(ArgumentError, match="no bucket of the file holds the sizes"):
        session(_arguments(5, 2))
    with pytest.raises(ArgumentError, match="arg0"):
        session(np.zeros((2, 2, 127), np.float32))
    session.close()
    with pytest.raises(hloforge.Error, match="closed"):
        session(_arguments(1, 1))


def test_weights_are_in_the_file_once(made: Path) -> None:
    data = made.read_bytes()
    assert data.count(WEIGHTS.tobytes()[:4096]) == 1
    table = table_of(made)
    assert table is not None
    assert len(table.buckets) == 4
    (array,) = weights_in(made, table).values()
    assert array.tobytes() == WEIGHTS.tobytes()
    assert array.ctypes.data % 64 == 0


def test_a_function_is_one_bucket(made: Path) -> None:
    x = _arguments(4, 8)
    found = hloforge.load(made, function="bucket-4x8")(x, np.int64(4), np.int64(8))
    np.testing.assert_allclose(found[0], _expected(x), rtol=1e-4)


def test_the_command_line_writes_runs_and_shows_them(tmp_path: Path) -> None:
    (tmp_path / "model.mlir").write_text(_program())
    place, x = tmp_path / "model.vmfb", _arguments(3, 7)
    np.save(tmp_path / "x.npy", x)
    run = CliRunner()
    command = ["compile", str(tmp_path / "model.mlir"), "-o", str(place), "--buckets=arg0.0=4", "--buckets=arg0.1=8,16"]
    done = run.invoke(cli, command)
    assert done.exit_code == 0, done.output
    done = run.invoke(cli, ["run", str(place), f"--input=@{tmp_path}/x.npy", f"--output=@{tmp_path}/y.npy", "--time"])
    assert done.exit_code == 0, done.output
    assert "bucket: arg0.0 <= 4, arg0.1 <= 8; of 2" in done.stderr
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), _expected(x), rtol=1e-4)
    shown = run.invoke(cli, ["inspect", str(place)])
    assert "arg0.0 <= 4, arg0.1 <= 16; arg0.0 <= 4, arg0.1 <= 8" in shown.output
    assert run.invoke(cli, [*command[:-2], "--buckets=8"]).exit_code == 2


def test_damaged_tables_are_load_errors(made: Path, tmp_path: Path) -> None:
    table = table_of(made)
    assert table is not None
    assert BucketTable.from_json(table.to_json()) == table
    for change in ({"sizes": [["x"]]}, {"buckets": [[1]]}, {"format": 99}, {"weights": {"a": [1]}}):
        with pytest.raises(LoadError):
            BucketTable.from_json(json.dumps(json.loads(table.to_json()) | change))
    broken = json.loads(table.to_json())
    broken["weights"] = {name: [1 << 40, size] for name, (_, size) in broken["weights"].items()}
    copy = tmp_path / "broken.vmfb"
    copy.write_bytes(made.read_bytes())
    with pytest.warns(UserWarning, match="Duplicate name"), zipfile.ZipFile(copy, "a") as archive:
        archive.writestr("buckets.json", json.dumps(broken))
    with pytest.raises(LoadError, match="damaged"):
        hloforge.load(copy)


def test_too_many_buckets_for_one_file_are_refused() -> None:
    program = hloforge.compile(_program(), buckets={"arg0.0": [1, 2, 3, 4], "arg0.1": list(range(1, 17))})
    assert len(program.load().buckets) == 64
    many = hloforge.compile(_program(), buckets={"arg0.0": [1, 2, 3, 4, 5], "arg0.1": list(range(1, 17))})
    with pytest.raises(OptionError, match="80 buckets for one file"):
        many.save("unused.vmfb")
    with pytest.raises(OptionError, match="at most 8"):
        hloforge.compile(_program(), buckets={"arg0.0": [9]})


def test_a_file_of_weights_beside_buckets_is_refused() -> None:
    with pytest.raises(OptionError, match="externalize_weights is for other programs"):
        CompileOptions(buckets="all", externalize_weights="weights.irpa")
