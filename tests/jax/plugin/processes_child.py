"""One of several processes that JAX joins: ``processes_child.py CHECK COUNT NUMBER PORT``; it prints ``well``."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P


def devices_and_arrays() -> None:
    count, own = jax.process_count(), jax.process_index()
    here = jax.local_device_count()
    assert [device.process_index for device in jax.devices()] == [i for i in range(count) for _ in range(here)]
    assert jax.local_devices() == jax.devices()[own * here : (own + 1) * here]
    mesh = Mesh(np.array(jax.devices()).reshape(count, here), ("p", "d"))
    rows = NamedSharding(mesh, P(("p", "d")))
    every = np.random.default_rng(0).normal(size=(count * here * 2, 3000)).astype(np.float32)
    x = jax.make_array_from_process_local_data(rows, every[own * here * 2 : (own + 1) * here * 2])
    assert x.shape == every.shape
    assert not x.is_fully_addressable
    for shard in x.addressable_shards:
        np.testing.assert_array_equal(shard.data, every[shard.index])
    # Large arrays: the group computes parts. All processes have the same bits.
    total = _whole(jax.jit(lambda x: jnp.tanh(x).sum(0), out_shardings=NamedSharding(mesh, P()))(x))
    np.testing.assert_allclose(total, np.tanh(every).sum(0), rtol=1e-5, atol=1e-5)
    assert (multihost_utils.process_allgather(total) == total).all()
    moved = jax.device_put(x, NamedSharding(mesh, P(None, ("p", "d"))))
    for shard in moved.addressable_shards:
        np.testing.assert_array_equal(shard.data, every[shard.index])
    assert (multihost_utils.process_allgather(x, tiled=True) == every).all()
    assert multihost_utils.broadcast_one_to_all(np.array([own + 5])).tolist() == [5]
    multihost_utils.sync_global_devices("all are here")

    def mapped(x: Any) -> Any:
        around = lax.ppermute(x, "p", [(i, (i + 1) % count) for i in range(count)])
        return around + lax.psum(x, "d") + lax.axis_index("p").astype(x.dtype)

    y = jax.jit(jax.shard_map(mapped, mesh=mesh, in_specs=P("p", "d"), out_specs=P("p", "d")))(moved)
    parts = every.reshape(count, 2 * here, here, -1)
    expected = np.roll(parts, 1, axis=0) + parts.sum(2, keepdims=True) + np.arange(count).reshape(-1, 1, 1, 1)
    for shard in y.addressable_shards:
        np.testing.assert_allclose(shard.data, expected.reshape(every.shape)[shard.index], rtol=1e-5, atol=1e-6)
    # One device of each process; then this process alone.
    few = NamedSharding(Mesh(mesh.devices[:, -1], ("p",)), P("p"))
    one = jax.make_array_from_process_local_data(few, np.full((1, 3), own, np.float32))
    assert _whole(jax.jit(lambda x: x.sum(0), out_shardings=NamedSharding(few.mesh, P()))(one))[0] == sum(range(count))
    assert float(jnp.arange(3.0).sum()) == 3


def errors() -> None:
    mesh, own = Mesh(np.array(jax.devices()), ("d",)), jax.process_index()
    x = jax.device_put(np.arange(float(jax.device_count())), NamedSharding(mesh, P("d")))

    def called(value: Any) -> Any:
        if own == 1:
            raise ValueError("of process one")
        return value

    def mapped(x: Any) -> Any:
        return lax.psum(jax.pure_callback(called, x, x), "d")

    _refused(jax.shard_map(mapped, mesh=mesh, in_specs=P("d"), out_specs=P(), check_vma=False), x, "of process one")

    def first(x: Any) -> Any:
        return x.sum()

    def other(x: Any) -> Any:
        return x.sum()

    _refused(other if own else first, x, "all run the same programs")
    # What failed has left nothing behind.
    assert _whole(jax.jit(first)(x)) == jax.device_count() * (jax.device_count() - 1) / 2


def killed() -> None:
    everywhere = NamedSharding(Mesh(np.array(jax.devices()), ("d",)), P("d"))
    x = jax.device_put(np.arange(float(jax.device_count())), everywhere)
    assert _whole(jax.jit(jnp.sum)(x)) > 0
    if jax.process_index() == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    _refused(jnp.sum, x, "of process 1 has ended, was killed", "cannot be reached")
    print("well", flush=True)
    # JAX's own service would end this process some time later.
    os._exit(0)


def _whole(array: Any) -> Any:
    return np.asarray(array.addressable_data(0))


def _refused(function: Callable[..., Any], x: Any, *words: str) -> None:
    try:
        _whole(jax.jit(function)(x))
    except jax.errors.JaxRuntimeError as error:
        assert any(word in str(error) for word in words), error
    else:
        raise AssertionError("it ran")


if __name__ == "__main__":
    _, name, count, number, port = sys.argv
    jax.distributed.initialize(f"127.0.0.1:{port}", int(count), int(number))
    globals()[name]()
    print("well", flush=True)
