"""Probes of JAX's interface on several devices, for ``tests.jax.api_sweep``."""

from __future__ import annotations

import copy
import functools
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.jax.probes import probe_on_devices, told

VALUES = np.arange(32, dtype=np.float32).reshape(8, 4)


def lies(*names: Any, **options: Any) -> Any:
    """How an array lies on a mesh of two by two devices, ``a`` and ``b``."""
    import jax
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    mesh = Mesh(np.array(jax.devices()).reshape(2, 2), ("a", "b"))
    return NamedSharding(mesh, PartitionSpec(*names), **options)


def seen(array: Any) -> Any:
    """An array's values and how it lies."""
    return np.asarray(array).tolist(), getattr(array.sharding, "spec", None), len(array.addressable_shards)


def put(*names: Any) -> Any:
    import jax

    return jax.device_put(VALUES, lies(*names))


@probe_on_devices
def arrays_on_devices() -> Any:
    import jax

    x, devices = put("a", "b"), jax.devices()
    moved = jax.device_put(x, lies("b", None))
    return [
        [(shard.index, shard.replica_id, shard.data.tolist()) for shard in x.addressable_shards],
        (seen(moved), seen(jax.device_put(moved, lies())), jax.device_put(moved, devices[3]).devices()),
        (copy.deepcopy(x).sharding, pickle.loads(pickle.dumps(x)).tolist(), x[3].tolist(), x[2:5, 1].tolist()),
        (x.is_fully_replicated, x.on_device_size_in_bytes(), float(x.sum()), repr(x)[:30], seen(x + moved)),
        [told(jax.device_put, VALUES[:3], lies("a")), told(jax.device_put, VALUES, lies("a", "b", "a"))],
        [told(jax.make_array_from_single_device_arrays, (8, 4), lies("a"), [x.addressable_data(0)])],
        seen(jax.make_array_from_callback((8, 4), lies("b"), lambda index: VALUES[index])),
        told(lambda: jax.device_put(VALUES, devices[0]) + jax.device_put(VALUES, devices[1])),
    ]


@probe_on_devices
def jit_on_devices() -> Any:
    import jax
    import jax.numpy as jnp

    product = jax.jit(lambda x, y: x @ y.T, in_shardings=(lies("a"), lies("b")), out_shardings=lies("a", "b"))
    compiled = product.lower(VALUES, VALUES).compile()
    step = jax.jit(lambda x: x + 1, donate_argnums=0)
    x = put("a", "b")
    y = step(x)
    return [
        (seen(product(VALUES, VALUES)), compiled.input_shardings, compiled.output_shardings),
        (compiled.memory_analysis().argument_size_in_bytes, seen(compiled(put("a"), put("b")))),
        [told(compiled, put("b"), put("b")), told(product, put("b"), VALUES), told(product, VALUES[:3], VALUES)],
        (x.is_deleted(), seen(y)),
        seen(jax.jit(lambda x: jax.lax.with_sharding_constraint(x * 2, lies("b", "a")))(VALUES)),
        seen(jax.jit(lambda key: jax.random.normal(key, (8, 4)) > 0, out_shardings=lies("a"))(jax.random.key(0))),
        (seen(jnp.sort(y, axis=0)), seen(jnp.cumsum(y, 0)), float(jnp.linalg.norm(y)) > 0, seen(y[::2])),
        [jax.jit(lambda x: x * 3)(jax.device_put(VALUES, device)).devices() for device in jax.devices()],
    ]


@probe_on_devices
def maps_over_devices() -> Any:
    import jax
    from jax import lax
    from jax.sharding import PartitionSpec

    mesh, rows = lies().mesh, VALUES[:4]

    def mapped(function: Callable[..., Any], into: Any, out: Any) -> Any:
        return seen(jax.jit(jax.shard_map(function, mesh=mesh, in_specs=into, out_specs=out))(VALUES))

    both = PartitionSpec("a", "b")
    parallel = functools.partial(jax.pmap, axis_name="i")
    return [
        mapped(lambda x: lax.psum(x, "a"), both, PartitionSpec(None, "b")),
        mapped(lambda x: lax.ppermute(x, "b", [(0, 1), (1, 0)]), both, both),
        mapped(lambda x: lax.psum_scatter(x, "a", tiled=True), PartitionSpec(None, "b"), both),
        mapped(lambda x: lax.axis_index(("a", "b")) + x, both, both),
        [parallel(f)(rows).tolist() for f in (lambda x: lax.psum(x, "i"), lambda x: lax.all_gather(x, "i"))],
        [parallel(f)(rows).tolist() for f in (lambda x: lax.all_to_all(x, "i", 0, 0), lambda x: lax.axis_index("i"))],
        jax.grad(lambda x: jax.pmap(lambda v: (v**2).sum())(x).sum())(rows).tolist(),
        [told(parallel(lambda x: x), given) for given in (VALUES[:3].reshape(1, 3, 4)[0], np.float32(1))],
    ]


