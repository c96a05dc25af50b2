"""Special functions of PyTorch to as many digits as its own have; PyTorch in float64 is right."""

from __future__ import annotations

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
