"""Operations of HLO dumps that have no form in StableHLO: judged by XLA's CPU client, or by numpy where it has none."""

from __future__ import annotations

import math
from typing import Any

import jax
import ml_dtypes
import numpy as np
import pytest
from jaxlib import xla_client

import hloforge
from hloforge.dialect.errors import UnregisteredError, UnsupportedError
from hloforge.dialect.mlir import _hlo, context, hlo_proto_to_stablehlo, ir

Array = np.ndarray[Any, Any]
X = np.linspace(-0.9, 0.9, 20, dtype=np.float32).reshape(4, 5)


def on_xla(text: str, *inputs: Array, calls: int = 1) -> list[list[Array]]:
    """The results of several calls of HLO text, loaded once."""
    bytecode = hlo_proto_to_stablehlo(_hlo.hlo_module_from_text(text).as_serialized_hlo_module_proto())
    with context():
        module = str(ir.Module.parse(bytecode))
    device = jax.devices("cpu")[0]
    loaded = device.client.compile_and_load(
        module.encode(), xla_client.DeviceList((device,)), xla_client.CompileOptions()
    )
    arguments = [jax.device_put(array, device) for array in inputs]
    executed = [loaded.execute_sharded(arguments).disassemble_into_single_device_arrays() for _ in range(calls)]
    return [[np.asarray(result[0]) for result in results] for results in executed]


def test_random_states_are_those_of_xla() -> None:
    """Each operation has one of 128 bits, which turns of a loop and calls advance, downwards as well."""
    text = """body {
      p = (s32[], u64[2]) parameter(0)
      i = s32[] get-tuple-element(p), index=0
      one = s32[] constant(1)
      next = s32[] add(i, one)
      state = u64[2] rng-get-and-update-state(), delta=3
      ROOT t = (s32[], u64[2]) tuple(next, state)
    }
    condition {
      p = (s32[], u64[2]) parameter(0)
      i = s32[] get-tuple-element(p), index=0
      four = s32[] constant(4)
      ROOT c = pred[] compare(i, four), direction=LT
    }
    ENTRY main {
      zero = s32[] constant(0)
      a = u64[2] rng-get-and-update-state(), delta=9223372036854775807
      b = u64[2] rng-get-and-update-state(), delta=-117520000
      start = (s32[], u64[2]) tuple(zero, a)
      loop = (s32[], u64[2]) while(start), condition=condition, body=body
      c = u64[2] get-tuple-element(loop), index=1
      ROOT t = (u64[2], u64[2], u64[2]) tuple(a, b, c)
    }"""
    loaded = hloforge.compile(text).load()
    expected = on_xla(text, calls=4)
    for results in expected:
        np.testing.assert_array_equal(np.stack(loaded()), np.stack(results))
    assert expected[3][0][1] == 1  # a carry has happened


def test_variables_beside_calls_of_libraries() -> None:
    """A comparator that nobody calls any more is dropped although the program has a variable."""
    text = """greater {
      p0 = f32[] parameter(0)
      p1 = f32[] parameter(1)
      p2 = s32[] parameter(2)
      p3 = s32[] parameter(3)
      ROOT c = pred[] compare(p0, p1), direction=GT
    }
    ENTRY main {
      x = f32[4,5] parameter(0)
      top = (f32[4,2], s32[4,2]) custom-call(x), custom_call_target="TopK", called_computations={greater}
      values = f32[4,2] get-tuple-element(top), index=0
      low = f32[] constant(1)
      high = f32[] constant(2)
      random = f32[4,2] rng(low, high), distribution=rng_uniform
      ROOT t = (f32[4,2], f32[4,2]) tuple(values, random)
    }"""
    values, random = hloforge.compile(text)(X)
    np.testing.assert_array_equal(values, X[:, :-3:-1])
    assert np.all((random >= 1) & (random < 2))


@pytest.mark.parametrize("starts", [[1, 2], [-4, 9]])
def test_vectors_of_starts(starts: list[int]) -> None:
    text = """ENTRY main {
      x = f32[4,5] parameter(0)
      u = f32[2,3] parameter(1)
      s = s32[2] parameter(2)
      read = f32[2,3] dynamic-slice(x, s), dynamic_slice_sizes={2,3}
      written = f32[4,5] dynamic-update-slice(x, u, s)
      ROOT t = (f32[2,3], f32[4,5]) tuple(read, written)
    }"""
    u = np.ones((2, 3), np.float32)
    read, written = hloforge.compile(text)(X, u, np.array(starts, np.int32))
    row, column = np.clip(starts, 0, [2, 2])
    expected = X.copy()
    expected[row : row + 2, column : column + 3] = u
    np.testing.assert_array_equal(read, X[row : row + 2, column : column + 3])
    np.testing.assert_array_equal(written, expected)


