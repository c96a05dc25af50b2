"""Epilogues of products: biases, activations, residuals and normalization scales, applied where sums are finished.

Before::

    %p = stablehlo.dot_general %x, %w
    %y = stablehlo.add %p, (stablehlo.broadcast_in_dim %bias, dims = [1])
    %z = stablehlo.maximum %y, 0.0

The code of a product computes ``%z`` where it has finished some sums, while these are in the nearest cache. A dispatch
of IREE's would read and write the whole array again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cmp_to_key
from typing import Any, ClassVar, Self

from hloforge.dialect.mlir import AnyOp, ir
from hloforge.dialect.operations import is_made_by
from hloforge.dialect.values import Value
from hloforge.pipelines.kernels.lang import loops as code
from hloforge.pipelines.kernels.lang.elementwise import is_elementwise
from hloforge.pipelines.kernels.lang.row_expressions import Spread
from hloforge.pipelines.kernels.lang.vector_expressions import READ, Expression, is_stored

# Operations that are looked at after a product; exact erf takes about 60 with its constants.
_MOST_OPERATIONS = 128
# Computed again for each use, however many there are.
_FREE = frozenset(f"stablehlo.{name}" for name in ("constant", "broadcast_in_dim", "reshape"))
# Arrays of numbers that IREE computes where they are read, and would store for us.
_UNSTORED = frozenset(f"stablehlo.{name}" for name in ("broadcast_in_dim", "iota", "constant"))


@dataclass
class _Following(Expression):
    """An expression in which a product is known.

    Attributes:
        made: the operations that read the product, or what is made of it.
    """

    most: ClassVar[int] = _MOST_OPERATIONS
    made: frozenset[Any] = frozenset()

    @classmethod
    def behind(cls, product: Any, made: Sequence[Any], dims: tuple[int, int, int]) -> Self | None:
        """The expression of what the last operation makes; None if it needs arrays that are stored for it alone."""
        found = cls(made[-1].results[0], dims, made=frozenset(made))
        found._add(found.root)
        if product not in found.arrays:
            return None
        found.arrays.remove(product)
        is_read = all(_is_at_hand(array) for array in found.arrays)
        return found if is_read and Value(found.root).element_type == Value(product).element_type else None

    def _is_computed(self, op: Any) -> bool:
        if op in self.made:
            return True
        if op.name not in _FREE and len(list(op.results[0].uses)) > 1:
            return False
        return super()._is_computed(op) or is_elementwise(op)


def _is_at_hand(array: Any) -> bool:
    """Whether an array lies in memory anyway, in numbers that vectors are read of."""
    if is_made_by(array, *_UNSTORED):
        return False
    return is_stored(array) and Value(array).element_type.name in READ


@dataclass(frozen=True)
class Epilogue:
    """What is made of a product.

    Attributes:
        product: an operation.
        made: the operations after it, in order; nobody reads but what the last one makes.
        expression: what that is computed from; None if nothing follows.
    """

    product: Any
    made: Sequence[Any] = ()
    expression: Expression | None = None

    @classmethod
    def of(cls, product: Any, dims: tuple[int, int, int]) -> Epilogue:
        """What is made of a product, of the most operations that can be computed beside it.

        Args:
            dims: batch, rows and columns of the product, whose elements lie in this order.
        """
        for made in reversed(list(_closed(product))):
            expression = _Following.behind(product.results[0], made, dims)
            if expression is not None:
                return cls(product, made, expression)
        return cls(product)

    @property
    def root(self) -> Any:
        """The operation whose result represents all of them."""
        return self.made[-1] if self.made else self.product

    @property
    def operands(self) -> list[Any]:
        """What a dispatch is given."""
        return [] if self.expression is None else self.expression.operands

    def parts(self, memory: Sequence[Any], start: Sequence[Any], sizes: Sequence[int]) -> list[Any]:
        """The contents of the operands at a part of the product, ``[1, rows, columns]``.

        Args:
            memory: of a dispatch's operands.
            start, sizes: along batch, rows and columns.
        """
        if self.expression is None:
            return []
        axes = {Spread.NUMBERS: 1, Spread.VECTOR: 2}
        read = [(array, start, sizes) for array in self.expression.arrays]
        for kind, values in self.expression.small.items():
            axis = axes.get(kind)
            read += [(value, [0], [1]) if axis is None else (value, [start[axis]], [sizes[axis]]) for value in values]
        return [
            code.load(contents, ir.RankedTensorType.get(size, value.type.element_type), at)
            for contents, (value, at, size) in zip(memory, read, strict=True)
        ]

    def vector(self, sums: Any, parts: Sequence[Any], position: Sequence[Any]) -> Any:
        """What is made of a vector of the product.

        Args:
            parts: of the operands.
            position: an ``index`` along each dimension of the part.
        """
        if self.expression is None:
            return sums
        length = int(sums.type.shape[0])
        return self.expression.evaluate(parts, position, length, {self.product.results[0]: sums})

    def text(self) -> str:
        """What is computed: equal for those that equal code computes."""
        return "" if self.expression is None else self.expression.text({self.product.results[0]: "product"})

    def erase(self) -> None:
        """Erase what nobody reads any more, once the root is replaced."""
        for op in reversed((self.product, *self.made)[:-1]):
            op.erase()


def _closed(product: Any) -> Iterator[list[Any]]:
    """The longer and longer lists of what is made of a product, of whose operations only the last is read elsewhere."""
    made: list[Any] = []
    waiting = _users(product)
    while waiting and len(made) < _MOST_OPERATIONS:
        if any(user.block != product.block for user in waiting):
            return
        first = min(waiting, key=cmp_to_key(_order))
        if not _follows(first, product):
            return
        waiting.remove(first)
        made.append(first)
        if not waiting and any(op.name != "stablehlo.reshape" for op in made):
            yield list(made)
        waiting |= _users(first)


def _order(one: Any, other: Any) -> int:
    return -1 if one.is_before_in_block(other) else 1


def _users(op: AnyOp) -> set[Any]:
    return {use.owner.operation for use in op.results[0].uses}


def _follows(op: AnyOp, product: Any) -> bool:
    """Whether an operation makes as many numbers as the product has, each of those at its position."""
    if op.name != "stablehlo.reshape" and not is_elementwise(op):
        return False
    return Value(op.results[0]).shape.element_count == Value(product.results[0]).shape.element_count
