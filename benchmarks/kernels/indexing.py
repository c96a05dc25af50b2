"""Gather and scatter at random places."""

from __future__ import annotations

from typing import Any

from benchmarks.cases import Body, Case, kernel


def gather(table: str, count: int, rows: int) -> Body:
    return lambda nn: nn.take(nn.new(table), nn.new(f"s32[{count}]", below=rows))


def scatter_add(table: str, count: int, rows: int, updates: str) -> Body:
    return lambda nn: nn.scatter_add(nn.new(table), nn.new(f"s32[{count}]", below=rows), nn.new(updates))


def bag(nn: Any) -> Any:
    """Sums of 16 rows each, as for a sparse feature of many values."""
    rows = nn.take(nn.new("f32[10000,64]"), nn.new("s32[4096]", below=10_000))
    return nn.sum(nn.reshape(rows, 256, 16, 64), 1)


CASES: tuple[Case, ...] = (
    kernel("gather 1,024 of 10,000 rows of 64", gather("f32[10000,64]", 1024, 10_000)),
    kernel("gather 100,000 of 1,000,000", gather("f32[1000000]", 100_000, 1_000_000)),
    kernel("embedding 4,096 of 32,000 rows of 256", gather("f32[32000,256]", 4096, 32_000)),
    kernel("embedding bag 256×16 of 10,000 rows of 64", bag),
    kernel("scatter-add 1,024 to 10,000 rows of 64", scatter_add("f32[10000,64]", 1024, 10_000, "f32[1024,64]")),
    kernel("scatter-add 100,000 to 1,000,000", scatter_add("f32[1000000]", 100_000, 1_000_000, "f32[100000]")),
    kernel("scatter-add 100,000 to 10,000 rows of 16", scatter_add("f32[10000,16]", 100_000, 10_000, "f32[100000,16]")),
)
