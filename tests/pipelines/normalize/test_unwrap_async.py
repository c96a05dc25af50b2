"""unwrap-async: starts, updates and dones are their work."""

from __future__ import annotations

import numpy as np

import hloforge
from hloforge.dialect.mlir import parse_module
from hloforge.dialect.operations import operations
from hloforge.importers.reader import read
from hloforge.pipelines.framework.manager import PassManager
from hloforge.pipelines.normalize.normalization import normalize
from hloforge.pipelines.normalize.unwrap_async import UnwrapAsync
from tests.engines import interpret

X = np.array([1.5, -2.0], np.float32)


def test_start_update_done_and_copies() -> None:
    program = read("""work {
  q = f32[2] parameter(0)
  n = f32[2] negate(q)
  ROOT c = f32[2] subtract(n, q)
}

ENTRY main {
  x = f32[2] parameter(0)
  as = ((f32[2]), f32[2], s32[]) async-start(x), calls=work
  au = ((f32[2]), f32[2], s32[]) async-update(as)
  ad = f32[2] async-done(au)
  cs = (f32[2], f32[2], u32[]) copy-start(ad)
  cd = f32[2] copy-done(cs)
  ROOT r = f32[2] multiply(cd, x)
}""")
    assert operations(program.module, UnwrapAsync.removes)  # the copy; XLA's converter makes a function of it
    normalize(program.module)
    np.testing.assert_array_equal(interpret(program.module, X)[0], -2 * X * X)


def test_a_tuple_of_results() -> None:
    program = read("""work {
  q = f32[2] parameter(0)
  n = f32[2] negate(q)
  ROOT c = (f32[2], f32[2]) tuple(n, q)
}

ENTRY main {
  x = f32[2] parameter(0)
  as = ((f32[2]), (f32[2], f32[2]), s32[]) async-start(x), calls=work
  au = ((f32[2]), (f32[2], f32[2]), s32[]) async-update(as)
  ad = (f32[2], f32[2]) async-done(au)
  a = f32[2] get-tuple-element(ad), index=0
  b = f32[2] get-tuple-element(ad), index=1
  ROOT r = f32[2] multiply(a, b)
}""")
    normalize(program.module)
    np.testing.assert_array_equal(interpret(program.module, X)[0], -X * X)


def test_work_that_several_await_is_done_once() -> None:
    program = read("""ENTRY main {
  x = f32[2] parameter(0)
  s = (f32[2], f32[2], u32[], u32[]) collective-permute-start(x), source_target_pairs={{0,0}}, channel_id=1
  a = f32[2] collective-permute-done(s)
  b = f32[2] collective-permute-done(s)
  ROOT r = f32[2] add(a, b)
}""")
    PassManager([UnwrapAsync()]).run(program.module)
    (moved,) = operations(program.module, {"stablehlo.collective_permute"})
    assert len(list(moved.results[0].uses)) == 2


def test_a_start_that_orders_other_work() -> None:
    """HLO has an empty tuple where StableHLO's call has no result."""
    compute = hloforge.compile("""ENTRY main {
  x = f32[2] parameter(0)
  s = (f32[2], f32[2], u32[], u32[]) collective-permute-start(x), source_target_pairs={{0,0}}, channel_id=1
  n = f32[2] negate(x)
  t = () custom-call(s, n), custom_call_target="control_dep"
  d = f32[2] collective-permute-done(s)
  ROOT r = f32[2] multiply(d, n)
}""")
    np.testing.assert_array_equal(compute(X), -X * X)


def test_a_region_of_stablehlo() -> None:
    module = parse_module("""func.func @main(%x: tensor<4xf32>) -> tensor<2xf32> {
      %0 = "stablehlo.async_start"(%x) ({
      ^bb0(%y: tensor<4xf32>):
        %1 = stablehlo.slice %y [1:3] : (tensor<4xf32>) -> tensor<2xf32>
        "stablehlo.return"(%1) : (tensor<2xf32>) -> ()
      }) : (tensor<4xf32>) -> !stablehlo.future<tensor<2xf32>>
      %2 = "stablehlo.async_done"(%0) : (!stablehlo.future<tensor<2xf32>>) -> tensor<2xf32>
      return %2 : tensor<2xf32> }""")
    PassManager([UnwrapAsync()]).run(module)
    np.testing.assert_array_equal(interpret(module, np.arange(4, dtype=np.float32))[0], [1, 2])
