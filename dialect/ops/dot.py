"""Sums of products along dimensions of two arrays.

Source: XLA "Dot", "DotGeneral"; StableHLO specification "dot_general".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hloforge.dialect.element_types import ElementType
from hloforge.dialect.emission import emit
from hloforge.dialect.errors import OperationError
from hloforge.dialect.mlir import stablehlo
from hloforge.dialect.op import ARRAY, op
from hloforge.dialect.products import DotAlgorithm, Precision, precision_config, product_element
from hloforge.dialect.rules import dimensions
from hloforge.dialect.shapes import Shape
from hloforge.dialect.values import Value


@dataclass(frozen=True)
class DotDimensionNumbers:
    """Which dimensions of two arrays meet in a dot; negative numbers count from the last.

    Attributes:
        lhs_contracting_dimensions, rhs_contracting_dimensions: along which products are summed, in pairs.
        lhs_batch_dimensions, rhs_batch_dimensions: for each index of which there is a dot of its own, in pairs.
    """

    lhs_contracting_dimensions: Sequence[int]
    rhs_contracting_dimensions: Sequence[int]
    lhs_batch_dimensions: Sequence[int] = ()
    rhs_batch_dimensions: Sequence[int] = ()

    def of(self, lhs: Shape, rhs: Shape) -> DotDimensionNumbers:
        """The same with numbers from 0, for two shapes that they fit.

        Raises:
            OperationError: a number is out of range or given twice, the lists differ in length, or paired dimensions
                in size.
        """
        left = _side("lhs", lhs, self.lhs_contracting_dimensions, self.lhs_batch_dimensions)
        right = _side("rhs", rhs, self.rhs_contracting_dimensions, self.rhs_batch_dimensions)
        for name, mine, theirs in zip(("contracting", "batch"), left, right, strict=True):
            _check_pairs(name, lhs, rhs, mine, theirs)
        return DotDimensionNumbers(left[0], right[0], left[1], right[1])

    def result(self, lhs: Shape, rhs: Shape, element: ElementType) -> Shape:
        """The batch dimensions, then the others of the left operand, then the others of the right one."""
        pairs = zip(self.lhs_batch_dimensions, self.rhs_batch_dimensions, strict=True)
        parts = [
            # A pair has the left one's size, unless only the right one's is known.
            *(_taken(lhs, [d], element) if lhs.dimensions[d] >= 0 else _taken(rhs, [e], element) for d, e in pairs),
            _taken(lhs, _free(lhs, self.lhs_contracting_dimensions, self.lhs_batch_dimensions), element),
            _taken(rhs, _free(rhs, self.rhs_contracting_dimensions, self.rhs_batch_dimensions), element),
        ]
        sizes = tuple(size for part in parts for size in part.dimensions)
        return Shape(element, sizes, tuple(flag for part in parts for flag in part.dynamic))

    def attribute(self) -> Any:
        """``#stablehlo.dot<…>``."""
        return stablehlo.DotDimensionNumbers.get(
            lhs_batching_dimensions=list(self.lhs_batch_dimensions),
            rhs_batching_dimensions=list(self.rhs_batch_dimensions),
            lhs_contracting_dimensions=list(self.lhs_contracting_dimensions),
            rhs_contracting_dimensions=list(self.rhs_contracting_dimensions),
        )


def _side(name: str, shape: Shape, contracting: Sequence[int], batch: Sequence[int]) -> tuple[list[int], list[int]]:
    found = dimensions([*contracting, *batch], shape.rank, f"{name} contracting and batch dimensions")
    return found[: len(contracting)], found[len(contracting) :]


def _check_pairs(name: str, lhs: Shape, rhs: Shape, mine: Sequence[int], theirs: Sequence[int]) -> None:
    if len(mine) != len(theirs):
        raise OperationError(f"there must be as many {name} dimensions of lhs as of rhs, not {mine} and {theirs}")
    for left, right in zip(mine, theirs, strict=True):
        one, other = lhs.dimensions[left], rhs.dimensions[right]
        if one != other and min(one, other) >= 0:
            raise OperationError(
                f"{name} dimension {left} of {lhs} has size {one}, and dimension {right} of {rhs}, its pair, {other}"
            )


