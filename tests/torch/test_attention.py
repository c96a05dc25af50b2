"""``scaled_dot_product_attention`` as one operator: no further from float64 than PyTorch's kernel is."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch.nn import functional  # noqa: E402

import hloforge  # noqa: E402

# Of the error of PyTorch's kernel, with the rounding of one result of each type.
_SLACK, _ROUNDING = 1.5, {torch.float32: 1e-6, torch.bfloat16: 2e-3, torch.float16: 3e-4}
# Batch, heads, heads of keys, queries, keys, features.
_SIZES = ((1, 4, 4, 32, 32, 16), (2, 3, 3, 97, 77, 40), (1, 6, 2, 70, 130, 64), (1, 2, 2, 1, 65, 32))


@pytest.fixture(autouse=True)
def _fresh() -> None:
    torch._dynamo.reset()
    torch.manual_seed(0)


def _arrays(size: tuple[int, ...], dtype: Any) -> list[Any]:
    batch, heads, few, queries, keys, features = size
    shapes = ((batch, heads, queries, features), *[(batch, few, keys, features)] * 2)
    return [torch.randn(shape).to(dtype) for shape in shapes]


def _check(function: Callable[..., Any], arrays: list[Any], *, dynamic: bool = False) -> Any:
    """Compare with eager mode and float64; the result of hloforge."""
    with torch.no_grad():
        found = torch.compile(function, backend="hloforge", dynamic=dynamic)(*arrays)
        eager = function(*arrays)
        exact = function(*(x.double() if x.is_floating_point() else x for x in arrays))
    assert found.dtype == eager.dtype and found.stride() == eager.stride()
    own, other = ((x.double() - exact).abs().max().item() for x in (found, eager))
    assert own <= _SLACK * other + _ROUNDING[eager.dtype]
    return found


def _attention(**options: Any) -> Callable[..., Any]:
    def attention(q: Any, k: Any, v: Any, mask: Any = None) -> Any:
        return functional.scaled_dot_product_attention(q, k, v, mask, enable_gqa=q.shape[1] != k.shape[1], **options)

    return attention


@pytest.mark.wide(2)
@pytest.mark.parametrize("size", _SIZES, ids=lambda size: "x".join(map(str, size)))
@pytest.mark.parametrize("dtype", list(_ROUNDING), ids=lambda dtype: str(dtype).split(".")[-1])
def test_sizes_and_types(size: tuple[int, ...], dtype: Any) -> None:
    _check(_attention(), _arrays(size, dtype))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_causal_attention_with_a_scale(dtype: Any) -> None:
    for size in _SIZES[:3]:
        _check(_attention(is_causal=True, scale=0.3), _arrays(size, dtype))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_masks_with_rows_that_see_nothing(dtype: Any) -> None:
    size = _SIZES[1]
    arrays = _arrays(size, dtype)
    seen = torch.rand(size[0], 1, size[3], size[4]) > 0.4
    seen[0, :, 5] = False
    assert not _check(_attention(), [*arrays, seen])[0, :, 5].any()
    bias = torch.randn(size[1], size[3], size[4]).masked_fill(~seen[0], -torch.inf).to(dtype)
    assert not _check(_attention(), [*arrays, bias[None]])[:, :, 5].any()


def test_scores_and_values_that_are_not_finite() -> None:
    q, k, v = _arrays((1, 2, 2, 40, 48, 16), torch.float32)
    q[0, 0, 3, 2], v[0, 1, 7, 5] = torch.nan, torch.inf
    with torch.no_grad():
        found = torch.compile(_attention(), backend="hloforge")(q, k, v)
    torch.testing.assert_close(found, _attention()(q, k, v), equal_nan=True, rtol=1e-5, atol=1e-5)


def test_lengths_of_a_bucket() -> None:
    """Padded keys have no part in it, nor has what lies in their memory."""
    attention = torch.compile(_attention(is_causal=True), backend="hloforge", dynamic=True)
    masked = torch.compile(_attention(), backend="hloforge", dynamic=True)
    with torch.no_grad():
        for keys in (37, 41, 50):
            arrays = _arrays((2, 4, 4, keys, keys, 16), torch.float32)
            seen = torch.rand(keys, keys) > 0.3
            torch.testing.assert_close(attention(*arrays), _attention(is_causal=True)(*arrays), rtol=1e-5, atol=1e-5)
            torch.testing.assert_close(masked(*arrays, seen), _attention()(*arrays, seen), rtol=1e-5, atol=1e-5)


def test_lengths_of_causal_parts_and_features() -> None:
    """Sizes from the first call on, of which rows are cut in parts, and none of them has a warning."""
    attention = torch.compile(_attention(is_causal=True), backend="hloforge", dynamic=True)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("error")
        for queries, keys, features in ((300, 300, 20), (333, 310, 20), (270, 400, 24)):
            arrays = [torch.randn(1, 2, length, features) for length in (queries, keys, keys)]
            torch.testing.assert_close(attention(*arrays), _attention(is_causal=True)(*arrays), rtol=1e-5, atol=1e-5)


def test_gradients_are_those_of_plain_operators() -> None:
    arrays = _arrays(_SIZES[0], torch.float32)
    own, other = ([x.clone().requires_grad_() for x in arrays] for _ in range(2))
    torch.compile(_attention(is_causal=True), backend="hloforge")(*own).square().sum().backward()
    _attention(is_causal=True)(*other).square().sum().backward()
    for one, two in zip(own, other, strict=True):
        torch.testing.assert_close(one.grad, two.grad, rtol=1e-4, atol=1e-5)


def test_exported_attention_returns_the_logarithms_of_sums() -> None:
    operator = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu

    class Attention(torch.nn.Module):
        def forward(self, q: Any, k: Any, v: Any) -> Any:
            return operator(q, k, v, 0.0, True)

    arrays = _arrays(_SIZES[0], torch.float32)
    found = hloforge.torch.compile(Attention(), tuple(arrays), cache=False)(*arrays)
    for one, other in zip(found, operator(*arrays, 0.0, True), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)
