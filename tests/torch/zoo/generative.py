"""Samples of images, sounds and scenes: fields, splats, flows, autoencoders, diffusion, vocoders."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils import parametrizations

from tests.torch.zoo.entries import Entry, entries


def waves(x: Tensor, count: int) -> Tensor:
    """Sines and cosines of doubled frequencies."""
    angles = x[..., None] * 2.0 ** torch.arange(count, dtype=x.dtype) * math.pi
    return torch.cat([x, angles.sin().flatten(-2), angles.cos().flatten(-2)], -1)


class NeRF(nn.Module):
    """Places along rays, a perceptron with a skip, volume rendering, and a second pass where density is."""

    def __init__(self, width: int = 32, points: int = 8) -> None:
        super().__init__()
        self.points = points
        self.first, self.second = nn.Linear(27, width), nn.Linear(width + 27, width)
        self.density, self.color = (
            nn.Linear(width, 1),
            nn.Sequential(nn.Linear(width + 15, 16), nn.ReLU(), nn.Linear(16, 3)),
        )

    def _render(self, origin: Tensor, way: Tensor, t: Tensor) -> tuple[Tensor, Tensor]:
        places = waves(origin[:, None] + way[:, None] * t[..., None], 4)
        x = functional.relu(self.first(places))
        x = functional.relu(self.second(torch.cat([x, places], -1)))
        seen = waves(functional.normalize(way, dim=-1), 2)[:, None].expand(-1, t.shape[1], -1)
        color = self.color(torch.cat([x, seen], -1)).sigmoid()
        step = torch.cat([t[:, 1:] - t[:, :-1], torch.full_like(t[:, :1], 1e10)], -1)
        alpha = 1 - torch.exp(-functional.softplus(self.density(x).squeeze(-1)) * step * way.norm(dim=-1, keepdim=True))
        left = torch.cumprod(torch.cat([torch.ones_like(alpha[:, :1]), 1 - alpha + 1e-10], -1), -1)[:, :-1]
        weights = alpha * left
        return (weights[..., None] * color).sum(1), weights

    def forward(self, origin: Tensor, way: Tensor) -> tuple[Tensor, Tensor]:
        t = torch.linspace(2, 6, self.points, dtype=origin.dtype).expand(len(origin), -1)
        coarse, weights = self._render(origin, way, t)
        middle = (t[:, 1:] + t[:, :-1]) / 2
        share = weights[:, 1:-1].detach() + 1e-5
        sums = functional.pad((share / share.sum(-1, keepdim=True)).cumsum(-1), (1, 0))
        u = torch.linspace(0.05, 0.95, self.points, dtype=origin.dtype).expand(len(origin), -1).contiguous()
        above = torch.searchsorted(sums.contiguous(), u, right=True)
        low, high = (above - 1).clamp(min=0), above.clamp(max=sums.shape[-1] - 1)
        s0, s1 = sums.gather(1, low), sums.gather(1, high)
        t0, t1 = middle.gather(1, low), middle.gather(1, high)
        part = (u - s0) / torch.where(s1 - s0 < 1e-5, torch.ones_like(s0), s1 - s0)
        fine, _ = self._render(origin, way, torch.cat([t, t0 + part * (t1 - t0)], -1).sort(-1).values)
        return coarse, fine


class Splats(nn.Module):
    """Gaussians in space, projected, sorted by depth, blended from the front in a loop."""

    def __init__(self, count: int = 12, size: int = 12) -> None:
        super().__init__()
        self.size = size
        self.means = nn.Parameter(torch.randn(count, 3) * 0.5 + torch.tensor([0.0, 0, 3]))
        self.scales, self.turns = nn.Parameter(torch.randn(count, 3) * 0.2 - 1.5), nn.Parameter(torch.randn(count, 4))
        self.colors, self.opacity = nn.Parameter(torch.rand(count, 3)), nn.Parameter(torch.zeros(count))

    def forward(self, view: Tensor) -> Tensor:
        w, x, y, z = functional.normalize(self.turns, dim=-1).unbind(-1)
        turned = torch.stack(
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y),
             2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x),
             2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)], -1).view(-1, 3, 3)  # fmt: skip
        factor = turned * self.scales.exp()[:, None]
        covariance = factor @ factor.mT
        seen = self.means @ view[:3, :3].T + view[:3, 3]
        depth = seen[:, 2].clamp(min=0.1)
        zero = torch.zeros_like(depth)
        jacobian = torch.stack(
            [1 / depth, zero, -seen[:, 0] / depth**2, zero, 1 / depth, -seen[:, 1] / depth**2], -1
        ).view(-1, 2, 3)  # fmt: skip
        flat = jacobian @ view[:3, :3] @ covariance @ view[:3, :3].T @ jacobian.mT
        flat = flat + 1e-3 * torch.eye(2, dtype=flat.dtype)
        order = torch.argsort(depth)
        inverse = torch.linalg.inv(flat[order])
        center = (seen[:, :2] / depth[:, None])[order]
        opacity, colors = self.opacity[order].sigmoid(), self.colors[order]
        line = torch.linspace(-1, 1, self.size, dtype=view.dtype)
        pixels = torch.stack(torch.meshgrid(line, line, indexing="xy"), -1).view(-1, 2)
        image, left = pixels.new_zeros(len(pixels), 3), pixels.new_ones(len(pixels))
        for n in range(len(order)):
            d = pixels - center[n]
            power = -0.5 * torch.einsum("pi,ij,pj->p", d, inverse[n], d)
            alpha = (opacity[n] * power.exp()).clamp(max=0.99)
            alpha = torch.where(alpha < 1 / 255, torch.zeros_like(alpha), alpha)
            image = image + (alpha * left)[:, None] * colors[n]
            left = left * (1 - alpha)
        return image.view(self.size, self.size, 3)


class HiFiGan(nn.Module):
    """Transposed convolutions with weight norms, residual blocks of many dilations."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        norm = parametrizations.weight_norm
        self.first = norm(nn.Conv1d(8, width, 7, padding=3))
        self.ups = nn.ModuleList(
            norm(
                nn.ConvTranspose1d(
                    width >> n, width >> n + 1, 2 * rate, rate, rate // 2 + rate % 2, output_padding=rate % 2
                )
            )
            for n, rate in enumerate((4, 3))
        )
        self.blocks = nn.ModuleList(
            nn.ModuleList(norm(nn.Conv1d(width >> n + 1, width >> n + 1, 3, padding=d, dilation=d)) for d in (1, 3, 5))
            for n in range(2)
        )
        self.last = norm(nn.Conv1d(width >> 2, 1, 7, padding=3))

    def forward(self, mel: Tensor) -> Tensor:
        x = self.first(mel)
        for up, block in zip(self.ups, self.blocks, strict=True):
            x = up(functional.leaky_relu(x, 0.1))
            for conv in block:
                x = x + conv(functional.leaky_relu(x, 0.1))
        return torch.tanh(self.last(functional.leaky_relu(x)))


