"""decompose-single-replica: what remains of collectives when there is one replica."""

from __future__ import annotations

import numpy as np
import pytest

from hloforge.dialect.mlir import parse_module
from hloforge.pipelines.decompose.single_replica import DecomposeSingleReplica
from hloforge.pipelines.framework.manager import PassManager
from tests.engines import interpret

X = np.array([1.0, -2.0], np.float32)


def lowered(body: str, result: str = "tensor<2xf32>") -> object:
    module = parse_module(f"func.func @main(%x: tensor<2xf32>) -> {result} {{\n{body}\nreturn %r : {result}\n}}")
    PassManager([DecomposeSingleReplica()]).run(module)
    return module


ALL_REDUCE = """%r = "stablehlo.all_reduce"(%x) ({{
^bb0(%a: tensor<f32>, %b: tensor<f32>):
  %s = stablehlo.add %a, %b : tensor<f32>
  stablehlo.return %s : tensor<f32>
}}) {{replica_groups = dense<{groups}> : tensor<{shape}xi64>}} : (tensor<2xf32>) -> tensor<2xf32>"""


def test_all_reduce_of_one_replica_is_the_identity() -> None:
    np.testing.assert_array_equal(interpret(lowered(ALL_REDUCE.format(groups="0", shape="1x1")), X)[0], X)


def test_all_reduce_of_two_replicas_is_left() -> None:
    assert "all_reduce" in str(lowered(ALL_REDUCE.format(groups="[[0, 1]]", shape="1x2")))


def test_all_gather_that_grows_is_left() -> None:
    body = """%r = "stablehlo.all_gather"(%x) {all_gather_dim = 0 : i64, replica_groups = dense<0> : tensor<1x1xi64>}
      : (tensor<2xf32>) -> tensor<8xf32>"""
    assert "all_gather" in str(lowered(body, "tensor<8xf32>"))


@pytest.mark.parametrize(
    ("pairs", "expected"), [("dense<0> : tensor<1x2xi64>", X), ("dense<> : tensor<0x2xi64>", 0 * X)]
)
def test_collective_permute_receives_zeros_from_nobody(pairs: str, expected: np.ndarray) -> None:
    body = (
        f'%r = "stablehlo.collective_permute"(%x) {{source_target_pairs = {pairs}}} : (tensor<2xf32>) -> tensor<2xf32>'
    )
    np.testing.assert_array_equal(interpret(lowered(body), X)[0], expected)


@pytest.mark.parametrize(("member", "expected"), [(0, X), (1, 0 * X)])
def test_collective_broadcast_leaves_zeros_outside_its_groups(member: int, expected: np.ndarray) -> None:
    body = (
        f'%r = "stablehlo.collective_broadcast"(%x) {{replica_groups = dense<{member}> : tensor<1x1xi64>}} '
        ": (tensor<2xf32>) -> tensor<2xf32>"
    )
    np.testing.assert_array_equal(interpret(lowered(body), X)[0], expected)


@pytest.mark.parametrize("op", ["replica_id", "partition_id"])
def test_the_only_id_is_zero(op: str) -> None:
    (result,) = interpret(lowered(f"%r = stablehlo.{op} : tensor<ui32>", "tensor<ui32>"), X)
    assert result == 0
    assert result.dtype == np.uint32
