"""Images: backbones, segmentation, optical flow."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from tests.torch.zoo.entries import Entry, entries


class LayerNorm2d(nn.LayerNorm):
    """A layer norm of features that are the second dimension."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class ConvNeXtBlock(nn.Module):
    """Depthwise 7x7, an inverted bottleneck, global response norm (V2) and a layer scale."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.depth = nn.Conv2d(width, width, 7, padding=3, groups=width)
        self.norm = nn.LayerNorm(width, eps=1e-6)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.beta, self.gamma = nn.Parameter(torch.randn(4 * width) * 0.1), nn.Parameter(torch.randn(4 * width) * 0.1)
        self.scale = nn.Parameter(torch.full((width,), 0.5))

    def forward(self, x: Tensor) -> Tensor:
        y = functional.gelu(self.wide(self.norm(self.depth(x).permute(0, 2, 3, 1))))
        strength = y.norm(p=2, dim=(1, 2), keepdim=True)
        y = self.gamma * (y * (strength / (strength.mean(-1, keepdim=True) + 1e-6))) + self.beta + y
        return x + (self.scale * self.narrow(y)).permute(0, 3, 1, 2)


def convnext() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 16, 4, 4), LayerNorm2d(16), ConvNeXtBlock(16), ConvNeXtBlock(16), LayerNorm2d(16),
        nn.Conv2d(16, 32, 2, 2), ConvNeXtBlock(32), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.LayerNorm(32),
        nn.Linear(32, 10),
    )  # fmt: skip


class WindowAttention(nn.Module):
    """Attention in windows with a bias for each distance; the mask keeps shifted windows apart."""

    def __init__(self, width: int, window: int, heads: int) -> None:
        super().__init__()
        self.window, self.heads = window, heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.table = nn.Parameter(torch.randn((2 * window - 1) ** 2, heads) * 0.02)
        grid = torch.stack(torch.meshgrid(torch.arange(window), torch.arange(window), indexing="ij")).flatten(1)
        apart = (grid[:, :, None] - grid[:, None, :]).permute(1, 2, 0) + window - 1
        self.index: Tensor
        self.register_buffer("index", apart[..., 0] * (2 * window - 1) + apart[..., 1])

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        b, n, c = x.shape
        q, k, v = self.qkv(x).reshape(b, n, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        scores = (q * (c // self.heads) ** -0.5) @ k.transpose(-2, -1)
        scores = scores + self.table[self.index.view(-1)].view(n, n, -1).permute(2, 0, 1).unsqueeze(0)
        if mask is not None:
            count = mask.shape[0]
            scores = scores.view(b // count, count, self.heads, n, n) + mask.unsqueeze(1).unsqueeze(0).to(x.dtype)
            scores = scores.view(-1, self.heads, n, n)
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(b, n, c))


class SwinBlock(nn.Module):
    """Windows, shifted by half their size in every second block."""

    def __init__(self, width: int, size: int, window: int, shift: int) -> None:
        super().__init__()
        self.size, self.window, self.shift = size, window, shift
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attend = WindowAttention(width, window, 2)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.mask: Tensor | None
        self.register_buffer("mask", self._mask() if shift else None)

    def _mask(self) -> Tensor:
        image = torch.zeros(1, self.size, self.size, 1)
        parts = slice(0, -self.window), slice(-self.window, -self.shift), slice(-self.shift, None)
        for number, (rows, columns) in enumerate((r, c) for r in parts for c in parts):
            image[:, rows, columns, :] = number
        found = self._split(image).squeeze(-1)
        apart = found[:, None, :] - found[:, :, None]
        return apart.masked_fill(apart != 0, -100.0).masked_fill(apart == 0, 0.0)

    def _split(self, x: Tensor) -> Tensor:
        b, h, w, c = x.shape
        k = self.window
        return x.view(b, h // k, k, w // k, k, c).permute(0, 1, 3, 2, 4, 5).contiguous().view(-1, k * k, c)

    def forward(self, x: Tensor) -> Tensor:
        b, h, w, c = x.shape
        y = self.first(x)
        if self.shift:
            y = torch.roll(y, (-self.shift, -self.shift), (1, 2))
        y = self.attend(self._split(y), self.mask)
        y = y.view(b, h // self.window, w // self.window, self.window, self.window, c).permute(0, 1, 3, 2, 4, 5)
        y = y.contiguous().view(b, h, w, c)
        if self.shift:
            y = torch.roll(y, (self.shift, self.shift), (1, 2))
        x = x + y
        return x + self.mlp(self.second(x))


class Swin(nn.Module):
    """Two blocks, patches merged, one more."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 16, 4, 4)
        self.blocks = nn.Sequential(SwinBlock(16, 8, 4, 0), SwinBlock(16, 8, 4, 2))
        self.merge = nn.Sequential(nn.LayerNorm(64), nn.Linear(64, 32, bias=False))
        self.last, self.head = SwinBlock(32, 4, 4, 0), nn.Linear(32, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.blocks(self.patches(x).permute(0, 2, 3, 1))
        x = torch.cat([x[:, 0::2, 0::2], x[:, 1::2, 0::2], x[:, 0::2, 1::2], x[:, 1::2, 1::2]], -1)
        return self.head(self.last(self.merge(x)).mean((1, 2)))


class SqueezeExcite(nn.Module):
    """Channels scaled by what the whole image says."""

    def __init__(self, width: int, inner: int, gate: type[nn.Module] = nn.Sigmoid) -> None:
        super().__init__()
        self.reduce, self.expand, self.gate = nn.Conv2d(width, inner, 1), nn.Conv2d(inner, width, 1), gate()

    def forward(self, x: Tensor) -> Tensor:
        return x * self.gate(self.expand(functional.silu(self.reduce(x.mean((2, 3), keepdim=True)))))


class MBConv(nn.Module):
    """EfficientNet's inverted bottleneck."""

    def __init__(self, width: int, out: int, stride: int = 1, expand: int = 4) -> None:
        super().__init__()
        wide = width * expand
        self.body = nn.Sequential(
            nn.Conv2d(width, wide, 1, bias=False), nn.BatchNorm2d(wide), nn.SiLU(),
            nn.Conv2d(wide, wide, 3, stride, 1, groups=wide, bias=False), nn.BatchNorm2d(wide), nn.SiLU(),
            SqueezeExcite(wide, width // 4), nn.Conv2d(wide, out, 1, bias=False), nn.BatchNorm2d(out),
        )  # fmt: skip
        self.keeps = stride == 1 and width == out

    def forward(self, x: Tensor) -> Tensor:
        y = self.body(x)
        return x + y if self.keeps else y


def efficientnet() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16), nn.SiLU(), MBConv(16, 16), MBConv(16, 24, 2),
        MBConv(24, 24), nn.Conv2d(24, 64, 1), nn.Hardswish(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10),
    )  # fmt: skip


