"""Values of MLIR's tuple type: making them where HLO or a function wants one, and taking all of them out of a module.

Inside a program a tuple is a ``TupleValue``, and nothing is emitted for it; HLO's parameters, its result and some
custom calls have real ones, and so may StableHLO text from elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hloforge.dialect.emission import emit, i32, mlir_type_of
from hloforge.dialect.marks import RESULT_ALIASES, RESULT_SHAPE
from hloforge.dialect.mlir import AnyOp, SSAValue, in_context, ir
from hloforge.dialect.operations import operations
from hloforge.dialect.shapes import Shape
from hloforge.dialect.values import TupleValue, Value, leaves, nest

_TUPLE, _ELEMENT = "stablehlo.tuple", "stablehlo.get_tuple_element"
_FUNCTION, _RETURN = "func.func", "func.return"
_CUSTOM_CALL, _ALIASES = "stablehlo.custom_call", "output_operand_aliases"
# What hands tuples on and can hand on their leaves instead; StableHLO's loops and branches take none.
_CARRIERS = frozenset({"func.call", "stablehlo.composite", _CUSTOM_CALL})
# What gives its first operand, which HLO has of tuples as well.
_IDENTITIES = frozenset({"mhlo.copy", "mhlo.add_dependency", "mhlo.domain"})
_HOLDERS = _CARRIERS | _IDENTITIES | {_TUPLE, _ELEMENT, _FUNCTION, _RETURN}


def pack(value: Value) -> Value:
    """The value as one of MLIR's: a tuple becomes ``stablehlo.tuple`` of its packed elements."""
    if not isinstance(value, TupleValue):
        return value
    return Value(_packed(mlir_type_of(value.shape), iter([leaf.ir for leaf in leaves(value)])))


def unpack(value: SSAValue, shape: Shape) -> Value:
    """An ``ir.Value`` of ``shape`` as a Value: a tuple is taken apart by ``stablehlo.get_tuple_element``."""
    return nest(shape, map(Value, _leaves(value), shape.leaves()))


def members(value: SSAValue) -> list[SSAValue]:
    """The arrays and tokens of a tuple that is made in sight; of any other value, itself."""
    maker = value.owner
    if not isinstance(value.type, ir.TupleType) or isinstance(maker, ir.Block) or maker.operation.name != _TUPLE:
        return [value]
    return [leaf for operand in maker.operation.operands for leaf in members(operand)]


def _packed(type_: ir.Type, values: Iterator[SSAValue]) -> Any:
    """The value of a type whose leaves are the next of ``values``."""
    if not isinstance(type_, ir.TupleType):
        return next(values)
    elements = [_packed(type_.get_type(number), values) for number in range(type_.num_types)]
    return emit(_TUPLE, [Value(element) for element in elements], type_).ir


def _leaves(value: SSAValue) -> list[SSAValue]:
    """The arrays and tokens of a value, taken out of its tuples."""
    type_ = value.type
    if not isinstance(type_, ir.TupleType):
        return [value]
    elements = [
        emit(_ELEMENT, [Value(value)], type_.get_type(number), index=i32(number)).ir
        for number in range(type_.num_types)
    ]
    return [leaf for element in elements for leaf in _leaves(element)]


def _leaf_types(type_: ir.Type) -> list[ir.Type]:
    if not isinstance(type_, ir.TupleType):
        return [type_]
    return [leaf for number in range(type_.num_types) for leaf in _leaf_types(type_.get_type(number))]


def flatten_tuples(module: ir.Module) -> None:
    """Let functions, calls and the results of custom calls carry the leaves of their tuples; copies of tuples go.

    The operands of custom calls stay as they are: a tuple is what the called function expects.
    """
    with in_context(module):
        holders = [op for op in operations(module, _HOLDERS) if _holds_tuple(op)]
        for op in holders:
            if op.name == _FUNCTION:
                _flatten_function(op)
            elif op.name == _RETURN:
                _flatten_return(op)
            elif op.name in _CARRIERS:
                _flatten_carrier(op)
            elif op.name in _IDENTITIES:
                op.results[0].replace_all_uses_with(op.operands[0])
                op.erase()
        if holders:
            _forward_elements(module)


