"""Fractional pools of unequal sizes, with NaN and their gradients; expected values are PyTorch's own."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs the extra `torch`")
pytest.importorskip("jax", reason="needs the extra `torch`")
pytest.importorskip("expecttest", reason="PyTorch's operator database needs it")

from tests.torch.opinfo import Case, judge  # noqa: E402

functional = torch.nn.functional
POOLS = {2: functional.fractional_max_pool2d, 3: functional.fractional_max_pool3d}


@pytest.mark.wide(2)
@pytest.mark.parametrize("rank", POOLS)
@pytest.mark.parametrize(
    ("sizes", "kernel", "counts"), [((9, 7, 8), (3, 3, 3), (4, 4, 4)), ((9, 7, 8), (2, 3, 1), (3, 1, 5))]
)
def test_fractional_pools(rank: int, sizes: Any, kernel: Any, counts: Any) -> None:
    torch.manual_seed(0)
    x, samples = torch.randn(2, 3, *sizes[-rank:]), torch.rand(2, 3, rank)
    x[0, 0, 1, 1] = torch.nan

    def values_and_places(x: Any, samples: Any) -> Any:
        pool = POOLS[rank]
        return pool(x, kernel[-rank:], counts[-rank:], return_indices=True, _random_samples=samples)

    def gradient(x: Any, samples: Any) -> Any:
        given = x.nan_to_num().detach().requires_grad_()
        with torch.enable_grad():
            pooled = POOLS[rank](given, kernel[-rank:], counts[-rank:], _random_samples=samples)
            return torch.autograd.grad(pooled.square().sum(), given)

    for function in (values_and_places, gradient):
        assert judge(Case(function.__name__, "fractional_max_pool", function, (x, samples))).stage == ""
