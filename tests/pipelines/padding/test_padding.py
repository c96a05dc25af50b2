"""A bucket's program computes what JAX computes at every size up to the bucket's, whatever lies in the padding."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="needs the extra `jax`")
import jax.numpy as jnp  # noqa: E402
from jax import export  # noqa: E402

import hloforge  # noqa: E402
from hloforge.api import as_program  # noqa: E402
from hloforge.dialect.errors import ArgumentError, OptionError, UnsupportedError  # noqa: E402
from hloforge.pipelines.padding.open_sizes import affine, open_sizes  # noqa: E402
from hloforge.pipelines.padding.sizes import Fits, fitted_number  # noqa: E402
from hloforge.runtime.compile.families import Padding, points_of  # noqa: E402
from hloforge.runtime.session.bucketed import _cut  # noqa: E402

FEATURES = 8
WEIGHTS = np.random.default_rng(1).normal(size=(FEATURES, FEATURES)).astype(np.float32) / 3
KERNEL = np.random.default_rng(2).normal(size=(3, FEATURES, FEATURES)).astype(np.float32) / 4
Layer = Callable[[Any], Any]
# A function of [rows, length, features].
ROWS, LENGTH = (2, 5), (2, 24)


def _attention(x: Any) -> Any:
    rows, length, _ = x.shape
    parts = [(x @ WEIGHTS * n).reshape(rows, length, 2, 4).transpose(0, 2, 1, 3) for n in (1, 0.5, 2)]
    scores = parts[0] @ parts[1].transpose(0, 1, 3, 2) / 2
    mask = jnp.arange(length)[:, None] >= jnp.arange(length)
    found = jax.nn.softmax(jnp.where(mask, scores, -jnp.inf), -1) @ parts[2]
    return x + found.transpose(0, 2, 1, 3).reshape(rows, length, FEATURES)


def _convolved(x: Any) -> Any:
    return jax.lax.conv_general_dilated(x, KERNEL, (1,), [(1, 1)], dimension_numbers=("NWC", "WIO", "NWC"))


def _recurrent(x: Any, *, reverse: bool = False) -> Any:
    def step(state: Any, given: Any) -> Any:
        state = jnp.tanh(state @ WEIGHTS + given)
        return state, state

    _, found = jax.lax.scan(step, jnp.zeros((x.shape[0], FEATURES)), x.transpose(1, 0, 2), reverse=reverse)
    return found.transpose(1, 0, 2)


def _pooled(x: Any, stride: int) -> Any:
    return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 3, 1), (1, stride, 1), [(0, 0), (1, 1), (0, 0)])


def _merged(x: Any) -> Any:
    flat = x.reshape(-1, FEATURES)
    return ((flat - flat.mean(0)) / (1 + flat.std(0))).reshape(x.shape)


# Each gives what it takes.
LAYERS: dict[str, Layer] = {
    "dense": lambda x: jax.nn.gelu(x @ WEIGHTS),
    "attention": _attention,
    "convolution": _convolved,
    "scan": _recurrent,
    "reverse scan": lambda x: _recurrent(x, reverse=True),
    "sums": lambda x: jnp.cumsum(x, 1) / x.shape[1],
    "reverse sums": lambda x: jax.lax.cumsum(x, 1, reverse=True) / 8,
    "products": lambda x: jnp.cumprod(jnp.tanh(x), 0),
    "greatest so far": lambda x: jax.lax.cummax(x, 1),
    "sorted": lambda x: jnp.sort(x, 1),
    "sorted rows": lambda x: -jnp.sort(-x, 0),
    "median": lambda x: x - jnp.median(x, 1, keepdims=True),
    "centred": lambda x: x - x.mean((0, 1)) / (1 + x.var(1, keepdims=True)),
    "softmax over rows": lambda x: jax.nn.softmax(x, 0) * x,
    "merged": _merged,
    "merged and sorted": lambda x: jnp.sort(x.reshape(-1, FEATURES), 0).reshape(x.shape),
    "flipped": lambda x: jnp.flip(x, 1) + x,
    "rolled": lambda x: jnp.concatenate([x[:, 1:], x[:, :1]], 1),
    "joined": lambda x: jnp.concatenate([x, 2 * x], 1)[:, x.shape[1] :],
    "padded": lambda x: jnp.pad(x, ((0, 0), (2, 0), (0, 0)), constant_values=3.0)[:, 1:-1],
    "pooled": lambda x: _pooled(x, 1),
    "positions": lambda x: x + jnp.arange(x.shape[1])[:, None] / x.shape[1] + jnp.arange(x.shape[0])[:, None, None],
    "taken": lambda x: jnp.take_along_axis(x, jnp.argsort(x, 1), 1),
    "added": lambda x: jnp.zeros_like(x).at[:, jnp.argsort(x[0, :, 0])].add(x),
    "turned": lambda x: (x.transpose(1, 0, 2) * 2).transpose(1, 0, 2),
    "scaled": lambda x: x / jnp.sqrt(1.0 * x.shape[1]) + x.shape[0],
}
HEADS: dict[str, Layer] = {
    "all": lambda x: x,
    "last": lambda x: (x[:, -1], x[:, 0], x[-1]),
    "extremes": lambda x: (x.max(1), x.min((0, 1)), x.argmax(1), x.argmin(0)),
    "flat": lambda x: (x.reshape(-1, FEATURES), x.reshape(x.shape[0], -1)),
    "scores": lambda x: (jnp.einsum("abc,dbc->ad", x, x), jnp.einsum("abc,aec->be", x, x)),
    "every other": lambda x: (x[:, ::2], _pooled(x, 2), _pooled(_pooled(x, 2), 2)),
    "best": lambda x: jax.lax.top_k(x.transpose(0, 2, 1), 2),
}


def _exported(function: Layer) -> Any:
    rows, length = export.symbolic_shape("n, m", constraints=["n >= 2", "m >= 2"])
    return export.export(jax.jit(function))(jax.ShapeDtypeStruct((rows, length, FEATURES), jnp.float32))


def _check(function: Layer, sizes: Sequence[tuple[int, int]]) -> None:
    """The program of one bucket, with NaN in the padding of its argument, beside JAX's own result."""
    program = as_program(_exported(function))
    padding = Padding(program, open_sizes(program), ((ROWS[1],), (LENGTH[1],)))
    made = padding.padded([ROWS[1], LENGTH[1]])
    session = hloforge.compile(made.program).load()
    rng = np.random.default_rng(0)
    for rows, length in sizes:
        x = rng.normal(size=(rows, length, FEATURES)).astype(np.float32)
        whole = np.full((ROWS[1], LENGTH[1], FEATURES), np.nan, np.float32)
        whole[:rows, :length] = x
        found = session(whole, np.int64(rows), np.int64(length))
        cut = _cut(found if isinstance(found, tuple) else (found,), made.cuts)
        expected = jax.tree.leaves(jax.jit(function)(x))
        for one, other in zip(cut, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=2e-3, atol=2e-4, err_msg=f"{rows} x {length}")


