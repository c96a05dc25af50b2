"""What JAX's interface does on hloforge, beside JAX's CPU: ``python -m tests.jax.api_sweep``.

Each probe returns something to look at: values, texts of errors, warnings. A process of each platform runs all of them,
and the texts of what they return are compared, except the platforms' names and addresses.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import functools
import gc
import io
import itertools
import json
import operator
import os
import pickle
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.jax import api_devices as api_devices  # its probes
from tests.jax.probes import DEVICES, ON_DEVICES, PROBES, neutral, probe, told, warned

ROOT = Path(__file__).resolve().parents[2]


@probe
def static_arguments() -> Any:
    import jax
    import jax.numpy as jnp

    f = jax.jit(lambda x, n, m=2: x * n + m, static_argnums=1, static_argnames="m")
    return f(jnp.ones(2), 3).tolist(), f(jnp.ones(2), 3, m=5).tolist(), told(f, jnp.ones(2), [1])


@probe
def donation() -> Any:
    import jax
    import jax.numpy as jnp
    import numpy as np

    kept = np.ones(3)
    x, y, z = jnp.arange(6.0), jnp.arange(6.0), jnp.ones(3)
    add = jax.jit(lambda a: a + 1, donate_argnums=0)
    made = add(x)
    by_name = jax.jit(lambda a, *, b: a + b, donate_argnames="b")(y, b=made)
    return [
        (x.is_deleted(), made.is_deleted(), by_name.tolist(), add(kept).tolist(), kept.tolist()),
        [told(f) for f in (lambda: x + 1, lambda: np.asarray(x))],
        (told(repr, x), x.shape, x.dtype, told(copy.deepcopy, x), told(pickle.dumps, x)),
        told(jax.jit(lambda a, b: a + b, donate_argnums=(0, 1)), z, z),
        [warned(jax.jit(f, donate_argnums=0), jnp.ones(4)) for f in (lambda a: a[:1], lambda a: a.astype(int))],
        warned(jax.jit(lambda a: a + 1, donate_argnums=0), jnp.ones(4)),
        told(lambda: jax.device_put(y, donate=True).tolist()),
        y.is_deleted(),
    ]


@probe
def arrays_as_python_objects() -> Any:
    import jax
    import jax.numpy as jnp
    import numpy as np

    x = jnp.arange(3) + 1
    return [
        (list(x), x.tolist(), len(x), int(x[0]), float(x[1]), bool(x[0]), complex(x[1]), hex(x[1]), range(5)[x[1]]),
        (operator.index(x[1]), x.item(2), f"{x[0] / 2:.1f}", repr(x), str(x), [row.shape for row in jnp.ones((3, 2))]),
        (np.asarray(x).flags.writeable, np.array(x).flags.writeable, np.asarray(x, dtype=np.int8).dtype),
        (
            x.nbytes,
            x.itemsize,
            x.on_device_size_in_bytes(),
            x.weak_type,
            x.committed,
            x.is_ready(),
            x.traceback is None,
        ),
        (x.sharding, x.device, x.devices(), x.format, x.addressable_shards[0].index, x.is_fully_addressable),
        (copy.copy(x).tolist(), copy.deepcopy(x).tolist(), pickle.loads(pickle.dumps(x)).tolist(), x.copy().tolist()),
        [told(f, x) for f in (bool, int, float, hash, iter, operator.index, len)],
        [told(operator.setitem, x, 0, 1), told(lambda: x["a"]), told(lambda: x[1.5]), told(lambda: x[0, 0])],
        [told(f) for f in (lambda: x + jnp.ones(4), lambda: x.reshape(2, 2), lambda: x @ jnp.ones(4))],
        [repr(v) for v in (jnp.ones((2, 2), "bfloat16"), jnp.zeros((0, 2)), jnp.array([1 + 2j]), jax.random.key(0))],
        [told(getattr, x, name) for name in ("flat", "device_buffer", "__cuda_array_interface__")],
    ]


@probe
def sharing_memory() -> Any:
    import jax
    import jax.numpy as jnp
    import numpy as np

    x, given = jnp.arange(6.0), np.arange(6, dtype=np.float32)
    return [
        (np.from_dlpack(x).tolist(), np.from_dlpack(x).flags.writeable, x.__dlpack_device__()[1]),
        (jnp.from_dlpack(given).tolist(), jnp.from_dlpack(given, copy=True).tolist()),
        jnp.from_dlpack(x).unsafe_buffer_pointer() == x.unsafe_buffer_pointer(),
        [told(lambda t=t: jnp.from_dlpack(jnp.ones(3, t)).dtype) for t in ("bool", "bfloat16", "complex64", "int8")],
        told(jax.dlpack.from_dlpack, 3),
    ]


@probe
def arrays_from_parts() -> Any:
    import jax
    import numpy as np
    from jax.sharding import SingleDeviceSharding

    whole, lies = np.arange(8, dtype=np.float32), SingleDeviceSharding(jax.devices()[0])
    make = functools.partial(jax.make_array_from_callback, (8,), lies)
    from_arrays = functools.partial(jax.make_array_from_single_device_arrays, (8,), lies)
    return [
        make(lambda index: whole[index]).tolist(),
        told(make, lambda index: whole[:3]),
        from_arrays([jax.device_put(whole)]).tolist(),
        told(from_arrays, [jax.device_put(whole[:7])]),
        told(from_arrays, []),
        jax.make_array_from_process_local_data(lies, whole).tolist(),
    ]


@probe
def ahead_of_time() -> Any:
    import jax
    import jax.numpy as jnp

    f = jax.jit(lambda x, y: (x @ y, {"a": x.sum()}))
    traced = f.trace(jnp.ones((2, 3)), jnp.ones((3, 4)))
    lowered = traced.lower()
    compiled = lowered.compile()
    executable = compiled.runtime_executable()
    return [
        (lowered.in_tree, lowered.out_tree, lowered.args_info, compiled.out_tree, compiled.out_info, traced.out_info),
        (compiled.input_shardings, compiled.output_shardings, compiled.input_formats, compiled.output_formats),
        (
            compiled.cost_analysis()["flops"],
            lowered.cost_analysis()["flops"],
            type(compiled.memory_analysis()).__name__,
        ),
        compiled.memory_analysis().argument_size_in_bytes,
        (compiled.as_text()[:9], lowered.as_text()[:11], "loc(" in lowered.as_text(debug_info=True)),
        (type(lowered.compiler_ir("hlo")).__name__, len(executable.hlo_modules()), executable.hlo_modules()[0].name),
        (executable.get_output_memory_kinds(), [str(one) for one in executable.get_parameter_layouts()]),
        [told(compiled, *given) for given in ((jnp.ones((2, 4)), jnp.ones((3, 4))), (jnp.ones((2, 3)),))],
        told(jax.grad(lambda x: compiled(x, jnp.ones((3, 4)))[0].sum()), jnp.ones((2, 3))),
        told(lambda: lowered.compile(compiler_options={"no_such_option": 1})),
        jax.eval_shape(f, jax.ShapeDtypeStruct((2, 3), "float32"), jax.ShapeDtypeStruct((3, 1), "float32")),
    ]


@probe
def callbacks() -> Any:
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax import lax
    from jax.experimental import io_callback

    shape, seen = jax.ShapeDtypeStruct, []

    def called(method: str | None) -> Any:
        def f(x: Any, y: Any) -> Any:
            type_ = shape(jnp.broadcast_shapes(x.shape, y.shape), x.dtype)
            return jax.pure_callback(lambda a, b: np.asarray(a + b), type_, x, y, vmap_method=method)

        return jax.vmap(f, (0, None))(jnp.arange(3.0), jnp.ones(())).tolist()

    def wrong(function: Callable[..., Any]) -> Any:
        text = told(lambda: jax.jit(lambda x: jax.pure_callback(function, shape((3,), "float32"), x))(1.0).tolist())
        return str(text).partition(":")[0]

    ordered = functools.partial(io_callback, lambda x: seen.append(int(x)), None, ordered=True)
    jax.jit(lambda n: lax.fori_loop(0, n, lambda i, c: [ordered(i), c][1], 0))(3)
    jax.effects_barrier()
    return [
        [told(called, m) for m in ("sequential", "expand_dims", "broadcast_all", "legacy_vectorized", None)],
        [wrong(f) for f in (lambda x: np.ones(4, np.float32), lambda x: (x, x), lambda x: 1 / 0)],
        seen,
        told(jax.vmap(ordered), jnp.arange(3)),
        told(jax.grad(lambda x: io_callback(lambda x: x, shape((), "float32"), x)), 1.0),
    ]


@probe
def prints() -> Any:
    import jax
    import jax.numpy as jnp
    from jax import lax

    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        jax.jit(lambda x: jax.debug.print("x={x} {}", x + 1, x=x))(jnp.arange(3))
        jax.effects_barrier()
        jax.jit(lambda xs: lax.scan(lambda c, x: (c + x, jax.debug.print("{} {}", c, x, ordered=True)), 0, xs))(
            jnp.arange(3)
        )
        jax.effects_barrier()
        jax.vmap(lambda x: jax.debug.print("v {}", x))(jnp.arange(2))
        jax.grad(lambda x: (jax.debug.print("g {:.2f}", x), x * 2)[1])(1.0)
        jax.effects_barrier()
    return out.getvalue()


@probe
def debugging() -> Any:
    import jax
    import jax.numpy as jnp

    kept: list[Any] = []
    with jax.debug_nans(True):
        nans = [told(lambda: jnp.zeros(2) / 0.0), told(jax.jit(lambda x: x / x), 0.0), told(jax.grad(jnp.sqrt), -1.0)]
    with jax.debug_infs(True):
        infinities = [told(lambda: jnp.ones(2) / 0.0), told(jax.jit(lambda x: 1 / x), 0.0)]
    with jax.disable_jit():
        plain = jax.jit(lambda x: type(x).__name__ and x * 2)(jnp.ones(2)).tolist()
    with jax.checking_leaks():
        leaks = told(jax.jit(lambda x: kept.append(x)), 1.0)
    return nans, infinities, plain, str(leaks)[:60]


@probe
def settings() -> Any:
    import jax
    import jax.numpy as jnp
    import numpy as np

    found: list[Any] = []
    with jax.enable_x64(True):
        found.append((jnp.arange(3.0).dtype, (jnp.ones(2) / 3).tolist()))
    with jax.numpy_dtype_promotion("strict"):
        found.append(told(lambda: jnp.ones(2) + jnp.ones(2, int)))
    with jax.numpy_rank_promotion("raise"):
        found.append(told(lambda: jnp.ones(2) + jnp.ones((2, 2))))
    with jax.default_matmul_precision("highest"):
        found.append((jnp.ones((2, 2)) @ jnp.ones((2, 2))).tolist())
    with jax.debug_key_reuse(True):
        found.append(told(lambda: (lambda k: (jax.random.bits(k), jax.random.bits(k)))(jax.random.key(0))))
    with jax.transfer_guard("disallow"):
        found += [str(told(lambda: jnp.ones(3) + np.ones(3)))[:80], jax.device_put(np.ones(3)).shape]
    x = jnp.ones(3) * 2
    with jax.transfer_guard_device_to_host("disallow"):
        found += [jax.device_get(x).tolist()]
    return found


@probe
def caches_and_counts() -> Any:
    import jax
    import jax.numpy as jnp
    from jax._src import test_util

    f = jax.jit(lambda x: x * 2)
    with test_util.count_jit_compilation_cache_miss() as misses:
        f(jnp.ones(2))
        f(jnp.ones(2))
    jax.clear_caches()
    again = f(jnp.ones(2)).tolist()
    f.clear_cache()
    gc.collect()
    before = len(jax.live_arrays())
    held = jnp.arange(333.0) + 1
    after = len(jax.live_arrays()) - before
    del held
    return misses(), again, f._cache_size(), after, len(jax.live_arrays()) - before


@probe
def devices() -> Any:
    import jax

    (device,) = jax.devices()
    client = device.client
    memories = [memory.kind for memory in device.addressable_memories()]
    return [
        (device.id, device.process_index, device.default_memory().kind, memories, told(device.memory, "zz")),
        (client.device_count(), client.local_device_count(), client.process_index(), len(client.devices())),
        (jax.default_backend(), jax.process_count(), device.platform, client.platform, device.device_kind != ""),
        (client.platform_version != "", type(client.live_executables()).__name__, told(pickle.dumps, device)),
        (told(jax.device_put, "text"), str(told(jax.jit(lambda x: x), "text"))[:40]),
    ]


@probe
def references() -> Any:
    import jax
    import jax.numpy as jnp
    from jax import lax

    ref, other = jax.new_ref(jnp.zeros(3)), jax.new_ref(jnp.arange(4.0))

    @jax.jit
    def write(r: Any) -> None:
        r[0] = 1.0
        r[1] += 2.0

    write(ref)
    write(ref)
    jax.jit(lambda: lax.fori_loop(0, 5, lambda i, c: [ref.__setitem__(2, i * 1.0), c][1], 0))()
    jax.jit(lambda a, b: a.__setitem__(slice(None), b[...][:3] + a[...]))(ref, other)
    return (
        ref[...].tolist(),
        jax.freeze(other).tolist(),
        repr(ref),
        str(told(jax.jit(lambda a, b: None), ref, ref))[:80],
    )


@probe
def exports() -> Any:
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax import export

    a = np.arange(6, dtype=np.float32)

    def exported(function: Callable[..., Any], shape: str, *given: Any) -> Any:
        struct = jax.ShapeDtypeStruct(export.symbolic_shape(shape), np.float32)
        made = export.deserialize(export.export(jax.jit(function))(struct).serialize(vjp_order=1))
        values = made.call(*given)
        return (
            made.in_avals,
            made.out_avals,
            len(made.platforms),
            jax.tree.map(lambda v: np.asarray(v).tolist(), values),
        )

    other = export.export(jax.jit(jnp.sin), platforms=["tpu"])(jax.ShapeDtypeStruct((3,), np.float32))
    return [
        exported(lambda x: x.sum(0), "b, 3", a.reshape(2, 3)),
        exported(lambda x: jnp.arange(x.shape[0]) * x[::-1], "b", a),
        exported(lambda x: jnp.concatenate([x, x]).reshape(2, -1), "b", a),
        exported(lambda x: jax.grad(lambda v: (v**2).sum())(x), "b", a),
        told(exported, lambda x: x.reshape(-1, 2), "2*b", a[:5]),
        told(exported, lambda x: x, "b, 3", a),
        told(other.call, a[:3]),
    ]


@probe
def functions_that_nobody_registered() -> Any:
    import jax
    import jax.numpy as jnp

    result = jax.ShapeDtypeStruct((), jnp.float32)
    versions = (4, 1)
    calls = [jax.ffi.ffi_call("nothing_at_all", result, custom_call_api_version=version) for version in versions]
    return [told(call)[: len("JaxRuntimeError: NOT_FOUND")] for call in calls]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="a pattern that the probe's name contains")
    parser.add_argument("--child", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        return _child(options.only, options.child)
    different = differences(options.only)
    for name, (theirs, ours) in different.items():
        print(f"{name}\n  cpu      {theirs}\n  hloforge {ours}")
    return int(bool(different))


def differences(only: str = "") -> dict[str, tuple[str, str]]:
    """What each probe that differs shows: JAX's CPU, hloforge."""
    theirs, ours = (_of(platform, only, 1) | _of(platform, only, DEVICES) for platform in ("cpu", "hloforge"))
    return {name: _parted(theirs[name], ours.get(name, "")) for name in theirs if theirs[name] != ours.get(name)}


