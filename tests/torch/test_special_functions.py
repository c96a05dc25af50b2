"""Special functions of PyTorch to as many digits as its own have; PyTorch in float64 is right."""

from __future__ import annotations

from collections.abc import Callable

import pytest

torch = pytest.importorskip("torch", reason="needs the extra `torch`")
pytest.importorskip("jax", reason="needs the extra `torch`")

import hloforge  # noqa: E402
import hloforge.torch  # noqa: E402


class LogNdtr(torch.nn.Module):  # type: ignore[misc]
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.special.log_ndtr(x)


def test_log_ndtr_has_its_digits_where_it_is_near_zero() -> None:
    x = torch.linspace(-12, 12, 2001)
    right = torch.special.log_ndtr(x.double())
    got = hloforge.torch.compile(LogNdtr(), (x,))(x)
    eager = torch.special.log_ndtr(x)

    def error(numbers: torch.Tensor) -> float:
        return float(((numbers.double() - right) / right).abs().max())

    assert error(got) <= max(2 * error(eager), 2e-6)
    assert torch.isnan(hloforge.torch.compile(LogNdtr(), (x[:1],))(torch.tensor([float("nan")]))).all()


@pytest.mark.parametrize("function", [torch.lgamma, torch.special.log_ndtr])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_functions_have_the_digits_of_pytorch(
    function: Callable[[torch.Tensor], torch.Tensor], dtype: torch.dtype
) -> None:
    """About the zeros 1 and 2 of lgamma, and far below zero."""
    parts = torch.linspace(0.4, 3.4, 601), 1 + 0.1 ** torch.linspace(1, 6, 101), 2 - 0.1 ** torch.linspace(1, 6, 101)
    x = torch.cat(parts).to(dtype)
    x = -10 * x if function is torch.special.log_ndtr else x[(x != 1) & (x != 2)]
    got = torch.compile(function, backend="hloforge")(x)
    torch.testing.assert_close(got, function(x), rtol=6 * torch.finfo(dtype).eps, atol=0)
