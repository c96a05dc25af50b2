"""Functions of PyTorch of a few lines: views, updates in place and operators that modules seldom call.

A function has some parts, each of an argument of its own; eager PyTorch is right, about arguments that a function
changes and about buffers too.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional

import hloforge
from hloforge.runtime.reference.compare import compare
from hloforge.runtime.reference.correctness import second_opinions
from tests.prove.pool import Pool
from tests.prove.torch_modules import cancelled

Part = Callable[[Any], Any]
_PARTS = 4


def _after(x: Any, change: Part) -> Any:
    """A copy that is changed in place, and the original."""
    y = x.clone()
    change(y)
    return y, x * 2


def _indices(x: Any) -> Any:
    return torch.tensor([0, -1, 0]) % x.shape[0]


# In place, of a copy with a dimension or more; each is read through a view afterwards.
_CHANGES: tuple[Part, ...] = (
    lambda y: y[1:].add_(y[:-1].clone()),
    lambda y: y[..., 0].fill_(1),
    lambda y: y.__setitem__((..., slice(None, None, 2)), 3),
    lambda y: y.__setitem__(0, y[-1]),
    lambda y: y.__setitem__(_indices(y), y[_indices(y)] * 2),
    lambda y: y.__setitem__(y > 1, 0),
    lambda y: y.index_put_((_indices(y),), torch.ones_like(y[0]), accumulate=True),
    lambda y: y.index_put_((_indices(y),), torch.ones((), dtype=y.dtype)),
    lambda y: y.view(-1)[::2].mul_(2),
    lambda y: y.transpose(0, -1).add_(1),
    lambda y: y.masked_fill_(y < 0, 5),
    lambda y: y.scatter_(0, torch.zeros_like(y[:1], dtype=torch.int64), y[:1].clone()),
    lambda y: y.scatter_add_(0, torch.zeros_like(y, dtype=torch.int64), torch.ones_like(y)),
    lambda y: y.scatter_reduce_(0, torch.zeros_like(y, dtype=torch.int64), y.clone(), "amax"),
    lambda y: y.copy_(y.flip(0)),
    lambda y: y.index_add_(0, _indices(y), torch.ones_like(y[_indices(y)])),
    lambda y: y.index_copy_(0, torch.tensor([0]), y[-1:].clone()),
    lambda y: y.index_fill_(0, torch.tensor([0]), 7),
    lambda y: y.select(0, 0).mul_(3),
    lambda y: y.narrow(0, 0, 1).copy_(y[-1:].clone()),
    lambda y: y.unbind(0)[0].add_(1),
    lambda y: y.chunk(2, 0)[-1].zero_(),
    lambda y: y.reshape(-1).clone().add_(1),
    lambda y: y.diagonal().fill_(2) if y.ndim > 1 else y.neg_(),
    lambda y: y.unsqueeze(0).sub_(1),
    lambda y: y.expand(2, *y.shape).sum(0).add_(1),
    lambda y: y.clamp_(-1, 1).mul_(2),
    lambda y: y.as_strided((1,), (1,), y.numel() - 1).add_(4),
    lambda y: y.squeeze().add_(1),
    lambda y: torch.add(y, 1, out=y),
    lambda y: y.swapaxes(0, -1)[0].copy_(y.swapaxes(0, -1)[-1].clone()),
    lambda y: y.detach().add_(1),
    lambda y: y.split(1, 0)[0].add_(y.split(1, 0)[-1]),
    lambda y: y.movedim(0, -1)[..., 0].zero_(),
    lambda y: y.flatten()[1:].neg_(),
    lambda y: y.put_(torch.tensor([0]), torch.ones(1, dtype=y.dtype)),
    lambda y: y.t_().add_(1) if y.ndim == 2 else y.add_(1),
    lambda y: y.fill_diagonal_(9) if y.ndim == 2 else y.fill_(2),
)
_LINES: tuple[Part, ...] = (
    *(lambda x, change=change: _after(x, change) for change in _CHANGES),
    *(lambda x, change=change: _after(x, change)[0].flip(0) for change in _CHANGES),
)
# Of numbers with a fraction, of a dimension or more.
_CALLS: tuple[Part, ...] = (
    lambda x: torch.sort(x, -1, stable=True),
    lambda x: x.argsort(0, stable=True),
    # Which of equal numbers topk takes is not said: its places have to hold what it finds.
    lambda x: x.gather(-1, torch.topk(x, min(2, x.shape[-1])).indices),
    lambda x: x.kthvalue(1).values,
    lambda x: x.median(-1).values,
    lambda x: torch.quantile(x, 0.3),
    lambda x: x.nanmean(0),
    lambda x: x.cummax(0),
    lambda x: x.logcumsumexp(-1),
    lambda x: torch.bucketize(x, torch.tensor([-1.0, 0.0, 1.0])),
    lambda x: torch.searchsorted(torch.tensor([-1.0, 0.0, 1.0]), x.contiguous(), right=True),
    lambda x: torch.histc(x, 4, -2, 2),
    lambda x: torch.trapezoid(x),
    lambda x: torch.diff(x, dim=0),
    lambda x: torch.kron(x.reshape(-1)[:4], x.reshape(-1)[:3]),
    lambda x: torch.block_diag(x.reshape(-1)[:3], x.reshape(-1)[:2]),
    lambda x: torch.lerp(x, x.flip(0), 0.25),
    lambda x: torch.addcmul(x, x, x.flip(-1), value=0.5),
    lambda x: torch.addcdiv(x, x, 2 + x.abs(), value=0.5),
    lambda x: x.clamp(min=torch.zeros(()), max=x.abs()),
    lambda x: torch.isin(x.round(), torch.tensor([0.0, 1.0])),
    lambda x: x.roll((1, -1), (0, -1)),
    lambda x: x.rot90(1, (0, 1)) if x.ndim > 1 else x,
    lambda x: torch.frexp(x),
    lambda x: torch.ldexp(x, torch.tensor(2)),
    lambda x: torch.nan_to_num(x / x.round()),
    lambda x: torch.heaviside(x, torch.tensor(0.5)),
    lambda x: torch.copysign(x, x.flip(0)),
    lambda x: torch.fmod(x, 0.7),
    lambda x: torch.remainder(x * 4, 3).round(),
    lambda x: torch.floor_divide(x * 4, 1.5),
    lambda x: torch.sinc(x),
    lambda x: torch.special.i0(x),
    lambda x: torch.lgamma(x.abs() + 1),
    lambda x: torch.digamma(x.abs() + 1),
    lambda x: torch.erfinv(x / 9),
    lambda x: torch.special.log_ndtr(x),
    lambda x: torch.logit(torch.sigmoid(x)),
    lambda x: torch.hypot(x, x.flip(0)),
    lambda x: torch.cov(x) if x.ndim == 2 else x,
    lambda x: torch.linalg.inv(_matrix(x)),
    lambda x: torch.linalg.det(_matrix(x)),
    lambda x: torch.linalg.solve(_matrix(x), _matrix(x)[0]),
    lambda x: torch.linalg.cholesky(_matrix(x) @ _matrix(x).T),
    lambda x: torch.linalg.qr(_matrix(x)).R.abs(),
    lambda x: torch.linalg.svdvals(_matrix(x)),
    lambda x: torch.linalg.eigvalsh(_matrix(x) + _matrix(x).T),
    lambda x: torch.linalg.matrix_exp(_matrix(x) / 4),
    lambda x: torch.linalg.slogdet(_matrix(x)),
    lambda x: torch.linalg.lu_factor(_matrix(x)),
    lambda x: torch.linalg.matrix_power(_matrix(x), 3),
    lambda x: torch.linalg.norm(x.reshape(x.shape[0], -1) + 2, ord=1),
    lambda x: torch.fft.fft(x).real,
    lambda x: torch.fft.irfft(torch.fft.rfft(x), n=x.shape[-1]),
    lambda x: torch.fft.fftshift(x),
    lambda x: torch.view_as_real(torch.polar(x.abs(), x)),
    lambda x: torch.complex(x, x.flip(0)).abs(),
    lambda x: x.to(torch.float16).to(torch.float32),
    lambda x: x.to(torch.bfloat16) * 2,
    lambda x: (x * 9).to(torch.int8),
    lambda x: (x * 9).to(torch.int32) >> 1,
    lambda x: (x * 9).to(torch.int64) // 4,
    lambda x: (x * 9).to(torch.int64) % -4,
    lambda x: (x * 9).to(torch.int32).bitwise_xor(5),
    lambda x: torch.div(x * 4, 3, rounding_mode="trunc"),
    lambda x: x.argmax(-1),
    lambda x: x.aminmax(dim=0),
    lambda x: x.any(-1),
    lambda x: torch.where(x > 0, x, -x.flip(0)),
    lambda x: torch.take(x, torch.tensor([0, -1, 0])),
    lambda x: torch.take_along_dim(x, x.argsort(-1, stable=True), -1),
    lambda x: x.index_select(0, torch.tensor([0, 0])),
    lambda x: torch.meshgrid(x.reshape(-1)[:3], x.reshape(-1)[:2], indexing="ij"),
    lambda x: torch.tensor_split(x, 3, 0),
    lambda x: torch.renorm(x.reshape(x.shape[0], -1), 2, 0, 1.0),
    lambda x: torch.tril_indices(3, 3) + x.numel(),
    lambda x: torch.func.vmap(lambda r: r.sum() + r)(x),
    lambda x: torch.func.grad(lambda v: (v.sin() ** 2).sum())(x),
    lambda x: torch.func.jvp(torch.tanh, (x,), (torch.ones_like(x),)),
    lambda x: functional.interpolate(x.reshape(1, 1, -1), scale_factor=2, mode="linear"),
    lambda x: functional.interpolate(_image(x), size=(5, 3), mode="bilinear", align_corners=True),
    lambda x: functional.interpolate(_image(x), scale_factor=(1.5, 0.5), mode="nearest"),
    lambda x: functional.interpolate(_image(x), size=(3, 7), mode="bicubic"),
    lambda x: functional.grid_sample(_image(x), torch.linspace(-1, 1, 8).reshape(1, 2, 2, 2), align_corners=False),
    lambda x: functional.adaptive_avg_pool2d(_image(x), (3, 2)),
    lambda x: functional.adaptive_max_pool2d(_image(x), (3, 1)),
    lambda x: functional.max_pool2d(_image(x), 2, 1, ceil_mode=True),
    lambda x: functional.avg_pool2d(_image(x), 2, 2, 1, count_include_pad=False),
    lambda x: functional.conv2d(_image(x), torch.ones(2, 1, 2, 2), stride=2, padding=1, dilation=2),
    lambda x: functional.conv_transpose2d(_image(x), torch.ones(1, 2, 3, 3), stride=2, output_padding=1, padding=1),
    lambda x: functional.unfold(_image(x), 2),
    lambda x: functional.fold(torch.ones(1, 4, 9) * x.sum(), (4, 4), 2),
    lambda x: functional.pixel_shuffle(
        x.reshape(-1)[:1].expand(1, 4, 2, 2) * torch.arange(16.0).reshape(1, 4, 2, 2), 2
    ),
    lambda x: functional.pad(_image(x), (1, 2, 0, 1), mode="reflect"),
    lambda x: functional.pad(_image(x), (1, 1, 1, 1), mode="circular"),
    lambda x: functional.one_hot((x.reshape(-1).abs() * 2).to(torch.int64).clamp(max=4), 5),
    lambda x: functional.cross_entropy(x.reshape(x.shape[0], -1), torch.zeros(x.shape[0], dtype=torch.int64)),
    lambda x: (
        functional.nll_loss(functional.log_softmax(x.reshape(x.shape[0], -1), 1), _labels(x), ignore_index=0)
        if x.shape[0] > 1
        else x
    ),
    lambda x: functional.huber_loss(x, x.flip(0), delta=0.5),
    lambda x: functional.binary_cross_entropy_with_logits(x, torch.sigmoid(x)),
    lambda x: functional.cosine_similarity(x + 2, x.flip(0) + 2, -1),
    lambda x: functional.kl_div(functional.log_softmax(x, -1), functional.softmax(x * x, -1), reduction="batchmean"),
    lambda x: functional.group_norm(_image(x).expand(1, 4, -1, -1), 2),
    lambda x: functional.embedding(_indices(x), x.reshape(x.shape[0], -1)),
    lambda x: functional.embedding_bag(_indices(x)[None], x.reshape(x.shape[0], -1), mode="mean"),
    lambda x: functional.glu(torch.cat([x, x], -1), -1),
    lambda x: functional.softmin(x, -1),
    lambda x: functional.local_response_norm(_image(x), 3),
    lambda x: functional.pairwise_distance(x, x.flip(0)),
    lambda x: functional.triplet_margin_loss(x, x.flip(0), x + 1),
    lambda x: functional.dropout(x, 0.5, training=False) * 2,
    lambda x: functional.hardshrink(x),
    lambda x: functional.logsigmoid(x),
    lambda x: functional.threshold(x, 0.1, 20),
    lambda x: functional.prelu(x, torch.tensor([0.3])),
    lambda x: functional.tanhshrink(1 + x.abs()),  # x - tanh(x) is rounding near 0
)


def _matrix(x: Any) -> Any:
    """A matrix far from singular."""
    flat = torch.cat([x.reshape(-1), torch.ones(9)])[:9]
    return flat.reshape(3, 3) / 4 + 3 * torch.eye(3)


def _image(x: Any) -> Any:
    return torch.cat([x.reshape(-1), torch.arange(20.0)])[:20].reshape(1, 1, 4, 5)


def _labels(x: Any) -> Any:
    return torch.arange(x.shape[0]) % 2 * 0 + (torch.arange(x.shape[0]) % 2) * min(1, x[0].numel() - 1)


class _Norm(nn.Module):
    """Batch norm as in training: it changes its buffers."""

    def __init__(self, channels: int, momentum: float) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(channels, momentum=momentum)

    def forward(self, x: Any) -> Any:
        rows = x.reshape(x.shape[0], -1)
        return self.norm(torch.cat([rows, rows + 1, rows * 2])[:, : self.norm.num_features])


class _Parts(nn.Module):
    """Some parts, each of its argument; one of them may change its argument."""

    def __init__(self, parts: list[Part], norm: nn.Module, changed: int | None) -> None:
        super().__init__()
        self.parts, self.norm, self.changed = parts, norm, changed

    def forward(self, *values: Any) -> Any:
        results = []
        for number, (part, value) in enumerate(zip(self.parts, values, strict=True)):
            results.append(part(value))
            if number == self.changed:
                value[0] += 1
        return *results, self.norm(values[0])


def _run(module: nn.Module, called: Any, arrays: list[np.ndarray[Any, Any]], dtype: Any) -> list[Any]:
    values = [torch.from_numpy(one.copy()).to(dtype) for one in arrays]
    with torch.no_grad():
        results = called(*values)
    leaves = torch.utils._pytree.tree_leaves(results)
    return [_numpy(one) for one in (*leaves, *values, *module.state_dict().values())]


def _numpy(one: Any) -> Any:
    return one.float().numpy() if one.dtype == torch.bfloat16 else one.detach().clone().resolve_conj().numpy()


def judge(seed: int) -> str:
    """What is wrong about the results of a seed's function; empty if nothing is."""
    random = Random(f"torch lines {seed}")
    pool = Pool(random, (), ())
    parts, arrays = [], []
    while len(parts) < _PARTS:
        dims = tuple(random.choice((1, 2, 3, 3, 4, 5, 7)) for _ in range(random.choice((1, 2, 2, 3))))
        array, part = np.clip(pool.numbers(dims, "float32"), -3, 3), random.choice(random.choice((_LINES, _CALLS)))
        try:
            part(torch.from_numpy(array.copy()))
        except (RuntimeError, IndexError, TypeError, ValueError):
            continue  # PyTorch itself does not take it
        parts.append(part)
        arrays.append(array)
    channels = min(3, int(np.prod(arrays[0].shape[1:])))
    momentum, changed = random.choice((0.1, 0.5, 1.0)), random.choice((None, 0, 1))
    modules = [_Parts(parts, _Norm(channels, momentum), changed) for _ in range(3)]
    expected = _run(modules[0], modules[0], arrays, torch.float32)
    torch._dynamo.reset()
    compiled = torch.compile(
        modules[1], backend="hloforge", fullgraph=True, dynamic=random.choice((False, False, None))
    )
    try:
        found = _run(modules[1], compiled, arrays, torch.float32)
    except (torch._dynamo.exc.Unsupported, torch._dynamo.exc.UserError):
        return ""  # PyTorch itself does not trace it
    except hloforge.Error as error:
        return f"{_names(parts)}: {error.message}"
    report = compare(tuple(found), tuple(expected))
    if not report.agrees:
        with suppress(RuntimeError):  # parts with constants in float32 are not known better
            truth = _run(modules[2].to(torch.float64), modules[2], arrays, torch.float64)
            report = second_opinions(report, *cancelled(found, expected, truth))
    return "" if report.agrees else f"{_names(parts)}, {[one.shape for one in arrays]}, {changed}: {report.text()}"


def _names(parts: list[Part]) -> list[int]:
    """The lines of their source."""
    return [part.__code__.co_firstlineno for part in parts]
