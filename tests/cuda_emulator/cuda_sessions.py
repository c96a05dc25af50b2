"""Sessions on CUDA devices, of which the emulator has two: results, memory, DLPack, threads, models.

``test_cuda_sessions.py`` runs them in a process of their own.
"""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hloforge
from hloforge.dialect.errors import Error
from hloforge.runtime.devices import drivers
from tests import device_checks

_AFFINE = """
func.func @main(%x: tensor<3x4xf32>, %y: tensor<3x4xf32>) -> (tensor<3x4xf32>, tensor<3x4xf32>) {
  %0 = stablehlo.multiply %x, %y : tensor<3x4xf32>
  return %0, %x : tensor<3x4xf32>, tensor<3x4xf32>
}
"""
_X = np.arange(12, dtype=np.float32).reshape(3, 4)
_Y = np.full((3, 4), 2, np.float32)
_KIND = 2  # DLPack's kDLCUDA


class _Foreign:
    """Another framework's tensor, of which the host sees nothing."""

    def __init__(self, owner: Any) -> None:
        self.owner = owner

    def __dlpack__(self, **options: Any) -> Any:
        return self.owner.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        place: tuple[int, int] = self.owner.__dlpack_device__()
        return place

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        raise TypeError("it does not lie in the host's memory")


@pytest.fixture(scope="module")
def affine() -> hloforge.Executable:
    return hloforge.compile(_AFFINE, target="cuda", cache=False)


@pytest.fixture(scope="module")
def session(affine: hloforge.Executable) -> hloforge.Session:
    return affine.load(deadline=60)


def test_the_code_is_for_the_device_at_hand(affine: hloforge.Executable, session: hloforge.Session) -> None:
    assert affine.manifest.target == f"cuda:{drivers.driver('cuda').devices[0].architecture}"
    assert session.device == "cuda"


def test_each_of_several_devices(affine: hloforge.Executable) -> None:
    found = drivers.driver("cuda").devices
    assert len({device.uri for device in found}) == 2
    for number, device in enumerate(found):
        made, _ = affine.load(device=device.uri).call_device(_X, _Y)
        assert made.__dlpack_device__() == (_KIND, number)
        np.testing.assert_array_equal(np.asarray(made), _X * 2)


def test_results_stay_on_the_device_until_they_are_read(session: hloforge.Session) -> None:
    gc.collect()
    before = session.memory.live
    product, same = session.call_device(_X, _Y)
    again = session.call_device(product, same)[0]
    assert session.memory.live > before
    assert session.memory.peak >= session.memory.live
    np.testing.assert_array_equal(np.asarray(again), _X * 2 * _X)
    del product, same, again
    gc.collect()
    # The device frees memory behind the work that it has been given.
    end = time.monotonic() + 10
    while session.memory.live > before and time.monotonic() < end:
        time.sleep(0.01)
    assert session.memory.live == before


def test_tensors_of_others_are_read_where_they_lie(session: hloforge.Session) -> None:
    product, _ = session.call_device(_X, _Y)
    assert product.__dlpack_device__() == (_KIND, 0)
    np.testing.assert_array_equal(session(_Foreign(product), _Y)[0], _X * 4)
    stored = session.put(_Foreign(product), 1)
    np.testing.assert_array_equal(session(_X, stored)[0], _X * 2 * _X)


