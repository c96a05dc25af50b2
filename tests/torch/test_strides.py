"""Views by strides of tensors whose elements lie in another order in memory, or between others; against eager mode."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs the extra `torch`")
pytest.importorskip("jax", reason="needs the extra `torch`")

import hloforge.torch  # noqa: E402

pytestmark = pytest.mark.usefixtures("fresh_dynamo")


def _turned(x: Any, order: Sequence[int]) -> Any:
    """The elements in another order of the dimensions, as a clone keeps them."""
    return (x * 2).permute(*order)


def _choice(seed: int) -> tuple[list[int], list[int], list[int], list[int], int]:
    """Sizes of a tensor, an order of its dimensions, and a view within its memory."""
    chance = random.Random(seed)
    sizes = [chance.randint(1, 5) for _ in range(3)]
    order = chance.sample(range(3), 3)
    count = sizes[0] * sizes[1] * sizes[2]
    offset = chance.randint(0, count // 3)
    view, strides, last = [], [], offset
    for _ in range(chance.randint(1, 3)):
        stride = chance.randint(0, 6)
        most = 4 if stride == 0 else min(4, (count - 1 - last) // stride + 1)
        view.append(chance.randint(1, most))
        strides.append(stride)
        last += (view[-1] - 1) * stride
    return sizes, order, view, strides, offset


@pytest.mark.parametrize("seeds", [range(25), range(25, 50)], ids=["first", "second"])
def test_views_of_memory_in_any_order(seeds: range) -> None:
    choices = [_choice(seed) for seed in seeds]

    def views(*given: Any) -> list[Any]:
        return [
            torch.as_strided(_turned(x, order), view, strides, offset) + 1
            for x, (_, order, view, strides, offset) in zip(given, choices, strict=True)
        ]

    tensors = [torch.randn(sizes, requires_grad=True) for sizes, *_ in choices]
    twins = [tensor.detach().clone().requires_grad_() for tensor in tensors]
    found, expected = torch.compile(views, backend="hloforge", dynamic=False)(*tensors), views(*twins)
    for results in (found, expected):
        sum(result.square().sum() for result in results).backward()
    for one, other in zip([*found, *(x.grad for x in tensors)], [*expected, *(x.grad for x in twins)], strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)


class _Windows(torch.nn.Module):  # type: ignore[misc]  # PyTorch's modules have no types here
    """Overlapping windows of a sequence that lies in memory behind its heads, as Longformer's attention has them."""

    def forward(self, x: Any) -> Any:
        rows = (x + 1).transpose(1, 2)
        batch, row, feature = rows.stride()
        return rows.as_strided((4, 3, 4, 3), (batch, 2 * row, row, feature))


def test_exported_windows() -> None:
    x = torch.randn(4, 3, 8)
    model = _Windows()
    torch.testing.assert_close(hloforge.torch.compile(model, (x,))(x), model(x), rtol=1e-6, atol=1e-6)


def test_memory_of_nobody_is_refused() -> None:
    def beyond(x: Any) -> Any:
        return (x * 2)[:2].as_strided((4, 3), (3, 1))

    with pytest.raises(Exception, match="memory that is not the tensor's own"):
        torch.compile(beyond, backend="hloforge", dynamic=False)(torch.randn(4, 3))
