"""Reductions: over dimensions, over windows, and back from windows to their elements.

Source: XLA "Reduce", "ReduceWindow", "SelectAndScatter"; StableHLO specification "reduce", "reduce_window",
"select_and_scatter".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hloforge.dialect.computations import Computation, check_closed, name_of, trace_region
from hloforge.dialect.constants import constant, scalar_of
from hloforge.dialect.element_types import ElementType
from hloforge.dialect.emission import create, emit, i64_matrix, i64s, mlir_type_of, one_or_tuple, results_of
from hloforge.dialect.errors import OperationError
from hloforge.dialect.op import ARRAY, op
from hloforge.dialect.program import Program
from hloforge.dialect.rules import compatible_sizes, dimensions as dimensions_of, like, same_dimensions, scalar
from hloforge.dialect.shapes import Shape
from hloforge.dialect.values import Operand, Value
from hloforge.dialect.windows import Padding, Window, windows


@op("Reduce", emits="stablehlo.reduce", on=ARRAY)
def reduce(
    operands: Value | Sequence[Value],
    init_values: Operand | Sequence[Operand],
    computation: Computation,
    dimensions: Sequence[int],
) -> Value:
    """Combine all elements along some dimensions with a computation, starting from initial values.

    Args:
        operands: one array, or several of equal sizes, which are reduced together.
        init_values: for each operand a scalar, the identity of the computation; numbers take the operand's element
            type.
        computation: from the accumulators of all operands and an element of each, ``(a0, a1, …, x0, x1, …)``, all
            scalars, to the new accumulators. It must be associative, as the order of its applications is not fixed.
            Accumulators have the initial values' element types (a Program's, those of its parameters), and may have
            another precision than floats in the operand, which are converted to theirs.
        dimensions: those that vanish, in any order; negative numbers count from the last.

    Returns:
        The operands without the dimensions, in the accumulators' element types; a tuple if there are several.

    Raises:
        OperationError: operands and initial values are not as many, sizes differ, a dimension is out of range or named
            twice, an initial value is no scalar, element types differ in more than a float's precision, or the
            computation takes or returns anything else, or uses values from around it.

    Example:
        >>> x = constant([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], "f32")
        >>> reduce(x, 0.0, add, [0])
        [5. 7. 9.]
        >>> def larger(value, place, other, other_place):
        ...     better = other > value
        ...     return select(better, other, value), select(better, other_place, place)
        >>> reduce([x, iota("s32", [2, 3], 1)], [-np.inf, 0], larger, [1])
        [3. 6.]
        [2 2]
    """
    arrays, starts = _operands(operands, init_values, computation)
    gone = dimensions_of(dimensions, arrays[0].rank)
    kept = [d for d in range(arrays[0].rank) if d not in gone]
    shapes = [
        Shape(array.element_type, tuple(array.dims[d] for d in kept), tuple(array.shape.dynamic[d] for d in kept))
        for array in arrays
    ]
    return _reducer("stablehlo.reduce", arrays, starts, shapes, computation, dimensions=i64s(gone))


@op("ReduceWindow", emits="stablehlo.reduce_window", on=ARRAY)
def reduce_window(
    operands: Value | Sequence[Value],
    init_values: Operand | Sequence[Operand],
    computation: Computation,
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] = (),
    padding: Padding = "VALID",
    base_dilations: Sequence[int] = (),
    window_dilations: Sequence[int] = (),
) -> Value:
    """Combine the elements in each position of a window that moves over arrays: pooling, cumulative sums.

    Args:
        operands, init_values, computation: as of ``reduce``; padding and holes are the initial value too.
        window_dimensions: the window's size in each dimension, in elements.
        window_strides: from one position to the next, by default 1.
        padding: "VALID" for none, "SAME" for as much as gives one position every stride, or (low, high) for each
            dimension; negative padding cuts elements off.
        base_dilations: ``d`` puts ``d - 1`` holes between neighbours of the operands, by default 1.
        window_dilations: the same within the window.

    Returns:
        Arrays of as many elements a dimension as the window has positions; a tuple if there are several operands.

    Raises:
        OperationError: as of ``reduce``, or a list does not have one entry for each dimension, or a size, stride or
            dilation is below 1.

    Example:
        >>> reduce_window(constant([10000.0, 1000.0, 100.0, 10.0, 1.0], "f32"), np.inf, min, [3], [2], "SAME")
        [1000.   10.    1.]
    """
    arrays, starts = _operands(operands, init_values, computation)
    base = arrays[0].dims
    moved = windows(base, window_dimensions, window_strides, padding, base_dilations, window_dilations)
    places = tuple(window.output_size(size) for window, size in zip(moved, base, strict=True))
    shapes = [Shape(array.element_type, places, array.shape.dynamic) for array in arrays]
    return _reducer(
        "stablehlo.reduce_window",
        arrays,
        starts,
        shapes,
        computation,
        **_window_attributes(moved),
        base_dilations=i64s(window.base_dilation for window in moved),
        window_dilations=i64s(window.window_dilation for window in moved),
    )


@op("SelectAndScatter", emits="stablehlo.select_and_scatter", on=ARRAY)
def select_and_scatter(
    operand: Value,
    select: Computation,
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: Padding,
    source: Value,
    init_value: Operand,
    scatter: Computation,
) -> Value:
    """Choose one element in each position of a window, and combine a value into its place: the gradient of pooling.

    Args:
        operand: the array over which the window moves.
        select: from two elements, of which the first comes first in row-major order, to a scalar pred: whether the
            first is chosen. It must be transitive. Padding is never chosen.
        window_dimensions: the window's size in each dimension, in elements.
        window_strides: from one position to the next; empty for 1.
        padding: "SAME", "VALID" or (low, high) for each dimension.
        source: for each position of the window the value that goes to the chosen element.
        init_value: a scalar: what every element of the result starts from.
        scatter: from the result's element and a value of ``source``, both scalars, to the new element; associative.

    Returns:
        An array of the operand's shape. Floats of another precision in ``source`` and ``init_value`` are converted to
        its element type.

    Raises:
        OperationError: ``source`` does not have one element for each position of the window, ``init_value`` is no
            scalar, element types differ in more than a float's precision, a computation takes or returns anything else
            or uses values from around it, or as of ``reduce_window``.

    Example:
        >>> x = constant([1.0, 5.0, 2.0, 9.0, 4.0, 3.0], "f32")
        >>> select_and_scatter(x, ge, [2], [2], "VALID", constant([10.0, 20.0, 30.0], "f32"), 0.0, add)
        [ 0. 10.  0. 20. 30.  0.]
    """
    moved = windows(operand.dims, window_dimensions, window_strides, padding)
    places = tuple(window.output_size(size) for window, size in zip(moved, operand.dims, strict=True))
    element = operand.element_type
    if not compatible_sizes(source.shape, Shape(element, places, operand.shape.dynamic)):
        raise OperationError(f"source is {source.shape}, but the window has the positions {list(places)}")
    _check_precision(source, "source", element)
    start = _initial(init_value, element)
    inputs = [operand, _in(source, element), start]
    scattering = create("stablehlo.select_and_scatter", inputs, [operand.type], 2, **_window_attributes(moved))
    pair = [Shape.array(element)] * 2
    trace_region(scattering, 0, pair, select, [Shape.array("pred")])
    trace_region(scattering, 1, pair, scatter, pair[:1])
    check_closed(scattering, "a computation")
    return Value(scattering.results[0], operand.shape)


def _window_attributes(moved: Sequence[Window]) -> dict[str, Any]:
    return {
        "window_dimensions": i64s(window.size for window in moved),
        "window_strides": i64s(window.stride for window in moved),
        "padding": i64_matrix([(window.low, window.high) for window in moved], 2),
    }


def _reducer(
    name: str,
    arrays: Sequence[Value],
    starts: Sequence[Value],
    shapes: Sequence[Shape],
    computation: Computation,
    **attributes: Any,
) -> Value:
    """The operation with its region, from accumulators and elements of one type each to accumulators."""
    reducing = create(name, [*arrays, *starts], map(mlir_type_of, shapes), 1, **attributes)
    scalars = [Shape.array(start.element_type) for start in starts]
    trace_region(reducing, 0, [*scalars, *scalars], computation, scalars)
    check_closed(reducing, f"its computation {name_of(computation)}")
    return one_or_tuple(results_of(reducing, shapes))


def _operands(
    operands: Value | Sequence[Value], init_values: Operand | Sequence[Operand], computation: Computation
) -> tuple[list[Value], list[Value]]:
    """Arrays and initial values, in the accumulators' element types."""
    arrays = [operands] if isinstance(operands, Value) else list(operands)
    starts: list[Any] = list(init_values) if isinstance(init_values, list | tuple) else [init_values]
    if not arrays or len(arrays) != len(starts):
        raise OperationError(f"{len(arrays)} operands with {len(starts)} initial values: one of each is needed")
    same_dimensions(*arrays)
    accumulators = _accumulators(arrays, starts, computation)
    for array, accumulator in zip(arrays, accumulators, strict=True):
        _check_precision(array, "an operand", accumulator)
    initial = [_initial(start, accumulator) for start, accumulator in zip(starts, accumulators, strict=True)]
    return [_in(array, accumulator) for array, accumulator in zip(arrays, accumulators, strict=True)], initial


