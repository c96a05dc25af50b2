"""Widen all floats of a program to f64, to compute its result with less rounding."""

from __future__ import annotations

import re
from typing import Any

from hloforge.dialect.constants import full
from hloforge.dialect.element_types import ElementType, element_type
from hloforge.dialect.errors import ReferenceEngineError
from hloforge.dialect.mlir import AnyOp, in_context, ir
from hloforge.dialect.operations import location_of, operations, string_attribute
from hloforge.dialect.program import entry_function
from hloforge.dialect.quantized import is_quantized
from hloforge.dialect.values import Value
from hloforge.pipelines.delta_debugging.edits import erase_unused
from hloforge.runtime.reference.precision import operations_behind

# JAX's calls of LAPACK, whose names say the type of their floats: s and c are f32 and c64, d and z f64 and c128.
_LAPACK = re.compile(r"lapack_([sc])(?=[a-z0-9]+_ffi$)")


def wide(row: ElementType) -> ElementType:
    """f64 for a float, c128 for a complex type, and any other type as it is."""
    if row.is_complex:
        return element_type("c128")
    return element_type("f64") if row.is_float else row


def leave_out_narrow_results(module: ir.Module) -> None:
    """Put NaN in the place of those results that something behind them keeps from being widened, if there are others.

    Operations that nothing reads then are erased.
    """
    *_, terminator = entry_function(module).regions[0].blocks[0].operations
    bound = [any(map(_depends_on_width, operations_behind(value, module))) for value in terminator.operation.operands]
    if all(bound) or any(is_quantized(value.type) for value in terminator.operation.operands):
        return
    with in_context(module), ir.InsertionPoint(terminator), terminator.operation.location:
        for number, is_bound in enumerate(bound):
            value = Value(terminator.operation.operands[number])
            if is_bound:
                row = value.element_type
                nothing = full(value, float("nan") if row.is_float or row.is_complex else 0)
                terminator.operation.operands[number] = nothing.ir
    erase_unused(module)


def _depends_on_width(op: AnyOp) -> bool:
    return _is_bound(op) or any(is_quantized(value.type) for value in (*op.operands, *op.results))


def _is_bound(op: AnyOp) -> bool:
    """Whether an operation means something else at another width: calls that take or give narrow floats, and bits of
    floats. Integers that are bits of a float have no rounding: the float is widened after it is made."""
    if op.name == "stablehlo.custom_call":
        if _LAPACK.match(string_attribute(op, "call_target_name")):
            return False
        with in_context(op):
            return any(_wide_type(value.type) != value.type for value in (*op.operands, *op.results))
    return op.name == "stablehlo.bitcast_convert" and not _row(op.operands[0]).is_integer


def _of_float64(name: re.Match[str]) -> str:
    return {"s": "lapack_d", "c": "lapack_z"}[name.group(1)]


def _row(value: Any) -> ElementType:
    return element_type(value.type.element_type)


def widen_floats(module: ir.Module) -> None:
    """Give every float and complex value of a normalized module without composites 64-bit parts, in place.

    Conversions become identities.

    Raises:
        ReferenceEngineError: an operation or type means something else at another width (``bitcast_convert``, …).
    """
    ops = operations(module)
    for op in ops:
        if _is_bound(op):
            raise ReferenceEngineError(
                f"{op.name} cannot be widened to f64: it depends on the width of its type", location=location_of(op)
            )
        if any(is_quantized(value.type) for value in (*op.operands, *op.results)):
            raise ReferenceEngineError(
                f"{op.name} cannot be widened to f64: a quantized type contains its float type",
                location=location_of(op),
            )
    with in_context(module):
        for op in ops:
            if op.name == "stablehlo.custom_call":
                name = string_attribute(op, "call_target_name")
                op.attributes["call_target_name"] = ir.StringAttr.get(_LAPACK.sub(_of_float64, name))
            # An algorithm names the element types that it computes in.
            if "algorithm" in op.attributes:
                del op.attributes["algorithm"]
            if op.name in ("stablehlo.constant", "stablehlo.bitcast_convert"):
                _convert_after(op)
                continue
            for result in op.results:
                result.set_type(_wide_type(result.type))
            for region in op.regions:
                for block in region.blocks:
                    for argument in block.arguments:
                        argument.set_type(_wide_type(argument.type))
        entry = entry_function(module)
        inputs, results = (list(map(_wide_type, types)) for types in (entry.type.inputs, entry.type.results))
        entry.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, results))
        for op in operations(module, ["stablehlo.reduce_precision"]):
            op.results[0].replace_all_uses_with(op.operands[0])
            op.erase()
        module.operation.verify()


def _wide_type(type_: Any) -> Any:
    if isinstance(type_, ir.RankedTensorType):
        try:
            row = element_type(type_.element_type)
        except ValueError:
            return type_
        return ir.RankedTensorType.get(type_.shape, ir.Type.parse(wide(row).mlir), type_.encoding)
    if isinstance(type_, ir.TupleType):
        return ir.TupleType.get_tuple([_wide_type(type_.get_type(i)) for i in range(type_.num_types)])
    return type_


def _convert_after(op: AnyOp) -> None:
    """Widen what an operation makes after it, exactly: values of a constant need not be read, bits of a float stay."""
    value = op.results[0]
    type_ = _wide_type(value.type)
    if type_ == value.type:
        return
    with ir.InsertionPoint.after(op):
        converted = ir.Operation.create("stablehlo.convert", results=[type_], operands=[value])
    value.replace_all_uses_except(converted.results[0], converted)
