"""Several devices from the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.command import Call, values

PROGRAM = """HloModule exchange
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
ENTRY e { x = f32[2] parameter(0)
  s = f32[2] all-reduce(x), replica_groups={{0,1}}, to_apply=add
  ROOT t = (f32[2], f32[2]) tuple(s, x) }"""
INPUT = "--input=2x2xf32=1 2 3 4"
OUTPUT = ["2x2xf32=[4 6][4 6]", "2x2xf32=[1 2][3 4]"]


@pytest.fixture
def exchange(tmp_path: Path) -> Path:
    (tmp_path / "exchange.hlo").write_text(PROGRAM)
    return tmp_path / "exchange.hlo"


@pytest.mark.parametrize("more", [[], ["--fold-replicas"]], ids=["threads", "folded"])
def test_arrays_have_a_part_for_each_device(call: Call, exchange: Path, more: list[str]) -> None:
    result = call("run", exchange, "--replicas=2", INPUT, *more)
    assert result.exit_code == 0, result.stderr
    assert values(result) == OUTPUT
    checked = call("run", exchange, "--replicas=2", "--input=random", "--reference=xla", *more)
    assert checked.exit_code == 0, checked.stderr
    assert "against reference xla" in checked.stdout


def test_a_vmfb_knows_its_grid(call: Call, exchange: Path, tmp_path: Path) -> None:
    assert call("compile", exchange, "--replicas=2", "-o", tmp_path / "exchange.vmfb").exit_code == 0
    assert values(call("run", tmp_path / "exchange.vmfb", INPUT)) == OUTPUT
    assert "runs on:       2 replicas x 1 partitions" in call("inspect", tmp_path / "exchange.vmfb").stdout
    other = call("run", tmp_path / "exchange.vmfb", "--replicas=4", INPUT)
    assert other.exit_code == 1
    assert "compiled for 2 replicas x 1 partitions" in other.stderr


def test_a_program_of_several_devices_says_how_to_run_it(call: Call, exchange: Path) -> None:
    alone = call("run", exchange, INPUT)
    assert alone.exit_code == 1
    assert f"{exchange}:4:" in alone.stderr
    assert "run the program on as many devices as it was made for: --replicas" in alone.stderr
    uneven = call("run", exchange, "--replicas=3", INPUT)
    assert uneven.exit_code == 1
    assert "leave out replica 2" in uneven.stderr


def test_counts_are_positive(call: Call, exchange: Path) -> None:
    assert call("run", exchange, "--replicas=0", INPUT).exit_code == 2


SHARDED = """func.func @main(%x: tensor<4xf32> {mhlo.sharding = "{devices=[2]<=[2]}"}) -> tensor<4xf32> {
  %y = stablehlo.negate %x : tensor<4xf32>
  return %y : tensor<4xf32>
}"""


def test_a_sharded_program_takes_whole_arrays(call: Call, tmp_path: Path) -> None:
    source, vmfb = tmp_path / "sharded.mlir", tmp_path / "sharded.vmfb"
    source.write_text(SHARDED)
    given = ("--input=4xf32=1 2 3 4",)
    for options in ([], ["--partitions=2"], ["--partitions=2", "--fold-replicas"]):
        result = call("run", source, *given, *options, "--reference=xla", "--output=-")
        assert result.exit_code == 0, result.stderr
        assert "4xf32=[-1 -2 -3 -4]" in result.stdout
    assert call("compile", source, "--partitions=2", "-o", vmfb).exit_code == 0
    assert call("run", vmfb, *given).stdout.splitlines() == ["4xf32=[-1 -2 -3 -4]"]
    shown = call("inspect", vmfb).stdout
    assert "runs on:       1 replicas x 2 partitions" in shown
    assert "called with:   (arg0: f32[4]) -> f32[4]" in shown
    assert "arg0    f32[2]" in shown
    refused = call("compile", source, "--partitions=4", "-o", vmfb)
    assert refused.exit_code == 1
    assert f"{source}:1:1: error: the sharding {{devices=[2]<=[2]}} names 2 devices" in refused.stderr
