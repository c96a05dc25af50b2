"""Random modules of PyTorch by ``torch.compile(backend="hloforge")``, with gradients; eager PyTorch is right.

Where results leave the table of tolerances, they are measured against the same module in float64, as PyTorch's are.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from hloforge.runtime.reference.compare import compare
from hloforge.runtime.reference.correctness import second_opinions
from tests.prove.pool import Pool

_SMOOTH: tuple[Callable[[Any], Any], ...] = (
    torch.tanh,
    torch.sigmoid,
    torch.sin,
    torch.cos,
    torch.erf,
    functional.gelu,
    functional.silu,
    functional.softplus,
    functional.elu,
    functional.mish,
    functional.softsign,
    torch.atan,
    lambda x: torch.sqrt(x * x + 1),
    torch.neg,
    lambda x: torch.log1p(x.abs()),
    lambda x: x.clamp(-1, 2),
    lambda x: torch.exp(-x.abs()),
    torch.square,
    functional.relu,
    functional.leaky_relu,
    functional.hardswish,
    lambda x: x / (1 + x.abs()),
    torch.abs,
    lambda x: x.pow(3),
    lambda x: torch.rsqrt(x * x + 1),
    functional.selu,
    functional.hardtanh,
    torch.relu,
)
_MOVES: tuple[Callable[[Any], Any], ...] = (
    lambda x: x.flatten(),
    lambda x: x.transpose(0, -1),
    lambda x: x.flip(0),
    lambda x: x.unsqueeze(0),
    lambda x: torch.cat([x, x], -1),
    lambda x: x[..., ::2],
    lambda x: x[1:],
    lambda x: x.roll(1, -1),
    lambda x: torch.stack([x, x], 0).sum(0),
    lambda x: functional.pad(x, (1, 2)),
    lambda x: x.repeat_interleave(2, 0),
    lambda x: torch.tril(x) if x.ndim > 1 else x,
    lambda x: x.squeeze(),
    lambda x: x.reshape(-1, x.shape[-1]),
    lambda x: x.index_select(0, torch.tensor([0, 0])),
    lambda x: x.masked_fill(x > 100, 0),
    lambda x: x.expand(2, *x.shape),
    lambda x: x.chunk(2, -1)[0],
    lambda x: torch.where(torch.arange(x.shape[-1]) % 2 == 0, x, x * 2),
    lambda x: x.mT if x.ndim > 1 else x,
    lambda x: x.unfold(0, 2, 1) if x.shape[0] > 1 else x,
    lambda x: x.scatter_add(0, torch.zeros_like(x, dtype=torch.int64), x),
    lambda x: x.gather(0, torch.zeros_like(x, dtype=torch.int64)),
    lambda x: x.clone().fill_diagonal_(1.0) if x.ndim == 2 else x,
    lambda x: x.view(-1).as_strided((2, 2), (1, 0)),
    lambda x: x.diagonal() if x.ndim == 2 else x,
    lambda x: x.new_zeros(2) + x.sum(),
    lambda x: x.narrow(0, 0, 1),
    lambda x: torch.einsum("...i,...i->...", x, x),
    lambda x: x.movedim(0, -1),
)


def _layer_norm(x: Any) -> Any:
    """That of two numbers is 1 and -1, and its gradient only rounding."""
    return functional.layer_norm(x, x.shape[-1:]) if x.shape[-1] > 2 else x


_SUMS: tuple[Callable[[Any], Any], ...] = (
    lambda x: x.sum(0),
    lambda x: x.mean(-1),
    lambda x: x.cumsum(0),
    lambda x: functional.softmax(x, -1),
    lambda x: functional.log_softmax(x, 0),
    lambda x: x.logsumexp(-1),
    _layer_norm,
    lambda x: x @ torch.ones(x.shape[-1], 3, dtype=x.dtype),
    lambda x: x.amax(-1, keepdim=True) + x,
    lambda x: x.std(0) if x.shape[0] > 1 else x,
    lambda x: functional.normalize(x + 2, dim=-1),
    lambda x: x.reshape(x.shape[0], -1) @ x.reshape(x.shape[0], -1).T,
    lambda x: torch.linalg.vector_norm(x + 3),
    lambda x: functional.avg_pool1d(x.reshape(1, 1, -1), 2) if x.numel() > 1 else x,
    lambda x: functional.max_pool1d(x.reshape(1, 1, -1), 2) if x.numel() > 1 else x,
    lambda x: torch.cdist(x, x + 1) if x.ndim == 2 else x,
    lambda x: functional.scaled_dot_product_attention(x, x, x) if x.ndim == 3 else x,
    lambda x: torch.outer(x, x) if x.ndim == 1 else x,
    lambda x: functional.conv1d(x.reshape(1, 1, -1), torch.ones(1, 1, 3, dtype=x.dtype), padding=1),
    lambda x: torch.fft.rfft(x).abs(),
    lambda x: x.var(-1, unbiased=False),
    lambda x: torch.addmm(x, x, torch.eye(x.shape[-1], dtype=x.dtype)) if x.ndim == 2 else x,
    lambda x: functional.rms_norm(x, x.shape[-1:]),
    lambda x: torch.cumprod(x.tanh(), -1),
    lambda x: x.prod(-1) if x.shape[-1] < 5 else x.tanh(),
)


# In float64 nothing, in float32 a rounding or two of numbers about 1.
_NOTHING, _ROUNDING = 1e-12, 2.0**-22
# Eager results whose steps are rounded at random, and how much further than the furthest of them a result may lie.
_TRIALS, _SLACK = 8, 3.0


class _Module(nn.Module):
    """Some steps, between which it has layers with weights."""

    def __init__(self, steps: list[Callable[[Any], Any]], width: int) -> None:
        super().__init__()
        self.steps = steps
        self.layer = nn.Linear(width, width)
        self.scale = nn.Parameter(torch.full((1,), 0.5))
        self.rounds_at_random = False

    def forward(self, x: Any) -> Any:
        made = self.layer(x) if x.ndim else x
        for step in self.steps:
            made = step(made) * self.scale
            if self.rounds_at_random:
                made = made * (1 + torch.finfo(made.dtype).eps * (2 * torch.rand_like(made) - 1))
        return made


def judge(seed: int) -> str:
    """What is wrong about a seed's module: its results, or its gradients; empty if nothing is."""
    random = Random(f"torch {seed}")
    torch.manual_seed(seed)
    pool = Pool.of(random)
    dims = tuple(size or 2 for size in pool.dims(3)) or (4,)
    numbers = np.clip(pool.numbers(dims, "float32"), -3, 3)
    count = random.choice((1, 2, 3, 5, 8))
    steps = [random.choice(random.choice((_SMOOTH, _SMOOTH, _MOVES, _SUMS))) for _ in range(count)]
    module = _Module(steps, dims[-1])
    has_gradients = random.random() < 0.4
    try:
        expected = _results(module, module, numbers, has_gradients)
    except (RuntimeError, IndexError, TypeError):
        return ""  # PyTorch itself does not take it
    if not all(np.isfinite(one).all() and np.abs(one).max(initial=0) < 1e4 for one in expected):
        return ""
    torch._dynamo.reset()
    compiled = torch.compile(module, backend="hloforge", fullgraph=True, dynamic=random.choice((False, False, None)))
    found = _results(module, compiled, numbers, has_gradients)
    report = compare(tuple(found), tuple(expected))
    if not report.agrees:
        rounded = _rounded_at_random(module, numbers, has_gradients)
        wide = module.to(torch.float64)
        truth = _results(wide, wide, numbers.astype(np.float64), has_gradients)
        report = second_opinions(report, *cancelled(found, expected, truth))
        if not report.agrees:
            report = compare(tuple(_as_far(found, expected, truth, rounded)), tuple(expected))
    return "" if report.agrees else f"{list(dims)}, {count} steps, gradients {has_gradients}: {report.text()}"


