"""``legalize-host-calls``: host calls with physical arrays and without tokens.

Before, in a module whose ``hloforge.host_functions`` are ``["f"]``::

    %t2, %y = stablehlo.custom_call @f(%t1, %x) {operand_layouts = [dense<> : tensor<0xindex>, dense<[0, 1]> ...],
      has_side_effect = true} : (!stablehlo.token, tensor<4x8xf32>) -> (!stablehlo.token, tensor<3xi4>)

After::

    %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32>
    %1 = stablehlo.custom_call @hloforge.host_call(%0) {has_side_effect = true,
      hloforge.host_call = "{target: f, operands: [token[], f32[4,8]{0,1}], ...}"} : (tensor<8x4xf32>) -> tensor<3xi8>
    %y = stablehlo.convert %1 : (tensor<3xi8>) -> tensor<3xi4>
    %t2 = stablehlo.after_all %t1 : !stablehlo.token

The record (``dialect/host_calls.py``) keeps what the function has to know. A call that takes a token has a side effect,
and IREE makes calls with side effects in the order in which they are. Other calls stay StableHLO's as long as
possible, so that equal ones become one and unused ones none; ``import-host-calls`` ends them. A call that hloforge has
a decomposition for is left to it. Source: StableHLO spec "custom_call"; XLA "CustomCall".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from hloforge.dialect.emission import flag, text
from hloforge.dialect.errors import UnsupportedError
from hloforge.dialect.host_calls import ORIGINAL, TYPED_FFI, HostCall, attributes_of
from hloforge.dialect.marks import HOST_CALL, RESULT_ALIASES, RESULT_SHAPE
from hloforge.dialect.mlir import SSAValue, in_context, ir, stablehlo
from hloforge.dialect.operations import integer, location_of, operations, string_attribute
from hloforge.dialect.shapes import Shape
from hloforge.dialect.tuples import flatten_tuples, unpack
from hloforge.dialect.values import Value, leaves
from hloforge.pipelines.framework.facts import Fact, Facts
from hloforge.pipelines.framework.manager import op_text
from hloforge.pipelines.framework.passes import Pass, register
from hloforge.pipelines.host_calls import is_host_call
from hloforge.pipelines.legalize.entry_abi import physical_type, to_logical, to_physical

# What a call may be in: functions and control flow, which run it as often as it is reached. A computation over
# elements, as of a reduction, becomes arithmetic over arrays.
_HOLDERS = frozenset({"builtin.module", "func.func", "stablehlo.case", "stablehlo.if", "stablehlo.while"})


@register
@dataclass(frozen=True)
class LegalizeHostCalls(Pass):
    """Give host calls physical arrays, and their records.

    Raises (on run):
        UnsupportedError: a call inside of a computation over elements, with computations of its own, or with an
            operand, result or attribute that no host function can be given.
    """

    name: ClassVar[str] = "legalize-host-calls"
    needs: ClassVar[frozenset[str]] = frozenset({"stablehlo.custom_call"})
    establishes: ClassVar[Facts] = frozenset({Fact.HOST_CALLS})

    def run(self, module: ir.Module) -> None:
        with in_context(module):
            calls = [op for op in operations(module, {"stablehlo.custom_call"}) if _concerns(op)]
            for op in calls:
                try:
                    _check(op)
                    with ir.InsertionPoint(op), op.location:
                        _legalize(op)
                except UnsupportedError as error:
                    error.location = error.location or location_of(op)
                    error.op = error.op or op_text(op)
                    raise
        if calls:
            flatten_tuples(module)


def _concerns(op: ir.Operation) -> bool:
    return HOST_CALL not in op.attributes and is_host_call(op)


def _check(op: Any) -> None:
    target = string_attribute(op, "call_target_name")
    parent = op.parent
    while parent is not None:
        if parent.operation.name not in _HOLDERS:
            raise UnsupportedError(
                f"host function @{target} is called inside of {parent.operation.name}, for each element",
                hint="call it with whole arrays, before or after",
            )
        parent = parent.operation.parent
    if "called_computations" in op.attributes and len(op.attributes["called_computations"]):
        raise UnsupportedError(f"host function @{target} calls computations of the program, which the host cannot")


def _legalize(op: ir.Operation) -> None:
    call = _record(op)
    values = [leaf for value, shape in zip(op.operands, call.operands, strict=True) for leaf in _leaves(value, shape)]
    pairs = list(zip(values, call.operand_leaves, strict=True))
    arrays = [to_physical(value, shape).ir for value, shape in pairs if shape.is_array]
    tokens = [value.ir for value, shape in pairs if shape.is_token]
    results = [(result, shape) for result, shape in zip(op.results, call.result_leaves, strict=True)]
    made = ir.Operation.create(
        "stablehlo.custom_call",
        results=[physical_type(result.type, shape) for result, shape in results if shape.is_array],
        operands=arrays,
        attributes={
            "call_target_name": text(HOST_CALL),
            "has_side_effect": flag(_has_side_effect(op)),
            HOST_CALL: text(call.to_json()),
        },
    )
    returned = iter(made.results)
    for result, shape in results:
        if shape.is_array:
            result.replace_all_uses_with(to_logical(Value(next(returned)), shape).ir)
        else:
            token = ir.Operation.create("stablehlo.after_all", results=[result.type], operands=tokens)
            result.replace_all_uses_with(token.results[0])
    op.erase()


def _leaves(value: SSAValue, shape: Shape) -> list[Value]:
    return leaves(unpack(value, shape))


def _has_side_effect(op: ir.Operation) -> bool:
    """Whether a call may be neither shared nor dropped: it says so, or takes part in an order."""
    if "has_side_effect" in op.attributes and ir.BoolAttr(op.attributes["has_side_effect"]).value:
        return True
    return any(str(value.type) == "!stablehlo.token" for value in (*op.operands, *op.results))


def _record(op: ir.Operation) -> HostCall:
    operands = _shapes(op.operands, op, "operand_layouts")
    results = _shapes(op.results, op, "result_layouts")
    version = integer(op, "api_version") if "api_version" in op.attributes else ORIGINAL
    configuration, attributes = _configuration(op, version)
    result = _result(op, results)
    aliases = _aliases(op, operands, result)
    return HostCall(
        string_attribute(op, "call_target_name"), operands, result, version, configuration, attributes, aliases
    )


def _shapes(values: Any, op: Any, layouts: str) -> tuple[Shape, ...]:
    shapes = tuple(map(_shape, values))
    if layouts not in op.attributes:
        return shapes
    orders = [[int(number) for number in order] for order in op.attributes[layouts]]
    return tuple(
        shape.with_layout(order) if shape.is_array else shape for shape, order in zip(shapes, orders, strict=True)
    )


def _shape(value: SSAValue) -> Shape:
    try:
        return Shape.of_type(value.type)
    except ValueError:
        raise UnsupportedError(
            f"a host function cannot take or return {value.type}",
            hint="convert it inside the program: quantized values to their storage type",
        ) from None


def _result(op: ir.Operation, results: tuple[Shape, ...]) -> Shape:
    """XLA's shape of the result: an array if there is one, else a tuple."""
    if RESULT_SHAPE in op.attributes:
        return _with_layouts(Shape.parse(string_attribute(op, RESULT_SHAPE)), iter(results))
    return results[0] if len(results) == 1 else Shape.tuple_of(*results)


