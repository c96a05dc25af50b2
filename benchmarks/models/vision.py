"""Convolutional networks, NHWC, for inference on one image."""

from __future__ import annotations

from typing import Any

from benchmarks.cases import Body, Case, model


def _unit(
    nn: Any, x: Any, inputs: int, outputs: int, window: int, *, stride: int = 1, groups: int = 1, pad: int | None = None
) -> Any:
    """A convolution with batch norm."""
    edge = window // 2 if pad is None else pad
    kernel = nn.new(f"f32[{window},{window},{inputs // groups},{outputs}]")
    x = nn.conv(x, kernel, stride=stride, padding=(edge, edge), groups=groups)
    return nn.batch_norm(x, *(nn.new(f"f32[{outputs}]") for _ in range(4)))


def _classifier(nn: Any, x: Any, features: int) -> Any:
    return nn.dense(nn.mean(x, 1, 2), nn.new(f"f32[{features},1000]"), nn.new("f32[1000]"))


def resnet50(nn: Any) -> Any:
    """He et al., 2015: bottlenecks, the stride in the 3×3 convolution."""
    x = nn.relu(_unit(nn, nn.new("f32[1,224,224,3]"), 3, 64, 7, stride=2))
    x, features = nn.max_pool(x, 3, 2, (1, 1)), 64
    for width, blocks, first_stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for block in range(blocks):
            stride = first_stride if block == 0 else 1
            y = nn.relu(_unit(nn, x, features, width, 1))
            y = nn.relu(_unit(nn, y, width, width, 3, stride=stride))
            y = _unit(nn, y, width, 4 * width, 1)
            shortcut = _unit(nn, x, features, 4 * width, 1, stride=stride) if block == 0 else x
            x, features = nn.relu(y + shortcut), 4 * width
    return _classifier(nn, x, features)


def mobilenet(nn: Any) -> Any:
    """Howard et al., 2017: depthwise and pointwise convolutions in turn."""
    x, features = nn.relu(_unit(nn, nn.new("f32[1,224,224,3]"), 3, 32, 3, stride=2)), 32
    layers = ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5, (1024, 2), (1024, 1))
    for outputs, stride in layers:
        x = nn.relu(_unit(nn, x, features, features, 3, stride=stride, groups=features))
        x, features = nn.relu(_unit(nn, x, features, outputs, 1)), outputs
    return _classifier(nn, x, features)


def unet_block(size: int, features: int, heads: int) -> Body:
    """A level of a diffusion U-Net: a residual block that is told the time, then self-attention over all places."""

    def body(nn: Any) -> Any:
        x = nn.new(f"f32[1,{size},{size},{features}]")
        vector, window = f"f32[{features}]", f"f32[3,3,{features},{features}]"

        def group_norm(y: Any) -> Any:
            return nn.group_norm(y, nn.new(vector), nn.new(vector), 32)

        def conv(y: Any) -> Any:
            y = nn.conv(y, nn.new(window), padding=(1, 1))
            return y + nn.along(nn.new(vector), y, -1)

        embedding = nn.silu(nn.new(f"f32[1,{4 * features}]"))
        time = nn.dense(embedding, nn.new(f"f32[{4 * features},{features}]"), nn.new(vector))
        y = conv(nn.silu(group_norm(x)))
        y = y + nn.along(nn.reshape(time, features), y, -1)
        x = x + conv(nn.silu(group_norm(y)))

        places, width = size * size, features // heads
        normal = nn.reshape(group_norm(x), places, features)

        def project(y: Any) -> Any:
            return nn.dense(y, nn.new(f"f32[{features},{features}]"), nn.new(vector))

        q, k, v = (nn.transpose(nn.reshape(project(normal), places, heads, width), 1, 0, 2) for _ in range(3))
        mixed = nn.reshape(nn.transpose(nn.attention(q, k, v), 1, 0, 2), places, features)
        return x + nn.reshape(project(mixed), 1, size, size, features)

    return body


CASES: tuple[Case, ...] = (
    model("ResNet-50", resnet50),
    model("MobileNet", mobilenet),
    model("diffusion U-Net block 32² 128", unet_block(32, 128, 4)),
)