def _holds_tuple(op: ir.Operation) -> bool:
    if op.name in (_TUPLE, _ELEMENT):
        return True
    if op.name == _FUNCTION:
        function_type = ir.FunctionType(ir.TypeAttr(op.attributes["function_type"]).value)
        types = [*function_type.inputs, *function_type.results]
    else:
        types = [value.type for value in (*op.operands, *op.results)]
    return any(isinstance(type_, ir.TupleType) for type_ in types)


def _flatten_function(function: ir.Operation) -> None:
    old = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    inputs, results = ([leaf for type_ in types for leaf in _leaf_types(type_)] for types in (old.inputs, old.results))
    for block in function.regions[0].blocks:
        _flatten_arguments(block)
    for name, types in (("arg_attrs", old.inputs), ("res_attrs", old.results)):
        if name in function.attributes:
            function.attributes[name] = _flat_attributes(function.attributes[name], types)
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, results))


def _flat_attributes(attributes: Any, types: Any) -> Any:
    """Attributes of arrays stay; of a tuple there is none that its leaves could have."""
    flat = []
    for entry, type_ in zip(attributes, types, strict=True):
        is_tuple = isinstance(type_, ir.TupleType)
        flat += [ir.DictAttr.get({})] * len(_leaf_types(type_)) if is_tuple else [entry]
    return ir.ArrayAttr.get(flat)


def _flatten_arguments(block: ir.Block) -> None:
    old = list(block.arguments)
    if not any(isinstance(argument.type, ir.TupleType) for argument in old):
        return
    with ir.InsertionPoint.at_block_begin(block):
        for argument in old:
            fresh = [block.add_argument(type_, argument.location) for type_ in _leaf_types(argument.type)]
            argument.replace_all_uses_with(_packed(argument.type, iter(fresh)))
    for _ in old:
        block.erase_argument(0)


def _flatten_return(op: AnyOp) -> None:
    with ir.InsertionPoint(op), op.location:
        ir.Operation.create(op.name, operands=[leaf for operand in op.operands for leaf in _leaves(operand)])
    op.erase()


def _flatten_carrier(op: ir.Operation) -> None:
    attributes = dict(op.attributes.items())
    with ir.InsertionPoint(op), op.location:
        operands = list(op.operands)
        if op.name == _CUSTOM_CALL:
            _keep_result(op, attributes)
        else:
            operands = [leaf for operand in operands for leaf in _leaves(operand)]
        flat = ir.Operation.create(
            op.name,
            results=[leaf for result in op.results for leaf in _leaf_types(result.type)],
            operands=operands,
            attributes=attributes,
        )
        results = iter(flat.results)
        for result in op.results:
            result.replace_all_uses_with(_packed(result.type, results))
    op.erase()


def _keep_result(op: ir.Operation, attributes: dict[str, Any]) -> None:
    """Let a custom call remember a tuple that its several results do not say: of one element, or of tuples.

    Aliases name positions in it, and no results, from then on.
    """
    tuples = [result.type for result in op.results if isinstance(result.type, ir.TupleType)]
    if not tuples or (tuples[0].num_types > 1 and tuples[0].num_types == len(_leaf_types(tuples[0]))):
        return
    attributes[RESULT_SHAPE] = ir.StringAttr.get(str(Shape.of_type(tuples[0])))
    if _ALIASES in attributes:
        attributes[RESULT_ALIASES] = attributes.pop(_ALIASES)


def _forward_elements(module: ir.Module) -> None:
    """Replace the elements of tuples that are made in sight, and drop the tuples that nobody uses then."""
    found = operations(module, {_TUPLE, _ELEMENT})
    for op in found:
        if op.name != _ELEMENT:
            continue
        maker = op.operands[0].owner
        if not isinstance(maker, ir.Block) and maker.operation.name == _TUPLE:
            element = maker.operation.operands[ir.IntegerAttr(op.attributes["index"]).value]
            op.results[0].replace_all_uses_with(element)
    for op in reversed(found):
        if not any(True for _ in op.results[0].uses):
            op.erase()
