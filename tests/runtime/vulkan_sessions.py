"""Sessions on Vulkan, by Mesa's lavapipe: arguments, results, device arrays, donation, host functions, limits.

``test_vulkan.py`` runs them in a process of their own.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hloforge
from hloforge.dialect.errors import LoadError, UnsupportedError
from hloforge.runtime.devices import devices
from tests import device_checks
from tests.support_vulkan import TARGET

_AFFINE = """
func.func @main(%x: tensor<3x4xf32>, %y: tensor<3x4xf32>) -> (tensor<3x4xf32>, tensor<3x4xf32>) {
  %0 = stablehlo.multiply %x, %y : tensor<3x4xf32>
  return %0, %x : tensor<3x4xf32>, tensor<3x4xf32>
}
"""
_ROW = np.arange(128) % 5
_X = np.arange(12, dtype=np.float32).reshape(3, 4)
_Y = np.full((3, 4), 2, np.float32)


def _compiled(source: object, **options: object) -> hloforge.Executable:
    return hloforge.compile(source, target=TARGET, cache=False, **options)


@pytest.fixture(scope="module")
def affine() -> hloforge.Session:
    return _compiled(_AFFINE).load(deadline=60)


def test_results_are_arrays_of_the_host(affine: hloforge.Session) -> None:
    product, same = affine(_X, _Y)
    np.testing.assert_array_equal(product, _X * 2)
    np.testing.assert_array_equal(same, _X)
    product[...] = 0
    np.testing.assert_array_equal(affine(_X, _Y)[0], _X * 2)


def test_the_target_chooses_the_device(affine: hloforge.Session) -> None:
    assert affine.device == "vulkan"
    assert devices.apart(devices.device("vulkan")) is devices.device("vulkan")
    assert devices.apart(devices.device("local-sync")) is None


def test_device_arrays_stay_and_return(affine: hloforge.Session) -> None:
    product, same = affine.call_device(_X, _Y)
    again, _ = affine.call_device(product, same)
    np.testing.assert_array_equal(np.asarray(again), _X * 2 * _X)
    np.testing.assert_array_equal(np.asarray(affine.put(_Y, 1)), _Y)


def test_arrays_cross_between_devices(affine: hloforge.Session) -> None:
    on_processor = hloforge.compile(_AFFINE, cache=False).load()
    product, _ = affine.call_device(_X, _Y)
    np.testing.assert_array_equal(on_processor(product, _Y)[0], _X * 4)
    product, _ = on_processor.call_device(_X, _Y)
    np.testing.assert_array_equal(affine(product, _Y)[0], _X * 4)


def test_donation_keeps_what_is_still_seen() -> None:
    device_checks.donation_keeps_what_is_still_seen(TARGET)


def test_functions_of_the_host_see_and_return_arrays() -> None:
    device_checks.functions_of_the_host_see_and_return_arrays(TARGET)


def test_drivers_do_not_cancel_roundings() -> None:
    """(a + b) - b is a to a driver that takes floats for real numbers."""
    big = np.float32(1.5 * 2**23)
    session = _compiled(jax.jit(lambda x: (x + big) - big).lower(_X / 8)).load(deadline=60)
    np.testing.assert_array_equal(session(_X / 8), (_X / 8 + big) - big)


def test_logarithms_of_subnormal_numbers_are_those_of_xla() -> None:
    x = np.array([0, 1e-40, -1e-40, 1.2e-38, 3], np.float32)
    function = jax.jit(lambda v: jnp.log(v) + jnp.log(v.astype(jnp.bfloat16)))
    session = _compiled(function.lower(x)).load(deadline=60)
    np.testing.assert_allclose(session(x), function(x), rtol=1e-2)


def test_what_one_dispatch_hands_on() -> None:
    """IREE leaves barriers out between what is computed in a workgroup's memory and what reads it."""

    def f(x: jax.Array, y: jax.Array, z: jax.Array) -> tuple[jax.Array, ...]:
        wide = [v.astype(jnp.float32) * 0.5 + 1 for v in (x, y)]
        return (
            wide[0] @ wide[1],
            ((x + 1) @ (y + 1)).astype(jnp.float32),
            (x > 3).astype(jnp.float32) @ (y > 3).astype(jnp.float32),
            jax.lax.reduce_window(wide[1], 0.0, jax.lax.add, (3, 3), (1, 1), "VALID"),
            (x[:, :5] + x[:, :5].T).astype(jnp.float32),
            z - z.max(0),
        )

    rng = np.random.default_rng(0)
    x, y = (jnp.asarray(rng.integers(0, 7, shape), jnp.bfloat16) for shape in ((5, 7), (7, 9)))
    z = jnp.asarray(rng.integers(0, 99, (9, 33)), jnp.float32)
    session = _compiled(jax.jit(f).lower(x, y, z)).load(deadline=120)
    for got, want in zip(session(*map(np.asarray, (x, y, z))), f(x, y, z), strict=True):
        np.testing.assert_array_equal(got, want)


