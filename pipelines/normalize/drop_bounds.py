"""``drop-bounds``: replace dimensions of bounded size by unbounded dynamic ones.

Before::

    func.func @main(%x: tensor<?x3xf32, #stablehlo.bounds<5, ?>>) -> tensor<?x3xf32, #stablehlo.bounds<5, ?>> { ... }

After::

    func.func @main(%x: tensor<?x3xf32>) -> tensor<?x3xf32> { ... }

IREE knows no bounds, and a bound read as a size would make a wrong program. The signature keeps the bounds of
arguments, so that a session refuses larger ones. Operations that take their sizes from the type of their result
(``broadcast_in_dim``, ``reshape``, ``slice`` and ``gather`` up to the bound) get their dynamic form, with the sizes of
the operand. Arrays without bound beside bounded ones are cut (``bounded_operands.py``), and arrays of
different sizes fit to each other (``bounded_sizes.py``).
Source: StableHLO spec "Dynamism", ``TypeExtensions``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar, TypeAlias

from hloforge.dialect.constants import constant
from hloforge.dialect.emission import emit, i64s
from hloforge.dialect.mlir import in_context, ir, stablehlo
from hloforge.dialect.operations import blocks, integers, operations, string_attribute
from hloforge.dialect.program import Signature
from hloforge.dialect.values import Value
from hloforge.pipelines.framework.passes import Pass, register
from hloforge.pipelines.framework.patterns import REWRITTEN, NoMatch, Replacement, apply_patterns, pattern
from hloforge.pipelines.normalize.bounded_operands import NAMES, equal_dimensions
from hloforge.pipelines.normalize.bounded_sizes import (
    dimension_size,
    fit_sizes,
    keep_sizes,
    size_vector,
)

# The custom calls that ``changed_form`` knows.
_PAD, _SLICE = "PadToStatic", "SliceToDynamic"
FORMS = frozenset({_PAD, _SLICE})
# The size of a dimension, known now or a scalar (s32) at run time.
Size: TypeAlias = "int | Value"


@pattern("stablehlo.broadcast_in_dim", "stablehlo.broadcast")
def broadcast_to_sizes(op: ir.Operation) -> Replacement:
    """A bounded dimension is as large as that of the operand, or its bound where the operand has none."""
    if not _is_bounded(op.results[0].type):
        return NoMatch("no bounded result")
    x, type_ = Value(op.operands[0]), op.results[0].type
    mapped = integers(op, "broadcast_dimensions")
    if op.name == "stablehlo.broadcast":
        mapped = list(range(type_.rank - x.rank, type_.rank))
    sizes: list[Size] = list(Value(op.results[0]).dims)
    for number, dimension in enumerate(mapped):
        if type_.is_dynamic_dim(dimension) and x.type.is_dynamic_dim(number):
            sizes[dimension] = dimension_size(x, number)
    return emit("stablehlo.dynamic_broadcast_in_dim", [x, size_vector(sizes)], type_, broadcast_dimensions=i64s(mapped))


@pattern("stablehlo.reshape")
def reshape_to_sizes(op: ir.Operation) -> Replacement:
    """The one bounded dimension that a reshape may have takes the elements that the others leave."""
    if not _is_bounded(op.results[0].type):
        return NoMatch("no bounded result")
    x, result = Value(op.operands[0]), Value(op.results[0])
    elements = constant(1, "s32")
    for number, size in enumerate(x.dims):
        elements = elements * (dimension_size(x, number) if x.type.is_dynamic_dim(number) else size)
    others = prod(size for number, size in enumerate(result.dims) if not result.type.is_dynamic_dim(number))
    rest = elements / max(1, others)
    sizes = [rest if result.type.is_dynamic_dim(number) else size for number, size in enumerate(result.dims)]
    return emit("stablehlo.dynamic_reshape", [x, size_vector(sizes)], result.type)


@pattern("stablehlo.slice")
def slice_to_size(op: ir.Operation) -> Replacement:
    """A slice up to a bound ends where the array ends."""
    x, type_ = Value(op.operands[0]), op.results[0].type
    starts, limits = integers(op, "start_indices"), integers(op, "limit_indices")
    if not _is_bounded(x.type) or not _is_bounded(type_):
        return NoMatch("no bounded dimension is left of it")
    ends = [
        dimension_size(x, number) if x.type.is_dynamic_dim(number) and limit == x.dims[number] else limit
        for number, limit in enumerate(limits)
    ]
    operands = [x, size_vector(starts), size_vector(ends), size_vector(integers(op, "strides"))]
    return emit("stablehlo.real_dynamic_slice", operands, type_)


@pattern("stablehlo.gather")
def gather_to_sizes(op: ir.Operation) -> Replacement:
    """Of a bounded dimension a part as large as the bound is the whole dimension."""
    x, taken = Value(op.operands[0]), integers(op, "slice_sizes")
    whole = {number for number, size in enumerate(taken) if x.type.is_dynamic_dim(number) and size == x.dims[number]}
    if not _is_bounded(x.type) or not _is_bounded(op.results[0].type) or not whole:
        return NoMatch("no bounded dimension is taken whole")
    sizes = [dimension_size(x, number) if number in whole else size for number, size in enumerate(taken)]
    kept = {name: op.attributes[name] for name in ("dimension_numbers", "indices_are_sorted") if name in op.attributes}
    return emit("stablehlo.dynamic_gather", [x, Value(op.operands[1]), size_vector(sizes)], op.results[0].type, **kept)


@pattern(*NAMES)
def read_to_sizes(op: ir.Operation) -> Replacement:
    """Static operands are cut to the size of the bounded ones that they have to fit."""
    operands = [Value(operand) for operand in op.operands]
    if not any(_is_bounded(x.type) for x in operands):
        return NoMatch("no bounded operand")
    wanted: dict[int, dict[int, Value]] = {}
    for group in equal_dimensions(op):
        sized = next(((n, d) for n, d in group if operands[n].type.is_dynamic_dim(d)), None)
        static = [(n, d) for n, d in group if not operands[n].type.is_dynamic_dim(d)]
        if sized and static:
            size = dimension_size(operands[sized[0]], sized[1])
            for number, d in static:
                wanted.setdefault(number, {})[d] = size
    if not wanted:
        return NoMatch("no static array beside a bounded one")
    for number, sizes in wanted.items():
        op.operands[number] = _cut(operands[number], sizes).ir
    return REWRITTEN


def _cut(x: Value, sizes: dict[int, Value]) -> Value:
    """As much of an array as the sizes of some static dimensions say."""
    ends = [sizes.get(d, dimension_size(x, d) if x.type.is_dynamic_dim(d) else x.dims[d]) for d in range(x.rank)]
    shape = [ir.ShapedType.get_dynamic_size() if d in sizes else size for d, size in enumerate(x.type.shape)]
    operands = [x, size_vector([0] * x.rank), size_vector(ends), size_vector([1] * x.rank)]
    return emit("stablehlo.real_dynamic_slice", operands, ir.RankedTensorType.get(shape, x.type.element_type))


@pattern("stablehlo.custom_call")
def changed_form(op: ir.Operation) -> Replacement:
    """What XLA's ``DynamicPadder`` writes: an array filled up to its bounds, with its sizes, and the reverse.

    XLA leaves open what it fills up with; here it is 0.
    """
    x, target = Value(op.operands[0]) if op.operands else None, string_attribute(op, "call_target_name")
    if x is not None and target == _SLICE:
        ends = [Value(operand) for operand in list(op.operands)[1:]]
        operands = [x, size_vector([0] * x.rank), size_vector(ends), size_vector([1] * x.rank)]
        return [emit("stablehlo.real_dynamic_slice", operands, op.results[0].type)]
    if x is None or target != _PAD:
        return NoMatch(f"no form of @{target}")
    sizes = [dimension_size(x, number) for number in range(x.rank)]
    missing = [constant(bound, "s32") - size for bound, size in zip(x.dims, sizes, strict=True)]
    none = size_vector([0] * x.rank)
    operands = [x, constant(0, x.element_type), none, size_vector(missing), none]
    return [emit("stablehlo.dynamic_pad", operands, op.results[0].type), *sizes]


@register
@dataclass(frozen=True)
class DropBounds(Pass):
    """Remove the encoding ``#stablehlo.bounds`` from the types of all values and functions."""

    name: ClassVar[str] = "drop-bounds"

    def run(self, module: ir.Module) -> None:
        with in_context(module):
            everything = operations(module)
            if not any(_is_bounded(value.type) for op in everything for value in _values(op)):
                return
            # From here on the types of main no longer tell the bounds.
            Signature.of(module).attach(module)
            keep_sizes(module)
            to_sizes = (*broadcast_to_sizes, *reshape_to_sizes, *slice_to_size, *gather_to_sizes)
            apply_patterns(module, (*to_sizes, *read_to_sizes, *changed_form))
            for op in operations(module):
                for value in _values(op):
                    if _is_bounded(value.type):
                        value.set_type(_without_bounds(value.type))
                if op.name == "func.func":
                    _retype(op)
            fit_sizes(module)


def _values(op: ir.Operation) -> Iterable[Any]:
    yield from op.results
    for block in blocks(op):
        yield from block.arguments


def _is_bounded(type_: ir.Type) -> bool:
    if not isinstance(type_, ir.RankedTensorType) or type_.encoding is None:
        return False
    return bool(stablehlo.TypeExtensions.isinstance(type_.encoding))


def _without_bounds(type_: Any) -> Any:
    return ir.RankedTensorType.get(type_.shape, type_.element_type) if _is_bounded(type_) else type_


def _retype(function: Any) -> None:
    type_ = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    inputs, results = map(_without_bounds, type_.inputs), map(_without_bounds, type_.results)
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(list(inputs), list(results)))
