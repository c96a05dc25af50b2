"""``torch.topk`` beside eager: NaN, zeros of both signs, types, dimensions."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")


def _numbers(kind: Any, shape: tuple[int, ...]) -> Any:
    numbers = torch.randn(shape, generator=torch.Generator().manual_seed(len(shape))) * 3
    if not kind.is_floating_point:
        return numbers.to(kind)
    flat = numbers.view(-1)
    flat[3:9] = torch.tensor([float("nan"), -float("nan"), 0.0, -0.0, float("inf"), -float("inf")])
    return numbers.to(kind)


@pytest.mark.wide(8)
@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("kind", [torch.float32, torch.float64, torch.bfloat16, torch.int32, torch.int64, torch.uint8])
def test_topk(kind: Any, largest: bool) -> None:
    """Equal values have no order of their own in PyTorch."""
    for shape, dim, count in (((7, 40), -1, 5), ((40, 7), 0, 3), ((3, 50, 4), 1, 50), ((1000,), 0, 1), ((4, 6), 1, 0)):
        x = _numbers(kind, shape)

        def function(x: Any, dim: int = dim, count: int = count) -> Any:
            return torch.topk(x, count, dim, largest)

        torch._dynamo.reset()
        values, places = torch.compile(function, backend="hloforge")(x)
        expected = function(x)[0]
        torch.testing.assert_close(values, expected, rtol=0, atol=0, equal_nan=True)
        torch.testing.assert_close(x.gather(dim, places), expected, rtol=0, atol=0, equal_nan=True)
