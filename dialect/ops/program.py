"""What a program is made of besides arithmetic: parameters, constants, calls, tuples, tokens.

Source: XLA "Parameter", "Constant", "Call", "CompositeCall", "CustomCall", "Tuple", "GetTupleElement", "AfterAll",
"CreateToken", "OptimizationBarrier"; StableHLO specification "composite", "custom_call".
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from hloforge.dialect import constants
from hloforge.dialect.attributes import dictionary
from hloforge.dialect.computations import Computation, apply, name_of
from hloforge.dialect.custom_calls import Aliasing, custom_call_operation
from hloforge.dialect.emission import emit, emit_all, i32, mlir_type_of, text
from hloforge.dialect.errors import OperationError
from hloforge.dialect.mlir import ir
from hloforge.dialect.op import ARRAY, NOTHING, TOKEN, TUPLE, op
from hloforge.dialect.program import Program
from hloforge.dialect.shapes import Shape
from hloforge.dialect.symbols import define_function
from hloforge.dialect.values import OPEN, Results, TupleValue, Value, as_value, leaves, nest


@op("Parameter", emits="func.func", on=NOTHING, hlo="parameter")
def parameter(number: int, shape: Shape | str, name: str = "") -> Value:
    """A parameter of the program that is open.

    Args:
        number: its position among the parameters, from 0; every program has each number once.
        shape: of an array, token or tuple, with a layout if the caller passes one; text is parsed.
        name: what callers may name it by; default ``arg<number>``.

    Returns:
        The parameter's value; of tuple shape, a TupleValue.

    Raises:
        OperationError: the number is negative or taken, the name is taken, or the shape is malformed.

    Example:
        >>> parameter(0, "f32[4,8]{0,1}", "x").shape
        f32[4,8]{0,1}
    """
    value: Value = OPEN[ir.Context.current].parameter(number, shape, name)
    return value


@op("Constant", emits="stablehlo.constant", on=NOTHING)
def constant(value: Any, dtype: Any = None) -> Value:
    """An array that is known when the program is built.

    Args:
        value: anything numpy makes an array of.
        dtype: its element type by XLA's, MLIR's or numpy's name; default: that of numpy's array.

    Raises:
        OperationError: numpy makes no array of it, or its element type is none of XLA's.

    Example:
        >>> constant([[1, 2], [3, 4]], "s8")
        [[1 2]
         [3 4]]
    """
    try:
        return constants.constant(value, dtype)
    except (TypeError, ValueError) as error:
        raise OperationError(str(error)) from None


@op("Call", emits="func.call", on=ARRAY | TOKEN | TUPLE, hlo="call")
def call(computation: Computation, *operands: Results) -> Value:
    """Apply a computation that is in the module once, as a private function.

    Calls of one computation on operands of equal shapes share the function: what a Python function does besides
    building operations happens at its first call only.

    Args:
        computation: a function of Values, or a program built before.
        operands: arrays, tokens or tuples, one a parameter of the computation.

    Returns:
        Its result.

    Raises:
        OperationError: it takes other operands, or uses a value from around it.

    Example:
        >>> call(lambda x, y: x * x + y, constant([3, 4], "s32"), constant([1, 1], "s32"))
        [10 17]
    """
    values = [as_value(operand) for operand in operands]
    symbol, shape = _function(computation, [value.shape for value in values])
    flat = [leaf for value in values for leaf in leaves(value)]
    results = emit_all("func.call", flat, list(shape.leaves()), callee=ir.FlatSymbolRefAttr.get(symbol))
    return nest(shape, iter(results))


_NAMESPACED = re.compile(r"[a-zA-Z][a-zA-Z0-9_]*([.][a-zA-Z0-9_$]+)+")


@op("CompositeCall", emits="stablehlo.composite", on=ARRAY | TOKEN | TUPLE, hlo="call")
def composite_call(
    computation: Computation,
    operands: Value | Sequence[Results],
    name: str,
    attributes: Mapping[str, Any] | None = None,
    version: int = 0,
) -> Value:
    """An operation known by name, which a target that does not know it replaces by its decomposition.

    Args:
        computation: the decomposition, a function of Values or a program; it is in the module as ``call``'s is.
        operands: what it is applied to: one Value, or several.
        name: of the operation, with the name of its library: ``my.gelu``.
        attributes: its configuration: bool, int, float, str, numpy values, lists and dicts of these.
        version: counts the changes of its meaning.

    Returns:
        The decomposition's result.

    Raises:
        OperationError: the name has no namespace, the version is negative, an attribute is of no such type, or the
            decomposition does not take the operands.

    Example:
        >>> composite_call(lambda x: x * 2, constant([1, 2], "s32"), "my.double", {"factor": 2}, version=1)
        [2 4]
    """
    if not _NAMESPACED.fullmatch(name):
        raise OperationError(f"the name {name!r} must have a namespace", hint='such as "my.gelu"')
    if not 0 <= version < 1 << 31:
        raise OperationError(f"version {version} must be a non-negative 32-bit integer")
    configuration = dictionary(attributes) if attributes else None
    values = [operands] if isinstance(operands, Value) else [as_value(operand) for operand in operands]
    symbol, shape = _function(computation, [value.shape for value in values])
    results = emit_all(
        "stablehlo.composite",
        [leaf for value in values for leaf in leaves(value)],
        list(shape.leaves()),
        name_=text(name),
        composite_attributes=configuration,
        decomposition=ir.FlatSymbolRefAttr.get(symbol),
        version=i32(version) if version else None,
    )
    return nest(shape, iter(results))


def _function(computation: Computation, shapes: Sequence[Shape]) -> Any:
    """The private function of a computation on parameters of these shapes, made at its first use in the program."""

    def trace(parameters: list[Value]) -> Value:
        return apply(computation, parameters)

    builder = OPEN.get(ir.Context.current)
    if builder is None:
        return define_function(name_of(computation), shapes, trace)
    return builder.function((computation, *shapes), name_of(computation), shapes, trace)


@op("CustomCall", emits="stablehlo.custom_call", on=ARRAY | TOKEN | TUPLE)
def custom_call(
    target: str,
    operands: Value | Sequence[Results],
    shape: Shape | str,
    *,
    backend_config: str | Mapping[str, Any] = "",
    api_version: int | None = None,
    operand_layouts: Sequence[Sequence[int]] | None = None,
    has_side_effect: bool = False,
    output_operand_aliases: Sequence[Aliasing] = (),
    called_computations: Sequence[Program] = (),
) -> Value:
    """Call a function that the user provides, by name.

    Args:
        target: the function's name. In XLA's first API its C signature is ``void target(void* out, void** in)``.
        operands: arrays, tokens or tuples; one Value, or several.
        shape: of the result; text is parsed.
        backend_config: passed to the function: text, or for the typed API a mapping of attributes.
        api_version: 1 (the signature above), 2 (with a status), 3 (with a status, on any platform) or 4 (the typed
            FFI); default: 4 for a mapping, else 1.
        operand_layouts: the minor-to-major order in which the function gets each operand; its results then come in
            the layouts of ``shape``.
        has_side_effect: it must stay although nobody uses its result.
        output_operand_aliases: what of the result is in an operand's buffer, each
            ``(output_index, operand_number, operand_index)``.
        called_computations: programs that the function may call, as functions of the module.

    Returns:
        A value of ``shape``.

    Raises:
        OperationError: the target has no name, the shape is malformed, the API version is unknown or does not go with
            the configuration, layouts are not those of the operands, or an alias joins parts of different shapes.

    Example:
        >>> custom_call("myfunc", [constant([1.0, 2.0], "f32")], "f32[3,3]", api_version=1).shape
        f32[3,3]
    """
    values = [operands] if isinstance(operands, Value) else [as_value(operand) for operand in operands]
    return custom_call_operation(
        target,
        values,
        shape,
        backend_config=backend_config,
        api_version=api_version,
        operand_layouts=operand_layouts,
        has_side_effect=has_side_effect,
        aliases=output_operand_aliases,
        called=[_called(computation) for computation in called_computations],
    )


def _called(computation: Program) -> str:
    if not isinstance(computation, Program):
        raise OperationError(
            f"a called computation is a {type(computation).__name__}, not a program",
            hint="build it with a Builder: only a program knows the shapes of its parameters",
        )
    symbol, _ = _function(computation, [parameter.shape for parameter in computation.signature.parameters])
    return str(symbol)


@op("Tuple", emits="stablehlo.tuple", on=ARRAY | TOKEN | TUPLE)
def tuple(elements: Sequence[Results]) -> TupleValue:
    """Several values as one, which parameters, results, calls and loops take and give.

    Args:
        elements: arrays, tokens or tuples; any number.

    Raises:
        OperationError: an element is no Value.

    Example:
        >>> tuple([constant([1, 2], "s32"), constant(3.0, "f32")])
        [1 2]
        3.0
    """
    return TupleValue([as_value(element) for element in elements])


@op("GetTupleElement", emits="stablehlo.get_tuple_element", on=TUPLE)
def get_tuple_element(operand: Value, index: int) -> Value:
    """An element of a tuple.

    Args:
        operand: the tuple.
        index: from 0, known when the program is built.

    Raises:
        OperationError: the operand is no tuple, or has no such element.

    Example:
        >>> get_tuple_element(tuple([constant([1, 2], "s32"), constant(3.0, "f32")]), 1)
        3.0
    """
    if not isinstance(operand, TupleValue):
        raise OperationError(f"it takes a tuple, not a value of shape {operand.shape}")
    if not isinstance(index, int):
        raise OperationError(f"the index must be an integer known while the program is built, not {index!r}")
    if not 0 <= index < len(operand):
        raise OperationError(f"index {index} is out of range for {operand.shape} of {len(operand)} elements")
    return operand.elements[index]


@op("AfterAll", emits="stablehlo.after_all", on=TOKEN)
def after_all(tokens: Value | Sequence[Value]) -> Value:
    """A token that says that everything has happened that the operands represent.

    Args:
        tokens: one or several.

    Raises:
        OperationError: there is no operand, or one is no token.

    Example:
        >>> after_all([create_token(), create_token()]).shape
        token[]
    """
    values = [tokens] if isinstance(tokens, Value) else list(tokens)
    if not values:
        raise OperationError("it needs at least one token", hint="create_token makes one that waits for nothing")
    for value in values:
        if not value.shape.is_token:
            raise OperationError(f"it takes tokens, not {value.shape}")
    return emit("stablehlo.after_all", values, Shape.token())


@op("CreateToken", emits="stablehlo.create_token", on=NOTHING, hlo="after-all")
def create_token() -> Value:
    """A token that waits for nothing, from which a chain of side effects starts.

    Example:
        >>> create_token().shape
        token[]
    """
    return emit("stablehlo.create_token", [], mlir_type_of(Shape.token()))


@op("OptimizationBarrier", emits="stablehlo.optimization_barrier", on=ARRAY | TOKEN | TUPLE, hlo="opt-barrier")
def optimization_barrier(operand: Results) -> Value:
    """The operand, which is computed whole before anything that uses the result; no compiler moves work across.

    Args:
        operand: an array, a token or a tuple (or Values nested in lists).

    Returns:
        The same values in the same nesting.

    Raises:
        OperationError: an operand is no Value.

    Example:
        >>> optimization_barrier([constant(1, "s32"), constant(2, "s32")])
        1
        2
    """
    value = as_value(operand)
    flat = leaves(value)
    if not flat:
        return value
    results = emit_all("stablehlo.optimization_barrier", flat, [leaf.shape for leaf in flat])
    return nest(value.shape, iter(results))
