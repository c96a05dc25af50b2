"""Parts of networks beside plain layers: other convolutions, graphs, routing, codebooks, selective scans."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from benchmarks.perf_fuzz.arguments import integers, normal, uniform, weights
from benchmarks.perf_fuzz.drawing import Draw
from benchmarks.perf_fuzz.kinds.dense import activation
from benchmarks.perf_fuzz.registry import Drawn, drawn, kind

_IMAGES = ("NHWC", "HWIO", "NHWC")


@kind("networks", gradient=True)
def grouped_convolution(draw: Draw) -> Drawn:
    height, width = draw.image(3e3)
    groups, inner, outer = draw.pick(2, 3, 4, 8, 32), draw.size(1, 16), draw.size(1, 16)
    side, batch = draw.pick(1, 3, 3, 5), draw.size(1, 3)
    dtype = draw.float_type()

    def function(x: Any, w: Any) -> Any:
        return jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=_IMAGES, feature_group_count=groups)

    return drawn(
        function, normal(batch, height, width, groups * inner, dtype=dtype),
        weights(side, side, inner, groups * outer, dtype=dtype, inputs=side * side * inner),
    )  # fmt: skip


@kind("networks", gradient=True)
def dilated_convolution(draw: Draw) -> Drawn:
    """Windows with holes, as of segmentation networks and WaveNet."""
    features, outputs, dilation = draw.size(1, 48), draw.size(1, 48), draw.pick(2, 2, 3, 4, 8)
    dtype = draw.float_type()
    if draw.chance(0.5):
        length, side, batch = draw.size(16, 4000), draw.pick(2, 3, 5), draw.size(1, 4)

        def in_time(x: Any, w: Any) -> Any:
            padding = [((side - 1) * dilation, 0)]
            return jax.nn.relu(
                jax.lax.conv_general_dilated(
                    x, w, (1,), padding, rhs_dilation=(dilation,), dimension_numbers=("NWC", "WIO", "NWC")
                )
            )

        return drawn(
            in_time, normal(batch, length, features, dtype=dtype),
            weights(side, features, outputs, dtype=dtype, inputs=side * features),
        )  # fmt: skip
    height, width = draw.image(3e3)

    def function(x: Any, w: Any) -> Any:
        return jax.lax.conv_general_dilated(
            x, w, (1, 1), "SAME", rhs_dilation=(dilation, dilation), dimension_numbers=_IMAGES
        )

    return drawn(
        function, normal(1, height, width, features, dtype=dtype),
        weights(3, 3, features, outputs, dtype=dtype, inputs=9 * features),
    )  # fmt: skip


@kind("networks", gradient=True)
def convolution_in_space(draw: Draw) -> Drawn:
    """Of volumes or videos."""
    features, outputs, side = draw.size(1, 24), draw.size(1, 24), draw.pick(1, 3, 3, 5)
    depth, height, width = draw.sizes(draw.work(3e2, 2e4), 3, least=4)
    stride = draw.pick(1, 1, 2)

    def function(x: Any, w: Any, b: Any) -> Any:
        y = jax.lax.conv_general_dilated(x, w, (stride,) * 3, "SAME", dimension_numbers=("NDHWC", "DHWIO", "NDHWC"))
        return jax.nn.relu(y + b)

    return drawn(
        function, normal(1, depth, height, width, features),
        weights(side, side, side, features, outputs, inputs=side**3 * features), normal(outputs),
    )  # fmt: skip


@kind("networks", gradient=True)
def convolution_of_channels_first(draw: Draw) -> Drawn:
    """NCHW, as PyTorch's models have it, with its batch norm's scales."""
    height, width = draw.image(3e3)
    features, outputs, stride = draw.size(1, 48), draw.size(1, 48), draw.pick(1, 1, 2)

    def function(x: Any, w: Any, scale: Any, shift: Any) -> Any:
        y = jax.lax.conv_general_dilated(x, w, (stride, stride), [(1, 1), (1, 1)])
        return jax.nn.relu(y * scale[:, None, None] + shift[:, None, None])

    return drawn(
        function, normal(draw.size(1, 4), features, height, width),
        weights(outputs, features, 3, 3, inputs=9 * features), normal(outputs), normal(outputs),
    )  # fmt: skip


@kind("networks", gradient=True)
def squeeze_and_excite(draw: Draw) -> Drawn:
    height, width = draw.image(4e3)
    batch, features, hidden = draw.size(1, 6), draw.size(4, 96), draw.size(2, 16)

    def function(x: Any, down: Any, up: Any) -> Any:
        pooled = x.mean((1, 2))
        return x * jax.nn.sigmoid(jax.nn.relu(pooled @ down) @ up)[:, None, None, :]

    return drawn(function, normal(batch, height, width, features), weights(features, hidden), weights(hidden, features))


@kind("networks", gradient=True)
def pixel_shuffle(draw: Draw) -> Drawn:
    """Features to space, and channels among groups."""
    height, width = draw.image(2e4)
    block, features, batch = draw.pick(2, 2, 3, 4), draw.size(1, 16), draw.size(1, 4)
    is_shuffled = draw.chance(0.4)

    def to_space(x: Any) -> Any:
        x = x.reshape(batch, height, width, block, block, features)
        return x.transpose(0, 1, 3, 2, 4, 5).reshape(batch, height * block, width * block, features)

    def among_groups(x: Any) -> Any:
        x = x.reshape(batch, height, width, block * block, features)
        return jax.nn.relu(x.swapaxes(3, 4).reshape(batch, height, width, block * block * features))

    return drawn(among_groups if is_shuffled else to_space, normal(batch, height, width, block * block * features))


@kind("networks", gradient=True)
def nearest_upsampling(draw: Draw) -> Drawn:
    height, width = draw.image(1e4)
    features, batch, times = draw.size(1, 32), draw.size(1, 3), draw.pick(2, 2, 3, 4)

    def function(x: Any, skip: Any) -> Any:
        return jnp.concatenate([jnp.repeat(jnp.repeat(x, times, 1), times, 2), skip], -1)

    return drawn(
        function, normal(batch, height, width, features),
        normal(batch, height * times, width * times, draw.size(1, 16)),
    )  # fmt: skip


@kind("networks", gradient=True, batch=False)
def graph_convolution(draw: Draw) -> Drawn:
    """Messages along edges, added at their ends, and a layer."""
    nodes, edges, features, outputs = draw.size(5, 5000), draw.size(10, 40_000), draw.size(1, 48), draw.size(1, 48)

    def function(x: Any, w: Any, strength: Any, source: Any, target: Any) -> Any:
        messages = (x @ w)[source] * strength[:, None]
        counts = jax.ops.segment_sum(jnp.ones(edges), target, nodes)
        return jax.nn.relu(jax.ops.segment_sum(messages, target, nodes) / jnp.maximum(counts, 1)[:, None])

    return drawn(
        function, normal(nodes, features), weights(features, outputs), uniform(edges),
        integers(edges, high=nodes), integers(edges, high=nodes),
    )  # fmt: skip


@kind("networks", gradient=True, batch=False)
def graph_attention(draw: Draw) -> Drawn:
    """A softmax over the edges of each node."""
    nodes, edges, features = draw.size(5, 3000), draw.size(10, 30_000), draw.size(2, 32)

    def function(x: Any, left: Any, right: Any, source: Any, target: Any) -> Any:
        scores = jax.nn.leaky_relu((x @ left)[source] + (x @ right)[target], 0.2)
        most = jax.ops.segment_max(scores, target, nodes)
        shares = jnp.exp(scores - jax.lax.stop_gradient(most)[target])
        total = jax.ops.segment_sum(shares, target, nodes)
        return jax.ops.segment_sum((shares / total[target])[:, None] * x[source], target, nodes)

    return drawn(
        function, normal(nodes, features), weights(features, inputs=features), weights(features, inputs=features),
        integers(edges, high=nodes), integers(edges, high=nodes),
    )  # fmt: skip


@kind("networks", gradient=True)
def codebook(draw: Draw) -> Drawn:
    """The nearest vector of a codebook, with a straight-through gradient."""
    rows, rank, codes = draw.size(4, 3000), draw.size(2, 64), draw.size(4, 500)

    def function(x: Any, book: Any) -> Any:
        distances = jnp.sum(x * x, -1, keepdims=True) - 2 * x @ book.T + jnp.sum(book * book, -1)
        nearest = book[jnp.argmin(distances, -1)]
        return x + jax.lax.stop_gradient(nearest - x), jnp.mean(jnp.square(nearest - x))

    return drawn(function, normal(rows, rank), normal(codes, rank), share=0.01)


@kind("networks", gradient=True)
def selective_scan(draw: Draw) -> Drawn:
    """A state space whose steps the input chooses, as Mamba's, by a scan over time."""
    steps, features, states = draw.size(4, 200), draw.size(4, 96), draw.pick(2, 4, 8, 16, 16)

    def function(x: Any, delta: Any, a: Any, b: Any, c: Any) -> Any:
        def step(state: Any, given: Any) -> Any:
            x_t, size, into, out = given
            size = jax.nn.softplus(size)[:, None]
            state = jnp.exp(-size * jnp.exp(a)) * state + size * into[None, :] * x_t[:, None]
            return state, state @ out

        return jax.lax.scan(step, jnp.zeros((features, states)), (x, delta, b, c))[1]

    return drawn(
        function, normal(steps, features), normal(steps, features), normal(features, states, scale=0.3),
        normal(steps, states), normal(steps, states),
    )  # fmt: skip


