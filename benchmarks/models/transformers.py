"""Transformers of the size of BERT-base and GPT-2, one sequence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.cases import Body, Case, model

WIDTH, HEADS, LAYERS = 768, 12, 12
VOCABULARY = 8192


def _vector(nn: Any) -> Any:
    return nn.new(f"f32[{WIDTH}]")


def _norm(nn: Any, x: Any) -> Any:
    return nn.layer_norm(x, _vector(nn), _vector(nn))


def _project(nn: Any, x: Any) -> Any:
    return nn.dense(x, nn.new(f"f32[{WIDTH},{WIDTH}]"), _vector(nn))


def _mlp(nn: Any, x: Any) -> Any:
    hidden = nn.gelu(nn.dense(x, nn.new(f"f32[{WIDTH},{4 * WIDTH}]"), nn.new(f"f32[{4 * WIDTH}]")))
    return nn.dense(hidden, nn.new(f"f32[{4 * WIDTH},{WIDTH}]"), _vector(nn))


def _by_head(nn: Any, x: Any, length: int) -> Any:
    return nn.transpose(nn.reshape(x, length, HEADS, WIDTH // HEADS), 1, 0, 2)


def _joined(nn: Any, x: Any, length: int) -> Any:
    return nn.reshape(nn.transpose(x, 1, 0, 2), length, WIDTH)


def bert(length: int) -> Body:
    """The encoder of Devlin et al., 2018: token and place embeddings, 12 post-norm layers."""

    def body(nn: Any) -> Any:
        tokens = nn.take(nn.new(f"f32[{VOCABULARY},{WIDTH}]"), nn.new(f"s32[{length}]", below=VOCABULARY))
        x = _norm(nn, tokens + nn.new(f"f32[{length},{WIDTH}]"))
        for _ in range(LAYERS):
            q, k, v = (_by_head(nn, _project(nn, x), length) for _ in range(3))
            x = _norm(nn, x + _project(nn, _joined(nn, nn.attention(q, k, v), length)))
            x = _norm(nn, x + _mlp(nn, x))
        return x

    return body


Attend = Callable[[Any, Any, Any, Any], Any]


def _gpt(nn: Any, length: int, attend: Attend) -> Any:
    """Radford et al., 2019, with a smaller vocabulary: the logits of the last token."""
    table = nn.new(f"f32[{VOCABULARY},{WIDTH}]")
    tokens = nn.new(f"s32[{length}]", below=VOCABULARY)
    x = nn.take(table, tokens) + nn.new(f"f32[{length},{WIDTH}]")
    for _ in range(LAYERS):
        normal = _norm(nn, x)
        q, k, v = (_by_head(nn, _project(nn, normal), length) for _ in range(3))
        x = x + _project(nn, _joined(nn, attend(nn, q, k, v), length))
        x = x + _mlp(nn, _norm(nn, x))
    return nn.matmul(_norm(nn, x)[length - 1 :], table, transposed=True)


def gpt_prefill(length: int) -> Body:
    """A prompt at once: the next token's logits, and the keys and values of all layers."""

    def body(nn: Any) -> Any:
        cache: list[Any] = []

        def attend(nn: Any, q: Any, k: Any, v: Any) -> Any:
            cache.extend((k, v))
            return nn.attention(q, k, v, causal=True)

        return (_gpt(nn, length, attend), *cache)

    return body


def gpt_decode(keys: int) -> Body:
    """One more token, whose keys and values replace the last ones of a full cache."""

    def body(nn: Any) -> Any:
        cache: list[Any] = []
        shape = f"f32[{keys},{HEADS},{WIDTH // HEADS}]"

        def remembered(row: Any) -> Any:
            cache.append(nn.put_row(nn.new(shape), keys - 1, nn.reshape(row, HEADS, WIDTH // HEADS)))
            return nn.transpose(cache[-1], 1, 0, 2)

        def attend(nn: Any, q: Any, k: Any, v: Any) -> Any:
            return nn.attention(q, remembered(k), remembered(v))

        return (_gpt(nn, 1, attend), *cache)

    return body


CASES: tuple[Case, ...] = (
    model("BERT-base encoder, 128 tokens", bert(128)),
    model("GPT-2 prefill, 64 tokens", gpt_prefill(64)),
    model("GPT-2 decode, 256 keys", gpt_decode(256)),
)
