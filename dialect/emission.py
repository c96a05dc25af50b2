"""Creating operations at MLIR's current insertion point."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from hloforge.dialect.errors import OperationError
from hloforge.dialect.mlir import AnyOp, dense_elements, ir
from hloforge.dialect.shapes import Shape
from hloforge.dialect.values import TupleValue, Value


def emit(name: str, operands: Sequence[Value], result: Any, **attributes: Any) -> Value:
    """Create the single-result operation ``name`` at the current insertion point.

    Args:
        result: its Shape, or its MLIR type.
        attributes: MLIR attributes by name (``and_`` style trailing underscores are dropped).

    Raises:
        OperationError: an operand is a tuple, or cannot be seen from here.
    """
    shape = result if isinstance(result, Shape) else None
    type_ = result if shape is None else mlir_type_of(shape)
    return Value(create(name, operands, [type_], 0, **attributes).results[0], shape)


def emit_all(name: str, operands: Sequence[Value], results: Sequence[Shape], **attributes: Any) -> list[Value]:
    """Create an operation of several results; arguments and errors as of ``emit``."""
    return results_of(create(name, operands, map(mlir_type_of, results), 0, **attributes), results)


def create(name: str, operands: Sequence[Value], types: Iterable[Any], regions: int, **attributes: Any) -> Any:
    """Create an operation with empty regions, and return its ``ir.Operation``; arguments and errors as of ``emit``."""
    block = ir.InsertionPoint.current.block
    for operand in operands:
        _check_visible(operand, block)
    return ir.Operation.create(
        name,
        results=list(types),
        operands=[operand.ir for operand in operands],
        attributes={key.rstrip("_"): value for key, value in attributes.items() if value is not None},
        regions=regions,
    )


def results_of(op: AnyOp, shapes: Sequence[Shape]) -> list[Value]:
    """The results of an operation as Values of the given shapes."""
    return [Value(result, shape) for result, shape in zip(op.results, shapes, strict=True)]


def one_or_tuple(values: Sequence[Value]) -> Value:
    """XLA's result of a variadic operation: the array itself if there is one, else a tuple of them."""
    return values[0] if len(values) == 1 else TupleValue(values)


def mlir_type_of(shape: Shape) -> ir.Type:
    """The MLIR type of a shape: a tensor, a token or a tuple."""
    if shape.elements is not None:
        return ir.TupleType.get_tuple([mlir_type_of(element) for element in shape.elements])
    return ir.Type.parse("!stablehlo.token") if shape.is_token else shape.mlir_type()


def _check_visible(operand: Value, block: ir.Block) -> None:
    """An operand must belong to this program, and to this computation or one around it."""
    owner = operand.ir.owner
    home = owner if isinstance(owner, ir.Block) else owner.operation.block
    if home == block:
        return
    if operand.ir.context is not block.owner.context:
        raise OperationError(
            f"an operand of shape {operand.shape} belongs to another program",
            hint="pass it as a parameter, or apply that program with call",
        )
    inside = block
    while inside != home:
        above = inside.owner.operation.block if inside.owner.operation.parent else None
        if above is None:
            raise OperationError(
                f"an operand of shape {operand.shape} was made in another computation, and only lives inside it",
                hint="return it from that computation, or pass it to this one as an operand",
            )
        inside = above


def i64(number: int) -> ir.Attribute:
    """A 64-bit integer attribute."""
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), number)


def i32(number: int) -> ir.Attribute:
    """A 32-bit integer attribute."""
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(32), number)


def i64s(numbers: Iterable[int]) -> ir.Attribute:
    """An attribute of 64-bit integers, ``array<i64: …>``."""
    return ir.DenseI64ArrayAttr.get(list(numbers))


def flags(values: Iterable[bool]) -> ir.Attribute:
    """An attribute of booleans, ``array<i1: …>``."""
    return ir.DenseBoolArrayAttr.get(list(values))


def flag(value: bool) -> ir.Attribute:
    """A boolean attribute."""
    return ir.BoolAttr.get(value)


def text(value: str) -> Any:
    """A string attribute."""
    return ir.StringAttr.get(value)


def enum(kind: str, value: str) -> ir.Attribute:
    """An enumeration of StableHLO, such as ``enum("comparison_direction", "LT")``."""
    return ir.Attribute.parse(f"#stablehlo<{kind} {value}>")


def i64_matrix(rows: Sequence[Sequence[int]], columns: int) -> ir.Attribute:
    """A matrix of 64-bit integers, ``dense<…> : tensor<rows x columns x i64>``; short rows are filled with -1."""
    import numpy as np

    full = [[*row, *[-1] * (columns - len(row))] for row in rows]
    array = np.array(full, np.int64).reshape(len(rows), columns)
    return dense_elements(array, ir.IntegerType.get_signless(64), list(array.shape))
