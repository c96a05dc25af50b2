"""Model families of PyTorch in small sizes: what the tests and the benchmarks run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional


class Residual(nn.Module):
    """A block with convolutions by groups and a batch norm, added to what came in."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1, groups=2, bias=False)
        self.norm = nn.BatchNorm2d(channels)
        self.second = nn.Conv2d(channels, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.second(functional.relu(self.norm(self.first(x))))


def cnn(channels: int = 8, classes: int = 5) -> nn.Module:
    """Convolutions, batch norms, pooling, and a classifier."""
    return nn.Sequential(
        nn.Conv2d(3, channels, 3, stride=2, padding=1),
        nn.BatchNorm2d(channels),
        nn.ReLU(),
        nn.MaxPool2d(3, 2, 1),
        Residual(channels),
        nn.AvgPool2d(2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(channels, classes),
    )


class CausalLm(nn.Module):
    """A decoder that reads a prompt, and goes on one token at a time with the keys and values of those before."""

    def __init__(self, words: int = 24, width: int = 16, heads: int = 2, layers: int = 2, longest: int = 12) -> None:
        super().__init__()
        self.heads, self.longest = heads, longest
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(longest, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2 * layers))
        self.qkv = nn.ModuleList(nn.Linear(width, 3 * width) for _ in range(layers))
        self.joined = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        self.wide = nn.ModuleList(nn.Linear(width, 4 * width) for _ in range(layers))
        self.narrow = nn.ModuleList(nn.Linear(4 * width, width) for _ in range(layers))

    def cache(self, batch: int) -> Tensor:
        """Keys and values of no tokens: [layers, 2, batch, heads, longest, width / heads]."""
        width = self.words.embedding_dim // self.heads
        return torch.zeros(len(self.qkv), 2, batch, self.heads, self.longest, width)

    def forward(self, tokens: Tensor, cache: Tensor, place: Tensor) -> tuple[Tensor, Tensor]:
        """tokens: s64 [batch, n], at place: s64 [n]. Returns logits [batch, n, words] and the new cache."""
        x = self.words(tokens) + self.places(place)
        seen = torch.arange(self.longest) <= place[:, None]
        rows = []
        for n, qkv in enumerate(self.qkv):
            q, k, v = (
                part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in qkv(self.norms[2 * n](x)).chunk(3, -1)
            )
            keys, values = cache[n, 0].index_copy(2, place, k), cache[n, 1].index_copy(2, place, v)
            mixed = functional.scaled_dot_product_attention(q, keys, values, attn_mask=seen)
            x = x + self.joined[n](mixed.transpose(1, 2).flatten(2))
            x = x + self.narrow[n](functional.gelu(self.wide[n](self.norms[2 * n + 1](x)), approximate="tanh"))
            rows.append(torch.stack([keys, values]))
        return x @ self.words.weight.T, torch.stack(rows)


class Encoder(nn.Module):
    """Two layers of PyTorch's encoder, with a mask of pairs or of the padding."""

    def __init__(self, width: int = 16, heads: int = 2, causal: bool = False, norm_first: bool = False) -> None:
        super().__init__()
        self.causal = causal
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(width, heads, 32, 0.0, "gelu", batch_first=True, norm_first=norm_first)
            for _ in range(2)
        )

    def forward(self, x: Tensor, hidden: Tensor) -> Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1]) if self.causal else None
        for layer in self.layers:
            x = layer(x, mask, None if self.causal else hidden, is_causal=self.causal)
        return x


class Recurrent(nn.Module):
    """A recurrent layer with its last states."""

    def __init__(self, kind: Callable[..., nn.Module], **options: Any) -> None:
        super().__init__()
        self.layer = kind(6, 8, batch_first=True, **options)

    def forward(self, x: Tensor) -> Any:
        return self.layer(x)


class UNet(nn.Module):
    """Down by a strided convolution, up by transposed ones, with group norms and a bridge."""

    def __init__(self, channels: int = 8) -> None:
        super().__init__()
        self.down = nn.Conv2d(3, channels, 3, stride=2, padding=1)
        self.norm = nn.GroupNorm(2, channels)
        self.middle = nn.Conv2d(channels, channels, 3, padding=1)
        self.up = nn.ConvTranspose2d(channels, 3, 2, stride=2)
        self.over = nn.ConvTranspose2d(6, 4, 3, stride=2, padding=1, output_padding=1)

    def forward(self, x: Tensor) -> Tensor:
        inner = functional.silu(self.middle(functional.silu(self.norm(self.down(x)))))
        return self.over(torch.cat([self.up(inner), x], 1))


@dataclass(frozen=True)
class Family:
    """A kind of model.

    Attributes:
        make: makes it with PyTorch's random weights.
        inputs: makes arguments of a call.
    """

    make: Callable[[], nn.Module]
    inputs: Callable[[], tuple[Tensor, ...]]


def _mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(6, 16), nn.GELU(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 3))


def _sequence() -> tuple[Tensor, ...]:
    return torch.randn(2, 5, 16), torch.tensor([[False] * 5, [False] * 3 + [True] * 2])


def _prompt() -> tuple[Tensor, ...]:
    return torch.randint(24, (2, 4)), CausalLm().cache(2), torch.arange(4)


FAMILIES = {
    "mlp": Family(_mlp, lambda: (torch.randn(4, 6),)),
    "cnn": Family(cnn, lambda: (torch.randn(2, 3, 16, 16),)),
    "encoder, padded": Family(Encoder, _sequence),
    "encoder, causal": Family(lambda: Encoder(causal=True, norm_first=True), _sequence),
    "causal lm": Family(CausalLm, _prompt),
    "lstm": Family(lambda: Recurrent(nn.LSTM, num_layers=2, bidirectional=True), lambda: (torch.randn(2, 4, 6),)),
    "gru": Family(lambda: Recurrent(nn.GRU), lambda: (torch.randn(2, 4, 6),)),
    "unet": Family(UNet, lambda: (torch.randn(1, 3, 8, 8),)),
}
