"""Telling programs that are still to be cut from those that are cut, and for how many devices they are."""

from __future__ import annotations

import pytest

import hloforge
from hloforge.dialect.errors import OptionError
from hloforge.pipelines.replicas.annotations import check_devices, is_sharded, uses_shardy
from hloforge.pipelines.replicas.grid import Grid

MESH = """sdy.mesh @mesh = <["d"=2]>
func.func @main(%x: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"d"}]>}) -> tensor<4xf32> { BODY }"""
SHARDING = """func.func @main(%x: tensor<4xf32> {mhlo.sharding = "TEXT"}) -> tensor<4xf32> { BODY }"""
GATHER = """%p = stablehlo.partition_id : tensor<ui32>
  return %x : tensor<4xf32>"""
MANUAL = """%y = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"d"}]>] out_shardings=[<@mesh, [{"d"}]>]
    manual_axes={"d"} (%a: tensor<2xf32>) { %p = stablehlo.partition_id : tensor<ui32>
    sdy.return %a : tensor<2xf32> } : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>"""
BORDER = """%y = stablehlo.custom_call @SPMDFullToShardShape(%x) {mhlo.sharding = "{manual}"}
    : (tensor<4xf32>) -> tensor<2xf32>
  %p = stablehlo.partition_id : tensor<ui32>
  %z = stablehlo.custom_call @SPMDShardToFullShape(%y) {mhlo.sharding = "{devices=[2]<=[2]}"}
    : (tensor<2xf32>) -> tensor<4xf32>
  return %z : tensor<4xf32>"""
PLAIN = "return %x : tensor<4xf32>"
# HLO of whole arrays, and what XLA's partitioner leaves of it, which says so by a name alone.
HLO = """HloModule m
ENTRY NAME { x = f32[4] parameter(0), sharding={devices=[2]<=[2]}  ROOT y = f32[4] negate(x) }"""


def gspmd(text: str, body: str = PLAIN) -> str:
    return SHARDING.replace("TEXT", text).replace("BODY", body)


@pytest.mark.parametrize(
    ("text", "sharded"),
    [
        (MESH.replace("BODY", PLAIN), True),
        (MESH.replace("BODY", MANUAL), True),
        (MESH.replace("BODY", GATHER), False),
        (MESH.replace('"d"=2', '"d"=1').replace("BODY", PLAIN), False),
        (gspmd("{devices=[2]<=[2]}"), True),
        (gspmd("{devices=[2]<=[2]}", BORDER), True),
        (gspmd("{devices=[2]<=[2]}", GATHER), False),
        (gspmd("{replicated}"), False),
        (HLO.replace("NAME", "e"), True),
        (HLO.replace("NAME", "e_spmd"), False),
    ],
    ids=[
        "a mesh",
        "a manual computation",
        "a mesh and communication",
        "a mesh of one",
        "a sharding",
        "a manual region",
        "a sharding and communication",
        "replicated",
        "HLO",
        "HLO behind the partitioner",
    ],
)
def test_programs_of_whole_arrays_are_to_be_cut(text: str, sharded: bool) -> None:
    module = hloforge.read(text).module
    assert is_sharded(module) is sharded
    assert uses_shardy(module) is ("sdy" in text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (MESH.replace("BODY", PLAIN), "<string>:1:1: error: the mesh @mesh names 2 devices"),
        (gspmd("{devices=[1,2]<=[2] last_tile_dim_replicate}"), "the sharding {devices=[1,2]<=[2] last"),
    ],
    ids=["shardy", "gspmd"],
)
def test_another_number_of_devices_is_refused(text: str, message: str) -> None:
    module = hloforge.read(text).module
    check_devices(module, Grid(1, 2))
    with pytest.raises(OptionError) as info:
        check_devices(module, Grid(1, 4))
    assert message in str(info.value)
    assert "--partitions=2" in info.value.hint


def test_replicas_of_a_sharded_program_are_refused() -> None:
    with pytest.raises(OptionError, match="on the partitions of one replica"):
        check_devices(hloforge.read(gspmd("{devices=[2]<=[2]}")).module, Grid(2, 2))
