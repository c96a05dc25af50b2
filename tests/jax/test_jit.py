"""``hloforge.jit``: signatures, pytrees, types, transformations, callbacks and memory, against ``jax.jit`` itself."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
from functools import partial
from typing import Any

import numpy as np
import pytest

import hloforge
from hloforge.runtime.native.result_memory import RESULTS

jax = pytest.importorskip("jax")
jnp = jax.numpy


def assert_same(got: Any, expected: Any, tolerance: float = 1e-6) -> None:
    assert jax.tree.structure(got) == jax.tree.structure(expected)
    for one, other in zip(jax.tree.leaves(got), jax.tree.leaves(expected), strict=True):
        assert one.aval == other.aval
        np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=tolerance, atol=tolerance)


def test_pytrees_and_signatures() -> None:
    def f(parameters: Any, x: Any) -> Any:
        return {"y": parameters["w"] @ x + parameters["b"], "rest": (x.sum(), None, 1.0)}

    compiled = hloforge.jit(f)
    parameters = {"w": jnp.ones((4, 3)), "b": jnp.arange(4.0)}
    for x in (jnp.arange(3.0), jnp.arange(3.0) + 1, np.float32([1, 2, 3])):
        assert_same(compiled(parameters, x), jax.jit(f)(parameters, x))
    assert "1 compiled" in repr(compiled) or "2 compiled" in repr(compiled)
    assert str(compiled.session(parameters, jnp.arange(3.0)).signature.result).startswith("(f32[], f32[], f32[4]")
    assert compiled.executable(parameters, jnp.arange(3.0)).vmfb
    compiled.clear_cache()
    assert "0 compiled" in repr(compiled)


def test_weak_types_scalars_and_x64_are_signatures_of_their_own() -> None:
    def f(x: Any) -> Any:
        return x * 2 + 1

    compiled = hloforge.jit(f)
    values = [1, 1.5, True, jnp.float32(2), np.float64(0.1), np.arange(3), jnp.asarray(3), np.int8(4)]
    for value in values:
        assert_same(compiled(value), jax.jit(f)(value))
    with jax.enable_x64(True):
        for value in (np.float64(0.1), 1, np.arange(3)):
            assert_same(compiled(value), jax.jit(f)(value), 1e-15)
    with pytest.raises(OverflowError):
        compiled(2**40)
    with pytest.raises(TypeError):
        compiled("text")


def test_static_arguments() -> None:
    class Model:
        factor = 3.0

        @partial(hloforge.jit, static_argnums=(0, 2), static_argnames="mode")
        def run(self, x: Any, times: int, mode: str = "product") -> Any:
            return self.factor * x * times if mode == "product" else x + times

    model, x = Model(), jnp.ones(2)
    assert model.run(x, 2).tolist() == [6.0, 6.0]
    assert model.run(x, times=3).tolist() == [9.0, 9.0]
    assert model.run(x, 2, mode="sum").tolist() == [3.0, 3.0]
    with pytest.raises(ValueError, match="Non-hashable"):
        model.run(x, [2])


def test_element_types() -> None:
    names = ["int2", "int4", "uint4", "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn", "bfloat16", "float16", "bool"]
    values = [jnp.asarray([0, 1, 1]).astype(name) for name in [*names, "uint16", "complex64"]]

    def f(*values: Any) -> Any:
        return values, [value[::-1] for value in values]

    got, expected = hloforge.jit(f)(*values), jax.jit(f)(*values)
    for one, other in zip(jax.tree.leaves(got), jax.tree.leaves(expected), strict=True):
        assert one.aval == other.aval
        assert np.asarray(one).tobytes() == np.asarray(other).tobytes()


def test_typed_keys_cross_in_both_directions() -> None:
    def f(key: Any, seed: Any) -> Any:
        return jax.random.split(key), jax.random.normal(key, (3,)), jax.random.key(seed)

    key = jax.random.key(3)
    got, expected = hloforge.jit(f)(key, 5), jax.jit(f)(key, 5)
    for number in (0, 2):
        assert got[number].aval == expected[number].aval
        assert (jax.random.key_data(got[number]) == jax.random.key_data(expected[number])).all()
    assert_same(got[1], expected[1])


def test_under_transformations_it_is_inlined_and_around_them_it_runs_them() -> None:
    inner = hloforge.jit(lambda x: jnp.sin(x) * x)
    assert_same(jax.grad(inner)(2.0), jax.grad(inner._jax)(2.0))
    assert_same(jax.vmap(inner)(jnp.arange(3.0)), jax.vmap(inner._jax)(jnp.arange(3.0)))
    # The argument is none of the transformation's, but the function sees one.
    assert jax.vmap(lambda y: hloforge.jit(lambda z: z + y)(1.0))(jnp.arange(3.0)).tolist() == [1.0, 2.0, 3.0]
    with jax.disable_jit():
        assert_same(inner(2.0), inner._jax(2.0))

    @jax.custom_vjp
    def scaled(x: Any) -> Any:
        return x * 2

    scaled.defvjp(lambda x: (x * 2, None), lambda _, g: (g * 7,))

    def around(x: Any) -> Any:
        def body(carry: Any, item: Any) -> Any:
            new = jax.lax.cond(item > 1, jnp.cos, inner, carry) + scaled(item)
            return new, new

        looped = jax.checkpoint(lambda x: jax.lax.scan(body, x, jnp.arange(3.0) * x)[0])
        while_ = jax.lax.while_loop(lambda v: v < 10, lambda v: v * 3, x)
        return jax.grad(looped)(x), jax.jacrev(looped)(x), jax.vmap(jax.grad(looped))(x + jnp.arange(2.0)), while_

    assert_same(hloforge.jit(around)(1.5), jax.jit(around)(1.5), 1e-5)


def test_callbacks(capfd: pytest.CaptureFixture[str]) -> None:
    seen = []

    @hloforge.jit
    def f(x: Any) -> Any:
        y = jax.pure_callback(np.sin, jax.ShapeDtypeStruct(x.shape, x.dtype), x)
        jax.experimental.io_callback(lambda v: seen.append(float(v[0])), None, y, ordered=True)
        jax.debug.print("y is {}", y[0])
        return y + 1

    for value in (0.0, 1.0):
        np.testing.assert_allclose(f(jnp.full(2, value)), np.sin(value) + 1, rtol=1e-6)
    jax.effects_barrier()
    np.testing.assert_allclose(seen, [0.0, np.sin(1.0)], rtol=1e-6)
    assert "y is 0.0" in capfd.readouterr().out
    failing = hloforge.jit(lambda x: jax.pure_callback(lambda v: 1 / 0, jax.ShapeDtypeStruct((), x.dtype), x))
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            failing(1.0)


def test_donated_arrays_are_updated_in_place_unless_somebody_looks() -> None:
    step = hloforge.jit(lambda state, x: (state.at[3].set(x), x + 1), donate_argnums=0)
    state, x = step(jnp.zeros(1 << 16), jnp.float32(0))
    # JAX calls from now on: it copies once what a call from Python has made.
    state, x = step(state, x)
    address = state.unsafe_buffer_pointer()
    for _ in range(2):
        given = state
        state, x = step(state, x)
        assert given.is_deleted()
        assert state.unsafe_buffer_pointer() == address
    assert float(state[3]) == 3
    view = np.asarray(state)
    new, x = step(state, x)
    assert view[3] == 3 and float(new[3]) == 4
    # Passed twice: the other use sees what was there.
    both = hloforge.jit(lambda a, b: (a.at[0].set(9.0), b + 1), donate_argnums=0)
    for _ in range(3):
        first, second = both(new, new)
        assert float(first[0]) == 9 and float(second[0]) == 1 and new.is_deleted()
        new = jnp.zeros(1 << 16)
    assert_same(step(np.zeros(1 << 16, np.float32), 1.0)[0][3], jnp.float32(1))


def test_large_results_are_shown_and_not_copied() -> None:
    f = hloforge.jit(lambda x: (x + 1, x[:8000] * 2))
    x = jnp.arange(1 << 16, dtype=jnp.float32)
    large, small = f(x)
    waiting, given = RESULTS.waiting, large.nbytes
    view = np.asarray(large)
    del large
    gc.collect()
    assert RESULTS.waiting == waiting and view[7] == 8
    del view
    gc.collect()
    assert RESULTS.waiting == waiting + given
    assert small.unsafe_buffer_pointer() % 64 == 0 and float(small[7]) == 14


def test_results_outlive_arguments() -> None:
    f = hloforge.jit(lambda x, y: (x, x, y, jnp.zeros(0), 3))
    for size in (4, 1 << 16):
        x = jnp.arange(size, dtype=jnp.float32)
        results = f(x, np.arange(size, dtype=np.float32))
        del x
        gc.collect()
        noise = [jnp.full(size, -1.0) for _ in range(4)]
        for result in results[:3]:
            assert (np.asarray(result) == np.arange(size)).all()
        assert results[3].shape == (0,) and results[4].weak_type
        del noise


def test_threads_share_what_one_compiles() -> None:
    traced = []

    @hloforge.jit
    def f(x: Any) -> Any:
        traced.append(1)
        return x @ x

    results: list[Any] = [None] * 8
    barrier = threading.Barrier(8)

    def work(number: int) -> None:
        barrier.wait()
        for _ in range(20):
            results[number] = f(jnp.full((4, 4), float(number)))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(traced) == 1
    assert [float(result[0, 0]) for result in results] == [4.0 * n * n for n in range(8)]


def changed_references(jit: Any) -> list[Any]:
    counter, total = jax.new_ref(jnp.zeros(2)), jax.new_ref(jnp.arange(5000.0))
    key = jax.new_ref(jax.random.key(0))

    @jit
    def f(x: Any, unused: Any, given: dict[str, Any]) -> Any:
        counter[...] += x  # captured
        given["total"][1] = x + given["total"][2]
        given["key"][...] = jax.random.fold_in(given["key"][...], 1)
        return {"x": x * 2, "drawn": jax.random.uniform(given["key"][...])}

    given = {"total": total, "key": key}
    results = [f(x, None, given) for x in (1.0, 2.0)]
    return [results, counter[...], total[...][:4], jax.random.key_data(key[...]), total[...].sum()]


def test_references_are_changed_as_by_jax() -> None:
    theirs, ours = (jax.tree.map(np.asarray, changed_references(jit)) for jit in (jax.jit, hloforge.jit))
    jax.tree.map(np.testing.assert_array_equal, ours, theirs)


def test_a_reference_is_given_once() -> None:
    write = hloforge.jit(lambda a, b: a.__setitem__(0, b[1]))
    one, other = jax.new_ref(jnp.zeros(2)), jax.new_ref(jnp.ones(2))
    write(one, other)
    assert one[...].tolist() == [1.0, 0.0]
    with pytest.raises(hloforge.ArgumentError, match="given twice"):
        write(one, one)
    assert one[...].tolist() == [1.0, 0.0]


def test_errors_say_what_and_where() -> None:
    with pytest.raises(hloforge.OptionError):
        hloforge.jit(jnp.sin, target="abacus")(1.0)
    with pytest.raises(hloforge.UnregisteredError, match="nothing_at_all"):
        call = jax.ffi.ffi_call("nothing_at_all", jax.ShapeDtypeStruct((), jnp.float32))
        hloforge.jit(lambda x: call(x))(jnp.float32(1))


@pytest.mark.parametrize("code", ["hloforge.jit(abs)", "hloforge.jax.compile(b'')"])
def test_without_jax_the_error_says_how_to_get_it(code: str) -> None:
    hidden = f"import sys; sys.modules['jax'] = None; import hloforge; {code}"
    done = subprocess.run([sys.executable, "-c", hidden], capture_output=True, text=True)
    assert "pip install 'hloforge[jax]'" in done.stderr.splitlines()[-1]


def test_nothing_is_said_at_exit() -> None:
    code = (
        "import jax.numpy as jnp, hloforge\n"
        "f = hloforge.jit(lambda s: s + 1, donate_argnums=0)\n"
        "small, large = f(jnp.zeros(3)), f(f(jnp.zeros(1 << 16)))\n"
        "assert float(large[5]) == 2\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout + done.stderr == ""
