"""Control flow: loops and branches.

Computations see their parameters and, as Python functions do, the values around them.
Source: XLA "Conditional", "While"; StableHLO specification "if", "case", "while".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, overload

from hloforge.dialect.computations import Computation, apply, trace_region
from hloforge.dialect.element_types import ElementType, element_type
from hloforge.dialect.emission import create, mlir_type_of, results_of
from hloforge.dialect.errors import OperationError
from hloforge.dialect.op import ARRAY, PRED, TOKEN, TUPLE, op
from hloforge.dialect.shapes import Shape
from hloforge.dialect.values import Results, TupleValue, Value, as_value, leaves, nest


@overload
def conditional(
    pred: Value,
    true_operand: Results,
    true_computation: Computation,
    false_operand: Results,
    false_computation: Computation,
    /,
) -> Value: ...


@overload
def conditional(
    branch_index: Value, branch_computations: Sequence[Computation], branch_operands: Sequence[Results], /
) -> Value: ...


@op("Conditional", emits=("stablehlo.if", "stablehlo.case"), on=PRED | {"s32"}, hlo="conditional")
def conditional(selector: Value, /, *arguments: Any) -> Value:
    """Apply one of several computations, each to an operand of its own.

    ``conditional(pred, true_operand, true_computation, false_operand, false_computation)`` or
    ``conditional(branch_index, branch_computations, branch_operands)``.

    Args:
        selector: a scalar: pred, or the branch's number in s32; a number that no branch has means the last one.
        arguments: computations of one parameter each, and their operands, each an array, a token or a tuple.

    Returns:
        The result of the computation that is chosen; no other one runs.

    Raises:
        OperationError: the selector is no scalar of these types, there is no branch, operands and computations are
            not as many, a computation does not take its operand, or two return different shapes.

    Example:
        >>> x = constant([1.0, 4.0], "f32")
        >>> conditional(constant(True), x, lambda x: x * 2, x, sqrt)
        [2. 8.]
        >>> conditional(constant(7, "s32"), [lambda x: x * 2, sqrt], [x, x])
        [1. 2.]
    """
    if len(arguments) == 4:
        _check_selector(selector, "pred", element_type("pred"))
        true_operand, true_computation, false_operand, false_computation = arguments
        return _branch("stablehlo.if", selector, [true_computation, false_computation], [true_operand, false_operand])
    if len(arguments) != 2:
        raise OperationError(
            f"it takes 3 or 5 arguments, not {len(arguments) + 1}",
            hint="(pred, true_operand, true_computation, false_operand, false_computation), or "
            "(branch_index, branch_computations, branch_operands)",
        )
    _check_selector(selector, "branch_index", element_type("s32"))
    computations, operands = arguments
    if not computations:
        raise OperationError("it needs at least one branch")
    if isinstance(operands, Value) or len(computations) != len(operands):
        count = 1 if isinstance(operands, Value) else len(operands)
        raise OperationError(f"{len(computations)} computations need as many operands, not {count}")
    return _branch("stablehlo.case", selector, computations, operands)


def _check_selector(value: Value, name: str, element: ElementType) -> None:
    if value.shape.without_layout() != Shape.array(element):
        raise OperationError(f"{name} must be a scalar of {element}, not {value.shape}")


def _branch(name: str, selector: Value, computations: Sequence[Computation], operands: Sequence[Results]) -> Value:
    # The results' types are known only when a branch is traced: a draft without results holds the regions until then.
    draft = create(name, [selector], [], len(computations))
    expected: list[Shape] | None = None
    shape = Shape.tuple_of()
    for number, (computation, operand) in enumerate(zip(computations, operands, strict=True)):
        traced = trace_region(draft, number, [], _applied(computation, as_value(operand), expected))
        if expected is None:
            shape = traced.shape
            expected = [shape] if shape.elements is None else list(shape.elements)
    final = create(name, [selector], [mlir_type_of(leaf) for leaf in shape.leaves()], len(computations))
    for source, target in zip(draft.regions, final.regions, strict=True):
        source.blocks[0].append_to(target)
    draft.erase()
    return nest(shape, iter(results_of(final, list(shape.leaves()))))


def _applied(computation: Computation, operand: Value, expected: list[Shape] | None) -> Callable[[], Value]:
    """The computation on its operand, which StableHLO's branches take from around them."""
    return lambda: apply(computation, [operand], expected)


@op("While", emits="stablehlo.while", on=ARRAY | TOKEN | TUPLE)
def while_(condition: Computation, body: Computation, init: Results) -> Value:
    """Repeat a computation while a condition holds.

    Args:
        condition: from the current value to a scalar pred.
        body: from the current value to the next one, of the same shape.
        init: the value before the first iteration: an array, a token or a tuple. The elements of a Python list are
            parameters of their own to both computations; a tuple is one parameter.

    Returns:
        The value for which the condition fails first: of the shape of ``init``, a tuple for a list.

    Raises:
        OperationError: the condition does not return a scalar pred, the body returns another shape than ``init`` has,
            or one does not take the value.

    Example:
        >>> while_(lambda n: n < 10, lambda n: n * 2, constant(1, "s32"))
        16
        >>> while_(lambda n, x: n < 3, lambda n, x: [n + 1, x * x], [constant(0, "s32"), constant(2.0, "f32")])
        3
        256.0
    """
    start = as_value(init)
    members = start.elements if isinstance(start, TupleValue) else (start,)
    parameters = [member.shape for member in members] if isinstance(init, list) else [start.shape]
    flat = leaves(start)
    loop = create("stablehlo.while", flat, [leaf.type for leaf in flat], 2)
    trace_region(loop, 0, parameters, condition, [Shape.array("pred")])
    trace_region(loop, 1, parameters, body, [member.shape for member in members])
    return nest(start.shape, iter(results_of(loop, [leaf.shape for leaf in flat])))
