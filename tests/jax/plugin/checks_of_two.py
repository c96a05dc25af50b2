"""Further checks with two devices, as those of ``checks.py``: ``checks_of_two.py NAME...``."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from checks import CHECKS, check, message, traced
from jax import lax
from jax._src.lax.parallel import psum_scatter_start
from jax.experimental import io_callback
from jax.experimental.control_deps import control_dep
from jax.experimental.custom_partitioning import custom_partitioning
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec, SingleDeviceSharding


@check
def asynchronous_collectives_of_two_devices() -> None:
    mesh = Mesh(np.array(jax.devices("hloforge")), ("a",))
    rows = PartitionSpec("a")

    @jax.jit
    @partial(jax.shard_map, mesh=mesh, in_specs=rows, out_specs=rows, check_vma=False)
    def scattered(x: Any) -> Any:
        begun = psum_scatter_start(x, "a", scatter_dimension=0, tiled=True)
        y = jnp.sin(x)
        control_dep(begun.x, y)
        return begun.done() + y.sum()

    x = np.arange(8, dtype=np.float32).reshape(4, 2)
    sums = np.array([np.sin(x[:2]).sum(), np.sin(x[2:]).sum()])
    np.testing.assert_allclose(scattered(x), x[:2] + x[2:] + sums[:, None], rtol=1e-6)


@check
def traces_of_two_devices() -> None:
    mesh = jax.make_mesh((2,), ("a",), axis_types=(AxisType.Auto,))
    x = jax.device_put(np.arange(8.0, dtype=np.float32).reshape(2, 4), NamedSharding(mesh, PartitionSpec("a")))
    total = jax.jit(lambda x: x.sum(0))
    second = jax.device_put(np.arange(6.0), jax.devices("hloforge")[1])
    results = []
    planes = traced(lambda: results.extend([total(x), jnp.cumsum(second)]))
    first, other = (planes[f"/device:CUSTOM:hloforge:{number}"]["XLA Modules"] for number in range(2))
    assert [event.name for event in first] == ["jit__lambda"]
    assert [event.name for event in other] == ["jit__lambda", "jit_cumsum"]
    np.testing.assert_array_equal(results[0], [4, 6, 8, 10])
    np.testing.assert_array_equal(results[1], [0, 1, 3, 6, 10, 15])


@check
def donated_parts_of_two_devices() -> None:
    # The first result of the whole size is on both devices; the other one has parts of the argument's size.
    mesh = jax.make_mesh((2,), ("a",), axis_types=(AxisType.Auto,))
    rows, everywhere = NamedSharding(mesh, PartitionSpec("a")), NamedSharding(mesh, PartitionSpec())

    @partial(jax.jit, donate_argnums=0, out_shardings=(everywhere, rows))
    def doubled(x: Any) -> Any:
        return x * 2, x + 1

    x = jax.device_put(np.arange(8.0).reshape(2, 4), rows)
    whole, parts = doubled(x)
    assert x.is_deleted()
    np.testing.assert_array_equal(whole, np.arange(8.0).reshape(2, 4) * 2)
    np.testing.assert_array_equal(parts, np.arange(8.0).reshape(2, 4) + 1)
    # Another shape or type of the same size will do.
    x = jax.device_put(np.arange(8).reshape(2, 4), rows)
    turned = jax.jit(lambda x: x.reshape(8).astype(np.float32) / 2, donate_argnums=0, out_shardings=rows)(x)
    assert x.is_deleted()
    np.testing.assert_array_equal(turned, np.arange(8) / 2)


@check
def replicated_results_of_two_devices() -> None:
    mesh = jax.make_mesh((2,), ("a",), axis_types=(AxisType.Explicit,))
    rows, terms, everywhere = PartitionSpec("a"), PartitionSpec(unreduced={"a"}), PartitionSpec()

    def mapped(function: Any, before: Any, after: Any) -> Any:
        return jax.jit(jax.shard_map(function, mesh=mesh, in_specs=before, out_specs=after, check_vma=False))

    x = jax.device_put(np.arange(4), NamedSharding(mesh, rows))
    total = mapped(lambda x: lax.psum(x, "a"), rows, everywhere)
    assert total(x).tolist() == [2, 4]
    # One collective: devices have what they call replicated.
    text = total.lower(x).compile().as_text()
    assert text.count("channel_id") == 1
    assert "all-reduce(" in text
    # Also where nobody has checked that it is.
    parts = mapped(lambda x: x, terms, everywhere)(mapped(lambda x: x, rows, terms)(x))
    assert [part.data.tolist() for part in parts.addressable_shards] == [[0, 1], [2, 3]]


@check
def factorizations_of_two_devices() -> None:
    # Each device factors its own matrices.
    mesh = Mesh(np.array(jax.devices("hloforge")), ("a",))
    square = np.random.default_rng(0).normal(size=(4, 3, 3)).astype(np.float32)
    matrices = square @ square.swapaxes(1, 2) + np.eye(3, dtype=np.float32)
    x = jax.device_put(matrices, NamedSharding(mesh, PartitionSpec("a")))
    found = jax.jit(lambda x: (jnp.linalg.eigvalsh(x), jnp.linalg.svd(x)[1]))
    assert "channel_id" not in found.lower(x).compile().as_text()
    eigenvalues, singular = found(x)
    np.testing.assert_allclose(eigenvalues, np.linalg.eigvalsh(matrices), rtol=1e-4)
    np.testing.assert_allclose(singular, np.linalg.svd(matrices)[1], rtol=1e-4)


@check
def callbacks_of_two_devices() -> None:
    rows = NamedSharding(Mesh(np.array(jax.devices("hloforge")), ("a",)), PartitionSpec("a"))
    values = np.arange(8, dtype=np.float32).reshape(4, 2)
    x = jax.device_put(values, rows)
    shape, seen = jax.ShapeDtypeStruct(x.shape, x.dtype), []

    def doubled(x: Any) -> Any:
        return jax.pure_callback(lambda v: np.asarray(v) * 2, shape, x)

    # What XLA leaves on one device: JAX's CPU has zeros on the other one, and cannot go on with it.
    there = jax.jit(doubled)(x)
    for device in range(2):
        np.testing.assert_array_equal(there.addressable_data(device), values * 2)
    np.testing.assert_array_equal(there + x, values * 3)

    def ordered(x: Any, sharding: Any = None) -> Any:
        def count(number: Any, v: Any) -> Any:
            seen.append(int(number))
            return np.asarray(v) + 1

        def turn(number: Any, x: Any) -> Any:
            return io_callback(count, shape, number, x, ordered=True, sharding=sharding)

        return lax.fori_loop(0, 3, turn, x)

    np.testing.assert_array_equal(jax.jit(ordered)(x), values + 3)
    np.testing.assert_array_equal(jax.jit(ordered)(x) * 2, values * 2 + 6)
    jax.effects_barrier()
    assert seen == [0, 1, 2] * 2
    elsewhere = SingleDeviceSharding(jax.devices("hloforge")[1])
    np.testing.assert_array_equal(jax.jit(lambda x: ordered(x, elsewhere))(x), values + 3)


@check
def custom_partitioning_of_two_devices() -> None:
    rows = NamedSharding(Mesh(np.array(jax.devices("hloforge")), ("a",)), PartitionSpec("a"))
    values = np.arange(8, dtype=np.float32).reshape(4, 2)
    x = jax.device_put(values, rows)
    parts: list[Any] = []

    def defined(function: Callable[..., Any], rule: str, part: Callable[..., Any], **options: Any) -> Any:
        made = custom_partitioning(function)
        made.def_partition(partition=part, sharding_rule=rule, **options)
        return jax.jit(made)

    def of_sine(mesh: Mesh, arguments: Any, result: Any) -> Any:
        def sine(x: Any) -> Any:
            parts.append(x.shape)
            return jnp.sin(x)

        return mesh, sine, result.sharding, (arguments[0].sharding,)

    def of_sum(mesh: Mesh, arguments: Any, result: Any) -> Any:
        whole = NamedSharding(mesh, PartitionSpec(None))
        return mesh, lambda x: lax.psum(x.sum(0), "a"), whole, (NamedSharding(mesh, PartitionSpec("a", None)),)

    def fails(*_: Any) -> Any:
        raise ValueError("boom")

    sine = defined(jnp.sin, "i j -> i j", of_sine)
    np.testing.assert_allclose(sine(x), np.sin(values), rtol=1e-6)
    assert (sine(x).sharding, parts) == (rows, [(2, 2)])
    total = defined(lambda x: x.sum(0), "i j -> j", of_sum, reduction_factors=("i",))
    np.testing.assert_array_equal(total(x), values.sum(0))
    assert "ValueError: boom" in message(defined(jnp.sin, "i j -> i j", fails), x)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        CHECKS[name]()
        print("passed", name, flush=True)