def test_calls_of_mhlo() -> None:
    """As XLA's exporter names operations of CHLO, with its first and its typed interface."""
    text = """ENTRY main {
      x = f32[4,5] parameter(0)
      a = f32[4,5] custom-call(x), custom_call_target="mhlo.erf"
      b = f32[4,5] custom-call(x), custom_call_target="mhlo.tan", backend_config="{}", api_version=API_VERSION_TYPED_FFI
      c = f32[4,5] custom-call(x), custom_call_target="chlo.acos"
      d = (f32[4,2], s32[4,2]) custom-call(x), custom_call_target="mhlo.topk", backend_config="{k = 2, largest = false}"
      e = (f32[4,2], s32[4,2]) custom-call(x), custom_call_target="mhlo.topk"
      ROOT t = (f32[4,5], f32[4,5], f32[4,5], (f32[4,2], s32[4,2]), (f32[4,2], s32[4,2])) tuple(a, b, c, d, e)
    }"""
    erf, tan, acos, smallest, largest = hloforge.compile(text)(X)
    wide = X.astype(np.float64)
    np.testing.assert_allclose(erf, np.vectorize(math.erf)(wide), rtol=1e-6)
    np.testing.assert_allclose(tan, np.tan(wide), rtol=1e-6)
    np.testing.assert_allclose(acos, np.arccos(wide), rtol=1e-6)
    np.testing.assert_array_equal(smallest[0], X[:, :2])
    np.testing.assert_array_equal(smallest[1], [[0, 1]] * 4)
    np.testing.assert_array_equal(largest[0], X[:, :-3:-1])
    np.testing.assert_array_equal(largest[1], [[4, 3]] * 4)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        ('f32[4,5] custom-call(x), custom_call_target="mhlo.nothing"', UnregisteredError, "@chlo.nothing"),
        (
            '(f32[4,2], s32[4,2]) custom-call(x), custom_call_target="mhlo.topk", backend_config="two"',
            UnsupportedError,
            "no dictionary of attributes",
        ),
    ],
)
def test_what_is_no_operation_of_mhlo_is_refused(call: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        hloforge.compile(f"ENTRY main {{\n  x = f32[4,5] parameter(0)\n  ROOT y = {call}\n}}")
    assert caught.value.location.line == 3  # type: ignore[attr-defined]


def test_rounding_by_random_bits() -> None:
    """Up to the ends of the integers, and for both widths of random bits."""
    text = """ENTRY main {
      x = f32[512] parameter(0)
      r = u32[512] parameter(1)
      h = bf16[512] parameter(2)
      s = u16[512] parameter(3)
      a = s8[512] stochastic-convert(x, r)
      b = s32[512] stochastic-convert(x, r)
      c = s16[512] stochastic-convert(h, s)
      ROOT t = (s8[512], s32[512], s16[512]) tuple(a, b, c)
    }"""
    rng = np.random.default_rng(0)
    x = (rng.uniform(-140, 140, 512)).astype(np.float32)
    x[:8] = [0, -0.0, 0.5, -0.5, np.inf, -np.inf, 3e9, -3e9]
    bits = rng.integers(0, 2**32, 512, dtype=np.uint32)
    inputs = [x, bits, x.astype(ml_dtypes.bfloat16), bits.astype(np.uint16)]
    (expected,) = on_xla(text, *inputs)
    for result, reference in zip(hloforge.compile(text)(*inputs), expected, strict=True):
        np.testing.assert_array_equal(result, reference)


@pytest.mark.parametrize("element", ["f8e4m3fn", "bf16"])
def test_products_of_scaled_blocks(element: str) -> None:
    """As JAX's function of the same name, run by XLA."""
    text = f"""ENTRY main {{
      x = {element}[2,4,64] parameter(0)
      y = {element}[2,64,6] parameter(1)
      a = f8e8m0fnu[2,4,2] parameter(2)
      b = f8e8m0fnu[2,2,6] parameter(3)
      ROOT z = f32[2,4,6] scaled-dot(x, y, a, b),
        lhs_batch_dims={{0}}, rhs_batch_dims={{0}}, lhs_contracting_dims={{2}}, rhs_contracting_dims={{1}}
    }}"""
    rng = np.random.default_rng(0)
    dtype = ml_dtypes.float8_e4m3fn if element.startswith("f8") else ml_dtypes.bfloat16
    x, y = (rng.standard_normal(shape).astype(dtype) for shape in ((2, 4, 64), (2, 64, 6)))
    a, b = ((2.0 ** rng.integers(-3, 4, shape)).astype(ml_dtypes.float8_e8m0fnu) for shape in ((2, 4, 2), (2, 2, 6)))
    numbers = (((2,), (1,)), ((0,), (0,)))
    expected = jax.lax.scaled_dot(
        x, y, lhs_scale=a, rhs_scale=b, dimension_numbers=numbers, preferred_element_type=np.float32
    )
    np.testing.assert_allclose(hloforge.compile(text)(x, y, a, b), expected, rtol=1e-6, atol=1e-4)


def test_padding_of_dynamic_sizes() -> None:
    """As XLA's pass ``DynamicPadder`` writes them; its CPU client does not take them back."""
    text = """ENTRY main {
      x = f32[<=4,5] parameter(0)
      padded = (f32[4,5], s32[], s32[]) custom-call(x), custom_call_target="PadToStatic"
      v = f32[4,5] get-tuple-element(padded), index=0
      n = s32[] get-tuple-element(padded), index=1
      m = s32[] get-tuple-element(padded), index=2
      w = f32[4,5] add(v, v)
      y = f32[<=4,5] custom-call(w, n, m), custom_call_target="SliceToDynamic"
      ROOT t = (f32[4,5], f32[<=4,5], s32[], s32[]) tuple(v, y, n, m)
    }"""
    padded, doubled, rows, columns = hloforge.compile(text)(X[:3])
    np.testing.assert_array_equal(padded[:3], X[:3])
    np.testing.assert_array_equal(doubled, 2 * X[:3])
    assert (padded.shape, int(rows), int(columns)) == ((4, 5), 3, 5)


def test_products_of_8_bit_floats_by_cublas() -> None:
    """The call reads the numbers, and not the bytes that IREE gets for them."""
    config = (
        '{"gemm_backend_config":{"alpha_real":1,"alpha_imag":0,"beta":0,"epilogue":"DEFAULT","dot_dimension_numbers":'
        '{"lhs_contracting_dimensions":["1"],"rhs_contracting_dimensions":["1"]}}}'
    )
    text = f"""ENTRY main {{
      x = f8e4m3fn[16,32] parameter(0)
      y = f8e4m3fn[16,32] parameter(1)
      s = f32[] parameter(2)
      ROOT z = (f32[16,16], s8[64]) custom-call(x, y, s, s),
        custom_call_target="__cublas$lt$matmul$f8", backend_config={config}
    }}"""
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal((16, 32)).astype(ml_dtypes.float8_e4m3fn) for _ in range(2))
    product, _ = hloforge.compile(text)(x, y, np.float32(0.5))
    np.testing.assert_allclose(product, 0.25 * x.astype(float) @ y.astype(float).T, rtol=1e-5, atol=1e-5)


