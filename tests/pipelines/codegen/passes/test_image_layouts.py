"""Networks whose images have their features first, with XLA's numbers after they are exchanged."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from jax import lax

import hloforge
from hloforge.dialect.operations import operations
from hloforge.dialect.program import Program
from hloforge.pipelines.codegen.lowering import lower
from hloforge.pipelines.codegen.passes import image_layouts
from hloforge.runtime.reference.engines import reference
from tests.pipelines.codegen.jax_programs import check, normal
from tests.pipelines.codegen.whole_programs import compiled

_KINDS = ["conv", "depthwise", "groups", "norm", "pool", "mean", "gate", "join", "slice", "pad", "turn", "resize"]


def _weights(*shape: int) -> np.ndarray[Any, Any]:
    return normal(*shape) / np.sqrt(np.prod(shape[1:])).astype(np.float32)


def _conv(x: Any, w: Any, step: int = 1, *, groups: int = 1, dilation: int = 1) -> Any:
    edge, space = w.shape[2] // 2 * dilation, "DHW"[-(x.ndim - 2) :]
    return lax.conv_general_dilated(
        x,
        w,
        (step,) * len(space),
        [(edge, edge)] * len(space),
        rhs_dilation=(dilation,) * len(space),
        dimension_numbers=("NC" + space, "OI" + space, "NC" + space),
        feature_group_count=groups,
    )


def _layer(data: st.DataObject, x: Any, number: int) -> Any:
    """One more layer, of constants that the number chooses."""
    count, space = x.shape[1], x.ndim - 2
    vector = _weights(count, 1).reshape(count)
    kind = data.draw(st.sampled_from(_KINDS))
    if kind == "conv":
        window, step = data.draw(st.sampled_from([(1, 1), (3, 1), (3, 2), (1, 2)]))
        return _conv(x, _weights(data.draw(st.sampled_from([4, 16, 20])), count, *(window,) * space), step)
    if kind == "depthwise":
        return _conv(x, _weights(count, 1, *(3,) * space), groups=count, dilation=data.draw(st.integers(1, 2)))
    if kind == "groups":
        return x + _conv(x, _weights(count, count // 2, *(3,) * space), groups=2) if count % 2 == 0 else x
    if kind == "norm":
        ones = (1,) * space
        return jnp.maximum(x * vector.reshape(-1, *ones) + jnp.asarray(vector).reshape(1, -1, *ones), 0)
    if kind == "pool":
        windows, edges = (1, 1, 3, 2, 2)[: x.ndim], [(0, 0), (0, 0), (1, 1), (0, 1), (1, 0)][: x.ndim]
        return lax.reduce_window(x, -np.inf, lax.max, windows, (1,) * x.ndim, edges)
    if kind == "mean":
        return x - x.mean(1, keepdims=True)
    if kind == "gate":
        pooled = x.mean(tuple(range(2, x.ndim)), keepdims=True)
        return x * jax.nn.sigmoid(_conv(pooled, _weights(count, count, *(1,) * space)))
    if kind == "join":
        return jnp.concatenate([x, jnp.tanh(x), x * number], data.draw(st.integers(1, x.ndim - 1)))
    if kind == "resize":
        rows, columns = np.array([0, x.shape[2] - 1, 0], np.int32), np.arange(0, x.shape[-1], 2, dtype=np.int32)
        # Rows of pixels, and pixels by both coordinates.
        return x[:, :, rows[:, None], columns[None, :]] + x[:, :, rows][..., columns] if space == 2 else x[:, :, rows]
    if kind == "slice":
        kept = slice(max(count // 2, 1)), slice(1, None), slice(None, None, 2)
        return x[(slice(None), *kept)[: x.ndim]] if min(x.shape[2:]) > 3 else x
    if kind == "pad":
        return jnp.pad(x, ((0, 0), (0, 1), (1, 0), (0, 2), (1, 1))[: x.ndim], constant_values=0.5)
    if number % 2 and space > 1:
        return jnp.swapaxes(x[:, :, ::-1], -1, -2)
    return x[..., ::-1]


@given(data=st.data())
@settings(max_examples=12, deadline=None)
def test_random_networks(data: st.DataObject) -> None:
    images, features = data.draw(st.integers(1, 2)), data.draw(st.sampled_from([3, 8]))
    sizes = data.draw(st.sampled_from([(9, 10), (9, 10), (21,), (5, 6, 4)]))
    count = data.draw(st.integers(1, 5))

    def network(x: Any) -> Any:
        space = x.ndim - 2
        x = seen = _conv(x, _weights(16, features, *(3,) * space))
        for number in range(count):
            x = _layer(data, x, number)
        x = _conv(x, _weights(8, x.shape[1], *(1,) * space))
        return x.mean(tuple(range(2, x.ndim))), x.reshape(x.shape[0], -1), jnp.moveaxis(seen, 1, -1)

    x = normal(images, features, *sizes)
    program = hloforge.as_program(jax.jit(network).lower(x))
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"_COPIED": 0.0, "_NARROW": 1.0, "_GROUPED": 1.0, "_WINDOWS": 1.0}.items():
            patch.setattr(image_layouts, name, value)
        _check(program, x)


def _check(program: Program, *arguments: Any) -> None:
    expected = reference("xla", isolated=False).prepare(program)(*arguments)
    for got, want in zip(compiled(program).load()(*arguments), expected, strict=True):
        np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=0, atol=2e-5 * np.abs(want).max(initial=1))


def _transpositions(function: Any, *arguments: Any) -> tuple[int, list[str]]:
    """Of a lowered program: transpositions, and the dimension numbers of its convolutions' results."""
    module = hloforge.as_program(jax.jit(function).lower(*arguments)).clone().module
    lower(module)
    found = operations(module, {"stablehlo.convolution"})
    names = [str(op.attributes["dimension_numbers"]).rpartition("->")[2].rstrip(">") for op in found]
    return len(operations(module, {"stablehlo.transpose"})), names


