"""Programs that JAX lowers with callbacks of the host: results and effects are those that JAX's own run has."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hloforge

jax = pytest.importorskip("jax")
jnp = pytest.importorskip("jax.numpy")
io_callback = pytest.importorskip("jax.experimental").io_callback

X = np.arange(4, dtype=np.float32)
FOUR = jax.ShapeDtypeStruct((4,), np.float32)


class Traced:
    """A program with each kind of callback, in a loop and in a condition too, and a record of those with effects."""

    def __init__(self) -> None:
        self.trace: list[Any] = []

    def saying(self, what: str, result: Any) -> Any:
        def call(*arguments: Any) -> Any:
            self.trace.append((what, *(np.asarray(argument).tolist() for argument in arguments)))
            return result

        return call

    def __call__(self, x: Any) -> Any:
        sine = jax.pure_callback(np.sin, FOUR, x)
        again = jax.pure_callback(np.sin, FOUR, x)
        scalar = jax.ShapeDtypeStruct((), np.int32)
        number = io_callback(self.saying("io", np.int32(5)), scalar, sine, ordered=True)

        def turn(i: Any, carry: Any) -> Any:
            jax.debug.callback(self.saying("turn", None), i, ordered=True)
            return carry + jax.pure_callback(np.cos, FOUR, carry)

        looped = jax.lax.fori_loop(0, 3, turn, sine)
        branch = jax.lax.cond(
            number > 4,
            lambda: io_callback(self.saying("yes", np.int32(1)), scalar, ordered=True),
            lambda: io_callback(self.saying("no", np.int32(2)), scalar, ordered=True),
        )
        jax.debug.callback(self.saying("end", None), branch, ordered=True)
        return sine + again, looped, branch


@pytest.mark.parametrize("device", ["local-sync", "local-task"])
def test_callbacks_run_as_in_jax(device: str) -> None:
    program = Traced()
    function = jax.jit(program)
    wanted = function(X)
    jax.effects_barrier()
    expected, program.trace = program.trace, []
    session = hloforge.compile(function.lower(X)).load(device=device)
    # JAX has a token for each kind of ordered effect, and no order between the kinds.
    results = session(None, None, X)
    for kind in (("io", "yes", "no"), ("turn", "end")):
        assert [call for call in program.trace if call[0] in kind] == [call for call in expected if call[0] in kind]
    assert results[:2] == (None, None)
    for result, want in zip(results[2:], wanted, strict=True):
        np.testing.assert_array_equal(result, want)


def test_prints(capsys: pytest.CaptureFixture[str]) -> None:
    def function(x: Any) -> Any:
        jax.debug.print("x is {x}, its sum {total}", x=x, total=x.sum())
        return x

    hloforge.compile(jax.jit(function).lower(X))(X)
    assert capsys.readouterr().out == "x is [0. 1. 2. 3.], its sum 6.0\n"


def test_types_sizes_and_batches() -> None:
    def flip(*arrays: Any) -> Any:
        return tuple(np.asarray(array)[::-1] for array in arrays)

    arrays = [
        jnp.arange(5).astype(dtype) for dtype in (jnp.bfloat16, jnp.int4, jnp.uint8, jnp.bool_, jnp.float8_e4m3fn)
    ] + [jnp.zeros((0, 3)), jnp.complex64([1 + 2j, 3])]
    shapes = tuple(jax.ShapeDtypeStruct(array.shape, array.dtype) for array in arrays)

    @jax.jit
    def function(*arrays: Any) -> Any:
        return jax.pure_callback(flip, shapes, *arrays)

    for result, wanted in zip(hloforge.compile(function.lower(*arrays))(*arrays), function(*arrays), strict=True):
        assert result.dtype == wanted.dtype
        np.testing.assert_array_equal(result, np.asarray(wanted))

    def double(x: Any) -> Any:
        shape = jax.ShapeDtypeStruct((), np.float32)
        return jax.pure_callback(lambda a: 2 * a, shape, x, vmap_method="sequential")

    batched = jax.jit(jax.vmap(double)).lower(X)
    np.testing.assert_array_equal(hloforge.compile(batched)(X), 2 * X)


def test_the_text_alone_has_no_callbacks() -> None:
    lowered = jax.jit(lambda x: jax.pure_callback(np.sin, FOUR, x)).lower(X)
    with pytest.raises(hloforge.UnregisteredError, match="@xla_ffi_python_cpu_callback") as caught:
        hloforge.compile(lowered.as_text())
    assert "compile what jax.jit(f).lower(x) returns" in caught.value.hint


def test_what_a_callback_keeps_does_not_change() -> None:
    kept: list[Any] = []
    lowered = jax.jit(lambda x: jax.pure_callback(lambda a: (kept.append(a), a)[1], FOUR, x + 1)).lower(X)
    session = hloforge.compile(lowered).load()
    for factor in (1, 2, 3):
        session(X * np.float32(factor))
    assert [np.asarray(array).tolist() for array in kept] == [(X * factor + 1).tolist() for factor in (1, 2, 3)]


def test_exceptions_come_out_as_themselves() -> None:
    def fail(x: Any) -> Any:
        raise LookupError("not here")

    def function(x: Any) -> Any:
        jax.debug.callback(fail, x)
        return x

    session = hloforge.compile(jax.jit(function).lower(X)).load()
    for _ in range(2):
        with pytest.raises(LookupError, match="not here"):
            session(X)


def test_callbacks_of_one_program_are_not_those_of_another(tmp_path: Any) -> None:
    """Two programs of equal text: the cache has the second one, which only its callbacks tell apart."""

    def lowered(factor: int) -> Any:
        return jax.jit(lambda x: jax.pure_callback(lambda a: np.asarray(a) * np.float32(factor), FOUR, x)).lower(X)

    executables = [hloforge.compile(lowered(factor), name="same") for factor in (2, 3)]
    for executable, factor in zip(executables, (2, 3), strict=True):
        np.testing.assert_array_equal(executable(X), X * factor)
    path = tmp_path / "callback.vmfb"
    executables[0].save(path)
    with pytest.raises(hloforge.LoadError, match="that are not registered: xla_ffi_python_cpu_callback"):
        hloforge.load(path)
    session = hloforge.load(path, host={"xla_ffi_python_cpu_callback": [lambda a: (a - 1,)]})
    np.testing.assert_array_equal(session(X), X - 1)
    with pytest.raises(hloforge.LoadError, match="callback 0 of @xla_ffi_python_cpu_callback, which has 0"):
        hloforge.load(path, host={"xla_ffi_python_cpu_callback": []})


class Nested:
    """A random program of loops and branches in each other, whose host hears of every turn, and may end a loop."""

    def __init__(self, seed: int) -> None:
        self.seed, self.heard = seed, []

    def __call__(self, x: Any) -> Any:
        self._rng = np.random.default_rng(self.seed)
        return self._block(x, 3)

    def _block(self, x: Any, depth: int) -> Any:
        for _ in range(self._rng.integers(1, 4)):
            kinds = [self._told, self._pure, lambda x, _: jnp.sin(x) * 2]
            kind = kinds[self._rng.integers(3)] if not depth else self._rng.choice([self._for, self._while, self._if])
            x = kind(x, depth)
        return x

    def _told(self, x: Any, _: int) -> Any:
        number = int(self._rng.integers(100))

        def hear(x: Any) -> Any:
            self.heard.append((number, x.tolist()))
            return x + np.float32(1)

        return io_callback(hear, FOUR, x, ordered=True)

    def _pure(self, x: Any, _: int) -> Any:
        return jax.pure_callback(lambda x: x * np.float32(0.5), FOUR, x)

    def _for(self, x: Any, depth: int) -> Any:
        turns = int(self._rng.integers(1, 4))
        return jax.lax.fori_loop(0, turns, lambda _, x: self._block(x, depth - 1), x)

    def _while(self, x: Any, depth: int) -> Any:
        most = float(self._rng.integers(2, 8))
        low = jax.ShapeDtypeStruct((), np.bool_)

        def more(carry: Any) -> Any:
            return jax.pure_callback(lambda n: np.bool_(n < most), low, carry[0])

        return jax.lax.while_loop(more, lambda c: (c[0] + 2, self._block(c[1], depth - 1)), (jnp.float32(0), x))[1]

    def _if(self, x: Any, depth: int) -> Any:
        holds = x[self._rng.integers(4)] > float(self._rng.normal())
        return jax.lax.cond(holds, lambda: self._block(x, depth - 1), lambda: self._told(x, 0))


@pytest.mark.parametrize("seed", range(4))
def test_the_host_of_random_loops_hears_what_that_of_jax_hears(seed: int) -> None:
    program = Nested(seed)
    function = jax.jit(program)
    wanted = function(X)
    jax.effects_barrier()
    expected, program.heard = program.heard, []
    executable = hloforge.compile(function.lower(X))
    assert executable.manifest.is_generated
    *_, result = executable(*(None for _ in executable.manifest.signature.parameters[1:]), X)
    np.testing.assert_allclose(result, wanted, rtol=1e-5)
    assert [number for number, _ in program.heard] == [number for number, _ in expected]
    np.testing.assert_allclose([x for _, x in program.heard], [x for _, x in expected], rtol=1e-5)
