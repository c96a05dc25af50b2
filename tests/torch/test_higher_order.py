"""Operators that take functions, under ``torch.compile``; expected values are eager PyTorch's."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs the extra `torch`")
pytest.importorskip("jax", reason="needs the extra `torch`")

from torch._higher_order_ops import while_loop  # noqa: E402
from torch.nn.attention.flex_attention import create_block_mask, flex_attention  # noqa: E402

pytestmark = pytest.mark.usefixtures("fresh_dynamo")


def test_flex_attention_with_scores_masks_groups_and_rows_without_keys() -> None:
    """A bias that is captured, two heads a key, and a mask that leaves the first rows nothing to look at."""
    bias = torch.randn(4)
    mask = create_block_mask(lambda b, h, q, k: q >= k + 5, None, None, 20, 12, device="cpu")

    def attend(q: Any, k: Any, v: Any) -> Any:
        changed = flex_attention(
            q, k, v, lambda s, b, h, i, j: torch.tanh(s) * 5 + bias[h] - (i - j) * 0.1, mask, 0.3, enable_gqa=True
        )
        return changed, flex_attention(q, k, v, enable_gqa=True)

    given = torch.randn(2, 4, 20, 8), torch.randn(2, 2, 12, 8), torch.randn(2, 2, 12, 6)
    expected = attend(*given)
    found = torch.compile(attend, backend="hloforge")(*given)
    assert (expected[0][:, :, :5] == 0).all()
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def test_a_loop_that_counts_with_a_number_of_python_returns_one() -> None:
    def powers(x: Any) -> Any:
        return while_loop(lambda n, a: n < 5, lambda n, a: (n + 1, a * 1.5), (0, x))

    x = torch.randn(3)
    count, last = torch.compile(powers, backend="hloforge")(x)
    assert isinstance(count, int) and count == 5
    torch.testing.assert_close(last, x * 1.5**5)


def test_checked_operators_take_tokens_that_a_call_does_not_bring() -> None:
    """PyTorch threads a token through operators that raise for some elements, as Cholesky factors."""

    def factor(a: Any, b: Any) -> Any:
        return torch.linalg.cholesky(a) @ b

    a, b = torch.tensor([[2.0, 1.0], [1.0, 3.0]]), torch.randn(2, 2)
    torch.testing.assert_close(torch.compile(factor, backend="hloforge")(a, b), factor(a, b))