def _residual(x: Any) -> Any:
    x = jnp.maximum(_conv(x, _weights(64, 3, 7, 7), 2), 0)
    x = lax.reduce_window(x, -np.inf, lax.max, (1, 1, 3, 3), (1, 1, 2, 2), [(0, 0), (0, 0), (1, 1), (1, 1)])
    for _ in range(2):
        y = jnp.maximum(_conv(x, _weights(64, 64, 3, 3)), 0)
        x = jnp.maximum(x + _conv(y, _weights(64, 64, 3, 3)) + np.ones((64, 1, 1), np.float32), 0)
    return x.mean((2, 3))


def test_no_copy_is_left_of_a_residual_network() -> None:
    x = normal(1, 3, 64, 64)
    assert _transpositions(_residual, x) == (0, ["[b, 0, 1, f]"] * 5)
    check(_residual, x)


def test_lines_and_volumes_are_images() -> None:
    """A speech encoder, whose result is transposed, and a video network."""

    def encoder(x: Any) -> Any:
        x = jax.nn.relu(_conv(x, _weights(64, 80, 3)))
        return jnp.swapaxes(jax.nn.relu(_conv(x, _weights(64, 64, 3), 2)), 1, 2)

    def video(x: Any) -> Any:
        x = jax.nn.relu(_conv(x, _weights(64, 3, 3, 3, 3)))
        return _conv(x, _weights(64, 64, 3, 3, 3)).mean((2, 3, 4))

    for function, x, names in (
        (encoder, normal(1, 80, 300), ["[b, 0, f]"] * 2),
        (video, normal(1, 3, 8, 16, 16), ["[b, 0, 1, 2, f]"] * 2),
    ):
        assert _transpositions(function, x)[1] == names
        check(function, x)


def test_few_features_are_read_as_they_lie_in_the_part_itself() -> None:
    """An image of four features, which the convolution reads and its sum ties to the result."""
    weights = [_weights(64, 64, 3, 3), _weights(4, 64, 3, 3), _weights(4, 4, 3, 3), _weights(64, 4, 1, 1)]

    def network(x: Any) -> Any:
        x = _conv(_conv(x, weights[0]), weights[1])
        return _conv(x + _conv(x, weights[2]), weights[3]).mean((2, 3))

    x = normal(1, 64, 12, 12)
    assert _transpositions(network, x)[1] == ["[b, 0, 1, f]"] * 4
    check(network, x)


