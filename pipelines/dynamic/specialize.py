"""A program for one choice of its arguments' sizes: what has dynamic shapes becomes static.

Sizes come from the shapes of arguments; and where a program makes an array of a size that is an argument's *value* (a
dimension variable, the operand of a ``dynamic_reshape``), from that value. Source: StableHLO "Dynamism in StableHLO".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from hloforge.dialect.abi import crosses
from hloforge.dialect.constants import dense
from hloforge.dialect.element_types import element_type
from hloforge.dialect.errors import ArgumentError, PassError, UnsupportedError
from hloforge.dialect.mlir import AnyOp, in_context, ir
from hloforge.dialect.operations import integers, operations
from hloforge.dialect.program import Parameter, Program, Signature, entry_function
from hloforge.dialect.shapes import Shape
from hloforge.pipelines.decompose.composites import LowerComposites
from hloforge.pipelines.decompose.set_dimension_size import DecomposeSetDimensionSize
from hloforge.pipelines.dynamic.refine_dynamism import RefineDynamism
from hloforge.pipelines.framework.passes import NativePass, diagnostic_text
from hloforge.pipelines.normalize.normalization import normalize

# The operands that hold sizes, by operation: the first of them; the others follow it.
_SIZES = {
    "stablehlo.dynamic_broadcast_in_dim": 1,
    "stablehlo.dynamic_conv": 2,
    "stablehlo.dynamic_gather": 2,
    "stablehlo.dynamic_iota": 0,
    "stablehlo.dynamic_pad": 2,
    "stablehlo.dynamic_reshape": 1,
    "stablehlo.real_dynamic_slice": 1,
}
# A list of sizes has one element a dimension.
_MOST_SIZES = 16


def is_dynamic(module: ir.Module) -> bool:
    """Whether some size in a module is known at run time only."""
    with in_context(module):
        return any(_is_dynamic(value.type) for op in operations(module) for value in _values(op))


def _values(op: ir.Operation) -> Iterable[Any]:
    yield from op.results
    for region in op.regions:
        for block in region.blocks:
            yield from block.arguments


def _is_dynamic(type_: ir.Type) -> bool:
    return isinstance(type_, ir.RankedTensorType) and not type_.has_static_shape


def _is_open(module: ir.Module) -> bool:
    """Whether shapes or values of arguments say more of some size than the program does: not of sizes with bounds."""
    with in_context(module):
        found = operations(module)
        made = {result for op in found for result in op.results}
        types = [(value, value.type) for op in found for value in _values(op) if _is_dynamic(value.type)]
        return any(_size_operands(op) for op in found) or any(
            value not in made or ir.RankedTensorType(type_).encoding is None for value, type_ in types
        )


def size_parameters(program: Program) -> tuple[int, ...]:
    """The positions, among the leaves that cross the border, of integer arguments whose values become sizes."""
    if program.template is not None:
        return program.template.size_parameters
    copy = program.clone()
    normalize(copy.module)
    DecomposeSetDimensionSize().run(copy.module)
    with in_context(copy.module):
        block = entry_function(copy.module).operation.regions[0].blocks[0]
        sources = _sources(copy.module, block)
        tokens = [number for number, leaf in enumerate(copy.signature.flat_parameters) if not crosses(leaf.shape)]
        return tuple(sorted(number - sum(token < number for token in tokens) for number in sources))


def _sources(module: ir.Module, block: ir.Block) -> set[int]:
    """The numbers of the entry's arguments of few integers that the sizes of dynamic operations are computed from."""
    pending = [operand for op in operations(module) for operand in _size_operands(op)]
    seen: set[Any] = set()
    found: set[int] = set()
    while pending:
        value = pending.pop()
        if isinstance(value.owner, ir.Block):
            if value.owner == block and _may_be_sizes(value.type):
                found.add(value.arg_number)
            continue
        op = value.owner.operation
        if op not in seen and op.name != "stablehlo.get_dimension_size":
            seen.add(op)
            pending += op.operands
    return found


def _size_operands(op: AnyOp) -> Sequence[Any]:
    if op.name == "stablehlo.custom_call":
        if "stablehlo.dynamic_" in str(op.attributes["call_target_name"]):
            return list(op.operands)[1:]
        return [op.operands[number] for number in integers(op, "indices_of_shape_operands")]
    first = _SIZES.get(op.name)
    if first is None or not any(_is_dynamic(result.type) for result in op.results):
        return ()
    return list(op.operands)[first:]


def _may_be_sizes(type_: Any) -> bool:
    if not isinstance(type_, ir.RankedTensorType) or not type_.has_static_shape:
        return False
    return isinstance(type_.element_type, ir.IntegerType) and int(np.prod(type_.shape)) <= _MOST_SIZES