def test_products_of_16_bits() -> None:
    """IREE has no SPIR-V for bf16 in products of sizes like these."""

    def f(*x: jax.Array) -> list[jax.Array]:
        return [jnp.maximum(v @ v.T, 0) for v in x]

    rng = np.random.default_rng(0)
    x = [jnp.asarray(rng.integers(-2, 3, (16, 32)), element) for element in (jnp.bfloat16, jnp.float16)]
    session = _compiled(jax.jit(f).lower(*x)).load(deadline=120)
    for got, want in zip(session(*map(np.asarray, x)), f(*x), strict=True):
        np.testing.assert_array_equal(got.astype(np.float32), want.astype(np.float32))


def test_what_iree_has_no_spirv_for() -> None:
    """Rows and constants of bf16, unsigned divisions; and products of groups, which idle invocations summed again."""

    def f(x: jax.Array, n: jax.Array, image: jax.Array, kernel: jax.Array) -> tuple[jax.Array, ...]:
        scores = jnp.exp(x - x.max(1, keepdims=True)) + jnp.asarray(_ROW, jnp.bfloat16)
        convolved = jax.lax.conv_general_dilated(
            image, kernel, (1,), "VALID", feature_group_count=2, dimension_numbers=("NWC", "WIO", "NWC")
        )
        return scores.astype(jnp.float32), n % jnp.full(n.shape, 7, n.dtype) + n, convolved

    rng = np.random.default_rng(0)
    x = jnp.asarray(rng.integers(-2, 3, (12, 128)), jnp.bfloat16)
    n = jnp.arange(201, 209, dtype=jnp.uint8)
    image, kernel = (jnp.asarray(rng.integers(-3, 4, shape), jnp.float32) for shape in ((2, 9, 4), (3, 2, 6)))
    session = _compiled(jax.jit(f).lower(x, n, image, kernel)).load(deadline=120)
    got = session(*map(np.asarray, (x, n, image, kernel)))
    want = f(x, n, image, kernel)
    np.testing.assert_allclose(got[0], want[0], rtol=2**-7)
    for one, other in zip(got[1:], want[1:], strict=True):
        np.testing.assert_array_equal(one, other)


