"""Elementwise work, reductions and normalization: what is bound by memory."""

from __future__ import annotations

from typing import Any

from benchmarks.cases import Body, Case, kernel

SQUARE = "f32[1024,1024]"


def of(word: str, *shapes: str, **settings: Any) -> Body:
    """One word of ``nn`` for new arrays of some shapes."""
    return lambda nn: getattr(nn, word)(*(nn.new(shape) for shape in shapes), **settings)


def over(word: str, shape: str, *axes: int) -> Body:
    """One word of ``nn`` along some dimensions of a new array."""
    return lambda nn: getattr(nn, word)(nn.new(shape), *axes)


def transposition(name: str, shape: str, *order: int) -> Case:
    body = over("transpose", shape, *order)
    # PyTorch would only note the order.
    return kernel(name, body, eager=lambda nn: body(nn).contiguous())


def norm_relu(nn: Any) -> Any:
    return nn.relu(nn.batch_norm(nn.new("f32[8,56,56,64]"), *(nn.new("f32[64]") for _ in range(4))))


def chain(nn: Any) -> Any:
    """An elementwise chain that PyTorch runs step by step."""
    x, y = nn.new(SQUARE), nn.new(SQUARE)
    return nn.sigmoid(x * y + x) * nn.tanh(y * 0.5) - nn.exp(x * -0.25) * y


CASES: tuple[Case, ...] = (
    kernel("tanh 1024²", of("tanh", SQUARE)),
    kernel("sine 1024²", of("sin", SQUARE)),
    kernel("exp 512² f64", of("exp", "f64[512,512]")),
    kernel("tanh 1024² bf16", of("tanh", "bf16[1024,1024]")),
    kernel("GELU 1024²", of("gelu", SQUARE)),
    kernel("elementwise chain 1024²", chain),
    transposition("transpose 1024²", SQUARE, 1, 0),
    transposition("transpose 16×128×12×64", "f32[16,128,12,64]", 0, 2, 1, 3),
    kernel("sum rows 1024²", over("sum", SQUARE, 1)),
    kernel("sum columns 1024²", over("sum", SQUARE, 0)),
    kernel("sum all 1024²", over("sum", SQUARE)),
    kernel("max of the middle 64×256×128", over("max", "f32[64,256,128]", 1)),
    kernel("argmax 1024²", over("argmax", SQUARE, 1)),
    kernel("argmax of columns 1024²", over("argmax", SQUARE, 0)),
    kernel("cumsum 64×512", over("cumsum", "f32[64,512]")),
    kernel("cumsum 65,536", over("cumsum", "f32[65536]")),
    kernel("softmax 1024²", of("softmax", SQUARE)),
    kernel("log-softmax 128×32,000", of("log_softmax", "f32[128,32000]")),
    kernel("layer norm 1024×768", of("layer_norm", "f32[1024,768]", "f32[768]", "f32[768]")),
    kernel("RMS norm 1024×1024", of("rms_norm", SQUARE, "f32[1024]")),
    kernel("batch norm and ReLU 8×56² 64", norm_relu),
    kernel("batch norm training 8×56² 64", of("batch_norm_training", "f32[8,56,56,64]", "f32[64]", "f32[64]")),
)