def test_constants_of_tuple_shape() -> None:
    """XLA's converter to StableHLO refuses them: judged by XLA's own parser, whose literals these are."""
    text = """HloModule m
    cond {
      s = (s32[], (f32[2], pred[])) parameter(0)
      i = s32[] get-tuple-element(s), index=0
      n = s32[] constant(3)
      ROOT c = pred[] compare(i, n), direction=LT
    }
    body {
      s = (s32[], (f32[2], pred[])) parameter(0)
      i = s32[] get-tuple-element(s), index=0
      inner = (f32[2], pred[]) get-tuple-element(s), index=1
      x = f32[2] get-tuple-element(inner), index=0
      p = pred[] get-tuple-element(inner), index=1
      one = s32[] constant(1)
      j = s32[] add(i, one)
      y = f32[2] add(x, x)
      q = pred[] not(p)
      next = (f32[2], pred[]) tuple(y, q)
      ROOT t = (s32[], (f32[2], pred[])) tuple(j, next)
    }
    ENTRY main {
      init = (s32[], (f32[2], pred[])) constant((0, ({1, -2.5}, false)))
      none = () constant(())
      ROOT w = (s32[], (f32[2], pred[])) while(init), condition=cond, body=body
    }"""
    count, (doubled, flag) = hloforge.compile(text)()
    assert count == 3 and flag
    np.testing.assert_array_equal(doubled, np.float32([8, -20]))