def _rounded_at_random(module: _Module, numbers: np.ndarray[Any, Any], has_gradients: bool) -> list[list[Any]]:
    """Results of the same module with another rounding after each step (Vignes' CESTAC method)."""
    module.rounds_at_random = True
    trials = [_results(module, module, numbers, has_gradients) for _ in range(_TRIALS)]
    module.rounds_at_random = False
    return trials


def _as_far(found: list[Any], expected: list[Any], truth: list[Any], rounded: list[list[Any]]) -> list[Any]:
    """The found results, with the expected numbers where another rounding leads as far from the truth."""
    kept = []
    for one, other, exact, *trials in zip(found, expected, truth, *rounded, strict=True):
        spread = np.max([np.abs(trial - exact) for trial in trials], axis=0)
        kept.append(np.where(np.abs(one - exact) <= _SLACK * spread, other, one))
    return kept


def cancelled(found: list[Any], expected: list[Any], truth: list[Any]) -> tuple[Any, Any, Any]:
    """Results with 0 where the exact value is 0 and both have rounding there, of numbers that cancel each other."""
    pairs = []
    for one, other, exact in zip(found, expected, truth, strict=True):
        some = [np.asarray(one), np.asarray(other), np.asarray(exact)]
        if some[0].dtype.kind == "f":
            is_rounding = (np.abs(some[2]) < _NOTHING) & (np.abs(some[0]) < _ROUNDING) & (np.abs(some[1]) < _ROUNDING)
            some = [np.where(is_rounding, np.zeros((), each.dtype), each) for each in some]
        pairs.append(some)
    columns = [tuple(column) for column in zip(*pairs, strict=True)]
    return columns[0], columns[1], columns[2]


def _results(module: nn.Module, called: Any, numbers: np.ndarray[Any, Any], has_gradients: bool) -> list[Any]:
    x = torch.from_numpy(numbers.copy())
    if not has_gradients:
        with torch.no_grad():
            return [called(x).numpy()]
    x.requires_grad_()
    module.zero_grad()
    made = called(x)
    # With weights: the plain sum of a softmax has gradients of 0, of which engines make rounding.
    weights = torch.linspace(0.5, 1.5, made.numel(), dtype=made.dtype)
    (made * weights.reshape(made.shape)).sum().backward()
    gradients = [one.grad for one in (x, *module.parameters())]
    return [made.detach().numpy(), *(one.numpy().copy() for one in gradients if one is not None)]
