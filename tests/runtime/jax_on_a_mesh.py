"""Writes what JAX made for four devices, and what that computes: ``python -m tests.runtime.jax_on_a_mesh FOLDER``."""

from __future__ import annotations

import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec


def main(folder: Path) -> None:
    jax.config.update("jax_num_cpu_devices", 4)
    mesh = Mesh(np.array(jax.devices()).reshape(2, 2), ("data", "model"))
    random = np.random.default_rng(0)
    w1, w2, x = (random.normal(size=sizes).astype(np.float32) for sizes in ((6, 8), (8, 4), (10, 6)))

    def loss(w1: jax.Array, w2: jax.Array, x: jax.Array) -> jax.Array:
        return jnp.mean((jnp.tanh(x @ w1) @ w2) ** 2)

    specs = [PartitionSpec(None, "model"), PartitionSpec("model"), PartitionSpec("data")]
    shardings = [NamedSharding(mesh, spec) for spec in specs]
    results = (NamedSharding(mesh, PartitionSpec()), tuple(shardings[:2]))
    gradients = jax.jit(jax.value_and_grad(loss, (0, 1)), in_shardings=shardings, out_shardings=results)
    (folder / "partitioned.hlo").write_text(gradients.lower(w1, w2, x).compile().as_text())
    placed = [jax.device_put(value, sharding) for value, sharding in zip((w1, w2, x), shardings, strict=True)]
    value, (first, second) = gradients(*placed)
    arrays = dict(zip(("w1", "w2", "x", "value", "first", "second"), (*placed, value, first, second), strict=True))
    shards = {
        name: np.stack([np.asarray(shard.data) for shard in array.addressable_shards]) for name, array in arrays.items()
    }
    np.savez(folder / "partitioned.npz", **shards)

    def step(part: jax.Array) -> jax.Array:
        everything = jax.lax.all_gather(part, "data", axis=0, tiled=True)
        return jax.lax.psum(everything.sum(axis=0), "model") * (1 + jax.lax.axis_index("data"))

    mapped = jax.jit(
        jax.shard_map(
            step, mesh=mesh, in_specs=PartitionSpec("data", "model"), out_specs=PartitionSpec("data"), check_vma=False
        )
    )
    y = random.normal(size=(4, 6)).astype(np.float32)
    (folder / "mapped.mlir").write_text(mapped.lower(y).as_text())
    np.savez(folder / "mapped.npz", y=y, result=np.asarray(mapped(y)))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
