"""XLA's calling convention of an imported program: shapes with layouts, names, donation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from hloforge.dialect.abi import buffer_layout, physical_shape
from hloforge.dialect.errors import ImporterError, Location
from hloforge.dialect.marks import NUM_PARTITIONS, NUM_REPLICAS, PARAMETER_SHAPES
from hloforge.dialect.mlir import in_context, ir
from hloforge.dialect.operations import location_of
from hloforge.dialect.program import Alias, Parameter, Signature, entry_function
from hloforge.dialect.shapes import Layout, Shape, Tile
from hloforge.importers.automatic_layouts import automatic
from hloforge.importers.index_border import cross_as_integers
from hloforge.importers.jax_names import argument_names, result_names
from hloforge.importers.native import Converted
from hloforge.importers.quantized_border import cross_as_storage

_ALIASES = "mhlo.input_output_alias"
_PARAMETER_LAYOUTS = "mhlo.xla_entry_computation_parameter_layouts"
_RESULT_LAYOUT = "mhlo.xla_entry_computation_result_layout"
_PARAMETER_TILES = "mhlo.xla_entry_computation_parameter_tiles"
_RESULT_TILES = "mhlo.xla_entry_computation_result_tiles"
# What JAX says of one argument or result: ``default``, ``auto`` or a layout such as ``{0,1}``.
_MODE, _AUTO = "mhlo.layout_mode", "auto"
_FRONTEND, _MESHES = "mhlo.frontend_attributes", "xla.sdy.meshes"
_REPLICATION = {"num_partitions": NUM_PARTITIONS, "replica_count": NUM_REPLICAS}
_RENAMED = {"mhlo.num_partitions": NUM_PARTITIONS, "mhlo.num_replicas": NUM_REPLICAS}


def from_hlo(converted: Converted, module: ir.Module) -> Signature:
    """The signature of an HLO module: its program shape, its parameter instructions and its aliases.

    Raises:
        ImporterError: a parameter or the result has a shape without a StableHLO form (opaque, s1).
    """
    file = converted.locator.file
    names = _parameter_names(converted)
    parameters = [Parameter(names.get(n, f"arg{n}"), _shape(s, file)) for n, s in enumerate(converted.parameter_shapes)]
    signature = Signature(tuple(parameters), _shape(converted.result_shape, file), _aliases(module))
    _check(signature, module, file)
    return signature


def _shape(text: str, file: str) -> Shape:
    try:
        return Shape.parse(text)
    except ValueError as error:
        raise ImporterError(
            f"the entry computation has an unreadable shape: {error}", location=Location(file)
        ) from None


def _parameter_names(converted: Converted) -> dict[int, str]:
    names: dict[int, str] = {}
    number = 0
    for computation in converted.computations:
        for instruction in computation.instructions:
            if computation.is_entry and instruction.opcode == "parameter":
                names[instruction.parameter_number] = converted.locator.name(number)
            number += 1
    return names


def _check(signature: Signature, module: ir.Module, file: str) -> None:
    """XLA's converter flattens tuples; what it did must agree with the program shape, else calls would be misread."""
    function = entry_function(module)
    type_ = ir.FunctionType(ir.TypeAttr(function.operation.attributes["function_type"]).value)
    counts = len(signature.flat_parameters), len(signature.flat_results)
    if counts != (len(type_.inputs), len(type_.results)):
        raise ImporterError(
            f"the program shape {signature} does not match main's type {type_}", location=Location(file)
        )


def _aliases(module: Any) -> tuple[Alias, ...]:
    attributes = module.operation.attributes
    if _ALIASES not in attributes:
        return ()
    found = []
    for entry in ir.ArrayAttr(attributes[_ALIASES]):
        entry = ir.DictAttr(entry)
        alias = ir.DictAttr(entry["alias"])
        kind = str(ir.StringAttr(alias["kind"]).value).replace("_", "-")
        number = ir.IntegerAttr(alias["parameter_number"]).value
        found.append(Alias(_index(entry["output_index"]), number, _index(alias["parameter_index"]), kind))
    return tuple(found)


