"""Programs as custom calls of XLA's CPU: the second call of ``hloforge.jit`` and later ones, against ``jax.jit``."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hloforge
from hloforge.runtime.native import caller

jax = pytest.importorskip("jax")
jnp = jax.numpy
from hloforge.jax.direct import call_p  # noqa: E402 - needs JAX

pytestmark = pytest.mark.skipif(not caller.is_available(), reason="no machine code of our own here")

_RNG = np.random.default_rng(0)


def _array(*shape: int) -> Any:
    return jnp.asarray(_RNG.standard_normal(shape).astype(np.float32))


def _keys(key: Any, scale: Any) -> Any:
    return jax.random.normal(key, (7,)) * scale, jax.random.split(key)


_PROGRAMS: dict[str, tuple[Callable[..., Any], Callable[[], tuple[Any, ...]], dict[str, Any]]] = {
    "pytrees": (lambda p, x: {"y": p["w"] @ x, "n": (None, x.sum())}, lambda: ({"w": _array(4, 3)}, _array(3)), {}),
    "many arrays": (lambda *xs: [x * n for n, x in enumerate(xs)], lambda: tuple(_array(n, 3) for n in range(30)), {}),
    "weak types": (lambda x, n: (x * n, n + 1), lambda: (_array(5), 2.0), {}),
    "typed keys": (_keys, lambda: (jax.random.key(3), 2.0), {}),
    "static": (lambda x, n: x.reshape(n, -1), lambda: (_array(6, 2), 3), {"static_argnums": 1}),
    "unused": (lambda x, y, z: x + z, lambda: (_array(3), _array(9), _array(3)), {}),
    "returned": (lambda x, y: (y, x, y), lambda: (_array(3), _array(4)), {}),
    "numpy": (lambda x: x + 1, lambda: (np.arange(5.0),), {}),
    "empty": (lambda x: (x.sum(0), x), lambda: (_array(0, 4),), {}),
    "types": (
        lambda x: [x.astype(t) for t in (bool, jnp.bfloat16, jnp.float8_e4m3fn, jnp.int8, jnp.complex64)],
        lambda: (_array(9),),
        {},
    ),
    "donated": (lambda x, y: (x.at[2].add(y), y), lambda: (_array(300), jnp.float32(2)), {"donate_argnums": 0}),
    "constants": (lambda x: x @ np.arange(12.0, dtype=np.float32).reshape(3, 4), lambda: (_array(2, 3),), {}),
}


@pytest.mark.wide(2)
@pytest.mark.parametrize("name", _PROGRAMS)
def test_what_jax_calls_is_the_functions_result(name: str) -> None:
    function, make, options = _PROGRAMS[name]
    compiled, of_jax = hloforge.jit(function, **options), jax.jit(function, **options)
    for _ in range(3):
        arguments = make()
        expected = of_jax(*jax.tree.map(_copied, arguments))
        got = compiled(*arguments)
        assert jax.tree.structure(got) == jax.tree.structure(expected)
        for one, other in zip(jax.tree.leaves(got), jax.tree.leaves(expected), strict=True):
            assert one.aval == other.aval
            numbers = [jax.random.key_data(x) if _is_key(x) else x.astype(np.complex64) for x in (one, other)]
            np.testing.assert_allclose(*numbers, rtol=1e-6, atol=1e-6)
    assert _is_direct(compiled)


def _copied(leaf: Any) -> Any:
    """An array that may be donated in the place of another."""
    return leaf + 0 if isinstance(leaf, jax.Array) and not _is_key(leaf) else leaf


def _is_key(x: Any) -> bool:
    return bool(jnp.issubdtype(x.dtype, jax.dtypes.prng_key))


def _is_direct(compiled: Any) -> bool:
    size: int = compiled._direct._cache_size()
    return size == 1


def test_what_python_must_do_is_not_jaxs() -> None:
    """Calls of the host, and results too large to be new memory in each call."""
    shown: list[float] = []
    calls = hloforge.jit(lambda x: (jax.debug.callback(lambda v: shown.append(float(v)), x), x + 1)[1])
    large = hloforge.jit(lambda x: jnp.broadcast_to(x, (1 << 23,)))
    for n in range(3):
        assert float(calls(jnp.float32(n))) == n + 1
        assert float(large(jnp.float32(n))[-1]) == n
    jax.effects_barrier()
    assert shown == [0.0, 1.0, 2.0]
    assert not _is_direct(calls) and not _is_direct(large)


def test_threads_share_a_programs_memory_in_turn() -> None:
    compiled = hloforge.jit(lambda x: jnp.sort(x, axis=1) @ x.T)
    arguments = [_array(80, 80) for _ in range(4)]
    expected = [np.asarray(jax.jit(lambda x: jnp.sort(x, axis=1) @ x.T)(x)) for x in arguments]
    compiled(arguments[0])
    failures: list[int] = []

    def work(number: int) -> None:
        for _ in range(40):
            if not np.allclose(compiled(arguments[number]), expected[number], atol=1e-4):
                failures.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert _is_direct(compiled)


def test_asking_for_a_program_is_no_call() -> None:
    compiled = hloforge.jit(lambda x: x * 2)
    x = _array(3)
    for _ in range(12):
        assert compiled.session(x).results
    compiled(x), compiled(x)
    assert _is_direct(compiled)


def test_arguments_that_jax_tells_otherwise_are_called_from_python(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = hloforge.jit(lambda x: x * 2)
    x = _array(3)
    compiled(x)
    (program,) = compiled._known.values()
    monkeypatch.setattr(compiled, "_known", {None: program})
    for _ in range(12):
        np.testing.assert_array_equal(compiled(x), 2 * np.asarray(x))
    assert not compiled._known


def test_a_program_lives_as_long_as_its_executable() -> None:
    compiled = hloforge.jit(lambda x: x + 1)
    x = _array(3)
    compiled(x), compiled(x)
    program = weakref.ref(next(iter(compiled._known.values())))
    gone = weakref.ref(compiled)
    del compiled
    jax.clear_caches()
    gc.collect()
    assert gone() is None and program() is None


def test_transformations_see_the_function() -> None:
    compiled = hloforge.jit(lambda x: jnp.sin(x) * x)
    x = _array(4)
    compiled(x), compiled(x)
    assert "hloforge_call" not in str(jax.make_jaxpr(lambda x: compiled(x) + 1)(x))
    np.testing.assert_allclose(jax.vmap(jax.grad(compiled))(x), np.cos(x) * x + np.sin(x), rtol=1e-5)
    with jax.disable_jit():
        np.testing.assert_allclose(compiled(x), np.sin(x) * x, rtol=1e-6)
    assert call_p.name in str(compiled._direct.trace(x).jaxpr)
    with jax.debug_nans(True), pytest.raises(FloatingPointError):
        compiled(jnp.full(4, np.nan, np.float32))


_DEVICES = """
import jax, jax.numpy as jnp, numpy as np, hloforge
from jax.sharding import Mesh, NamedSharding, PartitionSpec
f = hloforge.jit(lambda x, y: x @ y)
x, y = np.arange(16, dtype=np.float32).reshape(4, 4), np.ones((4, 2), np.float32)
one, other = jax.devices("cpu")
mesh = Mesh(np.array([one, other]), ("a",))
try:
    ours = jax.devices("hloforge")[:1]
except RuntimeError:  # the plugin was not built
    ours = []
for place in (one, other, NamedSharding(mesh, PartitionSpec("a")), *ours):
    for _ in range(3):
        np.testing.assert_array_equal(f(jax.device_put(x, place), jax.device_put(y, place)), x @ y)
print("done")
"""


def test_arrays_on_other_devices() -> None:
    environment = os.environ | {"XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
    done = subprocess.run(
        [sys.executable, "-c", _DEVICES], env=environment, capture_output=True, text=True, timeout=280
    )
    assert done.stdout == "done\n", done.stderr
