"""Convolutions of images of batch 1, and pooling."""

from __future__ import annotations

from typing import Any

from benchmarks.cases import Body, Case, kernel


def convolution(
    size: int,
    features: tuple[int, int],
    window: int,
    *,
    stride: int = 1,
    dilation: int = 1,
    groups: int = 1,
    layout: str = "NHWC",
    element: str = "f32",
) -> Body:
    """As many zeros around as keep the size at stride 1."""
    inputs, outputs = features
    pad = dilation * (window // 2)

    def body(nn: Any) -> Any:
        if layout == "NHWC":
            x = nn.new(f"{element}[1,{size},{size},{inputs}]")
            weights = nn.new(f"{element}[{window},{window},{inputs // groups},{outputs}]")
        else:
            x = nn.new(f"{element}[1,{inputs},{size},{size}]")
            weights = nn.new(f"{element}[{outputs},{inputs // groups},{window},{window}]")
        return nn.conv(x, weights, stride=stride, padding=(pad, pad), dilation=dilation, groups=groups, layout=layout)

    return body


def transposed(
    size: int, features: tuple[int, int], window: int, *, stride: int = 2, padding: tuple[int, int] = (0, 0)
) -> Body:
    """From so many features to so many; also the gradient of a strided convolution by its image."""
    inputs, outputs = features

    def body(nn: Any) -> Any:
        x, kernel = nn.new(f"f32[1,{size},{size},{inputs}]"), nn.new(f"f32[{window},{window},{outputs},{inputs}]")
        return nn.conv_transpose(x, kernel, stride, padding)

    return body


def conv_norm_relu(nn: Any) -> Any:
    x = nn.conv(nn.new("f32[1,56,56,64]"), nn.new("f32[3,3,64,64]"), padding=(1, 1))
    return nn.relu(nn.batch_norm(x, *(nn.new("f32[64]") for _ in range(4))))


def max_pool(size: int, features: int, window: int, stride: int, pad: int = 0) -> Body:
    return lambda nn: nn.max_pool(nn.new(f"f32[1,{size},{size},{features}]"), window, stride, (pad, pad))


def pool_gradient(nn: Any) -> Any:
    """XLA's SelectAndScatter where ResNet pools."""
    return nn.max_pool_gradient(nn.new("f32[1,112,112,64]"), nn.new("f32[1,56,56,64]"), 3, 2, (1, 1))


CASES: tuple[Case, ...] = (
    kernel("conv 3×3 56² 64→64", convolution(56, (64, 64), 3)),
    kernel("conv 3×3 56² 64→64 NCHW", convolution(56, (64, 64), 3, layout="NCHW")),
    kernel("conv 3×3 14² 256→256", convolution(14, (256, 256), 3)),
    kernel("conv 1×1 56² 64→64", convolution(56, (64, 64), 1)),
    kernel("conv 1×1 56² 64→64 NCHW", convolution(56, (64, 64), 1, layout="NCHW")),
    kernel("conv 7×7 / 2 224² 3→64", convolution(224, (3, 64), 7, stride=2)),
    kernel("conv 3×3 / 2 56² 128→128 NCHW", convolution(56, (128, 128), 3, stride=2, layout="NCHW")),
    kernel("conv 3×3 dilated 2 28² 128→128", convolution(28, (128, 128), 3, dilation=2)),
    kernel("conv 3×3 dilated 2 28² 128→128 NCHW", convolution(28, (128, 128), 3, dilation=2, layout="NCHW")),
    kernel("conv 3×3 32 groups 56² 128→128", convolution(56, (128, 128), 3, groups=32)),
    kernel("conv 3×3 32 groups 56² 128→128 NCHW", convolution(56, (128, 128), 3, groups=32, layout="NCHW")),
    kernel("conv depthwise 3×3 56² 64", convolution(56, (64, 64), 3, groups=64)),
    kernel("conv depthwise 3×3 56² 64 NCHW", convolution(56, (64, 64), 3, groups=64, layout="NCHW")),
    kernel("conv 3×3 28² 128→128 bf16", convolution(28, (128, 128), 3, element="bf16")),
    kernel("conv transposed 4×4 / 2 28² 128→64", transposed(28, (128, 64), 4, padding=(1, 1))),
    kernel("gradient of conv 3×3 / 2 56² 64→128 by its image", transposed(28, (128, 64), 3, padding=(1, 0))),
    kernel("conv, batch norm, ReLU 56² 64", conv_norm_relu),
    kernel("max-pool 2×2 112² 64", max_pool(112, 64, 2, 2)),
    kernel("max-pool 3×3 / 2 112² 64", max_pool(112, 64, 3, 2, 1)),
    kernel("select-and-scatter 3×3 / 2 112² 64", pool_gradient),
)