def _parted(one: str, other: str) -> tuple[str, str]:
    """What two texts have from where they part."""
    same = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))
    start = max(sum(1 for _ in same) - 60, 0)
    return one[start : start + 400], other[start : start + 400]


def _of(platform: str, only: str, devices: int) -> dict[str, str]:
    """What the probes for this many devices show."""
    if not _chosen(only, devices):
        return {}
    command = [sys.executable, "-X", "faulthandler", "-m", "tests.jax.api_sweep", "--child", str(devices)]
    # JAX names the types in some errors in the order of a set.
    environment = os.environ | {"JAX_PLATFORMS": platform, "PYTHONHASHSEED": "0", "HLOFORGE_JAX_DEVICES": str(devices)}
    environment["JAX_NUM_CPU_DEVICES"] = str(devices) if platform == "cpu" else "1"
    command += ["--only", only]
    process = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    rows = [json.loads(line) for line in process.stdout.splitlines() if line.startswith('{"probe"')]
    found = {row["probe"]: row["text"] for row in rows}
    ended = {f"the process of {devices} devices": f"ended with {process.returncode}"}
    return found if process.returncode == 0 else found | ended


def _child(only: str, devices: int) -> int:
    for name, function in _chosen(only, devices).items():
        text = neutral(repr(told(function)))
        print(json.dumps({"probe": name, "text": text}), flush=True)
    return 0


def _chosen(only: str, devices: int) -> dict[str, Callable[[], Any]]:
    probes = PROBES if devices == 1 else ON_DEVICES
    return {name: function for name, function in probes.items() if re.search(only, name)}


if __name__ == "__main__":
    sys.exit(main())
