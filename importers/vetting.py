"""Vet imported programs: refuse or remove marks of ours, IREE's operations, and anything that no rule checks.

Passes believe attributes that other passes wrote (``dialect/marks.py``), and IREE believes attributes of its own
(``lowering_config``, ``iree.abi.stub``, ``hal.device.targets``). So every program that was read from bytes, text or a
framework's module goes through ``vet`` before anything else looks at it:

- Attributes stay if the operation's definition has them, if XLA, JAX or Shardy writes them, or if they are of the few
  marks that a file may carry. All others are taken away: they have no meaning in StableHLO.
- What a file carries is compared with the types, and a lie is an error at its position.
- Operations, types, targets and symbols cannot be taken away: those of ours and of IREE are errors.

Locations are no way in: whoever numbers operations replaces every location. As values of attributes they are refused
before anything reads an attribute, because jaxlib's bindings end the process at one in a dictionary.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from math import prod
from typing import Any

from hloforge.dialect.errors import ImporterError, Location
from hloforge.dialect.marks import (
    BELOW,
    LIBRARY_FUNCTIONS,
    NUM_PARTITIONS,
    NUM_REPLICAS,
    PARAMETER_SHAPES,
    PARTITIONED,
    PREFIX,
    RESERVED_SYMBOLS,
    RESULT_ALIASES,
    RESULT_SHAPE,
    On,
    is_carried,
    is_foreign,
)
from hloforge.dialect.mlir import AnyOp, entries, in_context, ir, stablehlo
from hloforge.dialect.operations import blocks, location_of, string_attribute
from hloforge.dialect.program import Alias, Signature, entry_function
from hloforge.dialect.shapes import Shape

# Dialects whose types and attributes of types a program may name.
_TYPE_DIALECTS = frozenset({"chlo", "mhlo", "quant", "stablehlo"})
_NAMED_DIALECT = re.compile(r'(?<!")[!#](\w+)')
_LOCATION, _STRING = re.compile(r"\bloc\("), re.compile(r'"(?:[^"\\]|\\.)*"')
_MODULE, _FUNCTION, _CUSTOM_CALL = "builtin.module", "func.func", "stablehlo.custom_call"
# What a shape assertion of JAX says if it fails, and which operands of a call are the sizes of its results.
_ASSERTION, _SIZE_OPERANDS = "error_message", "indices_of_shape_operands"
# The kinds of attributes of XLA and JAX that something reads.
_KINDS: dict[str, tuple[type[Any], ...]] = {
    "mhlo.backend_config": (ir.DictAttr, ir.StringAttr),
    "mhlo.frontend_attributes": (ir.DictAttr,),
    "mhlo.sharding": (ir.StringAttr,),
    "mhlo.layout_mode": (ir.StringAttr,),
    "mhlo.memory_kind": (ir.StringAttr,),
    "mhlo.attributes": (ir.DictAttr,),
    "tf.aliasing_output": (ir.IntegerAttr,),
    _ASSERTION: (ir.StringAttr,),
    _SIZE_OPERANDS: (ir.DenseIntElementsAttr,),
}
# The pairs of devices of a transfer, as XLA writes them beside it.
_PAIRS, _PAIRS_TEXT = "_xla_send_recv_source_target_pairs", re.compile(r"\{\s*(\{\s*\d+\s*,\s*\d+\s*\}\s*,?\s*)*\}")
# What newer versions of StableHLO say beside definitions (``stablehlo.mesh``).
_STABLEHLO = ("stablehlo.", "chlo.")
_PER_VALUE = ("arg_attrs", "res_attrs")
# Attributes that a definition has, with any values.
_OF_ANY_KIND = frozenset({"backend_config", "composite_attributes", *_PER_VALUE})
# XLA counts elements by signed numbers.
_MOST_ELEMENTS = (1 << 63) - 1
# Devices that a program may ask for: more are a damaged number.
_MOST_DEVICES = 1 << 20
_COUNTS = (NUM_PARTITIONS, NUM_REPLICAS, "mhlo.num_partitions", "mhlo.num_replicas")
# What MLIR adds to definitions with several lists of operands or results.
_SEGMENTS = frozenset({"operandSegmentSizes", "resultSegmentSizes", "operand_segment_sizes", "result_segment_sizes"})


def vet(module: ir.Module, file: str, *, own_targets: frozenset[str] = frozenset()) -> None:
    """Take away or refuse what a file may not say; see above.

    Args:
        file: what to call the program where an operation has no position.
        own_targets: targets of ours that the importer itself has written into this program, after it refused them.

    Raises:
        ImporterError: what is refused, at its place, with the way out.
    """
    seen: set[Any] = set()

    def visit(op: ir.Operation) -> Any:
        found.append(op)
        return ir.WalkResult.ADVANCE

    with in_context(module):
        found: list[Any] = []
        module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
        for op in found:
            name = op.name
            view: Any = type(op.opview)
            own = _inherent(name, view)
            _check_values(op, own - _OF_ANY_KIND, file)
            _check_operation(op, name, file)
            if name == _CUSTOM_CALL:
                check_target(string_attribute(op, "call_target_name"), _place(op, file), own_targets)
            _check_types([result.type for result in op.results], seen, op, file)
            for block in blocks(op) if len(op.regions) else ():
                _check_types([argument.type for argument in block.arguments], seen, op, file)
            _strip(op, name, own, file)
        _check_module(module, file)
        for op in found:
            if op.name == _CUSTOM_CALL and (RESULT_SHAPE in op.attributes or RESULT_ALIASES in op.attributes):
                _check_result(op, file)


def check_signature(module: ir.Module, signature: Signature, file: str) -> None:
    """Compare a signature that a file brought with the types of ``main``. Raises ImporterError."""
    entry = entry_function(module)
    if PARAMETER_SHAPES in module.operation.attributes:
        _check_shapes(entry, signature, file)
    _check_aliases(entry, signature, file)


def _check_shapes(entry: AnyOp, signature: Signature, file: str) -> None:
    type_ = ir.FunctionType(ir.TypeAttr(entry.operation.attributes["function_type"]).value)
    parameters = [(f"parameter {leaf.name!r}", leaf.shape) for leaf in signature.flat_parameters]
    results = [(f"result {number}", shape) for number, shape in enumerate(signature.flat_results)]
    for what, pairs, types in (("parameters", parameters, type_.inputs), ("results", results, type_.results)):
        if len(pairs) != len(types):
            raise _lie(entry, f"the signature names {len(pairs)} {what}, and @main has {len(types)}", file)
        for (name, shape), found in zip(pairs, types, strict=True):
            if not _agrees(shape, found):
                raise _lie(entry, f"the signature says that {name} is {shape}, and @main has {found}", file)


def check_target(target: str, place: Location, own: frozenset[str] = frozenset()) -> None:
    """Refuse a custom call of ours in a file, except for those in ``own``. Raises ImporterError."""
    if target.startswith(PREFIX) and target not in LIBRARY_FUNCTIONS | own:
        raise ImporterError(
            f"custom_call @{target}: names that begin with {PREFIX} are hloforge's own, and no file may call them",
            location=place,
            hint="call the function by another name; a program in the middle of a pipeline is for hloforge opt",
        )


def _place(op: AnyOp, file: str) -> Location:
    return location_of(op) or Location(file)


def _check_values(op: Any, known: frozenset[str], file: str) -> None:
    """Refuse locations as values, but of the attributes whose kind a definition knows."""
    for name in sorted(set(op.attributes) - known):
        try:
            value = op.attributes[name]
            if type(value) not in (ir.ArrayAttr, ir.DictAttr) or not _LOCATION.search(_STRING.sub("", str(value))):
                continue
        except TypeError:
            pass  # the bindings have no class for one
        raise ImporterError(
            f"the attribute {name} has a location for a value, which means nothing",
            location=_place(op, file),
            hint="remove the attribute",
        )


def _check_operation(op: ir.Operation, name: str, file: str) -> None:
    dialect = name.partition(".")[0]
    if dialect in BELOW:
        raise ImporterError(
            f"{name} is no operation of StableHLO but of dialect {dialect!r}, whose indices and sizes are not checked",
            location=_place(op, file),
            hint="write the program in StableHLO; what a pass of hloforge has made is for hloforge opt --keep-marks",
        )
    if name != _FUNCTION:
        return
    symbol = string_attribute(op, "sym_name")
    if symbol.startswith(RESERVED_SYMBOLS):
        raise ImporterError(
            f"function @{symbol}: names that begin with {', '.join(RESERVED_SYMBOLS)} are hloforge's own",
            location=_place(op, file),
            hint="rename the function",
        )
    if not len(op.regions[0].blocks):
        raise ImporterError(
            f"function @{symbol} has no body, and programs cannot import functions",
            location=_place(op, file),
            hint="call a function of the host by stablehlo.custom_call",
        )


def _check_types(types: Iterable[ir.Type], seen: set[ir.Type], op: ir.Operation, file: str) -> None:
    for type_ in types:
        if type_ in seen:
            continue
        seen.add(type_)
        strange = [name for name in _NAMED_DIALECT.findall(str(type_)) if name not in _TYPE_DIALECTS]
        if strange or _LOCATION.search(str(type_)):
            dialect = strange[0] if strange else "builtin"
            raise ImporterError(
                f"the type {type_} is of dialect {dialect!r}, and not of StableHLO",
                location=_place(op, file),
                hint="a program takes, computes and returns arrays of XLA's element types, tuples and tokens",
            )
        if isinstance(type_, ir.RankedTensorType) and prod(max(size, 1) for size in type_.shape) > _MOST_ELEMENTS:
            raise ImporterError(f"{type_} has more elements than 64 bits can count", location=_place(op, file))


def _strip(op: Any, name: str, own: frozenset[str], file: str) -> None:
    for attribute in list(op.attributes):
        if attribute in own:
            continue
        if not _stays(attribute, name, is_defined=bool(own)):
            del op.attributes[attribute]
        elif attribute in _KINDS:
            _check_kind(op, attribute, op.attributes[attribute], file)
    for values in _PER_VALUE if name == _FUNCTION else ():
        if values in op.attributes:
            _strip_values(op, values)
            for entry in op.attributes[values]:
                for one, value in entries(entry).items():
                    _check_kind(op, one, value, file)


def _check_kind(op: AnyOp, name: str, value: Any, file: str) -> None:
    """Refuse an attribute of XLA or JAX whose value they do not write."""
    is_known = isinstance(value, _KINDS.get(name, (object,)))
    if is_known and name == "mhlo.frontend_attributes":
        texts = entries(value)
        is_known = all(isinstance(text, ir.StringAttr) for text in texts.values())
        is_known = is_known and (_PAIRS not in texts or bool(_PAIRS_TEXT.fullmatch(texts[_PAIRS].value)))
    if is_known and name == _SIZE_OPERANDS:
        is_known = [str(ir.ShapedType(value.type).element_type), len(value)] == ["i64", len(op.results)]
        is_known = is_known and all(0 <= number < len(op.operands) for number in value)
    if not is_known:
        raise ImporterError(
            f"{name} = {value} is not what XLA or JAX write", location=_place(op, file), hint="remove the attribute"
        )


def _stays(attribute: str, name: str, *, is_defined: bool) -> bool:
    if attribute.startswith(PREFIX):
        # What a custom call had for its result; other operations have nothing of ours.
        on = On.MODULE if name == _MODULE else On.OPERATION
        return name in (_MODULE, _CUSTOM_CALL) and is_carried(attribute, on)
    if name == _CUSTOM_CALL and attribute in (_ASSERTION, _SIZE_OPERANDS):
        return True
    # What an operation that nobody defines means is not ours to know; the audit refuses it by its name.
    return is_foreign(attribute) or attribute.startswith(_STABLEHLO) or not is_defined


def _strip_values(op: Any, name: str) -> None:
    written = [entries(entry) for entry in op.attributes[name]]
    kept = [{key: value for key, value in entry.items() if is_foreign(key)} for entry in written]
    if kept != written:
        op.attributes[name] = ir.ArrayAttr.get([ir.DictAttr.get(entry) for entry in kept])


@cache
def _inherent(name: str, view: Any) -> frozenset[str]:
    """The names of the attributes that an operation's definition has; of one that nobody defines, none.

    The bindings have a property for each; a name that is a word of Python has an underscore after it.
    """
    if view is ir.OpView:
        return frozenset()
    known = {each for each in dir(view) if isinstance(getattr(view, each), property)} - _EVERY_OPERATION
    return _SEGMENTS | known | {each.removesuffix("_") for each in known} | _UNNAMED.get(name, frozenset())


_EVERY_OPERATION = frozenset(dir(ir.OpView))
# Attributes of definitions whose properties have another name or meaning, or that have none.
_UNNAMED = {
    _FUNCTION: frozenset({"sym_name", "function_type", "sym_visibility", "no_inline", *_PER_VALUE}),
    _MODULE: frozenset({"sym_name", "sym_visibility"}),
    "stablehlo.composite": frozenset({"name"}),
    "mhlo.composite": frozenset({"name"}),
    "sdy.named_computation": frozenset({"name"}),
}


def _check_module(module: ir.Module, file: str) -> None:
    attributes = module.operation.attributes
    for name in _COUNTS:
        if name in attributes:
            value = attributes[name]
            if not isinstance(value, ir.IntegerAttr) or not 1 <= value.value <= _MOST_DEVICES:
                raise _lie(module, f"{name} = {value} is no number of devices", file)
    if PARTITIONED in attributes and not isinstance(attributes[PARTITIONED], ir.UnitAttr):
        raise _lie(module, f"{PARTITIONED} has the value {attributes[PARTITIONED]}, and takes none", file)


def _check_result(op: AnyOp, file: str) -> None:
    """What a custom call says of its result, which several results of the operation do not say."""
    try:
        result = Shape.parse(string_attribute(op, RESULT_SHAPE))
    except ValueError as error:
        raise _lie(op, f"{RESULT_SHAPE} is no shape: {error}", file) from None
    leaves = list(result.leaves())
    if len(leaves) != len(op.results) or not all(map(_agrees, leaves, (value.type for value in op.results))):
        raise _lie(op, f"{RESULT_SHAPE} says {result}, and the call returns other types", file)
    if RESULT_ALIASES not in op.attributes:
        return
    operands = Shape.tuple_of(*(Shape.of_type(value.type) for value in op.operands))
    try:
        aliases = [stablehlo.OutputOperandAlias(alias) for alias in ir.ArrayAttr(op.attributes[RESULT_ALIASES])]
        for alias in aliases:
            taken = _part(operands, (alias.operand_index, *alias.operand_tuple_indices))
            if _part(result, alias.output_tuple_indices).without_layout() != taken.without_layout():
                raise ValueError(f"an operand {taken} cannot share a buffer with another shape")
    except (ValueError, TypeError) as error:
        raise _lie(op, f"{RESULT_ALIASES}: {str(error).partition(chr(10))[0]}", file) from None


def _check_aliases(entry: AnyOp, signature: Signature, file: str) -> None:
    for alias in signature.aliases:
        try:
            given = signature.parameters[alias.parameter_number].shape
            taken, made = _part(given, alias.parameter_index), _part(signature.result, alias.output_index)
        except (ValueError, IndexError):
            raise _bad_alias(entry, alias, "which names no parameter or no result", file) from None
        if not (taken.is_array and made.is_array):
            raise _bad_alias(entry, alias, "and a whole tuple has no buffer", file)


def _bad_alias(entry: Any, alias: Alias, why: str, file: str) -> ImporterError:
    return ImporterError(
        f"the program's donation says {alias}, {why}",
        location=_place(entry, file),
        hint="remove the donation: hloforge.input_output_alias, mhlo.input_output_alias or tf.aliasing_output",
    )


def _part(shape: Shape, index: Iterable[int]) -> Shape:
    """The part of a shape at a position. Raises ValueError if it has none there."""
    for number in index:
        if shape.elements is None or not 0 <= number < len(shape.elements):
            raise ValueError(f"{shape} has no element {number}")
        shape = shape.elements[number]
    return shape


def _agrees(shape: Shape, type_: ir.Type) -> bool:
    """Whether a shape is that of a type, except for its layout, and for bounds that the type does not say."""
    try:
        found = Shape.of_type(type_)
    except ValueError:
        return False
    if not (shape.is_array and found.is_array):
        return shape.without_layout() == found.without_layout()
    if shape.element != found.element or shape.rank != found.rank or shape.dynamic != found.dynamic:
        return False
    return all(size in (given, -1) for given, size in zip(shape.dimensions, found.dimensions, strict=True))


def _lie(op: Any, what: str, file: str) -> ImporterError:
    return ImporterError(
        f"the program's attributes of hloforge: {what}",
        location=_place(op, file),
        hint=f"remove the {PREFIX}* attributes: the types of @main say what it takes and returns",
    )