def test_complex_numbers() -> None:
    """IREE has no SPIR-V for constants of unequal ones, nor for products with a vector."""
    rng = np.random.default_rng(0)
    x, y = ((rng.integers(-9, 9, n) + 1j * rng.integers(-9, 9, n)).astype(np.complex64) for n in ((64, 64), 64))
    function = jax.jit(lambda a, b: (a @ b, b * y))
    session = _compiled(function.lower(x, y)).load(deadline=60)
    for got, want in zip(session(x, y), function(x, y), strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("kind", ["i1", "u2", "i8", "u8"])
def test_leading_zeros_of_other_widths_than_spirvs(kind: str) -> None:
    bits = 8 * np.dtype(kind).itemsize
    values = [0, *(2**k for k in range(bits)), *(2**k - 1 for k in range(1, bits + 1))]
    x = np.array(values, f"u{bits // 8}").view(kind)
    element = f"{'u' if kind[0] == 'u' else ''}i{bits}"
    tensor = f"tensor<{len(values)}x{element}>"
    body = f"%r = stablehlo.count_leading_zeros %x : {tensor} return %r : {tensor}"
    session = _compiled(f"func.func @main(%x: {tensor}) -> {tensor} {{ {body} }}").load(deadline=60)
    np.testing.assert_array_equal(session(x), np.array([bits - value.bit_length() for value in values], kind))


@pytest.mark.parametrize("axis", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_loops_beyond_lavapipes_limit(axis: int) -> None:
    x = np.ones((70_001, 3) if axis == 0 else (3, 70_001), np.int32)
    session = _compiled(jax.jit(lambda v: v.sum(axis)).lower(x)).load(deadline=120)
    np.testing.assert_array_equal(session(x), [70_001] * 3)


def test_loops_wait_for_what_they_read() -> None:
    """A sorting network is a loop of dispatches, one recording for all its turns: ``habits`` 920072."""
    rng = np.random.default_rng(3)
    for size in (5, 7):
        x, y = rng.integers(-9, 9, size).astype(np.int32), rng.normal(size=size).astype(np.float32)
        lowered = jax.jit(lambda x, y: jax.lax.sort((x, y), num_keys=1, is_stable=True)).lower(x, y)
        session = _compiled(lowered).load(deadline=60)
        order = np.argsort(x, kind="stable")
        for _ in range(3):
            for found, given in zip(session(x, y), (x, y), strict=True):
                np.testing.assert_array_equal(found, given[order])


def test_threads_read_with_steps() -> None:
    """IREE forgets steps of what it shares out among the threads of a workgroup."""

    def function(x: jax.Array) -> tuple[jax.Array, ...]:
        outer = x[::2, 0][:, None] * x[::2, 1]
        return x[::2].sum(0), x[:, ::2].sum(1), outer, (x[1::3] * 2).max(0), x[::2] @ x[:8].T, jnp.cumsum(x[::2], 0)

    x = np.arange(48, dtype=np.float32).reshape(16, 3) % 7
    lowered = jax.jit(function).lower(x)
    for found, expected in zip(_compiled(lowered).load(deadline=60)(x), jax.jit(function)(x), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_results_that_are_parts_of_arrays() -> None:
    """IREE wrote vectors into a part as if it began at a multiple of 16 bytes: ``jax`` 990006."""

    def function(flags: jax.Array, x: jax.Array) -> tuple[jax.Array, ...]:
        update = jax.lax.dynamic_update_slice(jnp.zeros(2000, x.dtype), x * 2, (7,))
        return jnp.cumsum(flags.astype(jnp.int32)), update, jnp.concatenate([x[:3] * 2, x + 1])

    given = np.random.default_rng(0).random(384) < 0.1, np.arange(1024, dtype=np.int32)
    session = _compiled(jax.jit(function).lower(*given)).load(deadline=60)
    for found, expected in zip(session(*given), jax.jit(function)(*given), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_sums_of_negated_floats() -> None:
    """IREE has no SPIR-V for what it makes differences of."""

    def function(x: jax.Array) -> tuple[jax.Array, ...]:
        return (-x).sum(1), (-x.reshape(-1)[:64]).sum(), (-x.astype(jnp.int32)).sum(0)

    x = np.arange(16 * 64, dtype=np.float32).reshape(16, 64) - 300
    session = _compiled(jax.jit(function).lower(x)).load(deadline=60)
    for found, expected in zip(session(x), jax.jit(function)(x), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_sums_along_dimensions_that_are_apart() -> None:
    """IREE has no SPIR-V for two of which the last one is no whole vectors."""

    def function(x: jax.Array) -> tuple[jax.Array, ...]:
        return x.sum((0, 2)), x[:, 0].max(0), (x[:, :, None] * x[:, None]).sum((0, 3))

    x = np.arange(16 * 25, dtype=np.float32).reshape(16, 5, 5) % 17 - 8
    session = _compiled(jax.jit(function).lower(x)).load(deadline=60)
    for found, expected in zip(session(x), jax.jit(function)(x), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_windows_over_whole_arrays() -> None:
    """IREE has no SPIR-V for one that is an array of three dimensions."""

    def function(x: jax.Array) -> tuple[jax.Array, ...]:
        half = x.astype(jnp.bfloat16)
        sums = jax.lax.reduce_window(x, 0.0, jax.lax.add, (2, 2, 2), (1, 1, 1), "VALID")
        largest = jax.lax.reduce_window(half[:1], -jnp.inf, jax.lax.max, (2, 2, 2), (1,) * 3, ((1, 0), (0, 0), (0, 0)))
        return sums, largest.astype(jnp.float32)

    x = np.arange(8, dtype=np.float32).reshape(2, 2, 2) - 3
    session = _compiled(jax.jit(function).lower(x)).load(deadline=60)
    for found, expected in zip(session(x), jax.jit(function)(x), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_rows_are_spread_by_steps() -> None:
    """An associative scan joins even and odd elements; IREE has no SPIR-V where some are one computed row."""

    def function(x: jax.Array, y: jax.Array) -> tuple[jax.Array, ...]:
        scanned = jax.lax.associative_scan(lambda a, b: (a[0] * b[0] % 7, jnp.minimum(a[1], b[1])), (x, y), axis=1)
        row = jax.lax.pad(jnp.minimum(x, y)[:, :1], 0, [(1, 2, 1), (1, 0, 1)])
        return *scanned, row

    given = [np.random.default_rng(seed).integers(-4, 5, (8, 5)).astype(np.int32) for seed in (0, 1)]
    session = _compiled(jax.jit(function).lower(*given)).load(deadline=60)
    for found, expected in zip(session(*given), jax.jit(function)(*given), strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("shape", [(64, 8), (256, 24), (2, 64, 8)])
def test_columns_that_are_read_again(shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(2).standard_normal(shape).astype(np.float32)

    def function(x: jax.Array) -> jax.Array:
        return jax.nn.softmax(x, len(shape) - 2)

    np.testing.assert_allclose(_compiled(jax.jit(function).lower(x)).load()(x), function(x), rtol=1e-5)


def test_reductions_of_dimensions_that_are_apart() -> None:
    """Of three dimensions that IREE deals out to threads, the first was read at 0 only: ``habits`` 970022."""

    def function(x: jax.Array, y: jax.Array, row: jax.Array) -> tuple[jax.Array, ...]:
        half = x.astype(jnp.bfloat16)
        return (
            x.sum((0, 2, 4)),
            x - x.max((0, 2, 4), keepdims=True),
            half.sum((0, 2, 4)).astype(jnp.float32),
            (x > 2).all((0, 2, 4)),
            (y * y.transpose(0, 2, 1, 3)).sum((1, 2, 3)),
            (y * row[:, None]).min((1, 2, 3)),
            jnp.einsum("dabc,ab,ac->", y, y[0, :, :, 0], y[1, :, 0]),
        )

    rng = np.random.default_rng(0)
    shapes = (2, 3, 2, 3, 2), (3, 2, 2, 16), (2,)
    given = [rng.integers(-4, 5, shape).astype(np.float32) for shape in shapes]
    lowered = jax.jit(function).lower(*given)
    session = _compiled(lowered).load(deadline=60)
    for found, expected in zip(session(*given), jax.jit(function)(*given), strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("shape", [(16,), (8, 64), (2, 8, 8)])
def test_reductions_of_what_indices_choose(shape: tuple[int, ...]) -> None:
    """Losses over classes, masks of attention: ``jax`` 995012, 995023."""

    def function(x: jax.Array, labels: jax.Array) -> tuple[jax.Array, ...]:
        places = jax.lax.broadcasted_iota(jnp.int32, shape, len(shape) - 1)
        chosen = jnp.where(labels == places, x, 0)
        first = jax.lax.broadcasted_iota(jnp.int32, shape, 0)
        masked = jax.nn.softmax(jnp.where(first + 2 >= places, x, -1e9), -1)
        return chosen.sum(), chosen.sum(-1), x / (8 * (1 + x.max())) + 2 * (labels == places), masked, x.argmax(-1)

    rng = np.random.default_rng(0)
    given = rng.integers(1, 9, shape).astype(np.float32), rng.integers(0, shape[-1], shape, np.int32)
    session = _compiled(jax.jit(function).lower(*given)).load(deadline=60)
    for found, expected in zip(session(*given), jax.jit(function)(*given), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_reductions_of_dimensions_that_are_apart_in_arrays_of_any_size() -> None:
    sizes = "tensor<2x?x2x3x2xf32>"
    session = _compiled(f"""
func.func @main(%x: {sizes}) -> tensor<?x3xf32> {{
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %r = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0, 2, 4]
    : ({sizes}, tensor<f32>) -> tensor<?x3xf32>
  return %r : tensor<?x3xf32>
}}""").load(deadline=60)
    for size in (1, 4):
        x = np.random.default_rng(size).integers(-4, 5, (2, size, 2, 3, 2)).astype(np.float32)
        np.testing.assert_array_equal(session(x), x.astype(np.float64).sum((0, 2, 4)))


def test_nested_loops_of_int4_that_begin_alike() -> None:
    """Loops of known length, both of whose carries begin as one array: ``habits`` 920020."""

    def function(x: jax.Array, row: jax.Array) -> tuple[jax.Array, ...]:
        def inner(n: jax.Array, c: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
            a, b = c
            return b, jax.lax.dynamic_update_slice(a, jax.lax.dynamic_slice(b, (n, 0), (1, 4)), (n + 1, 0))

        def outer(n: jax.Array, c: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
            a, b = jax.lax.fori_loop(0, 1, lambda m, d: inner(n + m, d), c)
            return jax.lax.dynamic_update_slice(b, row, (n, 0)), a

        return *jax.lax.fori_loop(0, 3, outer, (x, x)), x

    numbers = np.random.default_rng(4).integers(-8, 8, (5, 4))
    given = jnp.asarray(numbers[:4], "int4"), jnp.asarray(numbers[4:], "int4")
    session = _compiled(jax.jit(function).lower(*given)).load(deadline=60)
    for found, expected in zip(session(*map(np.asarray, given)), jax.jit(function)(*given), strict=True):
        np.testing.assert_array_equal(np.asarray(found).astype(int), np.asarray(expected).astype(int))


def test_windows_that_no_shader_reads_are_refused() -> None:
    x, kernel = (jax.ShapeDtypeStruct((1, 1, n, n), np.float32) for n in (6000, 5900))
    program = jax.jit(lambda a, k: jax.lax.conv(a, k, (1, 1), "VALID")).lower(x, kernel)
    with pytest.raises(UnsupportedError, match=r"convolution.*128 MiB \(maxStorageBufferRange\)"):
        _compiled(program)


def test_a_device_that_is_not_there() -> None:
    with pytest.raises(LoadError, match="vulkan://GPU-00"):
        _compiled(_AFFINE).load(device="vulkan://GPU-00")


def test_tensorflow_is_refused_beside_lavapipe() -> None:
    devices.device("vulkan")
    with pytest.raises(ImportError, match="cannot be loaded into a process that runs Vulkan by Mesa's lavapipe"):
        import hloforge.tensorflow  # noqa: F401
