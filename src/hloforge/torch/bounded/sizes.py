"""Sizes that depend on elements: the largest one, which arrays are padded to, and the real one at run time.

PyTorch names such a size by a symbol (``u0``), and says each dimension as an expression of symbols (``2*u0 + 1``). The
array of a dimension is as long as the largest value of its expression; elements from the real size on are padding.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
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
from hloforge.torch.bounded.expressions import Choices, evaluated

# Elements of one dimension; beyond it a bound says nothing about memory.
_MOST = 1 << 31


# Sizes of arguments that are open while a graph is traced: their arrays are padded, too.
_NOTHING = Choices({})
_OPENED: ContextVar[Choices] = ContextVar("opened", default=_NOTHING)


@contextmanager
def opened(choices: Choices) -> Iterator[None]:
    """Take sizes of arguments for open: one program for all that are at most as large as a bucket."""
    token = _OPENED.set(choices)
    try:
        yield
    finally:
        _OPENED.reset(token)


def known(size: Any) -> Any:
    """A size as a number, if it is the same in all calls of the program."""
    if not isinstance(size, torch.SymInt):
        return size
    number = _OPENED.get().constant(size.node.expr)
    return size if number is None else number


def are_equal(first: Any, second: Any) -> bool:
    """Whether two sizes, or expressions of such, are the same in all calls of the program."""
    return _OPENED.get().are_equal(expression_of(first), expression_of(second))


def expression_of(size: Any) -> Any:
    """What PyTorch says of a size."""
    size = known(size)
    if isinstance(size, torch.SymInt):
        return size.node.expr
    return sympy.Integer(size) if isinstance(size, int) else size


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
        span = _OPENED.get().span(expression)
        if span is not None and not expression.is_Symbol:
            return max(span[1], 0)
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
        size = known(size)
        return evaluated(size.node.expr, self._real) if isinstance(size, torch.SymInt) else size

    def padded(self, value: Any) -> Any:
        """What PyTorch says of a tensor, with the sizes of its array; other values stay."""

        def convert(leaf: Any) -> Any:
            if not isinstance(leaf, torch.Tensor) or not (open_dims(leaf) or any(map(_is_found, leaf.shape))):
                return leaf
            sizes = [self.extent(size) for size in leaf.shape]
            strides, offset = [*map(known, leaf.stride())], known(leaf.storage_offset())
            if open_dims(leaf) or not all(isinstance(each, int) for each in (*strides, offset)):
                return torch.empty(sizes, dtype=leaf.dtype, device="meta")
            return torch.empty(0, dtype=leaf.dtype, device="meta").as_strided(sizes, strides, offset)

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
    if free_unbacked_symbols(size):
        return True
    among = _OPENED.get()
    return among.has_one_of(size.node.expr) and among.constant(size.node.expr) is None


def _is_found(size: Any) -> bool:
    """Whether a size was a symbol until its number was found, as of an array that is added to a known one."""
    return isinstance(size, torch.SymInt) and (not size.node.expr.free_symbols or isinstance(known(size), int))


def fit(array: Any, extents: Sequence[int]) -> Any:
    """An array with more padding, or less."""
    if tuple(array.shape) == tuple(extents) or array.ndim != len(extents):
        return array
    array = array[tuple(slice(0, extent) for extent in extents)]
    missing = [(0, extent - size, 0) for extent, size in zip(extents, array.shape, strict=True)]
    return jax.lax.pad(array, np.zeros((), array.dtype), missing)
