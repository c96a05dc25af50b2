"""A scalar computation applied to every element.

Source: XLA "Map"; StableHLO specification "map".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hloforge.dialect.computations import Computation, apply, check_closed, name_of, trace_region
from hloforge.dialect.constants import constant, spread
from hloforge.dialect.emission import create, i64s, mlir_type_of
from hloforge.dialect.errors import OperationError
from hloforge.dialect.op import ARRAY, op
from hloforge.dialect.rules import same_dimensions
from hloforge.dialect.shapes import Shape
from hloforge.dialect.symbols import discard
from hloforge.dialect.values import Value


@op("Map", emits="stablehlo.map", on=ARRAY)
def map(
    operands: Value | Sequence[Value],
    computation: Computation,
    dimensions: Sequence[int] | None = None,
    static_operands: Sequence[Value | np.ndarray[Any, Any] | np.generic] = (),
) -> Value:
    """Apply a computation of scalars to the elements of arrays, position by position.

    Args:
        operands: one array, or several of equal sizes and any element types; scalars among them go to every position.
        computation: from one element of each operand, and the static operands, to a scalar of any element type.
        dimensions: those that are mapped; XLA maps all, in order, which is the default.
        static_operands: what the computation receives at every position alike, as the first edition of XLA's text has
            them: scalar Values, or numpy arrays of any shape.

    Returns:
        An array of the operands' sizes, of the element type that the computation returns.

    Raises:
        OperationError: there is no operand, sizes differ, ``dimensions`` are not all in order, the computation takes
            other parameters, returns no scalar or uses values from around it, or a static Value is no scalar.

    Example:
        >>> map([constant([1.0, 2.0], "f32"), constant([3.0, 5.0], "f32")], lambda x, y: x * x + y)
        [4. 9.]
    """
    arrays = [operands] if isinstance(operands, Value) else list(operands)
    if not arrays:
        raise OperationError("it needs at least one operand")
    ranked = [array for array in arrays if array.rank] or arrays
    same_dimensions(*ranked)
    widest = ranked[0]
    every = list(range(widest.rank))
    if dimensions is not None and list(dimensions) != every:
        raise OperationError(f"dimensions {list(dimensions)} must be all of {widest.shape} in order: {every}")
    _check_static(static_operands)
    varying = [value for value in static_operands if isinstance(value, Value)]
    inputs = [array if array.rank == widest.rank else spread(array, widest) for array in (*arrays, *varying)]
    # The element type of the result is known only from the computation: a draft without results holds it until then.
    draft = create("stablehlo.map", inputs, [], 1, dimensions=i64s(every))
    elements = [Shape.array(value.element_type) for value in inputs]
    traced = trace_region(draft, 0, elements, _with_static(computation, len(arrays), static_operands)).shape
    if not traced.is_array or traced.rank:
        discard(draft)
        raise OperationError(f"its computation {name_of(computation)} must return a scalar, not {traced}")
    check_closed(draft, f"its computation {name_of(computation)}")
    result = Shape(traced.element, widest.shape.dimensions, widest.shape.dynamic)
    final = create("stablehlo.map", inputs, [mlir_type_of(result)], 1, dimensions=i64s(every))
    draft.regions[0].blocks[0].append_to(final.regions[0])
    draft.erase()
    return Value(final.results[0], result)


def _check_static(static_operands: Sequence[Any]) -> None:
    for value in static_operands:
        if isinstance(value, Value) and value.shape.rank:
            raise OperationError(
                f"a static operand of shape {value.shape} is no scalar, and its elements are known at run time only",
                hint="give a numpy array, of which the computation has the constant",
            )


def _with_static(computation: Computation, count: int, static_operands: Sequence[Any]) -> Computation:
    """The computation with its static operands: constants are made inside, scalars come as further elements."""
    if not static_operands:
        return computation

    def mapped(*elements: Value) -> Value:
        varying = iter(elements[count:])
        static = [next(varying) if isinstance(value, Value) else constant(value) for value in static_operands]
        return apply(computation, [*elements[:count], *static])

    return mapped