EDGES = [(2, 2), (5, 24), (2, 24), (5, 2), (3, 23), (4, 7)]


@pytest.mark.wide(6)
@pytest.mark.parametrize("name", LAYERS)
def test_layers_are_those_of_jax_at_all_sizes(name: str) -> None:
    _check(LAYERS[name], EDGES)


@pytest.mark.wide(2)
@pytest.mark.parametrize("name", HEADS)
def test_heads_are_those_of_jax_at_all_sizes(name: str) -> None:
    _check(HEADS[name], EDGES)


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(n, marks=pytest.mark.slow) for n in range(2, 30))])
def test_random_programs_are_those_of_jax(seed: int) -> None:
    draw = random.Random(seed)
    # What sorts decides by the last bit of what comes before it: places of elements are no results here.
    smooth = [name for name in LAYERS if name not in ("taken", "added")]
    chosen = [LAYERS[draw.choice(smooth)] for _ in range(4)]
    head = HEADS[draw.choice([name for name in HEADS if name not in ("extremes", "best")])]

    def function(x: Any) -> Any:
        for layer in chosen:
            x = jnp.tanh(layer(x))
        return head(x)

    _check(function, EDGES)


def test_buckets_of_an_export_are_chosen_and_cut() -> None:
    program = hloforge.compile(_exported(_merged), buckets={"n": [2, 5], "m": "8..24"})
    session = program.load()
    for rows, length in [(2, 2), (2, 8), (3, 9), (5, 24), (6, 30)]:
        x = np.random.default_rng(0).normal(size=(rows, length, FEATURES)).astype(np.float32)
        np.testing.assert_allclose(session(x), jax.jit(_merged)(x), rtol=1e-3, atol=1e-4)
    used = [bucket.sizes for bucket in session.buckets if bucket.calls]
    assert used == [{"n": 2, "m": 8}, {"n": 5, "m": 16}, {"n": 5, "m": 24}]
    with pytest.raises(ArgumentError):
        session(np.zeros((2, 2, FEATURES + 1), np.float32))