def _taken(shape: Shape, numbers: Sequence[int], element: ElementType) -> Shape:
    return Shape(element, tuple(shape.dimensions[d] for d in numbers), tuple(shape.dynamic[d] for d in numbers))


def _free(shape: Shape, contracting: Sequence[int], batch: Sequence[int]) -> list[int]:
    return [d for d in range(shape.rank) if d not in contracting and d not in batch]


@op("Dot", emits="stablehlo.dot_general", hlo="dot", on=ARRAY)
def dot(
    lhs: Value,
    rhs: Value,
    precision: Precision = "DEFAULT",
    preferred_element_type: Any = None,
    algorithm: DotAlgorithm | str | None = None,
) -> Value:
    """Sums of products along the second dimension of ``lhs`` (the only one of a vector) and the first of ``rhs``.

    So a vector by a vector is their inner product, a matrix by a vector, and a matrix by a matrix, their product.

    Args:
        lhs: an array of rank 1 or more.
        rhs: an array of rank 1 or more, whose first dimension has the size of the one that it meets.
        precision, preferred_element_type, algorithm: as of ``dot_general``.

    Returns:
        An array of the other dimensions, those of ``lhs`` first.

    Raises:
        OperationError: an operand is a scalar, the sizes differ, or as of ``dot_general``.

    Example:
        >>> dot(constant([[1.0, 2.0], [3.0, 4.0]], "f32"), constant([1.0, 10.0], "f32"))
        [21. 43.]
    """
    if not lhs.rank or not rhs.rank:
        raise OperationError(f"operands must not be scalars: {lhs.shape}, {rhs.shape}", hint="multiply with mul")
    numbers = DotDimensionNumbers([0 if lhs.rank == 1 else 1], [0])
    return dot_general(lhs, rhs, numbers, precision, preferred_element_type, algorithm)


@op("DotGeneral", emits="stablehlo.dot_general", hlo="dot", on=ARRAY)
def dot_general(
    lhs: Value,
    rhs: Value,
    dimension_numbers: DotDimensionNumbers,
    precision: Precision = "DEFAULT",
    preferred_element_type: Any = None,
    algorithm: DotAlgorithm | str | None = None,
) -> Value:
    """Sums of products along any dimensions, for each index of any others.

    Args:
        lhs, rhs: arrays; their element types may differ.
        dimension_numbers: which dimensions are contracted, and which are a batch.
        precision: how exactly to compute where that costs time: DEFAULT, HIGH or HIGHEST, one or one for each operand.
        preferred_element_type: of the result, and of the sums; default: that of the operands, or of the one of higher
            precision.
        algorithm: the least precision of operands and sums instead, or the name of one, such as ``bf16_bf16_f32``.

    Returns:
        An array of the batch dimensions, then the other dimensions of ``lhs``, then those of ``rhs``.

    Raises:
        OperationError: the dimension numbers do not fit the shapes (``DotDimensionNumbers.of``), the preferred type is
            narrower than integers, or there is no such precision or algorithm.

    Example:
        >>> x = constant([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], "f32")
        >>> y = constant([[1.0, 1.0, 1.0], [2.0, 2.0, 2.0]], "f32")
        >>> dot_general(x, y, DotDimensionNumbers([1], [1]))
        [[ 6. 12.]
         [15. 30.]]
    """
    numbers = dimension_numbers.of(lhs.shape, rhs.shape)
    element = product_element(lhs.element_type, rhs.element_type, preferred_element_type)
    chosen = DotAlgorithm.named(algorithm) if isinstance(algorithm, str) else algorithm
    config = precision_config(precision)
    if chosen is not None and config is not None:
        raise OperationError("an algorithm determines the precision", hint="give either algorithm or precision")
    return emit(
        "stablehlo.dot_general",
        [lhs, rhs],
        numbers.result(lhs.shape, rhs.shape, element),
        dot_dimension_numbers=numbers.attribute(),
        precision_config=config,
        algorithm=None if chosen is None else chosen.attribute(),
    )
