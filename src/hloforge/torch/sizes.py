"""What ``torch.export`` says of sizes that it leaves open: which are equal, derived from others, or bounded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sympy
import torch

from hloforge.dialect.bounded_sizes import BoundedSize, Place
from hloforge.dialect.errors import ArgumentError, UnsupportedError
from hloforge.dialect.shapes import Shape

# PyTorch takes sizes of 0 and 1 for special, and says so in bounds and guards; graphs hold for them too.
_SPECIAL = (0, 1)
# A bound beyond it says nothing.
_MOST = 1 << 31


def check_sizes(values: Sequence[Any], names: Sequence[str], shapes: Sequence[Shape]) -> None:
    """Refuse sizes for which a graph was not traced, as the exported module does by its guards.

    Args:
        values: what the graph says of its tensors and numbers.
        names: of the parameters, for messages.
        shapes: of the arrays that are given for them, of the right ranks.

    Raises:
        ArgumentError: sizes that have to be equal are not, or one is out of its bounds.
    """
    sizes = [
        (f"dimension {dimension} of {name!r}", wanted.node, given)
        for value, name, shape in zip(values, names, shapes, strict=True)
        if isinstance(value, torch.Tensor)
        for dimension, (wanted, given) in enumerate(zip(value.shape, shape.dimensions, strict=True))
        if isinstance(wanted, torch.SymInt)
    ]
    known: dict[Any, int] = {}
    for what, node, given in sizes:
        number = _solved(node.expr, given)
        if number is not None:
            symbol = next(iter(node.expr.free_symbols))
            _check_range(what, node, symbol, number)
            known.setdefault(symbol, number)
    for what, node, given in sizes:
        wanted = node.expr.subs(known)
        if wanted.is_number and int(wanted) != given:
            raise ArgumentError(f"{what} is {given}", hint=f"with the other sizes it has to be {int(wanted)}")
    for guard in _guards(sizes):
        if guard.subs(known) == sympy.false:
            raise ArgumentError(f"the sizes break a condition of the exported module: {guard}", hint=_said(known))


def bounds_of(values: Sequence[Any], names: Sequence[str]) -> list[tuple[Any, BoundedSize]]:
    """The symbols in the sizes of tensors, each with its bounds and where it is.

    Args:
        values, names: as of ``check_sizes``.

    Raises:
        UnsupportedError: a size of several symbols, or of another form than ``2*s0 + 1``.
    """
    places: dict[Any, list[Place]] = {}
    nodes: dict[Any, Any] = {}
    for number, value in enumerate(values):
        for dimension, size in enumerate(value.shape if isinstance(value, torch.Tensor) else ()):
            if isinstance(size, torch.SymInt):
                symbol, place = _place(size.node.expr, number, dimension, names[number])
                places.setdefault(symbol, []).append(place)
                nodes[symbol] = size.node
    found = []
    for symbol, where in places.items():
        known = nodes[symbol].shape_env.var_to_range.get(symbol)
        least = 0 if known is None or known.lower <= max(_SPECIAL) + 1 else int(known.lower)
        most = None if known is None or known.upper >= _MOST else int(known.upper)
        name = f"{names[where[0].parameter]}.{where[0].dimension}"
        found.append((symbol, BoundedSize(name, least, most, tuple(where))))
    return found


def _place(expression: Any, parameter: int, dimension: int, name: str) -> tuple[Any, Place]:
    symbols = list(expression.free_symbols)
    if len(symbols) == 1:
        try:
            factors = sympy.Poly(expression, symbols[0]).all_coeffs()
        except sympy.PolynomialError:
            factors = []
        if len(factors) == 2 and all(each.is_Integer for each in factors) and factors[0] > 0:
            return symbols[0], Place(parameter, dimension, int(factors[0]), int(factors[1]))
    raise UnsupportedError(f"dimension {dimension} of {name!r} is {expression}, which is not of the form 2*n + 1")


def _solved(expression: Any, given: int) -> int | None:
    """The size of the one symbol in an expression, such as ``2*s0 + 1``; None if there are more, or no such size."""
    if len(expression.free_symbols) != 1:
        return None
    symbol = next(iter(expression.free_symbols))
    try:
        found = sympy.Poly(expression - given, symbol)
    except sympy.PolynomialError:
        return None
    if found.degree() != 1:
        return None
    factor, rest = found.all_coeffs()
    solution = -rest / factor
    if not solution.is_integer:
        raise ArgumentError(f"a size is {given}", hint=f"it has to be of the form {expression}")
    return int(solution)


def _check_range(what: str, node: Any, symbol: Any, number: int) -> None:
    bounds = node.shape_env.var_to_range.get(symbol)
    if bounds is None:
        return
    least = 0 if bounds.lower <= 2 else int(bounds.lower)
    if number < least or number > bounds.upper:
        raise ArgumentError(
            f"{what} is out of the bounds of the exported module: {number} for {symbol}",
            hint=f"it was exported for {symbol} from {least} to {bounds.upper}",
        )


def _guards(sizes: Sequence[tuple[str, Any, int]]) -> list[Any]:
    """The conditions under which the graph was traced, without those that tell sizes of 0 and 1 apart."""
    environments = {id(node.shape_env): node.shape_env for _, node, _ in sizes}
    guards = [guard.expr for each in environments.values() for guard in each.guards]
    return [guard for guard in guards if not _tells_special(guard)]


def _tells_special(guard: Any) -> bool:
    """Whether a condition is that a size is not 0 or 1, such as ``s0 != 1`` or ``s0 >= 2``."""
    if isinstance(guard, sympy.Ne):
        return any(side in _SPECIAL for side in guard.args)
    if not isinstance(guard, sympy.Rel) or len(guard.free_symbols) != 1:
        return False
    symbol = next(iter(guard.free_symbols))
    bounds = (form for size in _SPECIAL for form in (sympy.Gt(symbol, size), sympy.Ge(symbol, size + 1)))
    return guard.canonical in [bound.canonical for bound in bounds]


def _said(known: dict[Any, int]) -> str:
    return ", ".join(f"{symbol} is {number}" for symbol, number in known.items())
