"""Computations that operations apply: tracing a function of Values, or a program built before, into a region."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from hloforge.dialect.constants import constant, scalar_of
from hloforge.dialect.emission import create, mlir_type_of
from hloforge.dialect.errors import OperationError
from hloforge.dialect.mlir import AnyOp, inlined_func_call, ir
from hloforge.dialect.op import user_code
from hloforge.dialect.program import Program, entry_function
from hloforge.dialect.shapes import Shape
from hloforge.dialect.symbols import adopt, discard
from hloforge.dialect.values import TupleValue, Value, as_value, leaves, nest

# What an operation applies: a function of Values (an operation, a lambda …), or a program built before.
Computation: TypeAlias = Callable[..., Any] | Program


def name_of(computation: Computation) -> str:
    """What to call a computation in messages and as a function of the module."""
    name = computation.name if isinstance(computation, Program) else getattr(computation, "__name__", "")
    return name if name and name != "<lambda>" else "computation"


def named(computation: Computation) -> str:
    """A computation's name after a space; nothing for a lambda."""
    name = name_of(computation)
    return "" if name == "computation" else f" {name}"


def apply(computation: Computation, parameters: Sequence[Value], expected: Sequence[Shape] | None = None) -> Value:
    """Trace a computation at the insertion point.

    Args:
        parameters: what it is applied to.
        expected: the shapes it has to return, if they are known: one, or the elements of a tuple. Python numbers that
            it returns take these.

    Returns:
        Its result: an array, a token or a tuple.

    Raises:
        OperationError: it is no function, takes another number of parameters, or returns other shapes.
    """
    if isinstance(computation, Program):
        result = _apply_program(computation, parameters)
    elif not callable(computation):
        raise OperationError(
            f"its computation must be a function of Values or a program, not {computation!r}",
            hint="an operation of hloforge.ops, a lambda, or a program that was built before",
        )
    else:
        _check_arity(computation, parameters)
        with user_code():
            result = _as_values(computation(*parameters), expected)
    if expected is not None:
        _check_result(result, expected, named(computation))
    return result


def _check_arity(function: Callable[..., Any], parameters: Sequence[Value]) -> None:
    try:
        signature = inspect.signature(function)
    except ValueError:  # a builtin without one: calling it tells
        return
    try:
        signature.bind(*parameters)
    except TypeError as error:
        shapes = ", ".join(str(parameter.shape) for parameter in parameters)
        raise OperationError(f"its computation{named(function)} is applied to ({shapes}): {error}") from None


def _as_values(returned: Any, expected: Sequence[Shape] | None) -> Value:
    if isinstance(returned, Value):
        return returned
    if isinstance(returned, list | tuple):
        shapes = expected if expected is not None and len(expected) == len(returned) else [None] * len(returned)
        return TupleValue([_as_values(r, None if s is None else [s]) for r, s in zip(returned, shapes, strict=True)])
    if isinstance(returned, bool | int | float | complex) or hasattr(returned, "dtype"):
        element = expected[0].element if expected is not None and len(expected) == 1 else None
        return constant(returned) if element is None else constant(scalar_of(returned, element), element)
    raise OperationError(f"its computation returns a {type(returned).__name__}, which is no Value")


def _check_result(result: Value, expected: Sequence[Shape], name: str) -> None:
    found = [value.shape for value in (result.elements if isinstance(result, TupleValue) else (result,))]
    same = len(found) == len(expected) and all(map(same_type, found, expected))
    if not same:
        raise OperationError(
            f"its computation{name} returns ({', '.join(map(str, found))}), where "
            f"({', '.join(map(str, expected))}) is expected"
        )


def same_type(one: Shape, other: Shape) -> bool:
    """Equal shapes, layouts aside."""
    return one == other or one.without_layout() == other.without_layout()


def _apply_program(program: Program, parameters: Sequence[Value]) -> Value:
    shapes = [parameter.shape for parameter in program.signature.parameters]
    if len(shapes) != len(parameters) or not all(map(same_type, shapes, (value.shape for value in parameters))):
        raise OperationError(
            f"its computation{named(program)} takes ({', '.join(map(str, shapes))}), and is applied to "
            f"({', '.join(str(value.shape) for value in parameters)})"
        )
    operands = [leaf.ir for value in parameters for leaf in leaves(value)]
    copy = adopt(program)
    results = inlined_func_call(entry_function(copy).operation, operands, ir.Location.current)
    return nest(program.signature.result, map(Value, results))


def fill_region(region: ir.Region, types: Sequence[ir.Type], computation: Callable[..., Any]) -> None:
    """Give a region one block with arguments of ``types`` whose terminator returns what ``computation`` builds.

    Args:
        types: MLIR types.
    """
    location = ir.Location.current
    block = region.blocks.append(*types, arg_locs=[location] * len(types))
    with ir.InsertionPoint(block):
        create("stablehlo.return", leaves(as_value(computation(*map(Value, block.arguments)))), [], 0)


def trace_region(
    op: AnyOp,
    number: int,
    parameters: Sequence[Shape],
    computation: Computation,
    expected: Sequence[Shape] | None = None,
) -> Value:
    """Trace a computation into a region of a new operation, which is erased again if that fails.

    Args:
        number: of the region.
        parameters: the shapes of its parameters; tuples are passed as TupleValues of flat arguments.
        expected: as of ``apply``.

    Returns:
        The result, for its shape; the values themselves live inside the region only.

    Raises:
        OperationError: as of ``apply``.
    """
    flat = [leaf for shape in parameters for leaf in shape.leaves()]
    types = [mlir_type_of(leaf) for leaf in flat]
    location = ir.Location.current
    block = op.regions[number].blocks.append(*types, arg_locs=[location] * len(types))
    arguments = map(Value, block.arguments, flat)
    try:
        with ir.InsertionPoint(block):
            result = apply(computation, [nest(shape, arguments) for shape in parameters], expected)
            create("stablehlo.return", leaves(result), [], 0)
    except BaseException:
        discard(op)
        raise
    return result


def check_closed(op: AnyOp, heading_of_parameters: str = "its computation") -> None:
    """Refuse regions that use a value of the surrounding program: XLA's reducers see their parameters only.

    Raises:
        OperationError: naming the value's shape; the operation is erased.
    """
    for region in op.regions:
        for block in region.blocks:
            captured = _captured(block, {block})
            if captured is not None:
                shape = Value(captured).shape
                discard(op)
                raise OperationError(
                    f"{heading_of_parameters} uses a value of shape {shape} from around it; XLA's see only their own "
                    "parameters",
                    hint="make constants inside the computation, or pass the value as an operand",
                )


def _captured(block: ir.Block, inside: set[ir.Block]) -> Any:
    for entry in block.operations:
        for operand in entry.operation.operands:
            owner = operand.owner
            if (owner if isinstance(owner, ir.Block) else owner.operation.block) not in inside:
                return operand
        for region in entry.operation.regions:
            for nested in region.blocks:
                found = _captured(nested, {*inside, nested})
                if found is not None:
                    return found
    return None
