"""Operations before and after a sort in one dispatch: keys are computed on reading, and restored on writing.

::

    %keys = not (xor (bitcast %x), ...)            a number's bits in the order of integers
    %first = stablehlo.sort(%keys) [0:k]
    %top = bitcast (xor (not %first), ...)         the numbers of the first keys

Each is a dispatch of its own for IREE, which costs as much as a sort of a thousand elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any

from hloforge.dialect import ops
from hloforge.dialect.mlir import SSAValue, ir
from hloforge.dialect.operations import block_of, defining_op
from hloforge.dialect.values import Value
from hloforge.pipelines.framework.builders import only_element, read_vector
from hloforge.pipelines.kernels.lang import loops as code
from hloforge.pipelines.kernels.lang.elementwise import constant_number, has_code, on_numbers
from hloforge.pipelines.kernels.lang.vector_expressions import VECTOR_TYPES, Expression


@dataclass(frozen=True)
class Source:
    """Rows ``[rows, n]`` that a dispatch reads.

    Attributes:
        array: what lies in memory, ``[rows, n]``.
        expression: how a row is computed from it; None if it is the row.
    """

    array: Any
    expression: Expression | None

    @classmethod
    def of(cls, array: Any) -> Source:
        """The source of an array ``[rows, n]``: another one of its sizes, if it is computed from that alone."""
        rows, size = Value(array).dims
        found = Expression.of(Value(array), (1, rows, size))
        if found is None or any(found.small.values()) or len(found.arrays) > 1 or found.arrays == [array]:
            return cls(array, None)
        return cls(ops.reshape(Value(found.arrays[0]), [rows, size]).ir, found)

    def vector(self, part: SSAValue, row: SSAValue, at: SSAValue, length: int) -> Any:
        """Some elements of a row from a part of the array."""
        if self.expression is None:
            return read_vector(part, [row, at], length)
        return self.expression.evaluate([part], [row, at], length)

    def number(self, part: SSAValue, row: SSAValue, at: SSAValue) -> Any:
        """An element of a row from a part of the array."""
        if self.expression is None:
            return code.read(part, row, at)
        return only_element(self.vector(part, row, at, 1))


@dataclass(frozen=True)
class Ending:
    """What is made of the first elements of a sort's result, element by element.

    Attributes:
        first: the elements, the result or its first part, in StableHLO.
        made: the operations, each after what it needs; nobody reads anything but what the last one makes.
    """

    first: Any
    made: Sequence[Any]

    @classmethod
    def of(cls, result: Any, count: int) -> Ending | None:
        """What is made of the first ``count`` elements of the rows of a result; None where others are read too."""
        users = [use.owner.operation for use in result.uses]
        first = result
        if len(users) == 1 and users[0].name == "stablehlo.slice":
            first = users[0].results[0]
        if Value(first).dims[-1] != count:
            return None
        made: dict[Any, None] = {}
        known = {first}
        readers = sorted(_readers(first))
        while readers and _is_made_of(op := heappop(readers).op, known):
            if op not in made:
                made[op] = None
                known.add(op.results[0])
                for reader in _readers(op.results[0]):
                    heappush(readers, reader)
        inner = [first, *(op.results[0] for op in made)][: len(made)]
        is_closed = all(use.owner.operation in made for value in inner for use in value.uses)
        return cls(first, list(made)) if made and is_closed and _is_plain(next(reversed(made)).results[0]) else None

    @property
    def element(self) -> Any:
        """The type of what is made."""
        return self.made[-1].results[0].type.element_type

    def number(self, number: SSAValue) -> Any:
        """What is made of an element."""
        known = {self.first: number}

        def operand(value: SSAValue) -> Any:
            return known[value] if value in known else constant_number(value.owner)

        for op in self.made:
            known[op.results[0]] = on_numbers(op, [operand(value) for value in op.operands])
        return known[self.made[-1].results[0]]

    def replaced(self, array: SSAValue) -> SSAValue:
        """Put an array in the place of what is made; returns it."""
        self.made[-1].results[0].replace_all_uses_with(array)
        for op in reversed(self.made):
            op.erase()
        if self.first.owner.name == "stablehlo.slice":
            self.first.owner.erase()
        return array


@dataclass(frozen=True)
class _Reader:
    """An operation, ordered by its position in its block."""

    op: Any

    def __lt__(self, other: _Reader) -> bool:
        return bool(self.op.is_before_in_block(other.op))


def _readers(value: Any) -> list[_Reader]:
    """The operations of a value's block that read it."""
    users = [use.owner.operation for use in value.uses]
    return [_Reader(user) for user in users if user.block == block_of(value)]


def _is_made_of(op: ir.Operation, known: set[SSAValue]) -> bool:
    """Whether an operation makes elements of known ones, at their places, and of constants."""
    if not has_code(op) or Value(op.results[0]).dims != Value(next(iter(known))).dims:
        return False
    return all(operand in known or _is_constant(operand) for operand in op.operands)


def _is_constant(value: SSAValue) -> bool:
    constant = defining_op(value, "stablehlo.constant")
    return constant is not None and has_code(constant)


def _is_plain(value: SSAValue) -> bool:
    return Value(value).element_type.name in VECTOR_TYPES