class RegNetBlock(nn.Module):
    """A bottleneck by groups with squeeze and excitation."""

    def __init__(self, width: int, out: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(width, out, 1, bias=False), nn.BatchNorm2d(out), nn.ReLU(inplace=True),
            nn.Conv2d(out, out, 3, stride, 1, groups=out // 8, bias=False), nn.BatchNorm2d(out), nn.ReLU(inplace=True),
            SqueezeExcite(out, out // 4, nn.Hardsigmoid), nn.Conv2d(out, out, 1, bias=False), nn.BatchNorm2d(out),
        )  # fmt: skip
        self.beside = (
            nn.Identity()
            if width == out and stride == 1
            else nn.Sequential(nn.Conv2d(width, out, 1, stride, bias=False), nn.BatchNorm2d(out))
        )

    def forward(self, x: Tensor) -> Tensor:
        return functional.relu(self.body(x) + self.beside(x), inplace=True)


def regnet() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU(inplace=True), RegNetBlock(16, 24, 2),
        RegNetBlock(24, 24, 1), RegNetBlock(24, 48, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(48, 10),
    )  # fmt: skip


class MobileViT(nn.Module):
    """Attention among pixels of the same place in each patch."""

    def __init__(self, width: int = 16, inner: int = 24, patch: int = 2) -> None:
        super().__init__()
        self.patch = patch
        self.stem = nn.Sequential(nn.Conv2d(3, width, 3, 2, 1), nn.BatchNorm2d(width), nn.SiLU())
        self.local = nn.Sequential(nn.Conv2d(width, width, 3, 1, 1), nn.SiLU(), nn.Conv2d(width, inner, 1))
        layer = nn.TransformerEncoderLayer(inner, 4, 48, 0.0, functional.silu, batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.norm, self.back = nn.LayerNorm(inner), nn.Conv2d(inner, width, 1)
        self.fuse, self.head = nn.Conv2d(2 * width, width, 3, 1, 1), nn.Linear(width, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        y = self.local(x)
        b, c, h, w = y.shape
        p = self.patch
        rows, columns = math.ceil(h / p), math.ceil(w / p)
        if (rows * p, columns * p) != (h, w):
            y = functional.interpolate(y, (rows * p, columns * p), mode="bilinear", align_corners=False)
        y = y.reshape(b * c * rows, p, columns, p).transpose(1, 2).reshape(b, c, rows * columns, p * p)
        y = y.transpose(1, 3).reshape(b * p * p, rows * columns, c)
        y = self.norm(self.layers(y)).contiguous().view(b, p * p, rows * columns, c).transpose(1, 3)
        y = y.reshape(b * c * rows, columns, p, p).transpose(1, 2).reshape(b, c, rows * p, columns * p)
        if (rows * p, columns * p) != (h, w):
            y = functional.interpolate(y, (h, w), mode="bilinear", align_corners=False)
        return self.head(self.fuse(torch.cat([x, self.back(y)], 1)).mean((2, 3)))


class MaxViT(nn.Module):
    """MBConv, attention in blocks, attention over a grid."""

    def __init__(self, width: int = 16, window: int = 4) -> None:
        super().__init__()
        self.window = window
        self.stem, self.conv = nn.Conv2d(3, width, 3, 2, 1), MBConv(width, width)
        self.block, self.grid = WindowAttention(width, window, 2), WindowAttention(width, window, 2)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.head = nn.Linear(width, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.conv(self.stem(x)).permute(0, 2, 3, 1)
        b, h, w, c = x.shape
        k = self.window
        y = self.norms[0](x).view(b, h // k, k, w // k, k, c).permute(0, 1, 3, 2, 4, 5).reshape(-1, k * k, c)
        y = self.block(y, None).view(b, h // k, w // k, k, k, c).permute(0, 1, 3, 2, 4, 5).reshape(b, h, w, c)
        x = x + y
        y = self.norms[1](x).view(b, k, h // k, k, w // k, c).permute(0, 2, 4, 1, 3, 5).reshape(-1, k * k, c)
        y = self.grid(y, None).view(b, h // k, w // k, k, k, c).permute(0, 3, 1, 4, 2, 5).reshape(b, h, w, c)
        return self.head((x + y).mean((1, 2)))


class StandardizedConv2d(nn.Conv2d):
    """A convolution whose weights are standardized with a gain, as NFNets have."""

    def __init__(self, width: int, out: int, size: int, stride: int = 1, groups: int = 1) -> None:
        super().__init__(width, out, size, stride, size // 2, groups=groups)
        self.gain = nn.Parameter(torch.ones(out, 1, 1, 1))
        self.fan = math.prod(self.weight.shape[1:])

    def forward(self, x: Tensor) -> Tensor:
        weight = functional.batch_norm(
            self.weight.reshape(1, self.out_channels, -1), None, None,
            weight=(self.gain * self.fan**-0.5).view(-1), training=True, momentum=0.0, eps=1e-6,
        ).reshape_as(self.weight)  # fmt: skip
        return functional.conv2d(x, weight, self.bias, self.stride, self.padding, self.dilation, self.groups)


class NFNetBlock(nn.Module):
    """No norms: expected variances instead, and a gain that is learnt."""

    def __init__(self, width: int, beta: float) -> None:
        super().__init__()
        self.beta = beta
        self.first, self.second = StandardizedConv2d(width, width, 1), StandardizedConv2d(width, width, 3, groups=2)
        self.third, self.excite = StandardizedConv2d(width, width, 1), SqueezeExcite(width, width // 2)
        self.gain = nn.Parameter(torch.tensor(0.3))

    def forward(self, x: Tensor) -> Tensor:
        y = functional.gelu(x * self.beta) * 1.7015043497085571
        y = self.third(
            functional.gelu(self.second(functional.gelu(self.first(y)) * 1.7015043497085571)) * 1.7015043497085571
        )
        return x + 0.2 * self.gain * (2 * self.excite(y))


def nfnet() -> nn.Module:
    return nn.Sequential(
        StandardizedConv2d(3, 16, 3, 2), NFNetBlock(16, 1.0), NFNetBlock(16, 1 / 1.04**0.5),
        nn.AvgPool2d(2, 2, ceil_mode=True, count_include_pad=False), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Linear(16, 10),
    )  # fmt: skip


class OutlookAttention(nn.Module):
    """VOLO: each place says how its neighbours are mixed."""

    def __init__(self, width: int, heads: int = 2, size: int = 3) -> None:
        super().__init__()
        self.heads, self.size, self.scale = heads, size, (width // heads) ** -0.5
        self.value, self.mix, self.out = (
            nn.Linear(width, width),
            nn.Linear(width, size**4 * heads),
            nn.Linear(width, width),
        )
        self.unfold = nn.Unfold(size, padding=size // 2, stride=2)
        self.pool = nn.AvgPool2d(2, 2, ceil_mode=True)

    def forward(self, x: Tensor) -> Tensor:
        b, height, width, c = x.shape
        v = self.value(x).permute(0, 3, 1, 2)
        h, w = math.ceil(height / 2), math.ceil(width / 2)
        k = self.size**2
        v = self.unfold(v).reshape(b, self.heads, c // self.heads, k, h * w).permute(0, 1, 4, 3, 2)
        mixed = self.mix(self.pool(x.permute(0, 3, 1, 2)).permute(0, 2, 3, 1))
        mixed = (mixed.reshape(b, h * w, self.heads, k, k).permute(0, 2, 1, 3, 4) * self.scale).softmax(-1)
        y = (mixed @ v).permute(0, 1, 4, 3, 2).reshape(b, c * k, h * w)
        y = functional.fold(y, (height, width), self.size, padding=self.size // 2, stride=2)
        return self.out(y.permute(0, 2, 3, 1))


class Volo(nn.Module):
    """Two outlookers and a class token."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, width, 4, 4)
        self.layers = nn.ModuleList(OutlookAttention(width) for _ in range(2))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3))
        self.token, self.attend = (
            nn.Parameter(torch.zeros(1, 1, width)),
            nn.MultiheadAttention(width, 2, batch_first=True),
        )
        self.head = nn.Linear(width, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x).permute(0, 2, 3, 1)
        for layer, norm in zip(self.layers, self.norms, strict=False):
            x = x + layer(norm(x))
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x.flatten(1, 2)], 1)
        found, _ = self.attend(x[:, :1], self.norms[2](x), self.norms[2](x), need_weights=False)
        return self.head((x[:, :1] + found).squeeze(1))


def _double(width: int, out: int) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(width, out, 3, 1, 1), nn.BatchNorm2d(out), nn.ReLU(), nn.Conv2d(out, out, 3, 1, 1), nn.ReLU()
    )


class UNetPlusPlus(nn.Module):
    """Nested U-Nets with deep supervision."""

    def __init__(self, widths: tuple[int, ...] = (8, 16, 32)) -> None:
        super().__init__()
        self.depth = len(widths)
        self.nodes = nn.ModuleDict()
        for i, width in enumerate(widths):
            self.nodes[f"{i}_0"] = _double(3 if i == 0 else widths[i - 1], width)
            for j in range(1, self.depth - i):
                self.nodes[f"{i}_{j}"] = _double(width * j + widths[i + 1], width)
        self.heads = nn.ModuleList(nn.Conv2d(widths[0], 2, 1) for _ in range(self.depth - 1))

    def forward(self, x: Tensor) -> list[Tensor]:
        found: dict[tuple[int, int], Tensor] = {}
        for i in range(self.depth):
            found[i, 0] = self.nodes[f"{i}_0"](x if i == 0 else functional.max_pool2d(found[i - 1, 0], 2))
        for j in range(1, self.depth):
            for i in range(self.depth - j):
                up = functional.interpolate(found[i + 1, j - 1], scale_factor=2, mode="bilinear", align_corners=True)
                found[i, j] = self.nodes[f"{i}_{j}"](torch.cat([*(found[i, k] for k in range(j)), up], 1))
        return [head(found[0, j + 1]) for j, head in enumerate(self.heads)]


class DeepLabV3(nn.Module):
    """Atrous pyramids with the image's mean."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, width, 3, 2, 1), nn.ReLU(), nn.Conv2d(width, width, 3, 1, 2, dilation=2))
        self.branches = nn.ModuleList(
            [nn.Conv2d(width, 8, 1, bias=False)]
            + [nn.Conv2d(width, 8, 3, padding=rate, dilation=rate, bias=False) for rate in (2, 4, 6)]
        )
        self.norms = nn.ModuleList(nn.BatchNorm2d(8) for _ in range(4))
        self.pool = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(width, 8, 1, bias=False), nn.ReLU())
        self.head = nn.Sequential(nn.Conv2d(40, 16, 1), nn.ReLU(), nn.Dropout(0.0), nn.Conv2d(16, 5, 1))

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        y = self.stem(x)
        parts = [functional.relu(norm(branch(y))) for norm, branch in zip(self.norms, self.branches, strict=True)]
        parts.append(functional.interpolate(self.pool(y), y.shape[-2:], mode="bilinear", align_corners=False))
        return {
            "out": functional.interpolate(
                self.head(torch.cat(parts, 1)), x.shape[-2:], mode="bicubic", align_corners=False
            )
        }


class EfficientAttention(nn.Module):
    """SegFormer: keys and values of a reduced image, and a depthwise convolution in the perceptron."""

    def __init__(self, width: int, ratio: int) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3))
        self.reduce = nn.Conv2d(width, width, ratio, ratio)
        self.attend = nn.MultiheadAttention(width, 2, batch_first=True)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.depth = nn.Conv2d(4 * width, 4 * width, 3, 1, 1, groups=4 * width)

    def forward(self, x: Tensor, h: int, w: int) -> Tensor:
        y = self.norms[0](x)
        few = self.reduce(y.transpose(1, 2).unflatten(2, (h, w))).flatten(2).transpose(1, 2)
        few = self.norms[1](few)
        x = x + self.attend(y, few, few, need_weights=False)[0]
        y = self.wide(self.norms[2](x)).transpose(1, 2).unflatten(2, (h, w))
        return x + self.narrow(functional.gelu(self.depth(y).flatten(2).transpose(1, 2)))


class SegFormer(nn.Module):
    """Two stages, and a head that reads both."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.ModuleList([nn.Conv2d(3, 16, 7, 4, 3), nn.Conv2d(16, 32, 3, 2, 1)])
        self.stages = nn.ModuleList([EfficientAttention(16, 4), EfficientAttention(32, 2)])
        self.linear = nn.ModuleList([nn.Linear(16, 16), nn.Linear(32, 16)])
        self.head = nn.Conv2d(32, 4, 1)

    def forward(self, x: Tensor) -> Tensor:
        found = []
        for patches, stage, linear in zip(self.patches, self.stages, self.linear, strict=True):
            x = patches(x)
            h, w = x.shape[2:]
            y = stage(x.flatten(2).transpose(1, 2), h, w)
            x = y.transpose(1, 2).unflatten(2, (h, w))
            found.append(linear(y).transpose(1, 2).unflatten(2, (h, w)))
        first = found[0].shape[2:]
        return self.head(torch.cat([functional.interpolate(each, first, mode="bilinear") for each in found], 1))


class Raft(nn.Module):
    """All pairs of features, looked up around the flow by bilinear samples, and a gated recurrent update."""

    def __init__(self, width: int = 16, turns: int = 3, radius: int = 2, levels: int = 2) -> None:
        super().__init__()
        self.turns, self.radius, self.levels = turns, radius, levels
        self.encode = nn.Sequential(
            nn.Conv2d(3, width, 7, 2, 3), nn.InstanceNorm2d(width), nn.ReLU(), nn.Conv2d(width, width, 3, 2, 1)
        )
        self.context = nn.Conv2d(3, 2 * width, 7, 4, 3)
        inner = levels * (2 * radius + 1) ** 2 + 2 + width
        self.gates, self.new = nn.Conv2d(inner + width, 2 * width, 3, 1, 1), nn.Conv2d(inner + width, width, 3, 1, 1)
        self.flow, self.mask = nn.Conv2d(width, 2, 3, 1, 1), nn.Conv2d(width, 16 * 9, 1)

    def _lookup(self, pyramid: list[Tensor], places: Tensor) -> Tensor:
        r = self.radius
        b, _, h, w = places.shape
        step = torch.linspace(-r, r, 2 * r + 1, dtype=places.dtype)
        around = torch.stack(torch.meshgrid(step, step, indexing="ij"), -1)
        found = []
        for level, volume in enumerate(pyramid):
            at = places.permute(0, 2, 3, 1).reshape(b * h * w, 1, 1, 2) / 2**level + around
            x, y = at.split([1, 1], -1)
            grid = torch.cat([2 * x / (volume.shape[-1] - 1) - 1, 2 * y / (volume.shape[-2] - 1) - 1], -1)
            found.append(functional.grid_sample(volume, grid, align_corners=True).view(b, h, w, -1))
        return torch.cat(found, -1).permute(0, 3, 1, 2)

    def _up(self, flow: Tensor, mask: Tensor) -> Tensor:
        b, _, h, w = flow.shape
        weights = mask.view(b, 1, 9, 4, 4, h, w).softmax(2)
        parts = functional.unfold(4 * flow, (3, 3), padding=1).view(b, 2, 9, 1, 1, h, w)
        return (weights * parts).sum(2).permute(0, 1, 4, 2, 5, 3).reshape(b, 2, 4 * h, 4 * w)

    def forward(self, first: Tensor, second: Tensor) -> list[Tensor]:
        one, other = self.encode(torch.cat([first, second])).chunk(2)
        b, c, h, w = one.shape
        volume = (one.flatten(2).transpose(1, 2) @ other.flatten(2) / c**0.5).view(b * h * w, 1, h, w)
        pyramid = [volume]
        for _ in range(self.levels - 1):
            pyramid.append(functional.avg_pool2d(pyramid[-1], 2, 2))
        state, inputs = self.context(first).chunk(2, 1)
        state, inputs = state.tanh(), inputs.relu()
        y, x = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
        start = torch.stack([x, y]).to(first.dtype).expand(b, 2, h, w)
        places, flows = start, []
        for _ in range(self.turns):
            places = places.detach()
            given = torch.cat([self._lookup(pyramid, places), places - start, inputs], 1)
            update, reset = self.gates(torch.cat([state, given], 1)).sigmoid().chunk(2, 1)
            state = (1 - update) * state + update * self.new(torch.cat([reset * state, given], 1)).tanh()
            places = places + self.flow(state)
            flows.append(self._up(places - start, self.mask(state)))
        return flows


class SpatialTransformer(nn.Module):
    """An affine map of the image that the image itself says."""

    def __init__(self) -> None:
        super().__init__()
        self.local = nn.Sequential(
            nn.Conv2d(1, 8, 5), nn.MaxPool2d(2), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.AdaptiveMaxPool2d(3)
        )
        self.theta, self.head = (
            nn.Linear(72, 6),
            nn.Sequential(nn.Conv2d(1, 4, 5), nn.PReLU(4), nn.Flatten(), nn.Linear(576, 10)),
        )
        nn.init.normal_(self.theta.weight, std=0.01)
        self.theta.bias.data.copy_(torch.tensor([1.0, 0.1, 0, -0.1, 1, 0]))

    def forward(self, x: Tensor) -> Tensor:
        theta = self.theta(self.local(x).flatten(1)).view(-1, 2, 3)
        grid = functional.affine_grid(theta, list(x.shape), align_corners=False)
        return self.head(functional.grid_sample(x, grid, padding_mode="reflection", align_corners=False)).log_softmax(1)


class DenseBlock(nn.Module):
    """Each layer reads all before it; channels are shuffled at the end."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            nn.Sequential(
                nn.GroupNorm(1, 3 + 5 * n), nn.Mish(), nn.Conv2d(3 + 5 * n, 5, 3, padding=1, padding_mode="reflect")
            )
            for n in range(3)
        )
        self.up = nn.Sequential(nn.Conv2d(18, 12, 1), nn.PixelShuffle(2), nn.ChannelShuffle(3), nn.LeakyReLU(0.2))

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = torch.cat([x, layer(x)], 1)
        return self.up(x)


def _images(size: int = 32, batch: int = 2) -> tuple[Tensor, ...]:
    return (torch.randn(batch, 3, size, size),)


ENTRIES: dict[str, Entry] = entries(
    Entry("ConvNeXt V2", convnext, _images, opens=(0,)),
    Entry("Swin, shifted windows", Swin, _images, opens=(0,)),
    Entry("EfficientNet with SE", efficientnet, _images, opens=(0,)),
    Entry("RegNet", regnet, _images),
    Entry("MobileViT", MobileViT, lambda: _images(30)),
    Entry("MaxViT", MaxViT, _images),
    Entry("NFNet, standardized weights", nfnet, _images),
    Entry("VOLO", Volo, _images),
    Entry("U-Net++", UNetPlusPlus, _images),
    Entry("DeepLabV3, atrous pyramid", DeepLabV3, _images),
    Entry("SegFormer", SegFormer, _images),
    Entry("RAFT", Raft, lambda: (*_images(32, 1), *_images(32, 1))),
    Entry("spatial transformer", SpatialTransformer, lambda: (torch.randn(2, 1, 16, 16),)),
    Entry("dense block, shuffled", DenseBlock, lambda: _images(16)),
)
