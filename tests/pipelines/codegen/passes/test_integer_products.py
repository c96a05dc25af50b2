"""legalize-integer-products: scales are powers of two and sums below 2²⁴, so that XLA's floats are exact as well."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import hloforge
from hloforge.pipelines.codegen.lowering import lower
from tests.pipelines.codegen.jax_programs import check

_TYPES = st.sampled_from([np.int8, np.uint8])


def _codes(dtype: Any, *dims: int, seed: int) -> Any:
    limits = np.iinfo(dtype)
    return np.random.default_rng(seed).integers(limits.min, limits.max + 1, dims).astype(dtype)


def _numbers(codes: Any, zero: Any, scale: Any, form: str) -> Any:
    """What integers represent, as front ends write it."""
    if form == "floats":
        return (codes.astype(jnp.float32) - jnp.asarray(zero, jnp.float32)) * scale
    wide = jnp.int32 if form == "s32" else jnp.int16
    return (codes.astype(wide) - jnp.asarray(zero).astype(wide)).astype(jnp.float32) * scale


def _powers(data: st.DataObject, count: int, name: str) -> Any:
    found = data.draw(st.lists(st.integers(-6, 1), min_size=count, max_size=count), name)
    return np.exp2(np.array(found)).astype(np.float32)


@given(st.data())
@settings(max_examples=12, deadline=None)
def test_any_product(data: st.DataObject) -> None:
    """Of codes with and without signs, zero points that are known and not, scales of all and of columns."""
    m, n = data.draw(st.integers(1, 40), "m"), data.draw(st.integers(1, 70), "n")
    k = data.draw(st.integers(1, 130), "k")
    left, right = (_codes(data.draw(_TYPES, name), *dims, seed=k) for name, dims in (("l", (m, k)), ("r", (k, n))))
    is_known = data.draw(st.booleans(), "constant")
    zeros = data.draw(st.tuples(st.integers(-128, 255), st.integers(-128, 255)), "zeros")
    zeros = tuple(int(np.clip(z, *_limits(codes))) for z, codes in zip(zeros, (left, right), strict=True))
    forms = data.draw(st.tuples(*[st.sampled_from(["floats", "s32", "s16"])] * 2), "forms")
    columns = _powers(data, n if data.draw(st.booleans(), "columns") else 1, "scales")
    transposed = data.draw(st.booleans(), "transposed")

    def product(x: Any, w: Any, zero: Any) -> Any:
        w = jnp.asarray(right) if is_known else w
        x = _numbers(x, zero, np.float32(0.5), forms[0])
        w = _numbers(w, zeros[1], columns, forms[1])
        return (w.T @ x.T).T if transposed else x @ w

    if data.draw(st.booleans(), "known zero"):
        check(lambda x, w: product(x, w, left.dtype.type(zeros[0])), left, right)
    else:
        check(product, left, right, left.dtype.type(zeros[0]))


def _limits(codes: Any) -> tuple[int, int]:
    return np.iinfo(codes.dtype).min, np.iinfo(codes.dtype).max


@given(st.data())
@settings(max_examples=12, deadline=None)
def test_any_convolution(data: st.DataObject) -> None:
    """With features first and last, padding, strides, dilations, groups, and all of it quantized again."""
    channels, outputs = data.draw(st.integers(1, 9), "channels"), data.draw(st.integers(1, 20), "outputs")
    groups = data.draw(st.sampled_from([1, channels]), "groups")
    outputs = outputs * groups if groups > 1 else outputs
    size, window = data.draw(st.integers(3, 12), "size"), data.draw(st.integers(1, 3), "window")
    is_first = data.draw(st.booleans(), "features first")
    low, high = (data.draw(st.integers(0, 2), name) for name in ("low", "high"))
    stride, dilation, base = (data.draw(st.integers(1, 2), name) for name in ("stride", "dilation", "base"))
    kernel = _codes(data.draw(_TYPES, "kernel"), outputs, channels // groups, window, window, seed=size)
    image = _codes(data.draw(_TYPES, "image"), 2, channels, size, size, seed=channels)
    if not is_first:
        image = np.ascontiguousarray(image.transpose(0, 2, 3, 1))
    zero = data.draw(st.integers(*_limits(image)), "zero")
    other = data.draw(st.sampled_from([0, 3]), "zero of the kernel")
    scales = _powers(data, outputs if data.draw(st.booleans(), "channel") else 1, "scales").reshape(-1, 1, 1, 1)
    is_known = data.draw(st.booleans(), "constant")
    letters = ("NCHW", "OIHW", "NCHW") if is_first else ("NHWC", "OIHW", "NHWC")

    def convolution(x: Any, w: Any) -> Any:
        w = jnp.asarray(kernel) if is_known else w
        found = jax.lax.conv_general_dilated(
            _numbers(x, zero, np.float32(0.25), "s32"),
            _numbers(w, other, scales, "s32"),
            (stride, stride),
            ((low, high), (low, high)),
            (base, base),
            (dilation, dilation),
            letters,
            groups,
        )
        found = jnp.maximum(found, 0)
        return found, jnp.clip(jnp.round(found / np.float32(4)) + 3, 0, 255).astype(jnp.uint8)

    check(convolution, image, kernel)


def test_few_terms_of_all_types() -> None:
    """Sums that leave s32 stay floats; those of the largest codes that fit are exact."""
    depth = 33024
    x, w = np.zeros((2, depth), np.uint8), np.full((depth, 3), 255, np.uint8)
    check(lambda x, w: x.astype(jnp.int32) @ (w.astype(jnp.int32) - 1), x, w)
    text = _lowered(lambda x, w: x.astype(jnp.float32) @ (w.astype(jnp.float32) - 1), x[:, :32000], w[:32000])
    assert "xi32>" in text
    longer = np.zeros((2, 40000), np.uint8)
    assert "xi32>" not in _lowered(lambda x: x.astype(jnp.float32) @ (x.astype(jnp.float32).T - 1), longer)


def _lowered(function: Any, *arguments: Any) -> str:
    program = hloforge.as_program(jax.jit(function).lower(*arguments)).clone()
    lower(program.module)
    return str(program.module)


@pytest.mark.parametrize("order", ["NCHW", "NHWC"])
def test_layers_follow_each_other_in_bytes(order: str) -> None:
    """Two convolutions and what is between them: the images are bytes, and nothing is transposed between layers."""
    x = _codes(np.uint8, 1, 8, 8, 8, seed=1)
    kernels = [_codes(np.int8, 8, 8, 3, 3, seed=seed) for seed in (2, 3)]

    def layers(x: Any) -> Any:
        for kernel in kernels:
            found = jax.lax.conv_general_dilated(
                _numbers(x, 128, np.float32(0.125), "s32"),
                _numbers(jnp.asarray(kernel), 0, np.float32(0.5), "floats"),
                (1, 1),
                "SAME",
                dimension_numbers=(order, "OIHW", order),
            )
            x = jnp.clip(jnp.round(found / np.float32(64)) + 128, 0, 255).astype(jnp.uint8)
        return x

    check(layers, x)
    text = _lowered(layers, x)
    assert text.count("stablehlo.transpose") == (2 if order == "NCHW" else 0)
