"""A program as HLO, by XLA's own converter.

The converter takes MLIR text. Beforehand ``main`` gets back what the signature knows: tuples as parameters, nested
tuples as the result, names, and the users' lines in the form that becomes HLO's metadata. What StableHLO cannot say at
all (layouts with tiles, donation) is read by XLA's parser from an HLO module that holds nothing else, and put into the
converter's answer: both are fields of ``HloModuleProto``.

The converter can abort the process on a malformed program. A caller that must survive runs ``proto_of`` elsewhere: it
takes and returns nothing but text and bytes.
"""

from __future__ import annotations

import re
from typing import Any

from hloforge.dialect.emission import mlir_type_of
from hloforge.dialect.errors import CompileError
from hloforge.dialect.marks import PREFIX
from hloforge.dialect.mlir import AnyOp, _hlo, _jax, entries, in_context, ir
from hloforge.dialect.operations import file_location, location_of, operations, string_attribute
from hloforge.dialect.program import Program, Signature, entry_function
from hloforge.dialect.protobuf import fields
from hloforge.dialect.shapes import Shape
from hloforge.dialect.tuples import pack, unpack
from hloforge.dialect.values import Value, leaves, nest

_ALIASING = "tf.aliasing_output"
_TOP_K = "mhlo.topk"
# Fields of HloModuleProto that hold the entry's calling convention.
_PROGRAM_SHAPE, _ALIASES = 4, 8
# Types whose constants end XLA's converter, and the process with it.
_UNWRITABLE = ("f6E2M3FN", "f6E3M2FN")


def hlo_proto(program: Program) -> bytes:
    """A serialized ``HloModuleProto``.

    Raises:
        CompileError: XLA's converter knows no HLO for an operation.
    """
    return proto_of(*sources(program))


def hlo_text(program: Program) -> str:
    """HLO text, constants written in full, with metadata; errors as of ``hlo_proto``."""
    return text_of(hlo_proto(program))


def sources(program: Program) -> tuple[str, str]:
    """What ``proto_of`` takes: the module as XLA's converter reads it, and HLO text with the calling convention.

    Raises:
        CompileError: it has a constant of 6-bit floats, on which XLA's converter ends the process.
    """
    copy = program.clone()
    with in_context(copy.module):
        attributes = copy.module.operation.attributes
        for name in [name for name in attributes if name.startswith(PREFIX)]:
            del attributes[name]
        for op in operations(copy.module):
            _check_constant(op)
            op.location = _metadata(op.location)
        for op in operations(copy.module, {"stablehlo.custom_call"}):
            if string_attribute(op, "call_target_name") == _TOP_K:
                _restore_top_k(op)
        _restore_signature(entry_function(copy.module).operation, program.signature)
    return copy.text(locations=True), _convention(program.signature)


def proto_of(module: str, convention: str) -> bytes:
    """Convert the texts of ``sources``; errors as of ``hlo_proto``."""
    try:
        computation = _jax.mlir.mlir_module_to_xla_computation(module, use_tuple_args=False, return_tuple=False)
        entry = _hlo.hlo_module_from_text(convention).as_serialized_hlo_module_proto()
    except Exception as error:
        reason = str(error).strip().partition("\n")[0]
        raise CompileError(f"XLA's converter has no HLO for this program: {reason}") from None
    proto: bytes = computation.as_serialized_hlo_module_proto()
    replaced = (_PROGRAM_SHAPE, _ALIASES)
    kept = [proto[field.start : field.end] for field in fields(proto) if field.number not in replaced]
    return b"".join([*kept, *(entry[field.start : field.end] for field in fields(entry) if field.number in replaced)])


def text_of(proto: bytes) -> str:
    """The text of an ``HloModuleProto``."""
    options = _hlo.HloPrintOptions()
    options.print_large_constants = True
    options.print_percent = options.print_program_shape = options.print_operand_shape = False
    text: str = _hlo.HloModule.from_serialized_hlo_module_proto(proto).to_string(options)
    return text


def _check_constant(op: ir.Operation) -> None:
    if op.name != "stablehlo.constant":
        return
    element = str(op.results[0].type.element_type)
    if element in _UNWRITABLE:
        raise CompileError(
            f"XLA's converter has no HLO for constants of {element}",
            location=location_of(op),
            hint="convert a constant of another type",
        )


