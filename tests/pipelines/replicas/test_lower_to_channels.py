"""lower-to-channels: what it makes computes the same, by XLA's client, and becomes IREE's channel collectives."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hloforge.dialect.errors import UnsupportedError
from hloforge.dialect.mlir import parse_module
from hloforge.pipelines.framework.manager import PassManager
from hloforge.pipelines.named import lower
from hloforge.pipelines.replicas.grid import Grid, set_grid
from hloforge.pipelines.replicas.lower_to_channels import LowerToChannels
from hloforge.runtime.compile.targets import Target
from tests.pipelines.replicas.test_fold import ADD, CHANNEL, LARGER, data, folded, groups, plain, program, reducing
from tests.replicated_engine import run_on_grid

SCATTER = "scatter_dimension = 1 : i64"
EXCHANGE = "split_dimension = 1 : i64, concat_dimension = 0 : i64, split_count = 2 : i64"
GATHER = '%r = "stablehlo.all_gather"(%x) {all_gather_dim = 1 : i64, GROUPS} : (tensor<4x6xf32>) -> tensor<4x12xf32>'
PAIRS = "source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>"


def on_grid(text: str, grid: Grid) -> Any:
    module = parse_module(text)
    set_grid(module, grid)
    return module


def lowered(text: str, grid: Grid) -> str:
    module = on_grid(text, grid)
    PassManager([LowerToChannels()]).run(module)
    return str(module)


def xla(text: str, replicas: int, partitions: int, x: np.ndarray) -> list[np.ndarray]:
    return run_on_grid(text, replicas, partitions, [x])


def gathering(members: list[int]) -> str:
    return GATHER.replace("GROUPS", groups(members))


def exchange(attributes: str) -> str:
    body = f'%r = "stablehlo.all_to_all"(%x) {{{EXCHANGE}, {attributes}}} : (tensor<4x6xf32>) -> tensor<8x3xf32>'
    return program(body, "tensor<8x3xf32>")


@pytest.mark.parametrize(
    ("text", "grid"),
    [
        (reducing("all_reduce", groups([0, 1])), Grid(2, 2)),
        (reducing("all_reduce", groups([0, 1]), LARGER), Grid(2, 1)),
        (reducing("all_reduce", f"{groups([1, 0])}, {CHANNEL}"), Grid(2, 2)),
        (reducing("reduce_scatter", f"{groups([0, 1])}, {SCATTER}", ADD, "tensor<4x3xf32>"), Grid(2, 2)),
        (reducing("reduce_scatter", f"{groups([0, 1])}, {SCATTER}", LARGER, "tensor<4x3xf32>"), Grid(2, 1)),
        (program(gathering([1, 0]), "tensor<4x12xf32>"), Grid(2, 2)),
        (program(gathering([1, 0]), "tensor<4x12xf32>"), Grid(2)),
        (exchange(groups([1, 0])), Grid(2)),
        (reducing("reduce_scatter", f"{groups([1, 0])}, {SCATTER}", ADD, "tensor<4x3xf32>"), Grid(2)),
        (exchange(groups([0, 1])), Grid(2, 2)),
        (exchange(f"{groups([1, 0])}, {CHANNEL}"), Grid(2, 2)),
        (plain("collective_permute", PAIRS), Grid(2, 2)),
        (plain("collective_permute", f"{PAIRS}, {CHANNEL}"), Grid(2, 2)),
    ],
    ids=[
        "sum",
        "larger",
        "crossing",
        "sums",
        "larger ones",
        "gather",
        "gather out of order",
        "exchange out of order",
        "sums out of order",
        "exchange",
        "across partitions",
        "permute",
        "permute partitions",
    ],
)
def test_the_same_by_ranks(text: str, grid: Grid) -> None:
    x = data(grid.devices)
    (actual,) = run_on_grid(lowered(text, grid), grid.devices, 1, [x])
    # XLA's client knows few computations.
    (expected,) = (folded if LARGER in text else xla)(text, grid.replicas, grid.partitions, x)
    np.testing.assert_array_equal(actual, expected)


def test_replica_and_partition_are_those_of_the_rank() -> None:
    body = """%a = stablehlo.replica_id : tensor<ui32>