def specialize(
    program: Program, shapes: Sequence[Shape], values: Mapping[int, np.ndarray[Any, Any]] | None = None
) -> Program:
    """The program for arguments of these shapes; the given one is left as it was.

    Args:
        shapes: one static shape for every array among the leaves of the parameters, of its element type and rank.
        values: of arguments, by position among the shapes, that the program takes sizes from (``size_parameters``). It
            then computes with these, whatever is passed.

    Returns:
        A normalized program, with the parameters' static shapes in its signature; a copy of the program where no size
        is open. A result stays dynamic if its size depends on data.

    Raises:
        ArgumentError: shapes that the program does not take, or that violate an assertion of the program.
        Error: what ``normalize`` raises.
    """
    if program.template is not None:
        return program.template.specialize(shapes, values or {})
    copy = program.clone()
    if not values and not _is_open(copy.module):
        # Its arrays keep their bounds, which refinement would lose, and code generation needs.
        _check([leaf for leaf in copy.signature.flat_parameters if crosses(leaf.shape)], shapes, copy.signature)
        return copy
    normalize(copy.module)
    # The body of a composite is a function of its own, which no refinement reaches.
    LowerComposites().run(copy.module)
    if any(op.name.startswith("shape.") for op in _operations(copy.module)):
        # StableHLO's refinement evaluates its own operations alone.
        NativePass("func.func(shape-legalize-to-stablehlo)").run(copy.module)
    # Its result has no other size to be refined to than that of a slice.
    DecomposeSetDimensionSize().run(copy.module)
    leaves = copy.signature.flat_parameters
    _check([leaf for leaf in leaves if crosses(leaf.shape)], shapes, copy.signature)
    given = iter(enumerate(shapes))
    numbers = {number: next(given) for number, leaf in enumerate(leaves) if crosses(leaf.shape)}
    with in_context(copy.module):
        entry = entry_function(copy.module).operation
        for number, (position, _) in numbers.items():
            if values and position in values:
                _fix(entry, number, values[position])
        try:
            _refine_arguments(copy.module, entry, {number: shape for number, (_, shape) in numbers.items()})
            copy.module.operation.verify()
        except (PassError, UnsupportedError, ir.MLIRError) as error:
            reason = diagnostic_text(error) if isinstance(error, ir.MLIRError) else error.message
            raise ArgumentError(f"the program does not take ({', '.join(map(str, shapes))}): {reason}") from None
        NativePass("symbol-dce").run(copy.module)
        results = _function_type(entry_function(copy.module).operation).results
        signature = _specialized(copy.signature, shapes, [Shape.of_type(type_) for type_ in results])
        signature.attach(copy.module)
    return Program(copy.module, signature, program.name, program.source)


def _operations(module: ir.Module) -> list[Any]:
    with in_context(module):
        return operations(module)


def _check(leaves: Sequence[Parameter], shapes: Sequence[Shape], signature: Signature) -> None:
    if len(leaves) != len(shapes):
        raise ArgumentError(f"{len(shapes)} shapes for {len(leaves)} arguments", hint=f"signature: {signature}")
    for leaf, shape in zip(leaves, shapes, strict=True):
        bounds = zip(shape.dimensions, leaf.shape.dimensions, leaf.shape.dynamic, strict=False)
        fits = all(size == bound or (dynamic and (bound < 0 or size <= bound)) for size, bound, dynamic in bounds)
        if shape.element != leaf.shape.element or shape.rank != leaf.shape.rank or not shape.is_static or not fits:
            raise ArgumentError(f"argument {leaf.name!r}: expected {leaf.shape}, got {shape}")


def _function_type(function: Any) -> Any:
    return ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)


def _fix(entry: Any, number: int, value: np.ndarray[Any, Any]) -> None:
    """Compute with a value instead of an argument, which stays and is ignored."""
    block = entry.regions[0].blocks[0]
    argument = block.arguments[number]
    with ir.InsertionPoint.at_block_begin(block), entry.location:
        attribute = dense(np.asarray(value), element_type(argument.type.element_type))
        made = ir.Operation.create("stablehlo.constant", results=[argument.type], attributes={"value": attribute})
    argument.replace_all_uses_with(made.results[0])


def _refine_arguments(module: ir.Module, entry: Any, shapes: Mapping[int, Shape]) -> None:
    types = list(_function_type(entry).inputs)
    if not any(map(_is_dynamic, types)):
        RefineDynamism().run(module)
        return
    refined = [shapes[number].mlir_type() if number in shapes else type_ for number, type_ in enumerate(types)]
    NativePass(f"stablehlo-refine-arguments{{types={','.join(map(str, refined))}}}").run(module)
    RefineDynamism().run(module)


def _specialized(signature: Signature, shapes: Sequence[Shape], results: Sequence[Shape]) -> Signature:
    """The signature with the sizes of arguments, and those that the results have turned out to have."""
    given, found = iter(shapes), iter(results)
    parameters = tuple(Parameter(p.name, _with_sizes(p.shape, given)) for p in signature.parameters)
    return replace(signature, parameters=parameters, result=_with_sizes(signature.result, found, tokens=True))


def _with_sizes(shape: Shape, sizes: Iterator[Shape], *, tokens: bool = False) -> Shape:
    """A shape whose arrays have the sizes of the next of ``sizes``, which may hold its tokens too."""
    if shape.elements is not None:
        return Shape.tuple_of(*(_with_sizes(member, sizes, tokens=tokens) for member in shape.elements))
    if not crosses(shape):
        return next(sizes) if tokens else shape
    found = next(sizes)
    return replace(shape, dimensions=found.dimensions, dynamic=found.dynamic) if found.is_static else shape
