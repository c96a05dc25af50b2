"""Sequences of tokens: attention of many kinds, recurrences that replace it, experts, small weights."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from tests.torch.zoo.entries import Entry, entries


def rotations(length: int, width: int, base: float = 10000.0, factor: float = 1.0) -> tuple[Tensor, Tensor]:
    """Cosines and sines of rotary places: [length, width]; a factor above 1 scales as YaRN does."""
    powers = torch.arange(0, width, 2, dtype=torch.float32) / width
    frequencies = 1.0 / base**powers
    if factor > 1:

        def dimension(turns: float) -> float:
            return width * math.log(32 / (turns * 2 * math.pi)) / (2 * math.log(base))

        low, high = max(math.floor(dimension(32)), 0), min(math.ceil(dimension(1)), width - 1)
        ramp = ((torch.arange(width // 2, dtype=torch.float32) - low) / max(high - low, 1e-3)).clamp(0, 1)
        frequencies = frequencies / factor * ramp + frequencies * (1 - ramp)
    angles = torch.outer(torch.arange(length, dtype=torch.float32), frequencies)
    angles = torch.cat([angles, angles], -1)
    scale = 0.1 * math.log(factor) + 1 if factor > 1 else 1.0
    return angles.cos() * scale, angles.sin() * scale


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary places applied in halves."""
    one, other = x.chunk(2, -1)
    return x * cos.to(x.dtype) + torch.cat([-other, one], -1) * sin.to(x.dtype)


class RmsNorm(nn.Module):
    """Computed in f32, as language models do."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        wide = x if x.dtype == torch.float64 else x.float()
        return self.weight * (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + 1e-6)).to(x.dtype)


class LatentAttention(nn.Module):
    """DeepSeek's MLA: keys and values of a low rank, rotary places in a part of each head."""

    def __init__(self, width: int = 48, heads: int = 4, rank: int = 16, plain: int = 8, turned: int = 8) -> None:
        super().__init__()
        self.heads, self.plain, self.turned, self.rank = heads, plain, turned, rank
        self.down_q, self.norm_q, self.up_q = (
            nn.Linear(width, 24, False),
            RmsNorm(24),
            nn.Linear(24, heads * (plain + turned), False),
        )
        self.down_kv, self.norm_kv = nn.Linear(width, rank + turned, False), RmsNorm(rank)
        self.up_kv, self.out = nn.Linear(rank, heads * (plain + 12), False), nn.Linear(heads * 12, width, False)

    def forward(self, x: Tensor) -> Tensor:
        b, n, _ = x.shape
        q = self.up_q(self.norm_q(self.down_q(x))).view(b, n, self.heads, -1).transpose(1, 2)
        plain, turned = q.split([self.plain, self.turned], -1)
        latent, key = self.down_kv(x).split([self.rank, self.turned], -1)
        kv = self.up_kv(self.norm_kv(latent)).view(b, n, self.heads, -1).transpose(1, 2)
        k, v = kv.split([self.plain, 12], -1)
        cos, sin = rotations(n, self.turned, factor=4.0)
        q = torch.cat([plain, rotate(turned, cos, sin)], -1)
        k = torch.cat([k, rotate(key[:, None], cos, sin).expand(-1, self.heads, -1, -1)], -1)
        found = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(found.transpose(1, 2).flatten(2))