%b = stablehlo.partition_id : tensor<ui32>
%c = stablehlo.constant dense<10> : tensor<ui32>
%d = stablehlo.multiply %a, %c : tensor<ui32>
%e = stablehlo.add %d, %b : tensor<ui32>
%r = stablehlo.broadcast_in_dim %e, dims = [] : (tensor<ui32>) -> tensor<1xui32>"""
    (ranks,) = run_on_grid(lowered(program(body, "tensor<1xui32>"), Grid(2, 3)), 6, 1, [data(6)])
    assert ranks.ravel().tolist() == [0, 1, 2, 10, 11, 12]


def test_a_broadcast_is_the_first_members_and_booleans_are_bytes() -> None:
    body = f"""%z = stablehlo.constant dense<0.0> : tensor<4x6xf32>
%p = stablehlo.compare GT, %x, %z : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xi1>
%q = "stablehlo.collective_broadcast"(%p) {{{groups([1, 0])}}} : (tensor<4x6xi1>) -> tensor<4x6xi1>
%r = stablehlo.convert %q : (tensor<4x6xi1>) -> tensor<4x6xf32>"""
    text = lowered(program(body), Grid(2))
    x = data(2)
    (actual,) = run_on_grid(text, 2, 1, [x])
    np.testing.assert_array_equal(actual, [x[1] > 0, x[1] > 0])
    assert "i1>}" not in text and "tensor<2x4x6xui8>" in text


@pytest.mark.parametrize(
    ("text", "grid", "what"),
    [
        (reducing("all_reduce", groups([0, 1], [2, -1]), LARGER), Grid(3), "groups of several sizes"),
        (plain("collective_broadcast", groups([0, 1])), Grid(3), "groups that leave out devices"),
        (plain("collective_permute", PAIRS).replace("f32", "complex<f32>"), Grid(2), "elements of type c64"),
    ],
    ids=["sizes", "partial", "complex"],
)
def test_what_no_channel_does_is_refused(text: str, grid: Grid, what: str) -> None:
    with pytest.raises(UnsupportedError, match=what) as caught:
        lowered(text, grid)
    assert "--fold-replicas" in caught.value.hint


def flow(text: str, grid: Grid, folder: Path) -> str:
    """A program for CUDA in IREE's flow dialect."""
    module = on_grid(text, grid)
    lower(module, target="cuda")
    (folder / "lowered.mlir").write_text(str(module))
    compiler = [Path(sys.executable).with_name("iree-compile"), *Target.parse("cuda").flags(), "--compile-to=flow"]
    done = subprocess.run([*compiler, folder / "lowered.mlir"], capture_output=True, text=True, check=True, timeout=60)
    return done.stdout


def test_cuda_has_channel_collectives(tmp_path: Path) -> None:
    body = f"""%a = "stablehlo.all_reduce"(%x) {ADD} {{{groups([0, 1])}}} : (tensor<4x6xf32>) -> tensor<4x6xf32>
{gathering([0, 1]).replace("%r", "%g")}
%s = "stablehlo.reduce_scatter"(%a) {ADD} {{{groups([0, 1])}, {SCATTER}}} : (tensor<4x6xf32>) -> tensor<4x3xf32>
%e = "stablehlo.all_to_all"(%x) {{{EXCHANGE}, {groups([0, 1])}}} : (tensor<4x6xf32>) -> tensor<8x3xf32>
%p = "stablehlo.collective_permute"(%x) {{{PAIRS}}} : (tensor<4x6xf32>) -> tensor<4x6xf32>
%i = stablehlo.replica_id : tensor<ui32>"""
    types = "tensor<4x12xf32>, tensor<4x3xf32>, tensor<8x3xf32>, tensor<4x6xf32>, tensor<ui32>"
    text = f"func.func @main(%x: tensor<4x6xf32>) -> ({types}) {{\n{body}\nreturn %g, %s, %e, %p, %i : {types}\n}}"
    made = flow(text, Grid(2), tmp_path)
    for kind in ("all_reduce sum", "all_gather", "reduce_scatter sum", "all_to_all", "send_recv"):
        assert f"flow.collective.{kind}" in made
    assert "flow.channel.rank" in made
    assert "flow.channel.split" not in made


def test_cuda_has_a_channel_for_each_group(tmp_path: Path) -> None:
    made = flow(program(gathering([1, 0]), "tensor<4x12xf32>"), Grid(2, 2), tmp_path)
    # Of the ranks 0 to 3: to which of two groups they belong, and their places, the second replica first.
    color, key = "[%c0, %c1, %c0, %c1]", "[%c1, %c1, %c0, %c0]"
    assert "flow.channel.split" in made and color in made and key in made
