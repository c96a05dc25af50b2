"""lower-collectives: what the host is told; what it computes is judged where programs run."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import hloforge
from hloforge.dialect.errors import UnsupportedError
from hloforge.dialect.host_calls import attributes_of
from hloforge.dialect.mlir import parse_module
from hloforge.dialect.operations import operations, string_attribute
from hloforge.pipelines.framework.manager import PassManager
from hloforge.pipelines.replicas.grid import Grid, set_grid
from hloforge.pipelines.replicas.lower_collectives import LowerCollectives
from tests.pipelines.replicas.test_fold import CHANNEL, groups, plain, program, reducing


def calls(text: str, replicas: int, partitions: int = 1) -> list[tuple[str, dict[str, Any]]]:
    """The host functions that a program calls, with what it tells them."""
    module = parse_module(text)
    set_grid(module, Grid(replicas, partitions))
    PassManager([LowerCollectives()]).run(module)
    found = operations(module, {"stablehlo.custom_call"})
    return [(string_attribute(op, "call_target_name"), attributes_of(op.attributes["backend_config"])) for op in found]


def test_groups_are_devices_of_the_grid() -> None:
    ((target, what),) = calls(reducing("all_reduce", f"{groups([1, 0])}, {CHANNEL}"), 2, 2)
    assert target == "hloforge.gather"
    assert what["groups"].tolist() == [[2, 0, 3, 1]]
    assert what["grid"].tolist() == [[2, 2]]
    assert (what["operation"], what["channel"], what["number"]) == ("all_reduce", 3, 0)


def test_short_groups_are_filled_up() -> None:
    ((_, what),) = calls(reducing("all_reduce", groups([1, 0], [2, -1])), 3)
    assert what["groups"].tolist() == [[1, 0], [2, -1]]


def test_a_move_names_the_source_of_each_device() -> None:
    permuted = plain("collective_permute", "source_target_pairs = dense<[[0, 1], [2, 0]]> : tensor<2x2xi64>")
    ((target, what),) = calls(permuted, 3)
    assert (target, what["sources"].tolist()) == ("hloforge.move", [[2, 0, -1]])
    ((target, what),) = calls(plain("collective_broadcast", groups([2, 1])), 3)
    assert (target, what["sources"].tolist()) == ("hloforge.move", [[-1, 2, 2]])


def test_operations_have_numbers_of_their_own() -> None:
    body = """%p = "stablehlo.all_gather"(%x) {all_gather_dim = 0 : i64, GROUPS} : (tensor<4x6xf32>) -> tensor<8x6xf32>
%q = "stablehlo.all_gather"(%x) {all_gather_dim = 0 : i64, GROUPS} : (tensor<4x6xf32>) -> tensor<8x6xf32>
%r = stablehlo.add %p, %q : tensor<8x6xf32>""".replace("GROUPS", groups([0, 1]))
    assert [what["number"] for _, what in calls(program(body, "tensor<8x6xf32>"), 2)] == [0, 1]


def test_one_device_calls_nobody() -> None:
    assert calls(reducing("all_reduce", groups([0])), 1) == []


def test_groups_have_to_fit_the_grid() -> None:
    with pytest.raises(UnsupportedError, match="it names replica 1") as caught:
        calls(reducing("all_reduce", f"{groups([0, 1])}, {CHANNEL}"), 1, 2)
    assert "--replicas" in caught.value.hint


@pytest.mark.parametrize("size", [24, 1 << 17])
def test_sums_of_bf16_are_rounded_once(size: int) -> None:
    """As in XLA's CPU client, in small collectives and in those that are made in parts."""
    text = f"""HloModule m
plus {{ a = bf16[] parameter(0)
  b = bf16[] parameter(1)
  ROOT c = bf16[] add(a, b) }}
ENTRY e {{ x = bf16[{size}] parameter(0)
  ROOT r = bf16[{size}] all-reduce(x), to_apply=plus, replica_groups={{{{0,1,2}}}} }}"""
    x = np.random.default_rng(0).normal(size=(3, size)).astype(ml_dtypes.bfloat16)
    got = hloforge.replicate(text.encode(), replicas=3)(x)
    want = x.astype(np.float32).sum(0).astype(ml_dtypes.bfloat16)
    np.testing.assert_array_equal(got, np.stack([want] * 3))