class WaveNet(nn.Module):
    """Causal dilated convolutions with gates and skips, and the likelihood of mixed logistics."""

    def __init__(self, width: int = 12, mixtures: int = 3) -> None:
        super().__init__()
        self.into = nn.Conv1d(1, width, 1)
        self.dilated = nn.ModuleList(nn.Conv1d(width, 2 * width, 2, dilation=2**n) for n in range(4))
        self.out, self.skip = (nn.ModuleList(nn.Conv1d(width, width, 1) for _ in range(4)) for _ in range(2))
        self.head = nn.Sequential(nn.ReLU(), nn.Conv1d(width, width, 1), nn.ReLU(), nn.Conv1d(width, 3 * mixtures, 1))

    def forward(self, wave: Tensor) -> tuple[Tensor, Tensor]:
        x = self.into(functional.pad(wave, (1, 0))[..., :-1])
        skips = torch.zeros_like(x)
        for n, (dilated, out, skip) in enumerate(zip(self.dilated, self.out, self.skip, strict=True)):
            value, gate = dilated(functional.pad(x, (2**n, 0))).chunk(2, 1)
            y = value.tanh() * gate.sigmoid()
            skips, x = skips + skip(y), (x + out(y)) * 0.5**0.5
        logits, means, logs = self.head(skips).chunk(3, 1)
        logs = logs.clamp(min=-7)
        apart, inverse = wave - means, torch.exp(-logs)
        above, below = inverse * (apart + 1 / 255), inverse * (apart - 1 / 255)
        inside = (above.sigmoid() - below.sigmoid()).clamp(min=1e-12).log()
        middle = inverse * apart - logs - 2 * functional.softplus(inverse * apart)
        chance = torch.where(above.sigmoid() - below.sigmoid() > 1e-5, inside, middle - math.log(127.5))
        return -torch.logsumexp(logits.log_softmax(1) + chance, 1).mean(), logits


