"""Sorting, and the largest elements.

Source: XLA "Sort", "TopK"; StableHLO specification "sort".
"""

from __future__ import annotations

from collections.abc import Sequence

from hloforge.dialect.computations import Computation, check_closed, name_of, trace_region
from hloforge.dialect.element_types import Kind, element_type
from hloforge.dialect.emission import create, emit_all, flag, i64, mlir_type_of, one_or_tuple, results_of, text
from hloforge.dialect.errors import OperationError
from hloforge.dialect.mlir import ir
from hloforge.dialect.op import ARRAY, COMPLEX, op
from hloforge.dialect.ops.comparison import compare
from hloforge.dialect.rules import dimension as dimension_of, same_dimensions
from hloforge.dialect.shapes import Shape
from hloforge.dialect.values import TupleValue, Value


@op("Sort", emits="stablehlo.sort", on=ARRAY)
def sort(
    operands: Value | Sequence[Value],
    comparator: Computation | None = None,
    dimension: int = -1,
    is_stable: bool = False,
) -> Value:
    """Order the elements along a dimension, each line of the array for itself.

    Several operands are sorted together, as if their elements at one position were one record.

    Args:
        operands: one array, or several of equal sizes and any element types.
        comparator: from the two elements of each operand, ``(a0, b0, a1, b1, …)``, all scalars, to a scalar pred:
            whether record ``a`` is before record ``b``. By default those of the first operand in ascending order,
            for floats in total order: -NaN, -inf, …, -0, 0, …, inf, NaN.
        dimension: along which to sort; negative numbers count from the last.
        is_stable: whether records of which neither is before the other keep their order.

    Returns:
        The operands in order: of their own shapes; a tuple if there are several.

    Raises:
        OperationError: there is no operand, sizes differ, there is no such dimension, the comparator takes other
            parameters, returns no scalar pred or uses values from around it; or complex numbers come without one.

    Example:
        >>> sort(constant([3.0, 1.0, 2.0], "f32"), gt)
        [3. 2. 1.]
        >>> sort([constant([3, 1], "s32"), constant([42, 50], "s32"), constant([-3.0, 1.1], "f32")])
        [1 3]
        [50 42]
        [ 1.1 -3. ]
    """
    records = [operands] if isinstance(operands, Value) else list(operands)
    if not records:
        raise OperationError("it needs at least one operand")
    same_dimensions(*records)
    along = dimension_of(dimension, records[0].rank)
    before = _ascending(records[0]) if comparator is None else comparator
    elements = [Shape.array(record.element_type) for record in records]
    shapes = [record.shape for record in records]
    sorting = create(
        "stablehlo.sort",
        records,
        map(mlir_type_of, shapes),
        1,
        dimension=i64(along),
        is_stable=flag(is_stable),
    )
    pairs = [element for element in elements for _ in range(2)]
    trace_region(sorting, 0, pairs, before, [Shape.array("pred")])
    check_closed(sorting, f"its comparator {name_of(before)}")
    return one_or_tuple(results_of(sorting, shapes))


def _ascending(keys: Value) -> Computation:
    """XLA's default: the first operand's elements alone, floats in total order."""
    kind = keys.element_type.kind
    if kind is Kind.COMPLEX:
        raise OperationError(
            f"complex numbers have no order, and {keys.shape} comes first",
            hint="give a comparator, such as one of real parts",
        )
    return lambda a, b, *_: compare("LT", a, b, "TOTALORDER" if kind is Kind.FLOAT else "")


@op("TopK", emits="stablehlo.custom_call", on=ARRAY - COMPLEX, hlo="topk")
def top_k(operand: Value, k: int, largest: bool = True) -> TupleValue:
    """The ``k`` largest (or smallest) elements of each line along the last dimension, best first.

    Floats count in total order: NaN is above inf, and -0 below 0.

    Args:
        operand: ``[..., n]``.
        k: how many, at most ``n``.
        largest: False for the smallest elements.

    Returns:
        ``(values, indices)``: ``[..., k]`` of the operand's element type, and their positions in s32; of equal elements
        the one of lower index is first.

    Raises:
        OperationError: the operand is a scalar, or ``k`` is negative or above the size of its last dimension.

    Example:
        >>> top_k(constant([1.0, 5.0, 3.0, 5.0], "f32"), 3)
        [5. 5. 3.]
        [1 3 2]
    """
    if not operand.rank:
        raise OperationError(f"it takes lines of elements, not the scalar {operand.shape}")
    size = operand.dims[-1]
    if k < 0 or (size >= 0 and k > size):
        raise OperationError(f"k={k} is out of range: the last dimension of {operand.shape} has size {size}")
    sizes = (*operand.dims[:-1], k)
    dynamic = (*operand.shape.dynamic[:-1], False)
    # As XLA's own converter writes an HLO `topk`, and reads it back.
    values, indices = emit_all(
        "stablehlo.custom_call",
        [operand],
        [Shape(element, sizes, dynamic) for element in (operand.element_type, element_type("s32"))],
        call_target_name=text("mhlo.topk"),
        **{
            "mhlo.attributes": ir.DictAttr.get({"k": i64(k), "largest": flag(largest)}),
            "mhlo.version": i64(1),
        },
    )
    return TupleValue([values, indices])
