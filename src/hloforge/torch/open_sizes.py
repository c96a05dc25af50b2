"""Sizes that a graph of Dynamo's leaves open, and the buckets in which one program computes for many of them.

Dynamo names such a size by a symbol (``s0``), and says each dimension as an expression of symbols (``2*s0 + 1``). The
program of a bucket takes arrays that are as long as the bucket, and the real sizes as numbers, so that padding changes
no result (``bounded``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import sympy
import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensorMode

from hloforge.dialect.errors import UnsupportedError
from hloforge.torch.bounded.expressions import Choices, equalities
from hloforge.torch.bounded.sizes import Sizes
from hloforge.torch.memory import Order, dense_order, inverse, strides_of

# A bound beyond it says nothing.
_MOST = 1 << 31
# Sizes up to it have buckets that end at powers of two.
_FEW = 64


# What the guards of an environment said before PyTorch froze it.
_CHECKED: WeakKeyDictionary[Any, list[tuple[Any, Any]]] = WeakKeyDictionary()


def _checked(environment: Any) -> list[tuple[Any, Any]]:
    """What PyTorch has seen to be equal, and checks at each call.

    A frozen environment goes on to write down what it is asked, as of the sizes of the first call, and checks nothing
    of it.
    """
    if not environment.frozen:
        _CHECKED[environment] = equalities(environment)
    return _CHECKED.get(environment, [])


@dataclass(frozen=True)
class _Source:
    """What tells a size: a dimension of an argument, or the argument itself, is ``factor * n + rest``."""

    argument: int
    dimension: int | None
    factor: int = 1
    rest: int = 0

    def number(self, arguments: Sequence[Any]) -> int:
        given = arguments[self.argument]
        found = given if self.dimension is None else given.shape[self.dimension]
        return (int(found) - self.rest) // self.factor


class OpenSizes:
    """The open sizes of a graph's inputs.

    Attributes:
        values: what PyTorch says of the inputs.
        symbols: of the open sizes.
        least: what each size is at least.
        equal: expressions of them that are equal wherever PyTorch calls the graph.

    Raises:
        UnsupportedError: no input tells one of them.
    """

    def __init__(self, graph: fx.GraphModule) -> None:
        self.values = tuple(node.meta.get("val") for node in graph.graph.nodes if node.op == "placeholder")
        found: dict[Any, _Source] = {}
        nodes: dict[Any, Any] = {}
        for number, dimension, size in self._sizes():
            nodes.update(dict.fromkeys(size.node.expr.free_symbols, size.node))
            source = _source(size.node.expr, number, dimension)
            if source is not None:
                found.setdefault(next(iter(size.node.expr.free_symbols)), source)
        missing = nodes.keys() - found.keys()
        if missing:
            raise UnsupportedError(f"no argument tells the size {min(map(str, missing))}")
        self.symbols = tuple(found)
        self._sources = tuple(found.values())
        ranges = [nodes[symbol].shape_env.var_to_range.get(symbol) for symbol in found]
        self._most = [_MOST if known is None or known.upper >= _MOST else int(known.upper) for known in ranges]
        self.equal = _checked(next(iter(nodes.values())).shape_env) if nodes else []
        # Dynamo compiles other graphs for sizes that are less.
        self.least = tuple(1 if known is None or known.lower < 1 else int(known.lower) for known in ranges)

    def _sizes(self) -> Iterator[tuple[int, int | None, torch.SymInt]]:
        for number, value in enumerate(self.values):
            if isinstance(value, torch.SymInt) and not is_nested(value):
                yield number, None, value
            for dimension, size in enumerate(value.shape if isinstance(value, torch.Tensor) else ()):
                if isinstance(size, torch.SymInt):
                    yield number, dimension, size

    def numbers(self, arguments: Sequence[Any]) -> tuple[int, ...]:
        """The sizes of a call."""
        return tuple([source.number(arguments) for source in self._sources])

    def bucket(self, numbers: Sequence[int], ends: bool | Sequence[int]) -> Bucket | None:
        """The smallest bucket that holds some sizes; none holds 0.

        Args:
            ends: those of the buckets, ascending; by default those of ``end_of``, and the bound of a size.
        """
        if not numbers or any(number < least for number, least in zip(numbers, self.least, strict=True)):
            return None
        extents = []
        for number, most in zip(numbers, self._most, strict=True):
            if isinstance(ends, bool):
                extent = end_of(number)
            else:
                extent = next((end for end in ends if end >= number), 0)
            if not extent:
                return None
            extents.append(min(extent, most))
        return Bucket(self, tuple(extents))

    def at(self, size: Any, numbers: Sequence[int]) -> int | None:
        """What an expression of the symbols is for some sizes; None if it has others."""
        if not isinstance(size, torch.SymInt):
            return int(size)
        known = dict(zip(self.symbols, map(sympy.Integer, numbers), strict=True))
        found = size.node.expr.xreplace(known)
        return int(found) if found.is_number else None

    def placed(self, tensor: torch.Tensor, numbers: Sequence[int]) -> tuple[tuple[int | None, ...], Order]:
        """Sizes and order in memory of what PyTorch says of a tensor; None for sizes that depend on elements."""
        sizes = tuple(self.at(size, numbers) for size in tensor.shape)
        strides = [self.at(stride, numbers) for stride in tensor.stride()]
        if None in sizes or None in strides:
            return sizes, tuple(range(tensor.ndim))
        return sizes, dense_order(sizes, strides)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Bucket:
    """Sizes up to which one program computes."""

    sizes: OpenSizes
    extents: tuple[int, ...]

    @property
    def choices(self) -> Choices:
        """The sizes of its calls."""
        ranges = zip(self.sizes.least, self.extents, strict=True)
        return Choices(dict(zip(self.sizes.symbols, ranges, strict=True)), self.sizes.equal)

    def open_in(self, sizes: Sizes, reals: Sequence[Any]) -> None:
        """Say what the symbols are.

        Args:
            reals: the real sizes, scalar arrays of s64.
        """
        for known in zip(self.sizes.symbols, self.extents, reals, self.sizes.least, strict=True):
            sizes.open(*known)

    def likes(self, arguments: Sequence[Any]) -> list[Any]:
        """The inputs that the program takes, for a call with these arguments: FakeTensors where sizes are open.

        Raises:
            UnsupportedError: a size that may be infinite.
        """
        known = Sizes()
        self.open_in(known, [None] * len(self.extents))
        likes: list[Any] = []
        with FakeTensorMode():
            for value, given in zip(self.sizes.values, arguments, strict=True):
                if not isinstance(value, torch.Tensor) or all(isinstance(size, int) for size in value.shape):
                    likes.append(None if is_nested(value) else value if isinstance(value, torch.SymInt) else given)
                    continue
                order = dense_order(given.shape, given.stride())
                extents = [known.extent(value.shape[d]) for d in order]
                likes.append(torch.empty(extents, dtype=value.dtype).permute(inverse(order)))
        return likes


def is_nested(value: Any) -> bool:
    """Whether a number stands for the lengths of a nested tensor: it is only compared, and has no value."""
    return isinstance(value, torch.SymInt) and bool(value.node.is_nested_int())


def end_of(size: int) -> int:
    """The end of the bucket of a size: powers of two, and from 64 on three more between two of them.

    Programs of few elements take the time of a call; work on images grows with the square.
    """
    octave = (size - 1).bit_length()
    step = 1 << max(octave - 3, 0) if size > _FEW else 1 << octave
    return -(-size // step) * step


def padded(tensor: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """A tensor in a larger one. Zeros are valid indices, and no NaN slows arithmetic down."""
    if tensor.shape == like.shape:
        return tensor
    order = dense_order(like.shape, like.stride())
    whole = torch.zeros([like.shape[d] for d in order], dtype=tensor.dtype).permute(inverse(order))
    whole[tuple(slice(0, size) for size in tensor.shape)].copy_(tensor.detach())
    return whole


def cut(tensor: torch.Tensor, sizes: Sequence[int | None], order: Order) -> torch.Tensor:
    """The first elements of a tensor, dense in an order of the dimensions; all along those of no size."""
    found = tensor[tuple(slice(0, size) for size in sizes)]
    dense = found.permute(order)
    if not dense.is_contiguous():
        found = dense.contiguous().permute(inverse(order))
    elif 1 in found.shape:
        # PyTorch takes any stride of such a dimension for contiguous, and those of the padded array may be left.
        found = found.as_strided(found.shape, strides_of(found.shape, order), found.storage_offset())
    # No view: autograd refuses changes in place of views that its functions return.
    return found.data


def _source(expression: Any, argument: int, dimension: int | None) -> _Source | None:
    """How a size follows from an expression of one symbol, such as ``2*s0 + 1``; None for any other."""
    if len(expression.free_symbols) != 1:
        return None
    try:
        factors = sympy.Poly(expression, *expression.free_symbols).all_coeffs()
    except sympy.PolynomialError:
        return None
    if len(factors) != 2 or not all(each.is_Integer for each in factors) or factors[0] < 1:
        return None
    return _Source(argument, dimension, int(factors[0]), int(factors[1]))
