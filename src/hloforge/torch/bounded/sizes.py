"""Sizes that depend on elements: the largest one, which arrays are padded to, and the real one at run time.

PyTorch names such a size by a symbol (``u0``), and says each dimension as an expression of symbols (``2*u0 + 1``). The
array of a dimension is as long as the largest value of its expression; elements from the real size on are padding.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import reduce
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import sympy
import torch
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols
from torch.utils import _pytree as pytree
from torch.utils._sympy.numbers import int_oo
from torch.utils._sympy.value_ranges import ValueRanges, bound_sympy

from hloforge.dialect.errors import UnsupportedError

# Elements of one dimension; beyond it a bound says nothing about memory.
_MOST = 1 << 31


# Symbols of sizes of arguments that are open while a graph is traced: their arrays are padded, too.
_OPENED: ContextVar[frozenset[Any]] = ContextVar("opened", default=frozenset())


@contextmanager
def opened(symbols: Collection[Any]) -> Iterator[None]:
    """Take sizes of arguments for open: one program for all that are at most as large as a bucket."""
    token = _OPENED.set(frozenset(symbols))
    try:
        yield
    finally:
        _OPENED.reset(token)


class Sizes:
    """What the symbols of a graph are in one program.

    Attributes:
        room: for how many turns a loop that keeps the values of all has room; None where it may not keep them.
        turns: how many each such loop made, in the order of the graph.
    """

    def __init__(self, room: int | None = None) -> None:
        self.room = room
        self.turns: list[Any] = []
        self._largest: dict[Any, int] = {}
        self._real: dict[Any, Any] = {}
        # Of sizes that cannot be 0.
        self._least: dict[Any, int] = {}
        # As ``_largest``, of what cannot be larger, whether or not PyTorch's assertions hold.
        self._certain: dict[Any, int] = {}

    def inner(self, room: int | None = None) -> Sizes:
        """The same for a graph within the graph, whose own symbols are added there.

        Args:
            room: as of the class; of a graph whose ``turns`` the caller does not pass on, no loop keeps values.
        """
        inner = Sizes(room)
        inner._largest, inner._real = dict(self._largest), dict(self._real)
        inner._certain, inner._least = dict(self._certain), dict(self._least)
        return inner

    def open(self, symbol: Any, largest: int, real: Any, least: int = 1) -> None:
        """Say what the symbol of an argument's size is.

        Args:
            real: a scalar array of s64, from ``least`` to ``largest``.
        """
        self._largest[symbol] = self._certain[symbol] = largest
        self._real[symbol] = real
        self._least[symbol] = least

    def bind(self, size: Any, largest: int | None, real: Any) -> None:
        """Say what a size is, if it is a symbol that nothing was said about.

        Args:
            largest: None if only PyTorch may know it (``torch._check(n <= 10)``).
            real: a number, or a scalar array of integers.
        """
        if not isinstance(size, torch.SymInt):
            return
        symbol = size.node.expr
        if not symbol.is_symbol or symbol in self._real or real is None:
            return
        if largest is not None:
            self._certain[symbol] = largest
        known = size.node.shape_env.var_to_range.get(symbol)
        upper = known.upper if known is not None else int_oo
        if largest is None and upper is not int_oo and upper < _MOST:
            largest = int(upper)
        if largest is not None:
            self._largest[symbol] = largest
        self._real[symbol] = real if isinstance(real, int) else jnp.asarray(real).astype(np.int64)

    def knows(self, size: Any) -> bool:
        """Whether everything that a size depends on is bound."""
        return not isinstance(size, torch.SymInt) or all(s in self._real for s in size.node.expr.free_symbols)

    def extent(self, size: Any) -> int:
        """The largest size, which the array has.

        Raises:
            UnsupportedError: there is no largest one.
        """
        if not isinstance(size, torch.SymInt):
            return int(size)
        expression = size.node.expr
        ranges = {}
        for symbol in expression.free_symbols:
            if symbol not in self._largest:
                raise UnsupportedError(
                    f"a size ({expression}) depends on elements, and nothing says how large it may be",
                    hint="say so in the model, such as torch._check(n <= 100) of the number n that it comes from",
                )
            ranges[symbol] = ValueRanges(self._least_of(symbol), self._largest[symbol])
        upper = bound_sympy(expression, ranges).upper
        if not upper.is_number or upper in (int_oo, sympy.oo):
            raise UnsupportedError(f"a size ({expression}) is not known before the call, and nothing bounds it")
        return max(int(upper), 0)

    def is_certain(self, condition: Any) -> bool:
        """Whether a condition on sizes holds whatever the elements are."""
        if not isinstance(condition, torch.SymBool):
            return condition is True
        ranges = {}
        for symbol in condition.node.expr.free_symbols:
            if symbol not in self._certain:
                return False
            ranges[symbol] = ValueRanges(self._least_of(symbol), self._certain[symbol])
        return bool(bound_sympy(condition.node.expr, ranges).lower == sympy.true)

    def _least_of(self, symbol: Any) -> int:
        real = self._real[symbol]
        return real if isinstance(real, int) else self._least.get(symbol, 0)

    def real(self, size: Any) -> Any:
        """The size at run time: a number, or a scalar array."""
        return _evaluated(size.node.expr, self._real) if isinstance(size, torch.SymInt) else size

    def padded(self, value: Any) -> Any:
        """What PyTorch says of a tensor, with the sizes of its array; other values stay."""

        def convert(leaf: Any) -> Any:
            if not isinstance(leaf, torch.Tensor) or not (open_dims(leaf) or any(map(_is_found, leaf.shape))):
                return leaf
            return torch.empty([self.extent(size) for size in leaf.shape], dtype=leaf.dtype, device="meta")

        return pytree.tree_map(convert, value)


def open_dims(value: Any) -> list[int]:
    """The dimensions of a tensor whose sizes depend on elements."""
    if not isinstance(value, torch.Tensor):
        return []
    return [d for d, size in enumerate(value.shape) if is_open(size)]


def is_open(size: Any) -> bool:
    """Whether a size depends on elements, or is one of an argument that is open."""
    if not isinstance(size, torch.SymInt):
        return False
    among = _OPENED.get()
    return bool(free_unbacked_symbols(size)) or (bool(among) and not among.isdisjoint(size.node.expr.free_symbols))


def _is_found(size: Any) -> bool:
    """Whether a size was a symbol until PyTorch found its number, as of an array that is added to a known one."""
    return isinstance(size, torch.SymInt) and not size.node.expr.free_symbols


def fit(array: Any, extents: Sequence[int]) -> Any:
    """An array with more padding, or less."""
    if tuple(array.shape) == tuple(extents) or array.ndim != len(extents):
        return array
    array = array[tuple(slice(0, extent) for extent in extents)]
    missing = [(0, extent - size, 0) for extent, size in zip(extents, array.shape, strict=True)]
    return jax.lax.pad(array, np.zeros((), array.dtype), missing)


def _evaluated(expression: Any, symbols: dict[Any, Any]) -> Any:
    if expression.is_Symbol:
        if expression not in symbols:
            raise UnsupportedError(f"nothing in this graph says what the size {expression} is")
        return symbols[expression]
    if expression.is_Integer:
        return int(expression)
    function = _FUNCTIONS.get(type(expression).__name__)
    if function is None:
        raise UnsupportedError(f"a size is {expression}, which has {type(expression).__name__}")
    return function(*(_evaluated(argument, symbols) for argument in expression.args))


def _folded(function: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    return lambda *numbers: reduce(function, numbers)


def _least(x: Any, y: Any) -> Any:
    return min(x, y) if isinstance(x, int) and isinstance(y, int) else jnp.minimum(x, y)


def _most(x: Any, y: Any) -> Any:
    return max(x, y) if isinstance(x, int) and isinstance(y, int) else jnp.maximum(x, y)


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "Add": _folded(lambda x, y: x + y),
    "Mul": _folded(lambda x, y: x * y),
    "Pow": lambda x, y: x**y,
    **dict.fromkeys(("Min", "min"), _folded(_least)),
    **dict.fromkeys(("Max", "max"), _folded(_most)),
    **dict.fromkeys(("FloorDiv", "CleanDiv"), lambda x, y: x // y),
    **dict.fromkeys(
        ("Mod", "PythonMod", "ModularIndexing"), lambda x, *y: x % y[0] if len(y) == 1 else x // y[0] % y[1]
    ),
    "CeilToInt": lambda x: -((-x) // 1),
}