def _index(attribute: ir.Attribute) -> tuple[int, ...]:
    return tuple(int(number) for number in ir.DenseI64ArrayAttr(attribute))


def from_mlir(module: ir.Module, file: str) -> Signature:
    """The signature of a StableHLO module: main's type, argument names, layouts and donation as JAX writes them.

    Quantized arguments and results of main are given their storage types before, those of type index s64.

    Raises:
        ImporterError: there is no entry function, or its type has no XLA shape.
    """
    function = _entry(module)
    try:
        cross_as_storage(function)
        cross_as_integers(function)
        signature = Signature.of(module)
    except ValueError as error:
        where = location_of(function) or Location(file)
        raise ImporterError(f"main's type is no XLA program shape: {error}", location=where) from None
    if PARAMETER_SHAPES in module.operation.attributes:
        return signature
    try:
        return _as_jax_says(module, function, signature)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        reason = str(error).partition("\n")[0]
        raise ImporterError(
            f"what XLA or JAX say of main's arguments and results is malformed: {reason}",
            location=location_of(function) or Location(file),
            hint="remove the attributes mhlo.* of the module, of its arguments and of its results",
        ) from None


def _as_jax_says(module: ir.Module, function: Any, signature: Signature) -> Signature:
    names = argument_names(module, function)
    shapes = _with_layouts([p.shape for p in signature.parameters], module, _PARAMETER_LAYOUTS, _PARAMETER_TILES)
    results = _with_layouts(list(signature.flat_results), module, _RESULT_LAYOUT, _RESULT_TILES)
    shapes = _with_modes(shapes, function, "arg_attrs")
    results = _with_modes(results, function, "res_attrs")
    auto = [mode == _AUTO for mode in _modes(function, "res_attrs")]
    if any(auto):
        results = automatic(function, shapes, results, auto)
    result = _nested(signature.result, iter(results))
    aliases = _aliases(module) or signature.aliases
    aliases += _donations(function, shapes, results, aliases)
    donated = {alias.parameter_number for alias in aliases}
    named = result_names(module, function, list(zip(names, shapes, strict=True)), results, donated)
    names = [name or f"arg{number}" for number, name in enumerate(names)]
    return Signature(tuple(map(Parameter, names, shapes)), result, aliases, named)


def _nested(shape: Shape, leaves: Iterator[Shape]) -> Shape:
    """A shape whose leaves are the next of ``leaves``."""
    if shape.elements is None:
        return next(leaves)
    return Shape.tuple_of(*(_nested(element, leaves) for element in shape.elements))


def _entry(module: Any) -> Any:
    """The entry function. The only function of a module is the entry, whatever its name."""
    functions = [op for op in module.body.operations if op.operation.name == "func.func"]
    if len(functions) == 1 and ir.StringAttr(functions[0].operation.attributes["sym_name"]).value != "main":
        with in_context(module):
            functions[0].operation.attributes["sym_name"] = ir.StringAttr.get("main")
    return entry_function(module)


def _with_layouts(shapes: list[Shape], module: Any, name: str, tiles_name: str) -> list[Shape]:
    attributes = module.operation.attributes
    if name not in attributes:
        return shapes
    layouts = _flat(attributes[name])
    if len(layouts) != len(shapes):
        return shapes
    tiles = [_tiles(entry) for entry in attributes[tiles_name]] if tiles_name in attributes else []
    if len(tiles) != len(shapes):
        tiles = [()] * len(shapes)
    return [_with_layout(*each) for each in zip(shapes, layouts, tiles, strict=True)]