def test_constraints_of_an_export_are_bounds() -> None:
    rows, length = export.symbolic_shape("n, 2*m + 1", constraints=["n <= 16", "m >= 3"])
    shapes = [jax.ShapeDtypeStruct(dims, jnp.float32) for dims in ((rows, length), (3,), (rows,))]
    program = as_program(export.export(jax.jit(lambda x, y, z: (x + 1, y, z)))(*shapes))
    found = {size.name: size for size in open_sizes(program)}
    assert (found["n"].least, found["n"].most, len(found["n"].places)) == (1, 16, 2)
    assert (found["m"].least, found["m"].most) == (3, None)
    assert (found["m"].places[0].factor, found["m"].places[0].rest) == (2, 1)


def test_bounded_stablehlo_has_buckets_of_all_its_sizes() -> None:
    text = """
    func.func @main(%x: tensor<?x4xf32, #stablehlo.bounds<8, ?>>) -> tensor<4xf32> {
      %zero = stablehlo.constant dense<0.0> : tensor<f32>
      %y = stablehlo.exponential %x : tensor<?x4xf32, #stablehlo.bounds<8, ?>>
      %r = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [0]
        : (tensor<?x4xf32, #stablehlo.bounds<8, ?>>, tensor<f32>) -> tensor<4xf32>
      return %r : tensor<4xf32>
    }"""
    session = hloforge.compile(text, buckets="all").load()
    for rows in range(1, 9):
        x = np.random.default_rng(rows).normal(size=(rows, 4)).astype(np.float32)
        np.testing.assert_allclose(session(x), np.exp(x).sum(0), rtol=1e-5)
    assert [bucket.sizes["arg0.0"] for bucket in session.buckets if bucket.calls] == [1, 2, 4, 8]


def _shifted_windows(x: Any) -> Any:
    """Where the first window begins depends on whether the length is even."""
    return jax.lax.reduce_window(x, 0.0, jax.lax.add, (1, 3, 1), (1, 2, 1), "SAME")


def test_what_no_number_leaves_alone_is_refused_with_its_place() -> None:
    with pytest.warns(UserWarning, match=r"no buckets, because padding might change results: stablehlo\.\w+: .*\("):
        program = hloforge.compile(_exported(_shifted_windows), buckets={"n": "2..5", "m": "2..24"})
    assert program.load().buckets == ()


def test_unknown_sizes_and_unbounded_ones_are_errors() -> None:
    with pytest.raises(OptionError, match="no open size is called 'k'"):
        hloforge.compile(_exported(_merged), buckets={"k": "1..8"})
    with pytest.raises(OptionError, match="nothing bounds the size n"):
        hloforge.compile(_exported(_merged), buckets="all")


def test_sizes_are_found_from_their_values() -> None:
    points = points_of([(2, 40), (3, 90)])
    fits = Fits(points)
    for form in (
        lambda n, m: n * m,
        lambda n, m: 3 * n + 2 * m - 1,
        lambda n, m: 7 - n + n * m,
        lambda n, m: (m - 1) // 2,
        lambda n, m: n * n,
    ):
        found = fits.of([form(*point) for point in points])
        assert found is not None
        for point in [(2, 3), (17, 50), (40, 90), (9, 8)]:
            assert found.at(point) == form(*point)
    assert fits.of([n % 3 for n, _ in points]) is None
    number = fitted_number(fits, [np.float32(1 / (n * m)) for n, m in points])
    assert number is not None and number.form == "reciprocal"
    assert fitted_number(fits, [np.float32(np.sin(n)) for n, _ in points]) is None


def test_ranges_of_few_sizes_are_looked_at_whole() -> None:
    assert points_of([(2, 3)]) == [(3,), (2,)]
    assert len(points_of([(2, 4), (3, 6)])) == 12
    assert all(
        low <= n <= high
        for point in points_of([(2, 90)] * 9)
        for n, (low, high) in zip(point, [(2, 90)] * 9, strict=True)
    )
    few = Fits([(3,), (2,)])
    found = few.of([24, 16])
    assert found is not None
    assert (found.at((2,)), found.at((3,))) == (16, 24)
    # Of two sizes among many, anything is a sum.
    assert Fits([(30,), (2,)]).of([24, 16]) is None


def test_expressions_of_sizes() -> None:
    assert affine("2*m + 1", "x.0") == ("m", 2, 1)
    assert affine("m - 3", "x.0") == ("m", 1, -3)
    assert affine("", "x.0") == ("x.0", 1, 0)
    assert affine("batch size", "x.0") == ("batch size", 1, 0)
    for text in ("n + m", "n*m", "4 - n"):
        with pytest.raises(UnsupportedError):
            affine(text, "x.0")


def test_no_warning_where_all_operations_have_rules() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert hloforge.compile(_exported(_attention), buckets={"n": "2..5", "m": [24]}).load().buckets