def _with_layouts(shape: Shape, leaves: Iterator[Shape]) -> Shape:
    """A shape with the next leaves in the place of its own."""
    if shape.elements is None:
        return next(leaves)
    return Shape.tuple_of(*(_with_layouts(element, leaves) for element in shape.elements))


def _configuration(op: Any, version: int) -> tuple[str, dict[str, Any]]:
    found = op.attributes.get("backend_config", None)
    if isinstance(found, ir.DictAttr):
        return "", attributes_of(found)
    words = "" if found is None else str(found.value)
    if version != TYPED_FFI or not words:
        return words, {}
    # HLO keeps a dictionary as its text.
    try:
        return "", attributes_of(ir.Attribute.parse(words))
    except (ir.MLIRError, ValueError):
        raise UnsupportedError(f"the configuration of a typed call is no dictionary: {words}") from None


def _aliases(op: Any, operands: tuple[Shape, ...], result: Shape) -> tuple[tuple[int, int], ...]:
    """The pairs of leaves that are in one buffer."""
    name = next((name for name in ("output_operand_aliases", RESULT_ALIASES) if name in op.attributes), None)
    if name is None:
        return ()
    aliases = [stablehlo.OutputOperandAlias(alias) for alias in op.attributes[name]]
    whole = Shape.tuple_of(*operands)
    return tuple(
        (
            _leaf_number(result, alias.output_tuple_indices),
            _leaf_number(whole, [alias.operand_index, *alias.operand_tuple_indices]),
        )
        for alias in aliases
    )


def _leaf_number(shape: Shape, index: Sequence[int]) -> int:
    """How many leaves are before the one at a position in the tuples of a shape."""
    before = 0
    for number in index:
        assert shape.elements is not None  # the operation has been verified
        before += sum(1 for element in shape.elements[:number] for _ in element.leaves())
        shape = shape.elements[number]
    return before