def test_a_tuple_constant_of_a_scheduled_module() -> None:
    """Its schedule lacks the instructions that take the constant's place."""
    text = """HloModule m, is_scheduled=true
    ENTRY main {
      x = f32[2] parameter(0)
      c = (f32[], f32[2]) constant((1, {2, 3}))
      v = f32[2] get-tuple-element(c), index=1
      ROOT r = f32[2] add(x, v)
    }"""
    np.testing.assert_array_equal(hloforge.compile(text)(np.float32([0.5, -4])), np.float32([2.5, -1]))


def test_buffers_are_their_arrays() -> None:
    """Pinned, carried by a loop, unpinned; and one that is created."""
    text = """body {
      p = (s32[], b(f32[4])) parameter(0)
      i = s32[] get-tuple-element(p), index=0
      b = b(f32[4]) get-tuple-element(p), index=1
      one = s32[] constant(1)
      next = s32[] add(i, one)
      x = f32[4] custom-call(b), custom_call_target="Unpin", output_to_operand_aliasing={{}: (0, {})}
      y = f32[4] add(x, x)
      c = b(f32[4]) custom-call(y), custom_call_target="Pin", output_to_operand_aliasing={{}: (0, {})}
      ROOT t = (s32[], b(f32[4])) tuple(next, c)
    }
    condition {
      p = (s32[], b(f32[4])) parameter(0)
      i = s32[] get-tuple-element(p), index=0
      three = s32[] constant(3)
      ROOT c = pred[] compare(i, three), direction=LT
    }
    ENTRY main {
      x = f32[4] parameter(0)
      zero = s32[] constant(0)
      b = b(f32[4]) custom-call(x), custom_call_target="Pin", output_to_operand_aliasing={{}: (0, {})}
      start = (s32[], b(f32[4])) tuple(zero, b)
      loop = (s32[], b(f32[4])) while(start), condition=condition, body=body
      c = b(f32[4]) get-tuple-element(loop), index=1
      y = f32[4] custom-call(c), custom_call_target="Unpin", output_to_operand_aliasing={{}: (0, {})}
      n = b(f32[4]) custom-call(), custom_call_target="CreateBuffer", api_version=API_VERSION_TYPED_FFI
      z = f32[4] custom-call(n), custom_call_target="Unpin", output_to_operand_aliasing={{}: (0, {})}
      ROOT t = (f32[4], f32[4]) tuple(y, z)
    }"""
    x = np.arange(4, dtype=np.float32)
    y, z = hloforge.load(hloforge.compile(("HloModule m\n" + text).encode()))(x)
    np.testing.assert_array_equal(y, 8 * x)
    assert z.shape == (4,)


def test_collectives_of_several_arrays() -> None:
    text = b"""HloModule m, is_scheduled=true, replica_count=2
plus { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }
ENTRY e {
  p = f32[2] parameter(0)
  q = bf16[3] parameter(1)
  r = f32[2] negate(p)
  gs = ((f32[2], bf16[3]), (f32[4], bf16[6])) all-gather-start(p, q), dimensions={0}, replica_groups={{0,1}}
  gd = (f32[4], bf16[6]) all-gather-done(gs)
  rs = (f32[2], f32[2]) all-reduce-start(p, r), to_apply=plus, replica_groups={{0,1}}
  rd = (f32[2], f32[2]) all-reduce-done(rs)
  cs = ((f32[2], f32[2]), (f32[2], f32[2]), u32[], u32[]) collective-permute-start(p, r),
    source_target_pairs={{0,1},{1,0}}
  cd = (f32[2], f32[2]) collective-permute-done(cs)
  sd = (f32[2], f32[2]) collective-permute(p, r), source_target_pairs={{0,1},{1,0}}
  ROOT t = ((f32[4], bf16[6]), (f32[2], f32[2]), (f32[2], f32[2]), (f32[2], f32[2])) tuple(gd, rd, cd, sd)
}"""
    p = np.array([[1, 2], [3, 5]], np.float32)
    q = np.arange(6).reshape(2, 3).astype(ml_dtypes.bfloat16)
    gathered, reduced, *permuted = hloforge.replicate(text, replicas=2)(p, q)
    for got, want in zip(gathered, (p, q), strict=True):
        np.testing.assert_array_equal(got, np.stack([want.reshape(-1)] * 2))
    for got, sign in zip(reduced, (1, -1), strict=True):
        np.testing.assert_array_equal(got, sign * np.stack([p.sum(0)] * 2))
    for pair in permuted:
        for got, sign in zip(pair, (1, -1), strict=True):
            np.testing.assert_array_equal(got, sign * p[::-1])
