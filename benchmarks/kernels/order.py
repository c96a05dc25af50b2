"""Sorting and selection."""

from __future__ import annotations

from benchmarks.cases import Body, Case, kernel
from benchmarks.kernels.rows import of


def top_k(shape: str, k: int) -> Body:
    return lambda nn: nn.top_k(nn.new(shape), k)


# Plain IREE's sort takes time by the square of the length, 65,536 elements 9 seconds; an argsort's rows do not fit on
# its stack.
CASES: tuple[Case, ...] = (
    kernel("sort 4,096", of("sort", "f32[4096]"), plain_devices=("local-sync",)),
    kernel("sort 65,536", of("sort", "f32[65536]"), plain_devices=()),
    kernel("sort 1,048,576", of("sort", "f32[1048576]"), plain_devices=()),
    kernel("argsort 4,096", of("argsort", "f32[4096]"), plain_devices=()),
    kernel("argsort 65,536", of("argsort", "f32[65536]"), plain_devices=()),
    kernel("argsort 1,048,576", of("argsort", "f32[1048576]"), plain_devices=()),
    kernel("sort pairs 65,536", of("sort_pairs", "s32[65536]", "f64[65536]"), plain_devices=()),
    kernel("sort rows 256²", of("sort", "f32[256,256]")),
    kernel("sort rows 4096×256", of("sort", "f32[4096,256]"), plain_devices=("local-task",)),
    kernel("argsort rows 256²", of("argsort", "f32[256,256]"), plain_devices=()),
    kernel("top-8 of 1000", top_k("f32[1,1000]", 8)),
    kernel("top-8 of 64×1000", top_k("f32[64,1000]", 8)),
    kernel("top-100 of 65,536", top_k("f32[1,65536]", 100), plain_devices=("local-sync",)),
    kernel("top-10 of 1,048,576", top_k("f32[1,1048576]", 10), plain_devices=("local-sync",)),
)
