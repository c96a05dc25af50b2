"""Where 16-bit floats are rounded: once, at the end of an operator, as PyTorch's kernels do; judged in f64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs the extra `torch`")
pytest.importorskip("jax", reason="needs the extra `torch`")

import hloforge.torch  # noqa: E402

nn, functional = torch.nn, torch.nn.functional
SCALES = {"beta": 1.7, "alpha": 0.6}
# bias: [24, 20]; x: [24, 16]; y: [16, 20].
OPERATORS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "mm": lambda bias, x, y: x @ y,
    "addmm": lambda bias, x, y: torch.addmm(bias, x, y, **SCALES),
    "addmm of a row": lambda bias, x, y: torch.addmm(bias[0], x, y),
    "baddbmm": lambda bias, x, y: torch.baddbmm(bias[None], x[None], y[None], **SCALES),
    "addmv": lambda bias, x, y: torch.addmv(bias[:, 0], x, y[:, 0], **SCALES),
    "addbmm": lambda bias, x, y: torch.addbmm(bias, x[None], y[None], **SCALES),
    "addr": lambda bias, x, y: torch.addr(bias, x[:, 0], y[0], **SCALES),
    "linear": lambda bias, x, y: functional.linear(x, y.T, bias[0]),
    "conv2d": lambda bias, x, y: functional.conv2d(x.T[None, :, :, None], y.T[:, :, None, None], bias[0]),
    "conv_transpose1d": lambda bias, x, y: functional.conv_transpose1d(x.T[None], y[:, :, None], bias[0]),
    "cumsum": lambda bias, x, y: x.cumsum(0),
    "cumprod": lambda bias, x, y: x[:9].cumprod(0),
    "addcdiv": lambda bias, x, y: torch.addcdiv(bias[:, :16], x, 1 + x.abs(), value=0.6),
    "foreach_addcdiv": lambda bias, x, y: torch._foreach_addcdiv([bias[:, :16]], [x], [1 + x.abs()], 0.6)[0],
}


class Operators(nn.Module):
    def forward(self, bias: Any, x: Any, y: Any) -> list[Any]:
        return [function(bias, x, y) for function in OPERATORS.values()]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_an_operator_rounds_once(dtype: Any) -> None:
    torch.manual_seed(0)
    arguments = [torch.randn(shape).to(dtype) for shape in ((24, 20), (24, 16), (16, 20))]
    found = hloforge.torch.compile(Operators(), tuple(arguments))(*arguments)
    exact = Operators()(*(each.double() for each in arguments))
    for name, own, right in zip(OPERATORS, found, exact, strict=True):
        # 1 + |x| is an operator of its own, which rounds as well.
        if "addcdiv" in name:
            bias, x, _ = arguments
            right = bias[:, :16].double() + 0.6 * x.double() / (1 + x.abs()).double()
        # Sums in f32 and f64 round to different neighbours where they lie in the middle of both.
        assert (own != right.to(dtype)).double().mean() <= 0.01, name


@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64], ids=str)
def test_running_sums_and_products_round_once(dtype: Any) -> None:
    """PyTorch adds and multiplies running floats in the next wider type on the CPU."""
    torch.manual_seed(0)
    x = torch.randn(48, 72, dtype=dtype)

    def running(x: Any) -> list[Any]:
        return [x.cumsum(0), x.cumsum(1), (1 + x / 16).cumprod(1)]

    found = torch.compile(running, backend="hloforge", fullgraph=True)(x)
    for own, right in zip(found, running(x), strict=True):
        # Sums in f64 that lie in the middle of two neighbours round to either.
        assert (own != right).double().mean() <= 0.01


def _orthogonal(x: Any, rounded: Callable[[Any], Any] = lambda value: value) -> Any:
    """Muon's Newton-Schulz iteration, rounded once for each operator."""
    first, second, third = 3.4445, -4.775, 2.0315
    for _ in range(5):
        gram = rounded(x @ x.T)
        update = rounded(torch.addmm(gram, gram, gram, beta=second, alpha=third))
        x = rounded(torch.addmm(x, update, x, beta=first))
    return x


class Orthogonal(nn.Module):
    def forward(self, x: Any) -> Any:
        return _orthogonal(x)


@pytest.mark.parametrize("shape", [(3, 8), (32, 32)], ids=str)
def test_readers_of_a_product_take_it_rounded(shape: tuple[int, int]) -> None:
    """If one reader takes a product before it is rounded and another one after, the result is twice as far off."""
    program = None
    own, rounding = 0.0, 0.0
    for seed in range(6):
        torch.manual_seed(seed)
        x = torch.randn(shape)
        x = (x / x.norm()).bfloat16()
        program = program or hloforge.torch.compile(Orthogonal(), (x,))
        exact = _orthogonal(x.double())
        own += float((program(x).double() - exact).norm())
        once = _orthogonal(x.double(), lambda value: value.bfloat16().double())
        rounding += float((once - exact).norm())
    assert own <= 1.1 * rounding
