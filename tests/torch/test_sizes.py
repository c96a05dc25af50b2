"""Sizes that ``dynamic_shapes`` leaves open, and numbers that a program returns; expected values are PyTorch's own."""

from __future__ import annotations

from typing import Any

import pytest
import sympy

torch = pytest.importorskip("torch", reason="needs the extra `torch`")
pytest.importorskip("jax", reason="needs the extra `torch`")

import hloforge  # noqa: E402
import hloforge.torch  # noqa: E402
from hloforge.torch import sizes  # noqa: E402

nn = torch.nn
Dim = torch.export.Dim


class Pairs(nn.Module):
    """Several open sizes, one derived from another; numbers among the results."""

    def forward(self, x: Any, y: Any) -> Any:
        pairs = x.reshape(x.shape[0] // 2, 2, x.shape[1]).sum(1)
        return pairs @ y, x.shape[0] * 3, x.shape[1] / 2, x.shape[0] > 6


def test_several_sizes_and_numbers_among_the_results() -> None:
    half, inner = Dim("half", min=1, max=50), Dim("inner", min=2, max=50)
    shapes = {"x": {0: 2 * half, 1: inner}, "y": {0: inner, 1: Dim.AUTO}}
    program = hloforge.torch.compile(Pairs(), (torch.randn(4, 3), torch.randn(3, 5)), dynamic_shapes=shapes)
    for rows, columns, others in ((4, 3, 5), (10, 2, 7)):
        x, y = torch.randn(rows, columns), torch.randn(columns, others)
        found, expected = program(x, y), Pairs()(x, y)
        torch.testing.assert_close(found[0], expected[0])
        assert [(type(n), n) for n in found[1:]] == [(type(n), n) for n in expected[1:]]
    with pytest.raises(hloforge.ArgumentError, match=r"of the form 2\*"):
        program(torch.randn(5, 3), torch.randn(3, 5))


class Branches(nn.Module):
    """A size decides, while PyTorch traces, what is computed."""

    def forward(self, x: Any, y: Any) -> Any:
        return x + y if x.shape[0] < 10 else x - y


@pytest.mark.parametrize(("rows", "others", "reason"), [(9, 9, "from 0 to 8"), (3, 1, "has to be 3")])
def test_sizes_that_the_export_does_not_hold_for_are_refused(rows: int, others: int, reason: str) -> None:
    size = Dim("size", min=2, max=8)
    examples = (torch.randn(3, 2), torch.randn(3, 2))
    program = hloforge.torch.compile(Branches(), examples, dynamic_shapes={"x": {0: size}, "y": {0: size}})
    with pytest.raises(hloforge.ArgumentError) as caught:
        program(torch.randn(rows, 2), torch.randn(others, 2))
    assert reason in str(caught.value)


def test_conditions_that_the_export_found_are_held() -> None:
    examples = (torch.randn(3, 2), torch.randn(3, 2))
    program = hloforge.torch.compile(Branches(), examples, dynamic_shapes={"x": {0: Dim.AUTO}, "y": {0: Dim.AUTO}})
    with pytest.raises(hloforge.ArgumentError, match=r"out of the bounds|break a condition"):
        program(torch.randn(12, 2), torch.randn(12, 2))


@pytest.mark.parametrize("condition", ["Ge(s, 2)", "2 <= s", "s > 1", "s >= 1", "Ne(s, 1)"])
def test_conditions_that_tell_sizes_of_0_and_1_apart_are_none(condition: str) -> None:
    symbol = sympy.Symbol("s", integer=True)
    assert sizes._tells_special(sympy.sympify(condition, {"s": symbol}))
    assert not sizes._tells_special(symbol >= 3) and not sizes._tells_special(symbol <= 1)
