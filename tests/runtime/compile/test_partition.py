"""Sharded programs on the devices of their mesh, on whole arrays, against the whole program on XLA's CPU client.

The programs of ``sharded/`` were written in JAX, and lowered with annotations of Shardy and of GSPMD.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hloforge
from hloforge.dialect.operations import location_of, operations
from hloforge.runtime.compile import partition
from hloforge.runtime.compile.assembly import server
from hloforge.runtime.compile.partition import partitioned
from hloforge.runtime.options import CompileOptions
from hloforge.runtime.reference.engines import ReferenceEngine
from hloforge.runtime.session.convention import result_leaves
from tests.engines import shared_reference

PROGRAMS = Path(__file__).parents[1] / "sharded"
FORMS = ("shardy", "gspmd")
# How many collectives move parts at least: of none the partitioner would have made one device's program.
COMMUNICATION = {
    "contraction": 1,
    "constraint": 2,
    "convolution": 2,
    "reduction": 3,
    "training": 4,
    "attention": 1,
}
HEAVY = frozenset({"reduction", "training", "attention"})
CALLS = ("stablehlo.all_reduce", "stablehlo.all_gather", "stablehlo.collective_permute", "stablehlo.all_to_all")

UNEVEN = """func.func @main(%x: tensor<7x5xf32> {mhlo.sharding = "{devices=[4,1]0,2,1,3}"}, %w: tensor<5x3xf32>)
    -> (tensor<7x3xf32> {mhlo.sharding = "{devices=[2,2]<=[4]}"}, tensor<3xf32>) {
  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
    : (tensor<7x5xf32>, tensor<5x3xf32>) -> tensor<7x3xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [0]
    : (tensor<7x3xf32>, tensor<f32>) -> tensor<3xf32>
  return %y, %s : tensor<7x3xf32>, tensor<3xf32>
}"""
# Devices that sum their parts are neighbours, while a group of the mesh's first axis would be 0 and 2.
MINOR = """sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}]>}) -> tensor<f32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0]
    : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
  return %s : tensor<f32>
}"""
# As JAX writes HLO: Shardy's annotations beside those of GSPMD, and a manual computation over one of two axes.
HLO = PROGRAMS / "manual.hlo"


@pytest.fixture(scope="module")
def xla() -> Iterator[ReferenceEngine]:
    engine = shared_reference("xla")
    yield engine
    engine.close()


def path(name: str, form: str) -> Path:
    return PROGRAMS / f"{name}.{form}.mlir"


def devices(name: str) -> int:
    return 2 if name == "contraction" else 4


def load(source: Any, partitions: int = 4, **options: Any) -> hloforge.Replicas:
    return hloforge.replicate(source, partitions=partitions, cache=False, timeout=60, **options)


def check(actual: Any, expected: Any, signature: hloforge.Signature) -> None:
    leaves = zip(result_leaves(signature.result, actual), result_leaves(signature.result, expected), strict=True)
    for one, other in leaves:
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.wide(2)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name in HEAVY else []) for name in COMMUNICATION]
)
def test_parts_compute_what_the_whole_does(name: str, form: str, xla: ReferenceEngine) -> None:
    program = hloforge.read(path(name, form))
    cut = partitioned(program, CompileOptions(partitions=devices(name)))
    assert len(operations(cut.module, CALLS)) >= COMMUNICATION[name]
    run = load(program, devices(name))
    assert str(run.signature) == str(program.signature)
    inputs = hloforge.random_inputs(program.signature)
    check(run(*inputs), xla.prepare(program)(*inputs), program.signature)


@pytest.mark.parametrize("form", FORMS)
def test_manual_over_one_of_two_axes(form: str) -> None:
    x, w = hloforge.random_inputs(hloforge.read(path("manual", form)).signature)
    expected = np.repeat((np.sin(x.astype(np.float64)) @ w).sum(axis=1, keepdims=True), 3, axis=1)
    np.testing.assert_allclose(load(path("manual", form))(x, w), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_manual_in_manual(form: str) -> None:
    (x,) = hloforge.random_inputs(hloforge.read(path("nested", form)).signature)
    expected = (x[:, :4] + x[:, 4:]) * np.repeat([1, 2], 4)[:, None]
    np.testing.assert_allclose(load(path("nested", form))(x), expected, rtol=1e-5, atol=1e-6)


def test_hlo_with_annotations_of_both_kinds() -> None:
    run = load(HLO)
    (x,) = hloforge.random_inputs(run.signature)
    np.testing.assert_allclose(run(x), np.sin(x[:, :3]) + np.sin(x[:, 3:]), rtol=1e-5, atol=1e-6)


def test_parts_that_are_not_equal_and_devices_out_of_order(tmp_path: Path) -> None:
    vmfb = tmp_path / "uneven.vmfb"
    hloforge.compile(UNEVEN, partitions=4, output=vmfb, cache=False)
    run = hloforge.Replicas(vmfb, partitions=4, timeout=60)
    x, w = hloforge.random_inputs(run.signature)
    assert {leaf.shape.dimensions for leaf in run.manifest.signature.flat_parameters[:1]} == {(2, 5)}
    product, total = run(x, w)
    np.testing.assert_allclose(product, x @ w, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(total, (x @ w).sum(axis=0), rtol=1e-4, atol=1e-5)
    with pytest.raises(hloforge.ArgumentError, match=r"expected f32\[7,5\]"):
        run(x[:4], w)
    with pytest.raises(hloforge.LoadError, match="x 4 partitions"):
        hloforge.Replicas(vmfb, partitions=2)


def test_sums_over_the_minor_axis() -> None:
    assert load(MINOR)(np.arange(8, dtype=np.float32)) == 28


def test_folded_it_takes_whole_arrays_as_well(xla: ReferenceEngine) -> None:
    program = hloforge.read(path("constraint", "shardy"))
    inputs = hloforge.random_inputs(program.signature)
    run = load(program, fold=True)
    assert str(run.signature) == str(program.signature)
    check(run(*inputs), xla.prepare(program)(*inputs), program.signature)


def test_one_partition_runs_the_whole(xla: ReferenceEngine) -> None:
    program = hloforge.read(path("contraction", "gspmd"))
    assert partitioned(program, CompileOptions()) is program
    inputs = hloforge.random_inputs(program.signature)
    check(hloforge.compile(program)(*inputs), xla.prepare(program)(*inputs), program.signature)


def test_operations_keep_their_places() -> None:
    cut = partitioned(hloforge.read(path("contraction", "shardy")), CompileOptions(partitions=2))
    (product,) = operations(cut.module, {"stablehlo.dot", "stablehlo.dot_general"})
    place = location_of(product)
    assert place is not None and (Path(place.file).name, place.line) == ("contraction.shardy.mlir", 4)


WRONG = """func.func @main(%x: tensor<8x5xf32> {mhlo.sharding = "{devices=[2,1]<=[2]}"}) -> tensor<8x5xf32> {
  %y = stablehlo.custom_call @Sharding(%x) {mhlo.sharding = "{devices=[2,1]0,9}"} : (tensor<8x5xf32>) -> tensor<8x5xf32>
  return %y : tensor<8x5xf32>
}"""
DYNAMIC = """func.func @main(%x: tensor<?xf32> {mhlo.sharding = "{devices=[2]<=[2]}"}) -> tensor<?xf32> {
  return %x : tensor<?xf32>
}"""


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        (WRONG, hloforge.CompileError, r"<string>:2:8: error: XLA's partitioner refuses .*device 9 >= num_devices"),
        (DYNAMIC, hloforge.UnsupportedError, r"shape f32\[\?\] cannot be sharded over devices"),
    ],
    ids=["a device too many", "dynamic"],
)
def test_what_cannot_be_cut_is_an_error(text: str, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind) as info:
        partitioned(hloforge.read(text), CompileOptions(partitions=2))
    assert info.match(message)
    assert "with one partition" in str(info.value)


def test_weights_beside_a_sharded_program_are_refused(tmp_path: Path) -> None:
    with pytest.raises(hloforge.OptionError, match="cannot load a file of weights"):
        load(path("contraction", "shardy"), 2, weights=tmp_path / "w.safetensors")


def test_a_partitioner_that_takes_too_long_is_stopped() -> None:
    with pytest.raises(hloforge.CompileError, match="did not finish within"):
        partitioned(hloforge.read(path("contraction", "shardy")), CompileOptions(partitions=2, timeout=0.001))


@pytest.mark.parametrize("way", ["no server", "a server that ends"])
def test_without_a_server_a_process_cuts_the_same(monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    program, options = hloforge.read(path("contraction", "shardy")), CompileOptions(partitions=2)
    expected = str(partitioned(program, options).module)
    assert any(call in expected for call in CALLS)
    if way == "no server":
        monkeypatch.setenv(server.VARIABLE, "0")
    else:
        gone = server.Server(lambda: ("hloforge.nothing",))
        monkeypatch.setattr(partition, "_partitioner", lambda: gone)
    assert str(partitioned(program, options).module) == expected


def test_a_server_answers_several_threads_and_survives_what_is_refused() -> None:
    """Each request has a child of its own."""
    program, options = hloforge.read(path("contraction", "shardy")), CompileOptions(partitions=2)
    with ThreadPoolExecutor(4) as pool:
        texts = set(pool.map(lambda _: str(partitioned(program, options).module), range(8)))
    with pytest.raises(hloforge.CompileError, match="device 9"):
        partitioned(hloforge.read(WRONG), options)
    assert texts == {str(partitioned(program, options).module)}
