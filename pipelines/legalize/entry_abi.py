"""``legalize-entry-abi``: the arguments and results of ``main`` in their physical form.

Before, with ``hloforge.parameter_shapes = ["f32[4,8]{0,1}", "s4[3]", "token[]"]``::

    func.func @main(%x: tensor<4x8xf32>, %k: tensor<3xi4>, %t: !stablehlo.token) -> tensor<3xi4> { ... }

After::

    func.func @main(%x: tensor<8x4xf32>, %k: tensor<3xi8>) -> tensor<3xi8> {
      %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<8x4xf32>) -> tensor<4x8xf32>
      %1 = stablehlo.convert %k : (tensor<3xi8>) -> tensor<3xi4>
      ... }

A caller passes the bytes that XLA's layout describes; the module transposes, and takes tiled arrays from the buffers
that hold them. IREE knows neither layouts nor a packed
format for sub-byte elements, and takes only some of the 8-bit floats: see ``hloforge.dialect.abi``.
Tokens carry no data and are dropped. Source: XLA "Shapes and Layout".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from hloforge.dialect import ops
from hloforge.dialect.abi import buffer_layout, crosses, major_to_minor, physical_element, physical_shape
from hloforge.dialect.element_types import ElementType, element_type
from hloforge.dialect.emission import emit
from hloforge.dialect.errors import PassError, UnsupportedError
from hloforge.dialect.marks import PHYSICAL_ABI
from hloforge.dialect.mlir import in_context, ir
from hloforge.dialect.operations import location_of
from hloforge.dialect.program import Signature, entry_function
from hloforge.dialect.shapes import Shape
from hloforge.dialect.values import Value
from hloforge.pipelines.framework.facts import REWRITES, Fact, Facts
from hloforge.pipelines.framework.passes import Pass, register
from hloforge.pipelines.legalize.buffer_layouts import from_buffer, to_buffer

# Marks a main that has its physical form, so that a second run changes nothing.
# Widths of narrow floats that an integer type has as well; StableHLO has none of 6 bits.
_CODE_BITS = (4, 8)


@register
@dataclass(frozen=True)
class LegalizeEntryAbi(Pass):
    """Give ``main`` the types of ``dialect.abi.physical_shape`` for its signature; run it once, before decompositions.

    Raises (on run):
        PassError: the signature does not name as many arrays as ``main`` takes or returns.
    """

    name: ClassVar[str] = "legalize-entry-abi"
    establishes: ClassVar[Facts] = frozenset({Fact.PHYSICAL_BORDER})
    breaks: ClassVar[Facts] = REWRITES | frozenset({Fact.NO_NARROW_FLOATS})

    def run(self, module: ir.Module) -> None:
        signature = Signature.of(module)
        entry = entry_function(module).operation
        attributes = module.operation.attributes
        if PHYSICAL_ABI in attributes:
            return
        with in_context(module):
            block = entry.regions[0].blocks[0]
            end = list(block.operations)[-1].operation
            parameters = [parameter.shape for parameter in signature.flat_parameters]
            results = list(signature.flat_results)
            _check(entry, "parameters", parameters, len(block.arguments))
            _check(entry, "results", results, len(end.operands))
            _check_buffers(entry, parameters)
            _check_buffers(end, results)
            with ir.InsertionPoint.at_block_begin(block), entry.location:
                _import_arguments(block, parameters)
            with ir.InsertionPoint(end), end.location:
                returned = [
                    to_physical(Value(value), shape).ir
                    for value, shape in zip(end.operands, results, strict=True)
                    if crosses(shape)
                ]
                ir.Operation.create("func.return", operands=returned)
            end.erase()
            _retype(entry, [argument.type for argument in block.arguments], [value.type for value in returned])
            # From here on the types of main no longer tell the logical shapes.
            signature.attach(module)
            attributes[PHYSICAL_ABI] = ir.UnitAttr.get()


def _check(entry: ir.Operation, what: str, shapes: list[Shape], count: int) -> None:
    if len(shapes) == count:
        return
    message = f"the signature names {len(shapes)} {what}, @main has {count}"
    raise PassError(message, location=location_of(entry), hint="remove the hloforge.* attributes of the module")


def _check_buffers(at: ir.Operation, shapes: list[Shape]) -> None:
    for shape in filter(crosses, shapes):
        try:
            physical_shape(shape)
        except UnsupportedError as error:
            error.location = error.location or location_of(at)
            raise


def _import_arguments(block: ir.Block, shapes: list[Shape]) -> None:
    """Retype the block's arguments and give their former uses the logical value; erase the tokens."""
    for number in reversed(range(len(shapes))):
        argument, shape = block.arguments[number], shapes[number]
        if not crosses(shape):
            token = ir.Operation.create("stablehlo.after_all", results=[argument.type])
            argument.replace_all_uses_with(token.results[0])
            block.erase_argument(number)
            continue
        logical = argument.type
        physical = physical_type(logical, shape)
        # A square array's type does not show its layout.
        if physical == logical and major_to_minor(shape) == tuple(range(shape.rank)):
            continue
        # A stand-in takes over the uses while the argument gets its new type.
        stand_in = ir.Operation.create("builtin.unrealized_conversion_cast", results=[logical], operands=[])
        argument.replace_all_uses_with(stand_in.results[0])
        argument.set_type(physical)
        value = to_logical(Value(argument), shape)
        stand_in.results[0].replace_all_uses_with(value.ir)
        stand_in.erase()


