"""Special functions of PyTorch to as many digits as its own have; PyTorch in float64 is right."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

mpmath = pytest.importorskip("mpmath", reason="comes with the extra `torch`")
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


_BESSEL = {
    "bessel_j0": mpmath.j0,
    "bessel_j1": mpmath.j1,
    "bessel_y0": lambda x: mpmath.bessely(0, x),
    "bessel_y1": lambda x: mpmath.bessely(1, x),
    "modified_bessel_k0": lambda x: mpmath.besselk(0, x),
    "modified_bessel_k1": lambda x: mpmath.besselk(1, x),
    "scaled_modified_bessel_k0": lambda x: mpmath.besselk(0, x) * mpmath.exp(x),
    "scaled_modified_bessel_k1": lambda x: mpmath.besselk(1, x) * mpmath.exp(x),
    "airy_ai": mpmath.airyai,
}


@pytest.mark.wide(8)
@pytest.mark.parametrize("name", sorted(_BESSEL))
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["f32", "f64"])
def test_bessel_functions(name: str, dtype: torch.dtype) -> None:
    class Module(torch.nn.Module):  # type: ignore[misc]
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return getattr(torch.special, name)(x)

    least = -40 if name.startswith(("bessel_j", "airy")) else 1e-3
    rng = np.random.default_rng(0)
    numbers = np.concatenate([rng.uniform(least, 100, 300), 10 ** rng.uniform(-6, 3, 100), [2, 5]])
    x = torch.tensor(numbers, dtype=dtype)
    numbers = x.double().numpy()
    right = np.array([float(_BESSEL[name](float(number))) for number in numbers])
    got = hloforge.torch.compile(Module(), (x,))(x).double().numpy()
    # Where a function crosses zero its amplitude counts, and the phase of Airy's is as exact as its argument.
    size = np.abs(right)
    if "modified" not in name:
        size = np.maximum(size, 0.5 / np.sqrt(1 + np.abs(numbers)))
    if name == "airy_ai":
        size = np.where(numbers < -2, 0.2, np.abs(right)) * (1 + np.abs(numbers) ** 1.5)
    known = np.abs(right) > 10 * torch.finfo(dtype).tiny
    error = np.abs(got - right)[known] / size[known]
    worst = numbers[known][error.argmax()]
    assert error.max() < 20 * torch.finfo(dtype).eps, f"{error.max() / torch.finfo(dtype).eps} steps at {worst}"


@pytest.mark.wide(4)
@pytest.mark.parametrize("name", sorted(_BESSEL))
def test_bessel_functions_outside_of_their_domain(name: str) -> None:
    class Module(torch.nn.Module):  # type: ignore[misc]
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return getattr(torch.special, name)(x)

    x = torch.tensor([0.0, -0.0, -1.0, float("inf"), float("nan"), 1e-30])
    right, got = Module()(x), hloforge.torch.compile(Module(), (x,))(x)
    np.testing.assert_allclose(got, right, rtol=1e-5)