class SinkAttention(nn.Module):
    """A sliding window, grouped queries, and a learnt score that takes part of each softmax."""

    def __init__(self, width: int = 32, heads: int = 4, groups: int = 2, window: int = 4) -> None:
        super().__init__()
        self.heads, self.groups, self.window = heads, groups, window
        self.q, self.kv = nn.Linear(width, width), nn.Linear(width, 2 * groups * (width // heads))
        self.sinks, self.out = nn.Parameter(torch.randn(heads)), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        b, n, c = x.shape
        q = self.q(x).view(b, n, self.heads, -1).transpose(1, 2)
        k, v = self.kv(x).view(b, n, self.groups, -1).transpose(1, 2).chunk(2, -1)
        k, v = (each.repeat_interleave(self.heads // self.groups, 1) for each in (k, v))
        place = torch.arange(n)
        seen = (place[None] <= place[:, None]) & (place[None] > place[:, None] - self.window)
        scores = (q @ k.mT / math.sqrt(c // self.heads)).masked_fill(~seen, torch.finfo(x.dtype).min)
        scores = torch.cat([scores, self.sinks.view(1, -1, 1, 1).expand(b, -1, n, 1)], -1)
        scores = scores - scores.amax(-1, keepdim=True)
        return self.out((scores.softmax(-1)[..., :-1] @ v).transpose(1, 2).flatten(2))


class DifferentialAttention(nn.Module):
    """The difference of two softmaxes, with ALiBi's slopes and a soft cap."""

    def __init__(self, width: int = 32, heads: int = 4) -> None:
        super().__init__()
        self.heads, self.qkv, self.out = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.weights = nn.Parameter(torch.randn(4, width // heads // 2) * 0.1)
        self.slopes: Tensor
        self.register_buffer("slopes", 2.0 ** (-8 / heads * torch.arange(1, heads + 1)))

    def forward(self, x: Tensor) -> Tensor:
        b, n, c = x.shape
        q, k, v = (each.view(b, n, self.heads, -1).transpose(1, 2) for each in self.qkv(x).chunk(3, -1))
        far = torch.arange(n)[:, None] - torch.arange(n)
        bias = torch.where(far >= 0, -far * self.slopes.view(-1, 1, 1), float("-inf"))
        one, other = (
            (20 * torch.tanh(a @ b.mT / 8 / 20) + bias).softmax(-1)
            for a, b in zip(q.chunk(2, -1), k.chunk(2, -1), strict=True)
        )
        w = self.weights
        share = (w[0] * w[1]).sum().exp() - (w[2] * w[3]).sum().exp() + 0.8
        found = functional.rms_norm((one - share * other) @ v, (c // self.heads,), eps=1e-5) * 0.2
        return self.out(found.transpose(1, 2).flatten(2))


class PagedDecoder(nn.Module):
    """One step of decoding: keys and values lie in pages that a table lists, and the new ones are written there."""

    def __init__(self, width: int = 32, heads: int = 2, page: int = 4) -> None:
        super().__init__()
        self.heads, self.page, self.qkv, self.out = heads, page, nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Tensor, pages: Tensor, table: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """x: [b, c]; pages: [2, pages, page, heads, d]; table: s64 [b, n]; lengths: s64 [b]."""
        b = x.shape[0]
        q, k, v = (each.view(b, self.heads, -1) for each in self.qkv(x).chunk(3, -1))
        slot = table.gather(1, (lengths // self.page)[:, None]).squeeze(1), lengths % self.page
        pages = pages.clone()
        pages[0].index_put_(slot, k)
        pages[1].index_put_(slot, v)
        keys, values = (each[table].flatten(1, 2) for each in pages)
        seen = torch.arange(keys.shape[1])[None] <= lengths[:, None]
        scores = torch.einsum("bhd,bnhd->bhn", q, keys) * q.shape[-1] ** -0.5
        weights = scores.masked_fill(~seen[:, None], float("-inf")).softmax(-1)
        return self.out(torch.einsum("bhn,bnhd->bhd", weights, values).flatten(1)), pages


class Speculative(nn.Module):
    """A speculative step: drafted tokens are kept as far as the target agrees, with a token of the rest."""

    def forward(self, drafted: Tensor, draft: Tensor, target: Tensor, chance: Tensor) -> tuple[Tensor, Tensor]:
        """drafted: s64 [b, k]; draft: [b, k, v]; target: [b, k + 1, v]; chance: [b, k]."""
        k = drafted.shape[1]
        p, q = target.softmax(-1), draft.softmax(-1)
        ratio = p[:, :k].gather(-1, drafted[..., None]).squeeze(-1) / q.gather(-1, drafted[..., None]).squeeze(-1)
        taken = (chance < ratio.clamp(max=1)).long().cumprod(1)
        count = taken.sum(1)
        rest = torch.cat([(p[:, :k] - q).clamp(min=0), p[:, k:]], 1)
        rest = rest[torch.arange(len(count)), count]
        token = (rest / rest.sum(-1, keepdim=True)).argmax(-1)
        place = torch.arange(k + 1)
        padded = functional.pad(drafted, (0, 1))
        return torch.where(
            place < count[:, None], padded, torch.where(place == count[:, None], token[:, None], -1)
        ), count


class Rwkv(nn.Module):
    """Time mixing with a decay for each channel (a loop over time), and channel mixing."""

    def __init__(self, width: int = 24) -> None:
        super().__init__()
        self.mixes = nn.Parameter(torch.rand(5, width))
        self.k, self.v, self.r, self.out = (nn.Linear(width, width, False) for _ in range(4))
        self.decay, self.first = nn.Parameter(torch.randn(width)), nn.Parameter(torch.randn(width))
        self.key, self.receive, self.value = (
            nn.Linear(width, 2 * width, False),
            nn.Linear(width, width, False),
            nn.Linear(2 * width, width, False),
        )
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        y = self.norms[0](x)
        before = functional.pad(y, (0, 0, 1, -1))
        k, v, r = (
            layer(torch.lerp(before, y, mix)) for layer, mix in zip((self.k, self.v, self.r), self.mixes, strict=False)
        )
        decay = -self.decay.exp()
        above = below = torch.zeros_like(y[:, 0])
        most = torch.full_like(above, -1e38)
        found = []
        for t in range(y.shape[1]):
            top = torch.maximum(most, self.first + k[:, t])
            old, new = (most - top).exp(), (self.first + k[:, t] - top).exp()
            found.append((old * above + new * v[:, t]) / (old * below + new))
            top = torch.maximum(most + decay, k[:, t])
            old, new = (most + decay - top).exp(), (k[:, t] - top).exp()
            above, below, most = old * above + new * v[:, t], old * below + new, top
        x = x + self.out(r.sigmoid() * torch.stack(found, 1))
        y = self.norms[1](x)
        before = functional.pad(y, (0, 0, 1, -1))
        wide = self.key(torch.lerp(before, y, self.mixes[3])).relu().square()
        return x + self.receive(torch.lerp(before, y, self.mixes[4])).sigmoid() * self.value(wide)


def segments(x: Tensor) -> Tensor:
    """Sums between all pairs of places; -inf where the second is before the first."""
    n = x.shape[-1]
    wide = x[..., None].expand(*x.shape, n)
    below = torch.tril(torch.ones(n, n, dtype=torch.bool), -1)
    sums = wide.masked_fill(~below, 0).cumsum(-2)
    return sums.masked_fill(~torch.tril(torch.ones(n, n, dtype=torch.bool)), float("-inf"))


class StateSpaceDuality(nn.Module):
    """Mamba 2's chunks: products within each, and states carried between them."""

    def __init__(self, width: int = 32, heads: int = 4, state: int = 8, chunk: int = 4) -> None:
        super().__init__()
        self.heads, self.state, self.chunk = heads, state, chunk
        self.into = nn.Linear(width, 2 * width + 2 * state + heads)
        self.conv = nn.Conv1d(width + 2 * state, width + 2 * state, 4, groups=width + 2 * state, padding=3)
        self.bias, self.log, self.skip = (
            nn.Parameter(torch.randn(heads)),
            nn.Parameter(torch.rand(heads)),
            nn.Parameter(torch.ones(heads)),
        )
        self.norm, self.out = nn.RMSNorm(width), nn.Linear(width, width)

    def forward(self, u: Tensor) -> Tensor:
        n, width, h = u.shape[1], u.shape[2], self.heads
        z, xbc, dt = self.into(u).split([width, width + 2 * self.state, h], -1)
        xbc = functional.silu(self.conv(xbc.transpose(1, 2))[..., :n].transpose(1, 2))
        x, b, c = xbc.split([width, self.state, self.state], -1)
        dt = functional.softplus(dt + self.bias)
        x = x.unflatten(-1, (h, -1))
        a = (dt * -self.log.exp()).unflatten(1, (-1, self.chunk)).permute(0, 3, 1, 2)
        inputs, bs, cs = (each.unflatten(1, (-1, self.chunk)) for each in (x * dt[..., None], b, c))
        sums = a.cumsum(-1)
        inner = torch.einsum("bcln,bcsn,bhcls,bcshp->bclhp", cs, bs, segments(a).exp(), inputs)
        states = torch.einsum("bcln,bhcl,bclhp->bchpn", bs, (sums[..., -1:] - sums).exp(), inputs)
        states = torch.cat([torch.zeros_like(states[:, :1]), states], 1)
        carried = torch.einsum("bhzc,bchpn->bzhpn", segments(functional.pad(sums[..., -1], (1, 0))).exp(), states)[
            :, :-1
        ]
        outer = torch.einsum("bcln,bchpn,bhcl->bclhp", cs, carried, sums.exp())
        y = (inner + outer).flatten(1, 2) + x * self.skip[:, None]
        return self.out(self.norm(y.flatten(2) * functional.silu(z)))


class XLstm(nn.Module):
    """A matrix memory in parallel form, then a scalar memory in a loop, both with exponential gates."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.qkv, self.gates, self.norm = nn.Linear(width, 3 * width), nn.Linear(width, 2), nn.GroupNorm(4, width)
        self.inner, self.again = nn.Linear(width, 4 * width), nn.Linear(width, 4 * width, False)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).chunk(3, -1)
        into, keep = self.gates(x).float().unbind(-1) if x.dtype != torch.float64 else self.gates(x).unbind(-1)
        sums = functional.logsigmoid(keep).cumsum(-1)
        d = sums[:, :, None] - sums[:, None] + into[:, None]
        d = d.masked_fill(~torch.ones(d.shape[1:], dtype=torch.bool).tril(), float("-inf"))
        most = d.amax(-1, keepdim=True)
        weights = (q @ k.mT / q.shape[-1] ** 0.5) * (d - most).exp()
        weights = weights / (torch.maximum(weights.sum(-1, keepdim=True).abs(), (-most).exp()) + 1e-6)
        y = x + self.norm((weights.to(v.dtype) @ v).transpose(1, 2)).transpose(1, 2)
        h = c = n = m = torch.zeros_like(y[:, 0])
        found = []
        for each in self.inner(y).unbind(1):
            i, f, z, o = (each + self.again(h)).chunk(4, -1)
            f = functional.logsigmoid(f)
            new = torch.maximum(f + m, i)
            i, f, m = (i - new).exp(), (f + m - new).exp(), new
            c, n = f * c + i * z.tanh(), f * n + i
            h = o.sigmoid() * c / n.clamp(min=1e-6)
            found.append(h)
        return y + torch.stack(found, 1)


class Hyena(nn.Module):
    """Long convolutions by Fourier transforms, with filters that a small network of the place says."""

    def __init__(self, width: int = 16, longest: int = 24) -> None:
        super().__init__()
        self.into, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.short = nn.Conv1d(3 * width, 3 * width, 3, padding=2, groups=3 * width)
        self.filter = nn.ModuleList([nn.Linear(5, 16), nn.Linear(16, width, False)])
        self.bias, self.decay = nn.Parameter(torch.randn(width)), nn.Parameter(torch.linspace(0.5, 3, width))
        t = torch.linspace(0, 1, longest)[:, None]
        bands = torch.exp(2j * math.pi * t * torch.tensor([1.0, 2.0]))
        self.places: Tensor
        self.register_buffer("places", torch.cat([t, bands.real, bands.imag], -1))

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        parts = self.short(self.into(x).transpose(1, 2))[..., :n]
        gate, other, v = parts.chunk(3, 1)
        places = self.places[:n]
        h = self.filter[1](torch.sin(10 * self.filter[0](places))) * torch.exp(-places[:, :1] * self.decay.abs())
        v = v * other
        spectrum = torch.fft.rfft(h.T, n=2 * n) / (2 * n)
        y = torch.fft.irfft(torch.fft.rfft(v, n=2 * n) * spectrum, n=2 * n, norm="forward")[..., :n]
        return self.out(((y + v * self.bias[:, None]) * gate).transpose(1, 2))


class DeltaRule(nn.Module):
    """Linear attention whose state forgets what a key said before (gated DeltaNet), a step at a time."""

    def __init__(self, width: int = 16, heads: int = 2) -> None:
        super().__init__()
        self.heads, self.qkv, self.gates, self.out = (
            heads,
            nn.Linear(width, 3 * width),
            nn.Linear(width, 2 * heads),
            nn.Linear(width, width),
        )

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (each.unflatten(-1, (self.heads, -1)) for each in self.qkv(x).chunk(3, -1))
        q, k = functional.normalize(q, dim=-1), functional.normalize(k, dim=-1)
        beta, alpha = self.gates(x).sigmoid().chunk(2, -1)
        state = x.new_zeros(x.shape[0], self.heads, k.shape[-1], v.shape[-1])
        found = []
        for t in range(x.shape[1]):
            state = state * alpha[:, t, :, None, None]
            new = v[:, t] - torch.einsum("bhk,bhkv->bhv", k[:, t], state)
            state = state + torch.einsum("bhk,bhv->bhkv", k[:, t], new * beta[:, t, :, None])
            found.append(torch.einsum("bhk,bhkv->bhv", q[:, t], state))
        return self.out(torch.stack(found, 1).flatten(2))


class LinearAttention(nn.Module):
    """Performer's random features beside elu + 1, both causal by running sums."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width)
        self.features: Tensor
        self.register_buffer("features", torch.linalg.qr(torch.randn(width, width))[0] * width**0.5)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).chunk(3, -1)

        def positive(each: Tensor) -> Tensor:
            each = each / each.shape[-1] ** 0.25
            return (each @ self.features - each.square().sum(-1, keepdim=True) / 2).exp() + 1e-4

        found = []
        for a, b in ((positive(q), positive(k)), (functional.elu(q) + 1, functional.elu(k) + 1)):
            kv = torch.einsum("bnd,bne->bnde", b, v).cumsum(1)
            found.append(torch.einsum("bnd,bnde->bne", a, kv) / torch.einsum("bnd,bnd->bn", a, b.cumsum(1))[..., None])
        return torch.cat(found, -1)


class Experts(nn.Module):
    """Switch with a capacity: tokens beyond it are dropped, and a loss that balances the load."""

    def __init__(self, width: int = 16, experts: int = 4, capacity: int = 6, best: int = 2) -> None:
        super().__init__()
        self.experts, self.capacity, self.best = experts, capacity, best
        self.router = nn.Linear(width, experts, False)
        self.wide = nn.Parameter(torch.randn(experts, width, 32) * 0.2)
        self.narrow = nn.Parameter(torch.randn(experts, 32, width) * 0.2)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        chances = self.router(x).softmax(-1)
        weights, chosen = chances.topk(self.best, -1)
        weights = weights / weights.sum(-1, keepdim=True)
        hot = functional.one_hot(chosen, self.experts)
        place = (hot.flatten(0, 1).cumsum(0) - 1).view_as(hot)
        place = (place * hot).sum(-1)
        kept = place < self.capacity
        slot = torch.where(kept, chosen * self.capacity + place, self.experts * self.capacity)
        gathered = x.new_zeros(self.experts * self.capacity + 1, x.shape[-1])
        gathered = gathered.index_copy(0, slot.flatten(), x.repeat_interleave(self.best, 0))
        inner = gathered[:-1].view(self.experts, self.capacity, -1)
        inner = torch.bmm(functional.silu(torch.bmm(inner, self.wide)), self.narrow).flatten(0, 1)
        inner = torch.cat([inner, inner.new_zeros(1, inner.shape[-1])])
        found = (inner[slot] * (weights * kept)[..., None]).sum(1)
        balance = self.experts * (hot.sum(1).to(x.dtype).mean(0) * chances.mean(0)).sum()
        return found, balance


class LoraLinear(nn.Module):
    """A frozen weight of 4 bits in blocks with scales, and two small factors that are learnt."""

    def __init__(self, width: int, out: int, rank: int = 4, block: int = 16) -> None:
        super().__init__()
        self.block = block
        self.packed: Tensor
        self.scales: Tensor
        self.levels: Tensor
        self.register_buffer("packed", torch.randint(256, (out, width // 2), dtype=torch.uint8))
        self.register_buffer("scales", torch.rand(out, width // block) * 0.1)
        self.register_buffer("levels", torch.linspace(-1, 1, 16).pow(3))
        self.a, self.b = nn.Parameter(torch.randn(rank, width) * 0.1), nn.Parameter(torch.randn(out, rank) * 0.1)

    def forward(self, x: Tensor) -> Tensor:
        low, high = self.packed & 15, self.packed >> 4
        numbers = torch.stack([low, high], -1).flatten(1).int()
        weight = self.levels[numbers].unflatten(1, (-1, self.block)) * self.scales[..., None]
        return functional.linear(x, weight.flatten(1).to(x.dtype)) + 2.0 * ((x @ self.a.T) @ self.b.T)


def lora() -> nn.Module:
    return nn.Sequential(LoraLinear(32, 64), nn.SiLU(), LoraLinear(64, 32))


class Int8Linear(nn.Module):
    """Activations quantized by token, weights by row, products in integers."""

    def __init__(self, width: int = 32, out: int = 16) -> None:
        super().__init__()
        self.weight: Tensor
        self.scale: Tensor
        self.register_buffer("weight", torch.randint(-127, 128, (out, width), dtype=torch.int8))
        self.register_buffer("scale", torch.rand(out) * 0.01)

    def forward(self, x: Tensor) -> Tensor:
        step = x.abs().amax(-1, keepdim=True).clamp(min=1e-6) / 127
        whole = torch.round(x / step).clamp(-128, 127).to(torch.int8)
        return torch._int_mm(whole, self.weight.T).to(x.dtype) * step * self.scale


class Matryoshka(nn.Module):
    """One embedding whose prefixes are embeddings too: contrastive losses of each."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(16, width), nn.GELU(), nn.Linear(width, width))
        self.scale = nn.Parameter(torch.tensor(math.log(1 / 0.07)))

    def forward(self, one: Tensor, other: Tensor) -> Tensor:
        a, b = self.encode(one), self.encode(other)
        loss = a.new_zeros(())
        for width in (4, 8, 16, 32):
            x, y = functional.normalize(a[:, :width], dim=-1), functional.normalize(b[:, :width], dim=-1)
            logits = self.scale.exp().clamp(max=100) * x @ y.T
            labels = torch.arange(len(logits))
            loss = (
                loss
                + (
                    functional.cross_entropy(logits, labels)
                    + functional.cross_entropy(logits.T, labels, label_smoothing=0.1)
                )
                / 2
            )
            pairs = -functional.logsigmoid((2 * torch.eye(len(logits), dtype=logits.dtype) - 1) * logits).sum() / len(
                logits
            )
            loss = loss + 0.1 * pairs + functional.triplet_margin_loss(x, y, y.roll(1, 0))
        return loss


class Lm(nn.Module):
    """A decoder with a loss that leaves padding out: embeddings tied, SwiGLU, a z-loss."""

    def __init__(self, words: int = 50, width: int = 32) -> None:
        super().__init__()
        self.words, self.attend, self.norms = (
            nn.Embedding(words, width),
            SinkAttention(width),
            nn.ModuleList(RmsNorm(width) for _ in range(3)),
        )
        self.gate, self.up, self.down = (
            nn.Linear(width, 64, False),
            nn.Linear(width, 64, False),
            nn.Linear(64, width, False),
        )

    def forward(self, tokens: Tensor) -> Any:
        x = self.words(tokens)
        x = x + self.attend(self.norms[0](x))
        y = self.norms[1](x)
        x = x + self.down(functional.silu(self.gate(y)) * self.up(y))
        logits = functional.linear(self.norms[2](x), self.words.weight)
        labels = functional.pad(tokens, (0, 1), value=-100)[:, 1:].masked_fill(tokens == 3, -100)
        loss = functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=-100)
        return {"loss": loss + 1e-4 * logits.logsumexp(-1).square().mean(), "logits": logits}


def _paged() -> tuple[Tensor, ...]:
    table = torch.tensor([[3, 0, 5], [1, 4, 2]])
    return torch.randn(2, 32), torch.randn(2, 6, 4, 2, 16), table, torch.tensor([5, 10])


def _speculative() -> tuple[Tensor, ...]:
    return torch.randint(9, (3, 4)), torch.randn(3, 4, 9), torch.randn(3, 5, 9), torch.rand(3, 4)


def _sequence(width: int, length: int = 12) -> tuple[Tensor, ...]:
    return (torch.randn(2, length, width),)


ENTRIES: dict[str, Entry] = entries(
    Entry("MLA with YaRN", LatentAttention, lambda: _sequence(48), opens=(0,)),
    Entry("sliding window with sinks", SinkAttention, lambda: _sequence(32), opens=(0,)),
    Entry("differential attention, ALiBi", DifferentialAttention, lambda: _sequence(32)),
    Entry("paged cache", PagedDecoder, _paged),
    Entry("speculative step", Speculative, _speculative, trains=False),
    Entry("RWKV", Rwkv, lambda: _sequence(24, 8)),
    Entry("Mamba 2, chunks", StateSpaceDuality, lambda: _sequence(32)),
    Entry("xLSTM", XLstm, lambda: _sequence(16, 6)),
    Entry("Hyena", Hyena, lambda: _sequence(16)),
    Entry("gated delta rule", DeltaRule, lambda: _sequence(16, 6)),
    Entry("Performer", LinearAttention, lambda: _sequence(16)),
    Entry("experts with capacity", Experts, lambda: (torch.randn(16, 16),)),
    Entry("LoRA on 4 bits", lora, lambda: (torch.randn(3, 32),), opens=(0,)),
    Entry("int8 by token", Int8Linear, lambda: (torch.randn(20, 32),), trains=False),
    Entry("Matryoshka losses", Matryoshka, lambda: (torch.randn(6, 16), torch.randn(6, 16))),
    Entry("decoder with its loss", Lm, lambda: (torch.randint(50, (2, 10)),), opens=(0,)),
)