def physical_type(logical: ir.Type, shape: Shape) -> Any:
    """The argument's own sizes (which may be dynamic) in the order of the signature's layout, or a whole buffer."""
    if buffer_layout(shape) is not None:
        return physical_shape(shape).mlir_type()
    value = Shape.of_type(logical)
    order = major_to_minor(shape)
    assert value.element is not None  # crosses() held, and arrays have an element type
    sizes, flags = [value.dimensions[d] for d in order], [value.dynamic[d] for d in order]
    return Shape(physical_element(value.element), tuple(sizes), tuple(flags)).mlir_type()


def to_logical(value: Value, shape: Shape) -> Value:
    """The array of a shape from its physical form."""
    ordered = _in_logical_order(value, shape)
    element = shape.element
    assert element is not None
    if not element.is_float or element == physical_element(element):
        return ops.convert_element_type(ordered, element)
    return _from_code(ordered, element)


def _in_logical_order(value: Value, shape: Shape) -> Value:
    layout = buffer_layout(shape)
    if layout is not None:
        return from_buffer(value, shape.dimensions, layout)
    order = major_to_minor(shape)
    return ops.transpose(value, [order.index(d) for d in range(len(order))])


def to_physical(value: Value, shape: Shape) -> Value:
    """The physical form of an array of a shape."""
    element = shape.element
    assert element is not None
    target = physical_element(element)
    converted = _to_code(value) if element.is_float and element != target else ops.convert_element_type(value, target)
    layout = buffer_layout(shape)
    return ops.transpose(converted, major_to_minor(shape)) if layout is None else to_buffer(converted, layout)


def _from_code(codes: Value, element: ElementType) -> Value:
    """The narrow floats whose codes are in the low bits of bytes."""
    if element.bits not in _CODE_BITS:
        return _cast(codes, element)
    return ops.bitcast_convert_type(ops.convert_element_type(codes, f"u{element.bits}"), element)


def _to_code(value: Value) -> Value:
    bits = value.element_type.bits
    if bits not in _CODE_BITS:
        return _cast(value, element_type("u8"))
    return ops.convert_element_type(ops.bitcast_convert_type(value, f"u{bits}"), "u8")


def _cast(value: Value, element: ElementType) -> Value:
    """Between codes and floats that no integer type is as wide as; ``legalize-narrow-floats`` takes it away."""
    shape = Shape(element, value.shape.dimensions, value.shape.dynamic)
    return emit("builtin.unrealized_conversion_cast", [value], shape)


def _retype(entry: ir.Operation, inputs: list[ir.Type], results: list[ir.Type]) -> None:
    """The new function type; XLA's argument attributes (donation, sharding, names) live on in the signature."""
    for name in ("arg_attrs", "res_attrs"):
        if name in entry.attributes:
            del entry.attributes[name]
    entry.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, results))
