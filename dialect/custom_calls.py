"""Building ``stablehlo.custom_call``: the rules of its layouts, aliases, API versions and tuples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from hloforge.dialect.attributes import dictionary
from hloforge.dialect.emission import create, flag, i32, mlir_type_of, results_of, text
from hloforge.dialect.errors import OperationError
from hloforge.dialect.marks import PREFIX, is_own_target
from hloforge.dialect.mlir import ir
from hloforge.dialect.shapes import Shape
from hloforge.dialect.tuples import pack, unpack
from hloforge.dialect.values import Value, nest

# (index in the result, number of the operand, index in the operand): both are in one buffer.
Aliasing: TypeAlias = tuple[Sequence[int], int, Sequence[int]]

_TYPED_FFI = 4


def custom_call_operation(
    target: str,
    operands: Sequence[Value],
    shape: Shape | str,
    *,
    backend_config: str | Mapping[str, Any],
    api_version: int | None,
    operand_layouts: Sequence[Sequence[int]] | None,
    has_side_effect: bool,
    aliases: Sequence[Aliasing],
    called: Sequence[str],
) -> Value:
    """XLA "CustomCall"; arguments and errors as of ``ops.custom_call``, ``called`` being symbols of the module."""
    if not target:
        raise OperationError("the target needs a name")
    if target.startswith(PREFIX) and not is_own_target(target):
        raise OperationError(f"@{target} is none of hloforge's functions, whose names begin with {PREFIX}")
    result = _parsed(shape)
    version = _version(api_version, backend_config)
    for alias in aliases:
        _check_alias(alias, operands, result)
    attributes = {
        "call_target_name": text(target),
        "api_version": i32(version),
        "backend_config": _configuration(backend_config),
        "has_side_effect": flag(True) if has_side_effect else None,
        "output_operand_aliases": ir.ArrayAttr.get([_alias(*alias) for alias in aliases]) if aliases else None,
        "called_computations": ir.ArrayAttr.get([ir.FlatSymbolRefAttr.get(symbol) for symbol in called])
        if called
        else None,
        **_layouts(operands, operand_layouts, result),
    }
    flat = _is_flat(result)
    types = [mlir_type_of(leaf) for leaf in result.leaves()] if flat else [mlir_type_of(result)]
    op = create("stablehlo.custom_call", [pack(operand) for operand in operands], types, 0, **attributes)
    if flat:
        return nest(result, iter(results_of(op, list(result.leaves()))))
    return unpack(op.results[0], result)


def _is_flat(shape: Shape) -> bool:
    """Whether StableHLO's several results say it: one result is an array to HLO, several are a tuple of arrays."""
    if shape.elements is None:
        return True
    return len(shape.elements) > 1 and not any(element.is_tuple for element in shape.elements)


def _parsed(shape: Shape | str) -> Shape:
    try:
        return Shape.parse(shape) if isinstance(shape, str) else shape
    except ValueError as error:
        raise OperationError(str(error)) from None


def _version(version: int | None, configuration: str | Mapping[str, Any]) -> int:
    typed = isinstance(configuration, Mapping)
    found = (_TYPED_FFI if typed else 1) if version is None else version
    if not 1 <= found <= _TYPED_FFI:
        raise OperationError(f"API version {found} is none of 1 to {_TYPED_FFI}")
    if typed and found != _TYPED_FFI:
        raise OperationError(f"API version {found} takes text as its configuration, not a mapping")
    if found == _TYPED_FFI and not typed and configuration:
        raise OperationError(f"API version {found} takes a mapping as its configuration, not text")
    return found


def _configuration(configuration: str | Mapping[str, Any]) -> Any:
    if isinstance(configuration, str):
        return text(configuration) if configuration else None
    return dictionary(configuration)


def _layouts(operands: Sequence[Value], orders: Sequence[Sequence[int]] | None, result: Shape) -> dict[str, Any]:
    if orders is None:
        return {}
    nested = result.elements is not None and any(element.is_tuple for element in result.elements)
    if nested or any(operand.shape.is_tuple for operand in operands):
        raise OperationError("layouts cannot be named where an operand is a tuple, or the result a nested one")
    if len(orders) != len(operands):
        raise OperationError(f"{len(orders)} layouts are named for {len(operands)} operands")
    for order, operand in zip(orders, operands, strict=True):
        if sorted(order) != list(range(operand.shape.rank)):
            raise OperationError(f"{list(order)} is no minor-to-major order of {operand.shape}")
    results = [leaf.layout_or_default.minor_to_major for leaf in result.leaves()]
    return {
        "operand_layouts": ir.ArrayAttr.get([_order(order) for order in orders]),
        "result_layouts": ir.ArrayAttr.get([_order(order) for order in results]),
    }


def _order(order: Sequence[int]) -> Any:
    numbers = f"[{', '.join(map(str, order))}]" if order else ""
    return ir.Attribute.parse(f"dense<{numbers}> : tensor<{len(order)}xindex>")


def _check_alias(alias: Aliasing, operands: Sequence[Value], result: Shape) -> None:
    output_index, number, operand_index = alias
    if not 0 <= number < len(operands):
        raise OperationError(f"an alias names operand {number} of {len(operands)}")
    source = _part(operands[number].shape, operand_index, f"operand {number}")
    target = _part(result, output_index, "the result")
    if source.without_layout() != target.without_layout():
        raise OperationError(f"an alias joins an operand of {source} with a result of {target}")


def _part(shape: Shape, index: Sequence[int], what: str) -> Shape:
    part = shape
    for number in index:
        if part.elements is None or not 0 <= number < len(part.elements):
            raise OperationError(f"an alias names element {list(index)} of {what}, which has shape {shape}")
        part = part.elements[number]
    return part


def _alias(output_index: Sequence[int], number: int, operand_index: Sequence[int]) -> Any:
    return ir.Attribute.parse(
        f"#stablehlo.output_operand_alias<output_tuple_indices = {list(output_index)}, operand_index = {number}, "
        f"operand_tuple_indices = {list(operand_index)}>"
    )