class Vits(nn.Module):
    """VITS: relative attention of the text, a posterior, a flow, and alignments found by dynamic programming."""

    def __init__(self, width: int = 16, window: int = 3) -> None:
        super().__init__()
        self.width, self.window = width, window
        self.text, self.qkv, self.prior = (
            nn.Embedding(20, width),
            nn.Linear(width, 3 * width),
            nn.Linear(width, 2 * width),
        )
        self.near = nn.Parameter(torch.randn(2, 2 * window + 1, width) * width**-0.5)
        self.posterior, self.flow = nn.Conv1d(9, 2 * width, 5, padding=2), nn.Conv1d(width // 2, width, 5, padding=2)

    def _attend(self, x: Tensor) -> Tensor:
        n, k = x.shape[1], self.window
        q, key, v = self.qkv(x).chunk(3, -1)
        place = (torch.arange(n)[None] - torch.arange(n)[:, None]).clamp(-k, k) + k
        scores = q @ key.mT + (q @ self.near[0].T).gather(-1, place.expand(len(x), -1, -1))
        weights = (scores / self.width**0.5).softmax(-1)
        hot = functional.one_hot(place, 2 * k + 1).to(x.dtype)
        return x + weights @ v + torch.einsum("bij,ijr,rd->bid", weights, hot, self.near[1])

    def forward(self, text: Tensor, spectrum: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        means, logs = self.prior(self._attend(self.text(text))).chunk(2, -1)
        mean, log = self.posterior(spectrum).chunk(2, 1)
        z = mean + noise * log.exp()
        one, other = z.chunk(2, 1)
        shift, scale = self.flow(one).chunk(2, 1)
        z = torch.cat([one, shift + other * scale.tanh().exp()], 1)
        with torch.no_grad():
            inverse = torch.exp(-2 * logs)
            score = -0.5 * ((z.square().transpose(1, 2) @ inverse.mT) - 2 * (z.transpose(1, 2) @ (means * inverse).mT))
            score = score - (0.5 * (means.square() * inverse) + logs).sum(-1)[:, None]
            path = self._path(score)
        means, logs = (path.to(z.dtype) @ each for each in (means, logs))
        loss = (
            logs - log.transpose(1, 2) - 0.5 + 0.5 * torch.exp(-2 * logs) * (z.transpose(1, 2) - means).square()
        ).mean()
        return loss - scale.tanh().mean(), path

    @staticmethod
    def _path(score: Tensor) -> Tensor:
        """The monotonic path of the greatest sum: [b, frames, words]."""
        _, frames, words = score.shape
        value, steps = functional.pad(score[:, 0, :1], (0, words - 1), value=-1e9), []
        for t in range(1, frames):
            moved = functional.pad(value, (1, 0), value=-1e9)[:, :-1]
            steps.append(moved > value)
            value = torch.maximum(moved, value) + score[:, t]
        at = torch.full(score.shape[:1], words - 1)
        path = [functional.one_hot(at, words)]
        for step in reversed(steps):
            at = (at - step.gather(1, at[:, None]).squeeze(1).long()).clamp(min=0)
            path.append(functional.one_hot(at, words))
        return torch.stack(path[::-1], 1)


class Glow(nn.Module):
    """Squeezed images, an actnorm, an invertible 1x1 convolution, an affine coupling."""

    def __init__(self, channels: int = 12) -> None:
        super().__init__()
        self.bias, self.log = (
            nn.Parameter(torch.randn(1, channels, 1, 1)),
            nn.Parameter(torch.randn(1, channels, 1, 1) * 0.1),
        )
        self.mix = nn.Parameter(torch.linalg.qr(torch.randn(channels, channels))[0])
        self.net = nn.Sequential(nn.Conv2d(channels // 2, 16, 3, 1, 1), nn.ReLU(), nn.Conv2d(16, channels, 3, 1, 1))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        x = functional.pixel_unshuffle(x, 2)
        pixels = x.shape[2] * x.shape[3]
        x = (x + self.bias) * self.log.exp()
        x = functional.conv2d(x, self.mix[..., None, None])
        total = pixels * (self.log.sum() + torch.linalg.slogdet(self.mix)[1])
        one, other = x.chunk(2, 1)
        shift, scale = self.net(one).chunk(2, 1)
        scale = torch.sigmoid(scale + 2)
        z = torch.cat([one, (other + shift) * scale], 1)
        prior = torch.distributions.Normal(torch.zeros_like(z), torch.ones_like(z)).log_prob(z).flatten(1).sum(1)
        return z, -(prior + total + scale.log().flatten(1).sum(1)) / (math.log(2) * z[0].numel())


class SplineFlow(nn.Module):
    """Rational quadratic splines with tails, after a masked autoregressive perceptron."""

    def __init__(self, width: int = 4, bins: int = 5) -> None:
        super().__init__()
        self.bins, self.first, self.second = bins, nn.Linear(width, 16), nn.Linear(16, width * (3 * bins - 1))
        degree = torch.arange(16) % (width - 1)
        self.masks = nn.ParameterList(
            nn.Parameter(mask.to(torch.float32), requires_grad=False)
            for mask in (
                degree[:, None] >= torch.arange(width),
                torch.arange(width).repeat_interleave(3 * bins - 1)[:, None] > degree,
            )
        )

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        k, edge = self.bins, 3.0
        h = functional.relu(functional.linear(x, self.first.weight * self.masks[0], self.first.bias))
        h = functional.linear(h, self.second.weight * self.masks[1], self.second.bias).unflatten(-1, (x.shape[-1], -1))
        inside = (x >= -edge) & (x <= edge)
        at = x.clamp(-edge, edge)

        def knots(raw: Tensor) -> tuple[Tensor, Tensor]:
            sizes = 1e-3 + (1 - 1e-3 * k) * raw.softmax(-1)
            places = functional.pad(sizes.cumsum(-1), (1, 0)) * 2 * edge - edge
            places = torch.cat([places[..., :-1], torch.full_like(places[..., :1], edge)], -1)
            return places, places.diff(dim=-1)

        (xs, widths), (ys, heights) = knots(h[..., :k]), knots(h[..., k : 2 * k])
        slopes = functional.pad(1e-3 + functional.softplus(h[..., 2 * k :]), (1, 1), value=1.0)
        bin_ = ((at[..., None] >= xs[..., :-1]).sum(-1, keepdim=True) - 1).clamp(0, k - 1)
        x0, w, y0, t = (each.gather(-1, bin_).squeeze(-1) for each in (xs, widths, ys, heights))
        d0, d1 = slopes.gather(-1, bin_).squeeze(-1), slopes.gather(-1, bin_ + 1).squeeze(-1)
        slope, part = t / w, (at - x0) / w
        both = part * (1 - part)
        below = slope + (d0 + d1 - 2 * slope) * both
        y = y0 + t * (slope * part.square() + d0 * both) / below
        up = slope.square() * (d1 * part.square() + 2 * slope * both + d0 * (1 - part).square())
        log = up.log() - 2 * below.log()
        return torch.where(inside, y, x), torch.where(inside, log, torch.zeros_like(log)).sum(-1)


class Vae(nn.Module):
    """Convolutions down and up, given noise, and the bound."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(1, 8, 4, 2, 1), nn.ELU(), nn.Conv2d(8, 16, 4, 2, 1), nn.ELU(), nn.Flatten())
        self.middle, self.grow = nn.Linear(256, 8), nn.Linear(4, 256)
        self.up = nn.Sequential(
            nn.Unflatten(1, (16, 4, 4)), nn.ConvTranspose2d(16, 8, 4, 2, 1), nn.ELU(), nn.ConvTranspose2d(8, 1, 4, 2, 1)
        )

    def forward(self, x: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        mean, log = self.middle(self.down(x)).chunk(2, 1)
        found = self.up(self.grow(mean + noise * (log / 2).exp()))
        q = torch.distributions.Normal(mean, (log / 2).exp())
        p = torch.distributions.Normal(torch.zeros_like(mean), torch.ones_like(mean))
        apart = torch.distributions.kl_divergence(q, p).sum(1).mean()
        return functional.binary_cross_entropy_with_logits(found, x.sigmoid(), reduction="sum") / len(x) + apart, found


class VqVae(nn.Module):
    """A code book with straight-through gradients, moving averages, and a discretized decoder."""

    def __init__(self, codes: int = 16, width: int = 6) -> None:
        super().__init__()
        self.encode, self.decode = nn.Conv1d(3, width, 4, 2, 1), nn.ConvTranspose1d(width, 3, 4, 2, 1)
        self.book: Tensor
        self.count: Tensor
        self.register_buffer("book", torch.randn(codes, width))
        self.register_buffer("count", torch.ones(codes))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        z = self.encode(x).transpose(1, 2)
        flat = z.reshape(-1, z.shape[-1])
        chosen = torch.cdist(flat, self.book).argmin(-1)
        hot = functional.one_hot(chosen, len(self.book)).to(x.dtype)
        if self.training:
            with torch.no_grad():
                self.count.mul_(0.9).add_(hot.sum(0), alpha=0.1)
                total = self.count.sum()
                smooth = (self.count + 1e-5) / (total + len(self.book) * 1e-5) * total
                self.book.mul_(0.9).add_(0.1 * hot.T @ flat / smooth[:, None])
        q = functional.embedding(chosen, self.book).view_as(z)
        loss = 0.25 * functional.mse_loss(z, q.detach())
        found = self.decode((z + (q - z).detach()).transpose(1, 2))
        share = hot.mean(0)
        return functional.smooth_l1_loss(found, x) + loss, found, torch.exp(-(share * (share + 1e-10).log()).sum())


class Denoiser(nn.Module):
    """A small network of an image and a time."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.time = nn.Sequential(nn.Linear(16, width), nn.SiLU(), nn.Linear(width, 2 * width))
        self.first, self.norm, self.last = (
            nn.Conv2d(3, width, 3, 1, 1),
            nn.GroupNorm(2, width),
            nn.Conv2d(width, 3, 3, 1, 1),
        )

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        angles = t.to(x.dtype)[:, None] * torch.exp(-math.log(10000) * torch.arange(8, dtype=x.dtype) / 8)
        shift, scale = self.time(torch.cat([angles.sin(), angles.cos()], -1))[..., None, None].chunk(2, 1)
        return self.last(functional.silu(self.norm(self.first(x)) * (1 + scale) + shift))


class Sampler(nn.Module):
    """Schedulers in one program: DDIM with guidance, then DPM-Solver++ (2M), whose steps are numbers of Python."""

    def __init__(self) -> None:
        super().__init__()
        self.net = Denoiser()
        betas = torch.linspace(0.00085**0.5, 0.012**0.5, 1000, dtype=torch.float64).square()
        self.kept: Tensor
        self.register_buffer("kept", (1 - betas).cumprod(0).float())

    def forward(self, x: Tensor) -> Tensor:
        times = [999, 749, 499, 249]
        for now, after in zip(times, [*times[1:], None], strict=True):
            a = self.kept[now]
            b = self.kept[after] if after is not None else torch.ones_like(a)
            both = self.net(torch.cat([x, x]), torch.full((2 * len(x),), now))
            plain, told = both.chunk(2)
            noise = plain + 3.0 * (told * 1.1 - plain)
            clean = ((x - (1 - a).sqrt() * noise) / a.sqrt()).clamp(-1, 1)
            noise = (x - a.sqrt() * clean) / (1 - a).sqrt()
            x = b.sqrt() * clean + (1 - b).sqrt() * noise
        alphas, sigmas = self.kept.sqrt(), (1 - self.kept).sqrt()
        lambdas = alphas.log() - sigmas.log()
        before: Tensor | None = None
        times = [900, 600, 300, 1]
        for n in range(len(times) - 1):
            s, t = times[n], times[n + 1]
            clean = (x - sigmas[s] * self.net(x, torch.full((len(x),), s))) / alphas[s]
            h = lambdas[t] - lambdas[s]
            d = clean
            if before is not None:
                r = (lambdas[s] - lambdas[times[n - 1]]) / h
                d = (1 + 1 / (2 * r)) * clean - 1 / (2 * r) * before
            x = sigmas[t] / sigmas[s] * x - alphas[t] * torch.expm1(-h) * d
            before = clean
        return x


class DiffusionLoss(nn.Module):
    """EDM's preconditioning, with a weight for each noise level, and a flow-matching loss."""

    def __init__(self) -> None:
        super().__init__()
        self.net = Denoiser()

    def forward(self, x: Tensor, noise: Tensor, level: Tensor) -> Tensor:
        sigma = (level * 1.2 - 1.2).exp()[:, None, None, None]
        skip, out = 0.25 / (sigma**2 + 0.25), sigma * 0.5 / (sigma**2 + 0.25).sqrt()
        y = x + noise * sigma
        found = skip * y + out * self.net(y / (sigma**2 + 0.25).sqrt(), sigma.flatten().log() / 4)
        loss = ((sigma**2 + 0.25) / (sigma * 0.5) ** 2 * (found - x).square()).mean()
        t = level.sigmoid()[:, None, None, None]
        return loss + functional.mse_loss(self.net((1 - t) * x + t * noise, 1000 * t.flatten()), noise - x)


class Siren(nn.Module):
    """Sines of sines, with the Laplacian of the field by reverse mode twice."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(2, width), nn.Linear(width, width), nn.Linear(width, 1)])

    def _field(self, x: Tensor) -> Tensor:
        for layer in self.layers[:-1]:
            x = torch.sin(3 * layer(x))
        return self.layers[-1](x).squeeze(-1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        slope = torch.func.vmap(torch.func.grad(self._field))(x)
        hessian = torch.func.vmap(torch.func.jacrev(torch.func.grad(self._field)))(x)
        return self._field(x), slope, hessian.diagonal(dim1=-2, dim2=-1).sum(-1)


class StyleBlock(nn.Module):
    """StyleGAN 2: modulated and demodulated kernels by groups, noise, and a blurred upsampling."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.style, self.kernel = nn.Linear(6, width), nn.Parameter(torch.randn(width, width, 3, 3))
        self.strength, self.rgb = nn.Parameter(torch.tensor(0.1)), nn.Conv2d(width, 3, 1)
        self.blur: Tensor
        line = torch.tensor([1.0, 3, 3, 1])
        self.register_buffer("blur", (line[:, None] * line / 64 * 4)[None, None])

    def forward(self, x: Tensor, w: Tensor, noise: Tensor) -> Tensor:
        b, c, h, width = x.shape
        kernel = self.kernel[None] * (self.style(w) + 1).view(b, 1, c, 1, 1)
        kernel = kernel * torch.rsqrt(kernel.square().sum((2, 3, 4), keepdim=True) + 1e-8)
        y = functional.conv_transpose2d(
            x.reshape(1, b * c, h, width), kernel.transpose(1, 2).reshape(b * c, c, 3, 3), stride=2, groups=b
        )  # fmt: skip
        y = y.view(b * c, 1, *y.shape[2:])
        y = functional.conv2d(functional.pad(y, (1, 1, 1, 1)), self.blur).view(b, c, 2 * h, 2 * width)
        return self.rgb(functional.leaky_relu(y + self.strength * noise, 0.2) * 2**0.5)


def _views() -> tuple[Tensor, ...]:
    view = torch.eye(4)
    view[:3, 3] = torch.tensor([0.1, -0.2, 0.3])
    return (view,)


ENTRIES: dict[str, Entry] = entries(
    Entry("NeRF, two passes", NeRF, lambda: (torch.randn(6, 3) * 0.1, torch.randn(6, 3))),
    Entry("Gaussian splats", Splats, _views),
    Entry("HiFi-GAN", HiFiGan, lambda: (torch.randn(1, 8, 10),)),
    Entry("WaveNet", WaveNet, lambda: (torch.rand(2, 1, 24) * 2 - 1,)),
    Entry(
        "VITS with alignment", Vits, lambda: (torch.randint(20, (2, 5)), torch.randn(2, 9, 11), torch.randn(2, 16, 11))
    ),
    Entry("Glow", Glow, lambda: (torch.randn(2, 3, 8, 8),)),
    Entry("spline flow", SplineFlow, lambda: (torch.randn(6, 4) * 2,), opens=(0,)),
    Entry("VAE", Vae, lambda: (torch.rand(3, 1, 16, 16), torch.randn(3, 4)), is_whole=False),
    Entry("VQ-VAE", VqVae, lambda: (torch.randn(2, 3, 16),)),
    Entry("DDIM and DPM++", Sampler, lambda: (torch.randn(1, 3, 8, 8),)),
    Entry(
        "EDM and flow matching",
        DiffusionLoss,
        lambda: (torch.randn(2, 3, 8, 8), torch.randn(2, 3, 8, 8), torch.randn(2)),
    ),
    Entry("SIREN's Laplacian", Siren, lambda: (torch.randn(5, 2),)),
    Entry(
        "StyleGAN's block", StyleBlock, lambda: (torch.randn(2, 8, 4, 4), torch.randn(2, 6), torch.randn(2, 1, 8, 8))
    ),
)