def test_calls_in_the_background_and_of_several_threads(session: hloforge.Session) -> None:
    futures = [session.submit(_X * number, _Y) for number in range(8)]
    for number, future in enumerate(futures):
        np.testing.assert_array_equal(future.result()[0], _X * number * 2)
    wrong = []

    def calls(number: int) -> None:
        for _ in range(50):
            if not np.array_equal(session(_X * number, _Y)[0], _X * number * 2):
                wrong.append(number)

    threads = [threading.Thread(target=calls, args=(number,)) for number in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_donation_keeps_what_is_still_seen() -> None:
    device_checks.donation_keeps_what_is_still_seen("cuda")


def test_functions_of_the_host_see_and_return_arrays() -> None:
    device_checks.functions_of_the_host_see_and_return_arrays("cuda")


def test_code_for_newer_devices_is_refused() -> None:
    executable = hloforge.compile(_AFFINE, target="cuda:sm_120", cache=False)
    with pytest.raises(Error, match="cannot run here"):
        executable.load()(_X, _Y)


def _attention(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    scores = jnp.einsum("hqd,hkd->hqk", q, k) * q.shape[-1] ** -0.5
    return jnp.einsum("hqk,hkd->hqd", jax.nn.softmax(scores, axis=-1), v)


def _network(x: jax.Array, kernel: jax.Array, dense: jax.Array) -> jax.Array:
    y = jax.nn.relu(jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")))
    y = jax.lax.reduce_window(y, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    mean, variance = y.mean((0, 1, 2)), y.var((0, 1, 2))
    return jax.nn.log_softmax(((y - mean) * jax.lax.rsqrt(variance + 1e-3)).mean((1, 2)) @ dense)


def _windows(x: jax.Array, y: jax.Array) -> tuple[jax.Array, ...]:
    first, second = (jax.lax.reduce_window(v, 0, jax.lax.add, (1, 2), (1, 1), "VALID") for v in (x, y))
    zeros = jnp.zeros((3, 129), x.dtype).at[y[:, 0] % 3].add(x[:, 1:])
    return first, second, jax.lax.reduce_window(x, 0, jax.lax.max, (1, 2), (1, 1), "VALID"), zeros


def _only_windows(x: jax.Array, y: jax.Array) -> tuple[jax.Array, ...]:
    pair = jax.lax.reduce_window(
        (x, y), (np.int32(7), np.int32(7)), lambda a, b: (a[0] + b[0], jnp.minimum(a[1], b[1])), (3, 5), (1, 1), "VALID"
    )
    single = jax.lax.reduce_window(x, np.int32(7), jax.lax.max, (3, 5), (1, 1), "VALID")
    return *pair, single


def _parts_of_constants(x: jax.Array, y: jax.Array) -> tuple[jax.Array, ...]:
    row = np.array([3, 4, 5, 6], np.float32)
    return (x * row)[1:3], jax.lax.dynamic_slice(jnp.asarray(row), (x[0].astype(int),), (2,)) * y


def _handed_on(x: jax.Array) -> tuple[jax.Array, ...]:
    part = x[:3] + 1
    return x * 2, *(jax.lax.cond(x[0] > limit, lambda: part, lambda: part[::-1]) for limit in (9, -9))


def _grouped_images(x: jax.Array, kernel: jax.Array) -> tuple[jax.Array, ...]:
    wide = x.astype("float32"), kernel.astype("float32")
    return tuple(
        jax.lax.conv_general_dilated(
            *given, (1,), "VALID", dimension_numbers=("NWC", "WIO", "NWC"), batch_group_count=2
        )
        for given in ((x, kernel), wide)
    )


@pytest.mark.parametrize(
    ("function", "shapes", "element"),
    [
        (jnp.matmul, ((64, 64), (64, 64)), "bfloat16"),
        (jnp.matmul, ((33, 65), (65, 17)), "float32"),
        (_attention, ((2, 64, 32),) * 3, "float32"),
        (lambda x: jax.nn.softmax(x, -1), ((9, 257),), "float32"),
        (lambda x: (jnp.argmax(x, 1), jnp.sort(x, 0), jnp.cumsum(x, 1)), ((9, 33),), "float32"),
        (_network, ((2, 8, 8, 3), (3, 3, 3, 8), (8, 5)), "float32"),
        (lambda x, i: (x.at[i.astype(jnp.int32) % 3].add(1.0), x - x.max(0)), ((9, 33), (40,)), "float32"),
        # Threads that read what others write, with barriers of ours between.
        (lambda x: (jnp.argmax(x, 0), jnp.argmin(x, 0), x.min(-1), x.argmax(-1)), ((257, 33),), "float32"),
        (lambda x: (jax.lax.cummax(x, 1), jnp.cumsum(x, 0)), ((33, 65),), "float32"),
        # IREE left out the sum over warps.
        (lambda x, w: ((x * w).sum(), jax.nn.logsumexp(x[:, 1:])), ((32, 7), (7,)), "float32"),
        (lambda x: x.sum((1, 3)), ((2, 32, 3, 7),), "float32"),
        # IREE's compiler crashed on one complex number in shared memory.
        (lambda x: (jnp.full((300,), x.sum()), jnp.full((3,), x[0].prod())), ((2, 40),), "complex64"),
        # It crashed on complex numbers made beside running sums of their parts: ``views`` 85.
        (lambda x: (jax.lax.cumsum(x), jax.lax.cumprod(x[0])), ((3, 40),), "complex64"),
        # It did not end with updates chosen of constants in the dispatch of their scatter: ``jax`` 995128.
        (lambda x: x.at[jnp.array([1, 6, 2, 7, 2, 3])].min(-17), ((3,),), "int32"),
        # Windows shared the array of their initial values, with each other and with what a scatter updates.
        (_windows, ((3, 130), (3, 130)), "int32"),
        # So did windows of one place, whose initial values have as many elements: ``edges`` 995063.
        (_only_windows, ((3, 5), (3, 5)), "int32"),
        # Slices of what is computed with a constant array had no code: ``builder`` 1550118.
        (_parts_of_constants, ((4,), (2,)), "float32"),
        # Results of dispatches in one allocation, of which a branch hands one on: ``short`` 1550089 to 1550092.
        (_handed_on, ((5,),), "float32"),
        # Products of tensor cores whose rows and columns IREE mixes up: ``habits`` 995018.
        (_grouped_images, ((4, 7, 16), (1, 16, 16)), "bfloat16"),
        # Padded for tensor cores, these read beyond their factors.
        (jnp.matmul, ((8, 1, 128), (8, 128, 4)), "bfloat16"),
        (jnp.matmul, ((3, 33, 100), (3, 100, 40)), "float16"),
        (lambda x, y: x.astype("float32") @ y.astype("float32"), ((2, 17, 24), (2, 24, 8)), "bfloat16"),
    ],
)
def test_kernels_of_each_kind(function: Callable[..., Any], shapes: Any, element: str) -> None:
    rng = np.random.default_rng(0)
    arguments = [jnp.asarray(rng.standard_normal(shape) * 2, element) for shape in shapes]
    expected = jax.jit(function)(*arguments)
    session = hloforge.compile(jax.jit(function).lower(*arguments), target="cuda", cache=False).load(deadline=120)
    found = session(*map(np.asarray, arguments))
    for got, want in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        tolerance = {"bfloat16": 2e-2, "float16": 4e-3}.get(element, 1e-4)
        wide = np.result_type(np.asarray(want), np.float32)
        np.testing.assert_allclose(np.asarray(got, wide), np.asarray(want, wide), tolerance, tolerance)
