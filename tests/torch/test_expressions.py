"""What PyTorch's expressions of sizes are, at all sizes that a program is compiled for."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs the extra `torch`")
pytest.importorskip("jax", reason="needs the extra `torch`")

import sympy  # noqa: E402
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv  # noqa: E402
from torch.utils._sympy.functions import FloorDiv, Mod, ToFloat, TruncToInt  # noqa: E402

from hloforge.dialect.errors import UnsupportedError  # noqa: E402
from hloforge.torch.bounded.expressions import Choices, equalities, evaluated  # noqa: E402
from hloforge.torch.open_sizes import _checked  # noqa: E402

S, T = (sympy.Symbol(name, integer=True, positive=True) for name in ("s", "t"))
WIDTH = FloorDiv(S, FloorDiv(S, 4))


def test_what_guards_make_equal() -> None:
    free, bound = Choices({S: (2, 64)}), Choices({S: (2, 64)}, [(Mod(S, 4), sympy.Integer(0))])
    assert free.constant(WIDTH) is None and free.span(WIDTH) == (4, 7)  # no size at which it divides by 0
    assert bound.constant(WIDTH) == 4
    assert bound.are_equal(4 * FloorDiv(S, 4), S) and not free.are_equal(4 * FloorDiv(S, 4), S)
    assert free.are_equal(TruncToInt(2.0 * ToFloat(S)), 2 * S)


def test_a_guard_of_several_sizes_says_something_of_each() -> None:
    equal = [(S * T, 4 * T * FloorDiv(S, 4))]
    assert Choices({S: (2, 64), T: (2, 8)}, equal).constant(WIDTH) == 4


def test_sizes_that_are_the_same_in_all_calls() -> None:
    choices = Choices({S: (2, 2), T: (2, 8)})
    assert choices.constant(S) == 2 and choices.constant(3 * S + 1) == 7
    assert choices.constant(T) is None and choices.constant(S * T) is None


def test_more_sizes_than_are_looked_at() -> None:
    many = Choices({S: (2, 1 << 20)})
    assert many.span(WIDTH) is None and many.constant(WIDTH) is None


def test_what_is_not_known() -> None:
    with pytest.raises(UnsupportedError, match="Function"):
        evaluated(sympy.Function("Function")(S), {S: 3})
    assert Choices({S: (2, 8)}).span(FloorDiv(S, T)) is None


def test_what_a_frozen_environment_is_asked_is_no_fact() -> None:
    from torch._dynamo.source import ConstantSource

    environment = ShapeEnv()
    symbol = environment.create_symbol(8, ConstantSource("size"), DimDynamic.DYNAMIC)
    size = environment.create_symintnode(symbol, hint=8)
    assert size % 4 == 0
    known = equalities(environment)
    assert known and _checked(environment) == known
    environment.freeze()
    assert size % 8 == 0
    assert len(equalities(environment)) > len(known) and _checked(environment) == known