@pytest.mark.parametrize(("window", "groups"), [(1, 1), (3, 32)])
def test_what_gains_nothing_stays(window: int, groups: int) -> None:
    """One convolution between copies, and groups whose features fill no vector."""
    x, w = normal(1, 64, 28, 28), _weights(64, 64 // groups, window, window)
    assert _transpositions(lambda x: _conv(x, w, groups=groups), x) == (0, ["[b, f, 0, 1]"])


def test_weights_that_are_arguments_stay_where_they_are() -> None:
    x, w, v = normal(1, 64, 56, 56), _weights(64, 64, 1, 1), _weights(64, 64, 1, 1)
    count, names = _transpositions(lambda x, w, v: _conv(_conv(x, w), v).mean((2, 3)), x, w, v)
    assert (count, names) == (1, ["[b, 0, 1, f]"] * 2)
    check(lambda x, w, v: _conv(_conv(x, w), v).mean((2, 3)), x, w, v)


@pytest.mark.parametrize(("groups", "outputs"), [(1, 64), (1, 20), (2, 64), (16, 64)])
def test_bf16_is_multiplied_in_pairs(groups: int, outputs: int) -> None:
    """Of features of one pixel, which become the last dimension where they fill vectors."""
    x = normal(1, 64, 28, 28).astype(jnp.bfloat16)
    w = _weights(outputs, 64 // groups, 3, 3).astype(jnp.bfloat16)
    moves = outputs // groups >= 16
    function = functools.partial(_conv, groups=groups)
    assert _transpositions(function, x, w)[1] == ["[b, 0, 1, f]" if moves else "[b, f, 0, 1]"]
    check(function, x, w)


@pytest.mark.parametrize("is_last", [True, False])
def test_few_features_of_bf16_keep_their_order(is_last: bool) -> None:
    """Eight of them fill half of a vector or register: that is worth no copy, of either order."""
    x = normal(*((1, 28, 28, 64) if is_last else (1, 64, 28, 28))).astype(jnp.bfloat16)
    w = _weights(8, 64, 3, 3).astype(jnp.bfloat16)

    def function(x: Any, w: Any) -> Any:
        if not is_last:
            return _conv(x, w)
        return jnp.transpose(_conv(jnp.transpose(x, (0, 3, 1, 2)), w), (0, 2, 3, 1))

    assert _transpositions(function, x, w) == (0, ["[b, 0, 1, f]" if is_last else "[b, f, 0, 1]"])
    check(function, x, w)


@pytest.mark.parametrize("kind", [jnp.float32, jnp.bfloat16])
def test_few_features_that_are_last_stay_last(kind: Any) -> None:
    """An image of three features that the program transposes for its first convolution alone."""
    x, w = normal(1, 32, 32, 3).astype(kind), _weights(64, 3, 7, 7).astype(kind)

    def function(x: Any, w: Any) -> Any:
        return jnp.transpose(_conv(jnp.transpose(x, (0, 3, 1, 2)), w, 2), (0, 2, 3, 1))

    assert _transpositions(function, x, w) == (0, ["[b, 0, 1, f]"])
    check(function, x, w)


@pytest.mark.parametrize("features", [3, 64])
def test_weights_whose_features_are_last_stay_so(features: int) -> None:
    """As PyTorch's ``channels_last`` has them, transposed for the convolution alone."""
    x = normal(1, 32, 32, features).astype(jnp.bfloat16)
    w = (normal(64, 3, 3, features) / 24).astype(jnp.bfloat16)

    def function(x: Any, w: Any) -> Any:
        made = _conv(jnp.transpose(x, (0, 3, 1, 2)), jnp.transpose(w, (0, 3, 1, 2)))
        return jnp.transpose(made, (0, 2, 3, 1))

    assert _transpositions(function, x, w) == (0, ["[b, 0, 1, f]"])
    check(function, x, w)
