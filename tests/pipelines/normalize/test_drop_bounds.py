"""drop-bounds: types without bounds, a signature with them, and programs that run below their bound."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hloforge
from hloforge.dialect.mlir import parse_module
from hloforge.dialect.program import Signature
from hloforge.pipelines.framework.manager import PassManager
from hloforge.pipelines.normalize.drop_bounds import DropBounds
from tests.engines import interpret

BOUNDED = "tensor<?x3xf32, #stablehlo.bounds<5, ?>>"
PROGRAM = f"""func.func @main(%x: {BOUNDED}, %n: tensor<i32>) -> {BOUNDED} {{
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %r:2 = stablehlo.while(%i = %n, %y = %x) : tensor<i32>, {BOUNDED}
    cond {{ %c = stablehlo.compare GT, %i, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1>
            stablehlo.return %c : tensor<i1> }}
    do {{ %one = stablehlo.constant dense<1> : tensor<i32>
          %j = stablehlo.subtract %i, %one : tensor<i32>
          %z = stablehlo.add %y, %y : {BOUNDED}
          stablehlo.return %j, %z : tensor<i32>, {BOUNDED} }}
  return %r#1 : {BOUNDED} }}"""


def test_types_lose_their_bounds_and_the_signature_keeps_them() -> None:
    module = parse_module(PROGRAM)
    PassManager([DropBounds()]).run(module)
    assert "bounds" not in str(module)
    assert str(Signature.of(module)) == "(arg0: f32[<=5,3], arg1: s32[]) -> f32[<=5,3]"
    assert parse_module(str(module)) is not None


def test_a_module_without_bounds_stays_as_it_is() -> None:
    module = parse_module("func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> { return %x : tensor<?xf32> }")
    before = str(module)
    PassManager([DropBounds()]).run(module)
    assert str(module) == before


def test_set_dimension_size_stays_valid() -> None:
    module = parse_module("""func.func @main(%x: tensor<5xf32>, %n: tensor<i32>) -> tensor<i32> {
      %y = stablehlo.set_dimension_size %x, %n, dim = 0 : (tensor<5xf32>, tensor<i32>)
        -> tensor<?xf32, #stablehlo.bounds<5>>
      %z = stablehlo.get_dimension_size %y, dim = 0 : (tensor<?xf32, #stablehlo.bounds<5>>) -> tensor<i32>
      return %z : tensor<i32> }""")
    PassManager([DropBounds()]).run(module)
    assert module.operation.verify()
    assert "bounds" not in str(module)


WIDER, FLAT, LONGER = (
    "tensor<2x?x3xf32, #stablehlo.bounds<?, 5, ?>>",
    "tensor<?xf32, #stablehlo.bounds<15>>",
    "tensor<1x?x3xf32, #stablehlo.bounds<?, 5, ?>>",
)
NARROWER = "tensor<?x2xf32, #stablehlo.bounds<5, ?>>"


def test_operations_sized_by_their_result_take_the_sizes_of_their_operand() -> None:
    module = parse_module(f"""func.func @main(%x: {BOUNDED}) -> ({WIDER}, {FLAT}, {LONGER}, {NARROWER}) {{
      %a = stablehlo.broadcast_in_dim %x, dims = [1, 2] : ({BOUNDED}) -> {WIDER}
      %b = stablehlo.reshape %x : ({BOUNDED}) -> {FLAT}
      %c = stablehlo.reshape %x : ({BOUNDED}) -> {LONGER}
      %d = stablehlo.slice %x [0:5, 1:3] : ({BOUNDED}) -> {NARROWER}
      return %a, %b, %c, %d : {WIDER}, {FLAT}, {LONGER}, {NARROWER} }}""")
    PassManager([DropBounds()]).run(module)
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    expected = (np.broadcast_to(x, (2, 2, 3)), x.ravel(), x[None], x[:, 1:])
    for actual, value in zip(interpret(module, x), expected, strict=True):
        np.testing.assert_array_equal(actual, value)


_HLO = """HloModule m
less { a = f32[] parameter(0) b = f32[] parameter(1) c = f32[] parameter(2) d = f32[] parameter(3)
  ROOT r = pred[] compare(a, b), direction=LT }
both { a = f32[] parameter(0) b = f32[] parameter(1) c = f32[] parameter(2) d = f32[] parameter(3)
  e = f32[] add(a, c) f = f32[] maximum(b, d) ROOT t = (f32[], f32[]) tuple(e, f) }
plus { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
ENTRY e { x = f32[6,4] parameter(0) y = f32[6,4] parameter(1) n = s32[] parameter(2) z = f32[] constant(0)
  d = f32[<=6,4] set-dimension-size(x, n), dimensions={0}
  w = f32[4,6] transpose(y), dimensions={1,0} i = s32[6] iota(), iota_dimension=0
  di = s32[<=6] set-dimension-size(i, n), dimensions={0}
  {line}
}"""


@pytest.mark.wide(2)
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("s = f32[<=6,4] add(d, y)\n  ROOT r = s32[] get-dimension-size(s), dimensions={0}", lambda d, y: np.int32(3)),
        ("ROOT r = f32[<=6,4] clamp(y, d, x)", lambda d, y: np.minimum(np.maximum(y, d), d)),
        ("ROOT r = f32[4,4] dot(w, d), lhs_contracting_dims={1}, rhs_contracting_dims={0}", lambda d, y: y.T @ d),
        (
            "ROOT r = f32[<=6] dot(y, d), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={1}, "
            "rhs_contracting_dims={1}",
            lambda d, y: (y * d).sum(1),
        ),
        ("ROOT r = f32[<=6,8] concatenate(y, d), dimensions={1}", lambda d, y: np.concatenate([y, d], 1)),
        (
            "s = (f32[<=6,4], f32[<=6,4]) sort(d, y), dimensions={0}, to_apply=less\n"
            "  ROOT r = f32[<=6,4] get-tuple-element(s), index=1",
            lambda d, y: np.take_along_axis(y, d.argsort(0), 0),
        ),
        (
            "s = (f32[<=6], f32[<=6]) reduce(y, d, z, z), dimensions={1}, to_apply=both\n"
            "  ROOT r = f32[<=6] get-tuple-element(s), index=0",
            lambda d, y: y.sum(1),
        ),
        (
            "ROOT r = f32[6,4] scatter(y, di, x), update_window_dims={1}, inserted_window_dims={0}, "
            "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=plus",
            None,
        ),
    ],
)
def test_arrays_without_bound_are_read_as_far_as_bounded_ones(line: str, expected: Any) -> None:
    """As XLA's client has it, which gives buffers whose begin a dynamic result is."""
    x, y = (np.random.default_rng(seed).standard_normal((6, 4)).astype(np.float32) for seed in (1, 2))
    got = np.asarray(hloforge.compile(_HLO.replace("{line}", line).encode()).load()(x, y, np.int32(3)))
    want = expected(x[:3], y[:3]) if expected else np.concatenate([(x + y)[:3], y[3:]])
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