def _with_modes(shapes: list[Shape], function: Any, name: str) -> list[Shape]:
    modes = _modes(function, name)
    if not modes:
        return shapes
    pairs = zip(shapes, modes, strict=True)
    return [Shape.parse(f"{shape.without_layout()}{mode}") if mode.startswith("{") else shape for shape, mode in pairs]


def _modes(function: Any, name: str) -> list[str]:
    attributes = function.operation.attributes
    entries = [ir.DictAttr(entry) for entry in attributes[name]] if name in attributes else []
    return [str(ir.StringAttr(entry[_MODE]).value) if _MODE in entry else "" for entry in entries]


def _tiles(attribute: Any) -> tuple[Tile, ...]:
    try:
        return tuple(map(Tile, _flat(attribute)))
    except ValueError as error:
        raise ImporterError(f"malformed tiles of the entry layout: {error}") from None


def _flat(attribute: Any) -> list[tuple[int, ...]]:
    if isinstance(attribute, ir.ArrayAttr):
        return [layout for member in attribute for layout in _flat(member)]
    return [tuple(int(number) for number in attribute)]


def _with_layout(shape: Shape, layout: tuple[int, ...], tiles: tuple[Tile, ...]) -> Shape:
    if sorted(layout) != list(range(shape.rank)) or not shape.is_array:
        return shape
    return replace(shape, layout=Layout(layout, tiles))


def _donations(function: Any, shapes: list[Shape], results: list[Shape], taken: tuple[Alias, ...]) -> tuple[Alias, ...]:
    """``jax.buffer_donor`` names no result: each donor gets the first free result of its own shape, or of its size.

    Source: XLA "OptimizeInputOutputBufferAlias", which looks at sizes.
    """
    attributes = function.operation.attributes
    if "arg_attrs" not in attributes:
        return ()
    free = [i for i in range(len(results)) if not any(_result_number(alias) == i for alias in taken)]
    donors = [n for n, entry in enumerate(attributes["arg_attrs"]) if "jax.buffer_donor" in ir.DictAttr(entry)]
    found: dict[int, int] = {}
    for fits in (_same_buffer, _same_size):
        for number in donors:
            match = next((i for i in free if number not in found and fits(results[i], shapes[number])), None)
            if match is not None:
                free.remove(match)
                found[number] = match
    return tuple(Alias((found[n],) if len(results) != 1 else (), n) for n in donors if n in found)


def _same_buffer(result: Shape, parameter: Shape) -> bool:
    if not (result.is_array and parameter.is_array):
        return False
    if result.without_layout() != parameter.without_layout() or buffer_layout(result) != buffer_layout(parameter):
        return False
    return physical_shape(result) == physical_shape(parameter)


def _same_size(result: Shape, parameter: Shape) -> bool:
    if not (result.is_array and parameter.is_array and result.is_static and parameter.is_static):
        return False
    return physical_shape(result).byte_size == physical_shape(parameter).byte_size


def _result_number(alias: Alias) -> int:
    return alias.output_index[0] if alias.output_index else 0


def attach_replication(counts: dict[str, int], module: ir.Module) -> None:
    """Keep ``num_partitions`` and ``replica_count`` of HLO text where they say more than one device."""
    with in_context(module):
        integer = ir.IntegerType.get_signless(32)
        for name, attribute in _REPLICATION.items():
            if counts.get(name, 1) > 1:
                module.operation.attributes[attribute] = ir.IntegerAttr.get(integer, counts[name])


def attach(signature: Signature, module: ir.Module) -> None:
    """Write the signature onto the module and drop the attributes of XLA that it replaces."""
    with in_context(module):
        attributes = module.operation.attributes
        for old, new in _RENAMED.items():
            if old in attributes:
                attributes[new] = attributes[old]
        for name in [name for name in attributes if name.startswith("mhlo.")]:
            # The shardings of HLO's operations name Shardy's meshes, which are there.
            if name != _FRONTEND or _MESHES not in ir.DictAttr(attributes[name]):
                del attributes[name]
    signature.attach(module)