def _metadata(location: Any) -> ir.Location:
    """The location that XLA's converter reads as ``op_name`` and ``source_file``.

    Of an imported instruction the framework's name and line follow XLA's own in a fused location. Nested names are
    scopes.
    """
    if isinstance(location, ir.FusedLoc):
        return _metadata(location.locations[-1])
    names, inner = [], location
    while isinstance(inner, ir.NameLoc):
        names.append(inner.name_str)
        inner = inner.child_loc
    place = file_location(inner)
    parts: list[ir.Location] = [ir.Location.name("/".join(names))] if names else []
    if place is not None:
        parts.append(ir.Location.file(place.file, place.line, place.column))
    return ir.Location.fused(parts) if parts else ir.Location.unknown()


def _restore_top_k(op: AnyOp) -> None:
    """XLA's converter turns the custom call into HLO's ``topk`` only if it asks for the largest elements."""
    with ir.InsertionPoint(op):
        own = ir.Operation.create(
            _TOP_K,
            results=[result.type for result in op.results],
            operands=list(op.operands),
            attributes=entries(op.attributes["mhlo.attributes"]),
            loc=op.location,
        )
    for old, new in zip(op.results, own.results, strict=True):
        old.replace_all_uses_with(new)
    op.erase()


def _restore_signature(function: ir.Operation, signature: Signature) -> None:
    """Give ``main`` one argument a parameter and one result, each of tuple type where the signature says so."""
    block = function.regions[0].blocks[0]
    flat = list(block.arguments)
    fresh = [
        block.add_argument(mlir_type_of(parameter.shape), ir.Location.name(re.sub(r"\W", "_", parameter.name)))
        for parameter in signature.parameters
    ]
    with ir.InsertionPoint.at_block_begin(block):
        values = [unpack(a, p.shape) for a, p in zip(fresh, signature.parameters, strict=True)]
    restored = [leaf for value in values for leaf in leaves(value)]
    for old, new in zip(flat, restored, strict=True):
        old.replace_all_uses_with(new.ir)
    for _ in flat:
        block.erase_argument(0)
    _keep_attributes(function, signature)
    terminator = block.operations[len(block.operations) - 1].operation
    if signature.result.is_tuple:
        with ir.InsertionPoint(terminator):
            result = pack(nest(signature.result, map(Value, terminator.operands)))
            ir.Operation.create("func.return", operands=[result.ir])
        terminator.erase()
        returned = [result.ir.type]
    else:
        returned = [operand.type for operand in terminator.operands]
    type_ = ir.FunctionType.get([argument.type for argument in block.arguments], returned)
    function.attributes["function_type"] = ir.TypeAttr.get(type_)


def _keep_attributes(function: ir.Operation, signature: Signature) -> None:
    """Attributes of arguments that are still arguments; donation is the signature's to say."""
    attributes = function.attributes
    if signature.result.is_tuple and "res_attrs" in attributes:
        del attributes["res_attrs"]
    if "arg_attrs" not in attributes:
        return
    flat = iter(ir.ArrayAttr(attributes["arg_attrs"]))
    kept = []
    for parameter in signature.parameters:
        own = [next(flat) for _ in parameter.shape.leaves()]
        named = {} if parameter.shape.is_tuple else entries(own[0])
        kept.append(ir.DictAttr.get({name: value for name, value in named.items() if name != _ALIASING}))
    attributes["arg_attrs"] = ir.ArrayAttr.get(kept)


def _convention(signature: Signature) -> str:
    """An HLO module of the program's shape, layouts and donation."""
    shapes = [_laid_out(parameter.shape) for parameter in signature.parameters]
    result = _laid_out(signature.result)
    aliases = ", ".join(map(str, signature.aliases))
    parameters = "\n".join(f"  p{n} = {shape.without_layout()} parameter({n})" for n, shape in enumerate(shapes))
    return (
        f"HloModule convention{f', input_output_alias={{ {aliases} }}' if aliases else ''}, "
        f"entry_computation_layout={{({', '.join(map(str, shapes))})->{result}}}\n\nENTRY entry {{\n{parameters}\n"
        f'  ROOT result = {result.without_layout()} custom-call(), custom_call_target="result"\n}}\n'
    )


def _laid_out(shape: Shape) -> Shape:
    """The shape with explicit layouts."""
    if shape.elements is not None:
        return Shape.tuple_of(*map(_laid_out, shape.elements))
    if not shape.is_array:
        return shape
    return shape.with_layout(shape.layout_or_default)