@kind("networks", gradient=True)
def retention(draw: Draw) -> Drawn:
    """Products with a decaying causal mask, in chunks."""
    length, rank, heads = draw.size(8, 300), draw.size(4, 64), draw.size(1, 4)

    def function(q: Any, k: Any, v: Any) -> Any:
        place = jnp.arange(length)
        decay = jnp.where(place[:, None] >= place, 0.95 ** (place[:, None] - place).astype(jnp.float32), 0.0)
        return jnp.einsum("hqk,hkd->hqd", jnp.einsum("hqd,hkd->hqk", q, k) * decay, v)

    return drawn(function, normal(heads, length, rank), normal(heads, length, rank), normal(heads, length, rank))


@kind("networks", batch=False)
def routed_by_sorting(draw: Draw) -> Drawn:
    """Tokens sorted by their expert, each expert's share computed at a fixed capacity, and sent back."""
    tokens, experts, width, hidden = draw.size(8, 800), draw.size(2, 8), draw.size(4, 64), draw.size(4, 96)
    capacity = max(1, 2 * tokens // experts)

    def function(x: Any, router: Any, up: Any, down: Any) -> Any:
        scores = jax.nn.softmax(x @ router)
        expert, share = jnp.argmax(scores, -1), jnp.max(scores, -1)
        one_hot = jax.nn.one_hot(expert, experts, dtype=jnp.int32)
        slot = jnp.sum((jnp.cumsum(one_hot, 0) - 1) * one_hot, -1)
        kept = slot < capacity
        inputs = jnp.zeros((experts, capacity, width)).at[expert, slot].set(x, mode="drop")
        outputs = jnp.einsum("ech,ehw->ecw", jax.nn.gelu(jnp.einsum("ecw,ewh->ech", inputs, up)), down)
        return jnp.where(kept, share, 0.0)[:, None] * outputs[expert, jnp.minimum(slot, capacity - 1)]

    return drawn(
        function, normal(tokens, width), weights(width, experts), weights(experts, width, hidden),
        weights(experts, hidden, width),
    )  # fmt: skip


@kind("networks", gradient=True)
def sliding_attention(draw: Draw) -> Drawn:
    """Each query sees its neighbours alone: windows are rolled copies or a mask."""
    length, rank, reach = draw.size(16, 400), draw.size(4, 48), draw.size(2, 12)
    is_masked = draw.chance(0.5)

    def masked(q: Any, k: Any, v: Any) -> Any:
        place = jnp.arange(length)
        near = jnp.abs(place[:, None] - place) <= reach
        return jax.nn.softmax(jnp.where(near, q @ k.T * rank**-0.5, -1e9)) @ v

    def windowed(q: Any, k: Any, v: Any) -> Any:
        places = jnp.clip(jnp.arange(length)[:, None] + jnp.arange(-reach, reach + 1), 0, length - 1)
        shares = jax.nn.softmax(jnp.einsum("qd,qwd->qw", q, k[places]) * rank**-0.5)
        return jnp.einsum("qw,qwd->qd", shares, v[places])

    return drawn(masked if is_masked else windowed, *(normal(length, rank) for _ in range(3)))


@kind("networks", gradient=True)
def rotary_embedding(draw: Draw) -> Drawn:
    """Alone, by halves or by pairs."""
    length, heads, pairs = draw.size(2, 1000), draw.size(1, 12), draw.size(2, 64)
    dtype = draw.float_type()
    is_interleaved = draw.chance(0.5)

    def function(x: Any) -> Any:
        rates = 10000.0 ** (-jnp.arange(pairs, dtype=jnp.float32) / pairs)
        angles = jnp.arange(length, dtype=jnp.float32)[:, None] * rates
        cosine, sine = (part.astype(x.dtype)[:, None, :] for part in (jnp.cos(angles), jnp.sin(angles)))
        a, b = (x[..., ::2], x[..., 1::2]) if is_interleaved else jnp.split(x, 2, -1)
        turned = a * cosine - b * sine, b * cosine + a * sine
        return jnp.stack(turned, -1).reshape(x.shape) if is_interleaved else jnp.concatenate(turned, -1)

    return drawn(function, normal(length, heads, 2 * pairs, dtype=dtype))


@kind("networks", gradient=True)
def kolmogorov_arnold_layer(draw: Draw) -> Drawn:
    """A spline for each edge: basis functions, and one product of all."""
    rows, inputs, outputs, knots = draw.size(2, 300), draw.size(2, 48), draw.size(2, 48), draw.size(3, 10)
    act = activation(draw)

    def function(x: Any, spline: Any, plain: Any) -> Any:
        centres = jnp.linspace(-2.0, 2.0, knots)
        basis = jnp.exp(-jnp.square((x[..., None] - centres) * knots / 4))
        return jnp.einsum("rik,iko->ro", basis, spline) + act(x) @ plain

    return drawn(
        function, normal(rows, inputs), weights(inputs, knots, outputs, inputs=inputs * knots),
        weights(inputs, outputs),
    )  # fmt: skip
