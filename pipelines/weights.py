"""Weights outside of a program: parameters or constants become names that are resolved when it is loaded.

Before, with a file that holds an array ``kernel``::

    func.func @main(%x: tensor<8x4xf32>, %kernel: tensor<4x2xf32>) -> ...

After::

    util.global private @hloforge.weight.0 = #flow.parameter.named<"weights"::"kernel"> : tensor<4x2xf32>
    func.func @main(%x: tensor<8x4xf32>) -> ... {
      %kernel = util.global.load @hloforge.weight.0 : tensor<4x2xf32>

What depends on weights alone, IREE computes once, when the program is loaded.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection
from dataclasses import replace
from typing import Any

import numpy as np

from hloforge.dialect import ops
from hloforge.dialect.dense_values import constant_of
from hloforge.dialect.element_types import element_type
from hloforge.dialect.emission import create, emit
from hloforge.dialect.marks import KEY, SHAPE, WEIGHT
from hloforge.dialect.mlir import in_context, ir
from hloforge.dialect.operations import operations, string_attribute
from hloforge.dialect.program import Program, Signature, entry_function
from hloforge.dialect.shapes import Shape
from hloforge.dialect.values import Value
from hloforge.pipelines.weight_names import SCOPE

# From how many bytes a constant is worth a name.
_LEAST_BYTES = 4096
# What a weight's elements may be, and what safetensors calls them.
ELEMENTS = {
    "pred": "BOOL",
    **{f"{sign}{bits}": f"{name}{bits}" for sign, name in (("s", "I"), ("u", "U")) for bits in (8, 16, 32, 64)},
    "bf16": "BF16",
    "f16": "F16",
    "f32": "F32",
    "f64": "F64",
    "c64": "C64",
    "f8e4m3fn": "F8_E4M3",
    "f8e5m2": "F8_E5M2",
    "f8e4m3fnuz": "F8_E4M3FNUZ",
    "f8e5m2fnuz": "F8_E5M2FNUZ",
    "f8e8m0fnu": "F8_E8M0",
}


def is_storable(shape: Shape) -> bool:
    """Whether an array can be a weight: of static shape, and elements that files know."""
    return shape.is_static and shape.element is not None and shape.element.name in ELEMENTS


def weights_of(module: ir.Module) -> dict[str, Shape]:
    """The weights that a module looks up, with their shapes, by name."""
    found = [op for op in operations(module, ["util.global"]) if KEY in op.attributes]
    return {string_attribute(op, KEY): Shape.parse(string_attribute(op, SHAPE)) for op in found}


def take_parameters(program: Program, names: Collection[str]) -> Program:
    """A copy of a normalized program in which the parameters of these names, storable arrays, are weights."""
    copy = program.clone()
    taken = {number for number, parameter in enumerate(copy.signature.parameters) if parameter.name in names}
    entry = entry_function(copy.module).operation
    block = entry.regions[0].blocks[0]
    with in_context(copy.module):
        leaves = copy.signature.flat_parameters
        for number in reversed([number for number, leaf in enumerate(leaves) if leaf.name in names]):
            with ir.InsertionPoint.at_block_begin(block), entry.location:
                weight = _load(copy.module, leaves[number].name, Shape.of_type(block.arguments[number].type))
            block.arguments[number].replace_all_uses_with(weight.ir)
            block.erase_argument(number)
        type_ = ir.FunctionType(ir.TypeAttr(entry.attributes["function_type"]).value)
        kept = ir.FunctionType.get([argument.type for argument in block.arguments], type_.results)
        entry.attributes["function_type"] = ir.TypeAttr.get(kept)
        if "arg_attrs" in entry.attributes:
            del entry.attributes["arg_attrs"]
    signature = _without(copy.signature, taken)
    signature.attach(copy.module)
    return replace(copy, signature=signature)


def _without(signature: Signature, taken: set[int]) -> Signature:
    """The signature without some parameters, and without what they gave away."""
    kept = [number for number in range(len(signature.parameters)) if number not in taken]
    aliases = (alias for alias in signature.aliases if alias.parameter_number not in taken)
    return replace(
        signature,
        parameters=tuple(signature.parameters[number] for number in kept),
        aliases=tuple(replace(alias, parameter_number=kept.index(alias.parameter_number)) for alias in aliases),
    )


def take_constants(program: Program, arrays: dict[str, np.ndarray[Any, Any]]) -> Program:
    """A copy of a program whose large constants are weights.

    Args:
        arrays: receives them, by names of their own; what it has already is taken from there.
    """
    copy = program.clone()
    known = {_digest(array): key for key, array in arrays.items()}
    with in_context(copy.module):
        for op in operations(copy.module, ["stablehlo.constant"]):
            shape = Shape.of_type(op.results[0].type)
            if not _is_worth_a_name(shape):
                continue
            array = constant_of(op)
            if _is_one_number(array):
                continue
            key = known.setdefault(_digest(array), f"{_label(op.location)}.{len(arrays)}")
            arrays.setdefault(key, array)
            with ir.InsertionPoint(op), op.location:
                op.results[0].replace_all_uses_with(_load(copy.module, key, shape).ir)
            op.erase()
    return copy


def _digest(array: np.ndarray[Any, Any]) -> tuple[Any, ...]:
    data = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return array.dtype, array.shape, hashlib.blake2b(data.data).digest()


def _is_worth_a_name(shape: Shape) -> bool:
    return is_storable(shape) and shape.byte_size >= _LEAST_BYTES


def _is_one_number(array: np.ndarray[Any, Any]) -> bool:
    elements = np.ascontiguousarray(array).reshape(-1).view(np.uint8).reshape(array.size, -1)
    # Most arrays differ at their beginning: comparing all of them would take a quarter of their memory and more.
    return all(bool((part == elements[0]).all()) for part in (elements[:64], elements[64:]))


def _label(location: Any) -> str:
    """What the program calls a constant."""
    return str(location.name_str) if isinstance(location, ir.NameLoc) else "constant"


def _load(module: ir.Module, key: str, shape: Shape) -> Value:
    """The weight of this name, at the current insertion point."""
    stored = _storage(shape)
    type_ = stored.mlir_type()
    symbol = f"{WEIGHT}{len(weights_of(module))}"
    with ir.InsertionPoint.at_block_begin(module.body):
        create(
            "util.global",
            [],
            [],
            0,
            sym_name=ir.StringAttr.get(symbol),
            sym_visibility=ir.StringAttr.get("private"),
            type=ir.TypeAttr.get(type_),
            initial_value=ir.Attribute.parse(f'#flow.parameter.named<"{SCOPE}"::{json.dumps(key)}> : {type_}'),
            **{KEY: ir.StringAttr.get(key), SHAPE: ir.StringAttr.get(str(shape))},
        )
    return _from_storage(emit("util.global.load", [], type_, **{"global": ir.FlatSymbolRefAttr.get(symbol)}), shape)


def _storage(shape: Shape) -> Shape:
    """What a file's bytes are read as: IREE's globals know no signs, and only wide floats."""
    element = shape.element
    assert element is not None  # a weight is an array
    is_kept = element.is_complex or (element.is_float and element.bits > 8)
    return Shape.array(element if is_kept else f"s{max(element.bits, 8)}", *shape.dimensions)


def _from_storage(stored: Value, shape: Shape) -> Value:
    """The weight itself, from what is stored of it."""
    if stored.element_type == shape.element:
        return stored
    if shape.element == element_type("pred"):
        return ops.ne(stored, 0)
    return ops.bitcast_convert_type(stored, shape.element)