def _initial(start: Operand, accumulator: ElementType) -> Value:
    if not isinstance(start, Value):
        return constant(scalar_of(start, accumulator), accumulator)
    scalar(start, "an initial value")
    _check_precision(start, "an initial value", accumulator)
    return _in(start, accumulator)


def _accumulators(arrays: Sequence[Value], starts: Sequence[Any], computation: Computation) -> list[ElementType]:
    """The initial values' element types, numbers having the operand's; of a Program, those that it declares."""
    chosen = [start if isinstance(start, Value) else array for array, start in zip(arrays, starts, strict=True)]
    elements = [value.element_type for value in chosen]
    if not isinstance(computation, Program):
        return elements
    declared = [parameter.shape for parameter in computation.signature.parameters]
    if len(declared) != 2 * len(arrays):
        raise OperationError(
            f"its computation {computation.name} must take {2 * len(arrays)} parameters, accumulators and elements, "
            f"not {len(declared)}"
        )
    # A parameter that is no scalar is found when the program is applied.
    return [shape.element or element for shape, element in zip(declared, elements, strict=False)]


def _check_precision(value: Value, name: str, accumulator: ElementType) -> None:
    """XLA's rule: element types are equal, or both floats."""
    if value.element_type != accumulator and not (value.element_type.is_float and accumulator.is_float):
        raise OperationError(
            f"{name} of shape {value.shape} meets an accumulator of {accumulator}; they may differ in the precision of "
            "floats only",
            hint="convert one with convert_element_type",
        )


def _in(value: Value, element: ElementType) -> Value:
    return value if value.element_type == element else emit("stablehlo.convert", [value], like(value.shape, element))
