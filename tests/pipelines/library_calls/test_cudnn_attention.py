"""cuDNN's fused attention as JAX lowers it for GPUs, judged by the same function of JAX in plain operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from hloforge.dialect.errors import UnsupportedError
from hloforge.importers.reader import read
from hloforge.pipelines.library_calls.decompose_library_calls import DecomposeLibraryCalls
from hloforge.pipelines.normalize.normalization import normalize
from tests.engines import shared_reference

jax = pytest.importorskip("jax")
sdpa = pytest.importorskip("jax._src.cudnn.fused_attention_stablehlo")
jnp = jax.numpy

MASKS = sdpa.MaskType


@pytest.fixture(autouse=True)
def _as_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sdpa, "check_cudnn_version", lambda: 91500)
    monkeypatch.setattr(sdpa, "check_compute_capability", lambda capability: True)
    monkeypatch.setattr(sdpa, "is_cuda_compute_capability_equal", lambda capability: False)


def draw(*dims: int) -> Any:
    return jnp.asarray(np.random.default_rng(sum(dims)).normal(size=dims), jnp.bfloat16)


def computed(function: Callable[..., Any], arguments: list[Any], target: str) -> list[Any]:
    """What the program that JAX lowers for GPUs computes, without its calls of cuDNN."""
    text = str(jax.jit(function).trace(*arguments).lower(lowering_platforms=("cuda",)).as_text())
    assert f"@{target}(" in text
    program = read(text)
    normalize(program.module)
    DecomposeLibraryCalls().run(program.module)
    found = shared_reference("xla").prepare(program)(*map(np.asarray, arguments))
    return list(found) if isinstance(found, tuple | list) else [found]


def plain(q: Any, k: Any, v: Any, mask: Any = None, bias: Any = None, scale: float = 0.5) -> Any:
    """Attention in f32; rows that see no key give zeros."""
    q, k, v = (jnp.asarray(x, jnp.float32) for x in (q, k, v))
    k, v = (jnp.repeat(x, q.shape[2] // x.shape[2], 2) for x in (k, v))
    scores = jnp.einsum("bthd,bshd->bhts", q, k) * scale
    if bias is not None:
        scores = scores + jnp.asarray(bias, jnp.float32)
    if mask is not None:
        scores = jnp.where(mask, scores, -jnp.inf)
    sees = jnp.isfinite(scores).any(-1, keepdims=True)
    weights = jnp.where(sees, jax.nn.softmax(jnp.where(sees, scores, 0.0), -1), 0.0)
    return jnp.einsum("bhts,bshd->bthd", weights, v)


def close(found: Any, wanted: Any) -> None:
    np.testing.assert_allclose(np.asarray(found, float), np.asarray(wanted, float), rtol=2e-2, atol=5e-2)


def check(arguments: list[Any], wanted: Callable[..., Any], target: str, **settings: Any) -> None:
    """The output, and the gradients by all arguments that are floats."""
    count = 4 if "bias" in target.lower() else 3

    def called(*given: Any) -> Any:
        names = ("query", "key", "value", "bias")[:count]
        return sdpa.dot_product_attention(**dict(zip(names, given, strict=False)), scale=0.5, **settings)

    weights = draw(*jax.eval_shape(called, *arguments).shape)
    (out,) = computed(called, arguments, target)
    close(out, wanted(*arguments))

    def loss(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *given: (function(*given).astype(jnp.float32) * weights.astype(jnp.float32)).sum()

    numbers = tuple(range(count))
    found = computed(jax.grad(loss(called), numbers), arguments, f"{target}Backward")
    for got, want in zip(found, jax.grad(loss(wanted), numbers)(*arguments), strict=True):
        close(got, want)


SOFTMAX, BIASED = "__cudnn$fmhaSoftmax", "__cudnn$fmhaScaleBiasSoftmax"
LENGTHS = np.array([16, 10], np.int32), np.array([16, 7], np.int32)


def padding(queries: int = 16, keys: int = 16) -> Any:
    rows = np.arange(queries)[None, None, :, None] < LENGTHS[0][:, None, None, None]
    columns = np.arange(keys)[None, None, None, :] < LENGTHS[1][:, None, None, None]
    return rows & columns


TRIANGLE = np.tril(np.ones((16, 16), bool))


@pytest.mark.wide(2)
@pytest.mark.parametrize("heads", [4, 2])
def test_whole(heads: int) -> None:
    check([draw(2, 16, 4, 8), draw(2, 24, heads, 8), draw(2, 24, heads, 8)], plain, SOFTMAX)


def test_heads_first() -> None:
    def wanted(*given: Any) -> Any:
        return plain(*(x.swapaxes(1, 2) for x in given)).swapaxes(1, 2)

    check([draw(2, 4, 16, 8), draw(2, 4, 24, 8), draw(2, 4, 24, 8)], wanted, SOFTMAX, qkv_layout="BNTH")


@pytest.mark.wide(2)
@pytest.mark.parametrize(
    ("mask", "settings"),
    [
        (TRIANGLE, {"mask_type": MASKS.CAUSAL}),
        (TRIANGLE & ~np.tril(np.ones((16, 16), bool), -5), {"mask_type": MASKS.CAUSAL, "sliding_window_length": 5}),
        (padding(), {"mask_type": MASKS.PADDING}),
        (padding() & TRIANGLE, {"mask_type": MASKS.PADDING_CAUSAL}),
    ],
)
def test_masks(mask: Any, settings: dict[str, Any]) -> None:
    lengths = {} if settings["mask_type"] is MASKS.CAUSAL else {"q_seqlen": LENGTHS[0], "kv_seqlen": LENGTHS[1]}
    arguments = [draw(2, 16, 4, 8), draw(2, 16, 2, 8), draw(2, 16, 2, 8)]
    check(arguments, lambda q, k, v: plain(q, k, v, mask), SOFTMAX, **settings, **lengths)


@pytest.mark.wide(2)
@pytest.mark.parametrize("sizes", [(1, 4), (2, 4), (1, 1)])
def test_bias(sizes: tuple[int, int]) -> None:
    arguments = [draw(2, 16, 4, 8), draw(2, 24, 4, 8), draw(2, 24, 4, 8), draw(*sizes, 16, 24)]
    check(arguments, lambda q, k, v, bias: plain(q, k, v, None, bias), BIASED)


def test_several_sequences_in_a_row() -> None:
    q_lengths, k_lengths = np.array([[5, 6], [16, -1]], np.int32), np.array([[8, 8], [9, -1]], np.int32)
    q_offsets, k_offsets = np.array([[0, 6, 16], [0, 16, -1]], np.int32), np.array([[0, 8, 16], [0, 16, -1]], np.int32)
    mask = np.zeros((2, 1, 16, 16), bool)
    for row, (lengths, others, starts, firsts) in enumerate(
        zip(q_lengths, k_lengths, q_offsets, k_offsets, strict=True)
    ):
        for number in range(2):
            if lengths[number] > 0:
                rows, columns = starts[number] + np.arange(lengths[number]), firsts[number] + np.arange(others[number])
                mask[row, 0, rows[:, None], columns] = True
    check(
        [draw(2, 16, 4, 8), draw(2, 16, 4, 8), draw(2, 16, 4, 8)],
        lambda q, k, v: plain(q, k, v, mask),
        SOFTMAX,
        mask_type=MASKS.PADDING,
        q_seqlen=q_lengths,
        kv_seqlen=k_lengths,
        q_offsets=q_offsets,
        kv_offsets=k_offsets,
    )


def test_pages() -> None:
    table = np.array([3, 0, 1, 2], np.int32).reshape(2, 1, 2, 1)
    arguments = [draw(2, 16, 4, 8), draw(4, 8, 4, 8), draw(4, 8, 4, 8)]
    lengths = np.array([16, 16], np.int32)

    def called(q: Any, k: Any, v: Any) -> Any:
        return sdpa.paged_attention(q, k, v, lengths, lengths, table, table, scale=0.5, mask_type=MASKS.PADDING)

    def wanted(q: Any, k: Any, v: Any) -> Any:
        return plain(q, *(x[table.reshape(2, 2)].reshape(2, 16, 4, 8) for x in (k, v)))

    (out,) = computed(called, arguments, SOFTMAX)
    close(out, wanted(*arguments))


def test_statistics() -> None:
    arguments = [draw(2, 16, 4, 8), draw(2, 24, 4, 8), draw(2, 24, 4, 8)]
    _, logs = computed(
        lambda q, k, v: sdpa.dot_product_attention(q, k, v, scale=0.5, return_residual=True), arguments, SOFTMAX
    )
    q, k = (np.asarray(x, float) for x in arguments[:2])
    scores = np.einsum("bthd,bshd->bhts", q, k) * 0.5
    wanted = np.log(np.exp(scores).sum(-1))
    np.testing.assert_allclose(logs if logs.shape == wanted.shape else logs.swapaxes(1, 2), wanted, rtol=1e-4)


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"dropout_rate": 0.25}, "with probability 0.25"), ({"mask_type": MASKS.ALIBI}, "the mask ALIBI")],
)
def test_what_is_not_known_is_refused(settings: dict[str, Any], message: str) -> None:
    arguments = [draw(2, 16, 4, 8), draw(2, 24, 4, 8), draw(2, 24, 4, 8)]
    with pytest.raises(UnsupportedError, match=message):
        computed(
            lambda q, k, v: sdpa.dot_product_attention(q, k, v, **settings),
            arguments,
            SOFTMAX + ("Dropout" if "dropout_rate" in settings else ""),
        )
