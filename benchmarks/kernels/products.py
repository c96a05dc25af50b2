"""Matrix products and attention."""

from __future__ import annotations

from typing import Any

from benchmarks.cases import Body, Case, kernel


def matmul(a: str, b: str, out: str | None = None) -> Body:
    return lambda nn: nn.matmul(nn.new(a), nn.new(b), out=out)


def attention(heads: int, length: int, size: int, *, keys: int = 0, causal: bool = False) -> Body:
    """Heads of one sequence; ``keys`` other than the length for a decoder's last token."""

    def body(nn: Any) -> Any:
        q, k, v = (nn.new(f"f32[1,{heads},{n},{size}]") for n in (length, keys or length, keys or length))
        return nn.attention(q, k, v, causal=causal)

    return body


def dense_gelu(nn: Any) -> Any:
    return nn.gelu(nn.dense(nn.new("f32[128,768]"), nn.new("f32[768,3072]"), nn.new("f32[3072]")))


def transformer_block(length: int, width: int, heads: int) -> Body:
    """Pre-norm encoder block with square projections: attention, then an MLP four times as wide."""

    def body(nn: Any) -> Any:
        x = nn.new(f"f32[{length},{width}]")
        square, vector = f"f32[{width},{width}]", f"f32[{width}]"

        def head_first(matrix: Any) -> Any:
            return nn.transpose(nn.reshape(matrix, length, heads, width // heads), 1, 0, 2)

        normal = nn.layer_norm(x, nn.new(vector), nn.new(vector))
        q, k, v = (head_first(nn.matmul(normal, nn.new(square))) for _ in range(3))
        mixed = nn.reshape(nn.transpose(nn.attention(q, k, v), 1, 0, 2), length, width)
        x = x + nn.matmul(mixed, nn.new(square))
        normal = nn.layer_norm(x, nn.new(vector), nn.new(vector))
        hidden = nn.gelu(nn.matmul(normal, nn.new(f"f32[{width},{4 * width}]")))
        return x + nn.matmul(hidden, nn.new(f"f32[{4 * width},{width}]"))

    return body


CASES: tuple[Case, ...] = (
    kernel("matmul 256³", matmul("f32[256,256]", "f32[256,256]")),
    kernel("matmul 1024³", matmul("f32[1024,1024]", "f32[1024,1024]")),
    kernel("matmul 256³ bf16", matmul("bf16[256,256]", "bf16[256,256]")),
    kernel("matmul 256³ f16", matmul("f16[256,256]", "f16[256,256]")),
    kernel("matmul 256³ int8", matmul("s8[256,256]", "s8[256,256]", "s32")),
    kernel("matmul 256³ f64", matmul("f64[256,256]", "f64[256,256]")),
    kernel("batched matmul 32×128³", matmul("f32[32,128,128]", "f32[32,128,128]")),
    kernel("matvec 2048²", matmul("f32[2048,2048]", "f32[2048]")),
    kernel("dense and GELU 128×768→3,072", dense_gelu),
    kernel("attention 12×128×64", attention(12, 128, 64)),
    kernel("attention 12×512×64", attention(12, 512, 64)),
    kernel("attention 12×1024×64 causal", attention(12, 1024, 64, causal=True)),
    kernel("attention 12×1×64, 1,024 keys", attention(12, 1, 64, keys=1024)),
    kernel("transformer block 128×256", transformer_block(128, 256, 4)),
)