@probe_on_devices
def callbacks_on_devices() -> Any:
    import jax
    from jax import lax
    from jax.experimental import io_callback
    from jax.sharding import SingleDeviceSharding

    x, calls = put("a", "b"), []
    shape = jax.ShapeDtypeStruct(x.shape, x.dtype)

    def counted(number: Any, v: Any) -> Any:
        calls.append(int(number))
        return np.asarray(v) + 1

    def turns(x: Any, **options: Any) -> Any:
        return lax.fori_loop(0, 3, lambda i, x: io_callback(counted, shape, i, x, ordered=True, **options), x) * 2

    there = SingleDeviceSharding(jax.devices()[2])
    found = [
        jax.jit(lambda x: jax.pure_callback(lambda v: np.asarray(v) * 2, shape, x))(x).tolist(),
        seen(jax.jit(lambda x: jax.pure_callback(lambda v: np.asarray(v) * 2, shape, x) + x)(x)),
        (jax.jit(turns)(x).tolist(), jax.jit(lambda x: turns(x, sharding=there))(x).tolist()),
        jax.jit(lambda x: io_callback(lambda v: np.asarray(v) * 2, shape, x, ordered=True))(x).tolist(),
        told(jax.jit(lambda x: jax.debug.print("{}", x, ordered=True)), x),
    ]
    jax.effects_barrier()
    return found, calls


@probe_on_devices
def custom_partitioning_on_devices() -> Any:
    import jax
    import jax.numpy as jnp
    from jax import lax
    from jax.experimental.custom_partitioning import custom_partitioning
    from jax.sharding import NamedSharding, PartitionSpec

    def made(function: Callable[..., Any], rule: str, part: Callable[..., Any], **options: Any) -> Any:
        given = custom_partitioning(function)
        given.def_partition(partition=part, sharding_rule=rule, **options)
        return jax.jit(given)

    parts: list[Any] = []

    def alike(mesh: Any, arguments: Any, result: Any) -> Any:
        parts.append((arguments[0].sharding.spec, result.sharding.spec))
        return mesh, lambda x: x * 2, result.sharding, (arguments[0].sharding,)

    def pair(mesh: Any, arguments: Any, result: Any) -> Any:
        at = functools.partial(NamedSharding, mesh)
        into = at(PartitionSpec("a", None)), at(PartitionSpec(None, "b"))
        return mesh, lambda x, y: (x @ y, x + 1), (at(PartitionSpec("a", "b")), into[0]), into

    def total(mesh: Any, arguments: Any, result: Any) -> Any:
        rows = NamedSharding(mesh, PartitionSpec("a", None))
        return mesh, lambda x: lax.psum(x.sum(0), "a"), NamedSharding(mesh, PartitionSpec(None)), (rows,)

    twice = made(lambda x: x * 2, "i j -> i j", alike)
    return [
        (seen(twice(put("a", "b"))), seen(twice(put("b"))), twice(VALUES).devices() == {jax.devices()[0]}, parts),
        [seen(one) for one in made(lambda x, y: (x @ y, x + 1), "i k, k j -> i j, i k", pair)(put("a"), VALUES.T)],
        seen(made(lambda x: x.sum(0), "i j -> j", total, reduction_factors=("i",))(put("a"))),
        told(jnp.shape, told(made(lambda x: x, "i j -> i j", lambda *_: 1 / 0), put("a")))[:20],
    ]


@probe_on_devices
def references_and_memories_on_devices() -> Any:
    import jax
    from jax import export
    from jax.experimental import serialize_executable

    ref = jax.new_ref(put("a", "b"))
    jax.jit(lambda r: r.__setitem__(0, r[1] * 2))(ref)
    host = lies("a", memory_kind="pinned_host")
    there = jax.device_put(VALUES, host)
    back = jax.jit(lambda x: jax.device_put(x, lies("a", memory_kind="device")) * 2)(there)
    double = jax.jit(lambda x: x * 2, in_shardings=lies("a"), out_shardings=lies("a"))
    exported = export.deserialize(export.export(double)(VALUES).serialize())
    again = serialize_executable.deserialize_and_load(*serialize_executable.serialize(double.lower(VALUES).compile()))
    return [
        seen(ref[...]),
        (there.sharding.memory_kind, back.sharding.memory_kind, seen(back)),
        (exported.nr_devices, seen(jax.jit(exported.call)(put("a"))), told(exported.call, VALUES)),
        seen(again(put("a"))),
    ]
