"""What PyTorch's expressions of sizes are: at the sizes of a call, and at all sizes that a program is compiled for.

PyTorch says sizes by symbols, and writes ``s0//(s0//4)`` where a graph has seen that this is 4, or
``TruncToInt(2.0*ToFloat(s0))`` for ``2*s0``. Rules about expressions do not find all of these. A bucket has few
sizes, though, and what PyTorch has seen of them are its guards: so an expression is evaluated at all of them.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

import jax.numpy as jnp
import numpy as np
import sympy

from hloforge.dialect.errors import UnsupportedError

# Choices of sizes that are looked at.
_CHOICES = 1 << 18


def evaluated(expression: Any, symbols: Mapping[Any, Any]) -> Any:
    """An expression at some sizes.

    Args:
        symbols: numbers, or arrays of numpy or of JAX, by symbol.

    Raises:
        UnsupportedError: a symbol that is not among them, or a function that is not known.
    """
    if expression.is_Symbol:
        if expression not in symbols:
            raise UnsupportedError(f"nothing in this graph says what the size {expression} is")
        return symbols[expression]
    if expression.is_Integer:
        return int(expression)
    if expression.is_Rational or expression.is_Float:
        return float(expression)
    function = _FUNCTIONS.get(type(expression).__name__)
    if function is None:
        raise UnsupportedError(f"a size is {expression}, which has {type(expression).__name__}")
    return function(*(evaluated(argument, symbols) for argument in expression.args))


def _of(*arguments: Any) -> Any:
    """Whose functions compute these: those of JAX, if it has traced one of them."""
    return np if all(isinstance(each, int | float | np.generic | np.ndarray) for each in arguments) else jnp


def _folded(function: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    return lambda *numbers: reduce(function, numbers)


def _plain(found: Any) -> Any:
    """A number of numpy's as one of Python's."""
    return found.item() if isinstance(found, np.generic) else found


def _least(x: Any, y: Any) -> Any:
    return _plain(_of(x, y).minimum(x, y))


def _most(x: Any, y: Any) -> Any:
    return _plain(_of(x, y).maximum(x, y))


def _whole(name: str) -> Callable[[Any], Any]:
    """A number as an integer, rounded in some way."""

    def function(x: Any) -> Any:
        return _plain(getattr(_of(x), name)(x).astype(np.int64))

    return function


def _float(x: Any) -> Any:
    return float(x) if isinstance(x, int | float) else x.astype(np.float64)


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "Add": _folded(operator.add),
    "Mul": _folded(operator.mul),
    **dict.fromkeys(("Pow", "PowByNatural", "FloatPow"), operator.pow),
    **dict.fromkeys(("Min", "min"), _folded(_least)),
    **dict.fromkeys(("Max", "max"), _folded(_most)),
    **dict.fromkeys(("FloorDiv", "CleanDiv"), operator.floordiv),
    "CeilDiv": lambda x, y: -(-x // y),
    **dict.fromkeys(
        ("Mod", "PythonMod", "ModularIndexing"), lambda x, *y: x % y[0] if len(y) == 1 else x // y[0] % y[1]
    ),
    **dict.fromkeys(("IntTrueDiv", "FloatTrueDiv"), lambda x, y: _float(x) / _float(y)),
    "ToFloat": _float,
    "Identity": lambda x: x,
    "CeilToInt": _whole("ceil"),
    "FloorToInt": _whole("floor"),
    "TruncToInt": _whole("trunc"),
    "RoundToInt": _whole("round"),
}


class Choices:
    """The sizes that a program is compiled for: all from the least to the largest ones for which PyTorch's guards hold.

    Args:
        ranges: least and largest size, by symbol.
        equal: what PyTorch's guards say to be equal (``equalities``).
    """

    def __init__(self, ranges: Mapping[Any, tuple[int, int]], equal: Sequence[tuple[Any, Any]] = ()) -> None:
        self._ranges = dict(ranges)
        self._equal = equal
        self._points: dict[frozenset[Any], dict[Any, Any] | None] = {}
        self._spans: dict[Any, tuple[int, int] | None] = {}

    def __contains__(self, symbol: Any) -> bool:
        return symbol in self._ranges

    def has_one_of(self, expression: Any) -> bool:
        """Whether an expression has one of the symbols."""
        return bool(self._ranges) and not self._ranges.keys().isdisjoint(expression.free_symbols)

    def constant(self, expression: Any) -> int | None:
        """What an expression is at all sizes, if it is the same at all of them."""
        found = self.span(expression)
        return found[0] if found is not None and found[0] == found[1] else None

    def are_equal(self, first: Any, second: Any) -> bool:
        """Whether two expressions are the same at all sizes."""
        if first == second:
            return True
        difference = sympy.expand(first - second)
        return bool(difference == 0) or self.span(difference) == (0, 0)

    def span(self, expression: Any) -> tuple[int, int] | None:
        """The least and the largest number that an expression is; None if it is not known."""
        if expression not in self._spans:
            self._spans[expression] = self._span(expression)
        return self._spans[expression]

    def _span(self, expression: Any) -> tuple[int, int] | None:
        symbols = expression.free_symbols
        if not symbols or not symbols <= self._ranges.keys():
            return None
        if expression.is_Symbol:
            least, most = self._ranges[expression]
            return least, most
        if expression.is_polynomial(*symbols):
            # These are found by other rules, unless all symbols are known; looking at the guards takes time.
            if any(self._ranges[symbol][0] != self._ranges[symbol][1] for symbol in symbols):
                return None
            number = int(expression.xreplace({symbol: self._ranges[symbol][0] for symbol in symbols}))
            return number, number
        points = self._of(frozenset(symbols))
        values = None if points is None else _at(expression, points)
        if values is None or not values.size:
            return None
        return int(values.min()), int(values.max())

    def _of(self, symbols: frozenset[Any]) -> dict[Any, Any] | None:
        """Sizes as a vector by symbol; None if there are too many."""
        if symbols not in self._points:
            # A guard about other sizes too says something of these: all are looked at, if they are few.
            everything = frozenset(self._ranges)
            wanted = everything if self._count(everything) <= _CHOICES else symbols
            self._points[symbols] = self._filtered(wanted) if self._count(wanted) <= _CHOICES else None
            if self._points[symbols] is not None:
                self._points[wanted] = self._points[symbols]
        return self._points[symbols]

    def _count(self, symbols: frozenset[Any]) -> int:
        return reduce(operator.mul, (self._ranges[s][1] - self._ranges[s][0] + 1 for s in symbols), 1)

    def _filtered(self, symbols: frozenset[Any]) -> dict[Any, Any]:
        ordered = [symbol for symbol in self._ranges if symbol in symbols]
        axes = [np.arange(self._ranges[s][0], self._ranges[s][1] + 1, dtype=np.int64) for s in ordered]
        grid = np.meshgrid(*axes, indexing="ij")
        points = {symbol: each.reshape(-1) for symbol, each in zip(ordered, grid, strict=True)}
        for first, second in self._equal:
            if not (first.free_symbols | second.free_symbols) <= symbols:
                continue
            sides = [_at(side, points, strict=True) for side in (first, second)]
            if any(side is None for side in sides):
                continue
            holds = np.equal(*sides)
            if holds.any():  # or the graph is never called with such sizes
                points = {symbol: each[holds] for symbol, each in points.items()}
        return points


def equalities(environment: Any) -> list[tuple[Any, Any]]:
    """What the guards of a ``ShapeEnv`` say to be equal: these tell expressions of one value from others."""
    guards = [guard.expr.xreplace(environment.replacements) for guard in environment.guards]
    return [guard.args for guard in guards if isinstance(guard, sympy.Eq) and guard.free_symbols]


def _at(expression: Any, points: Mapping[Any, Any], *, strict: bool = False) -> Any:
    """An expression at many sizes, those left out at which it divides by 0; None if it is not known.

    Args:
        strict: whether one of them makes it unknown: no call has such sizes, but the others must stay in line.
    """
    count = next(iter(points.values())).size
    try:
        with np.errstate(divide="ignore", invalid="ignore"):
            found = np.broadcast_to(np.asarray(evaluated(expression, points)), (count,))
            valid = np.ones(count, np.bool_)
            for divisor in _divisors(expression):
                valid &= np.asarray(evaluated(divisor, points)) != 0
    except UnsupportedError:
        return None
    if strict:
        return np.where(valid, found, np.iinfo(np.int64).min)
    return found[valid]


def _divisors(expression: Any) -> list[Any]:
    names = ("FloorDiv", "CleanDiv", "CeilDiv", "Mod", "PythonMod", "IntTrueDiv", "FloatTrueDiv", "ModularIndexing")
    return [
        divisor
        for part in sympy.preorder_traversal(expression)
        if type(part).__name__ in names
        for divisor in part.args[1:]
        if not divisor.is_number
    ]
