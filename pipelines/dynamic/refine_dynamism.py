"""``refine-dynamism``: operations on dynamic sizes that turn out to be constants, as their static forms.

Before::

    %s = stablehlo.concatenate (constant [1]), (constant [2]), dim = 0 : ... -> tensor<2xi64>
    %r = stablehlo.dynamic_broadcast_in_dim %x, %s, dims = [1] : (tensor<2xf32>, tensor<2xi64>) -> tensor<?x?xf32>

After::

    %r = stablehlo.broadcast_in_dim %x, dims = [1] : (tensor<2xf32>) -> tensor<1x2xf32>

StableHLO's own passes evaluate the arithmetic of sizes; they start from the sizes of ``main``'s arguments, so a program
with dynamic arguments keeps its dynamic types. They know neither CHLO nor bitcasts between widths nor the calls of
``lower-dynamic-calls``, whose results are refined here, in turns with them. Source: StableHLO "Dynamism in StableHLO".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from hloforge.dialect.errors import UnsupportedError
from hloforge.dialect.mlir import AnyOp, in_context, ir
from hloforge.dialect.operations import integer, operations, string_attribute
from hloforge.dialect.program import entry_function
from hloforge.pipelines.dynamic.dynamic_calls import dynamic_call
from hloforge.pipelines.framework.defects import copy_of
from hloforge.pipelines.framework.passes import NativePass, Pass, diagnostic_text, place, register
from hloforge.pipelines.framework.patterns import apply_patterns

_NAMES = (
    *("dynamic_broadcast_in_dim", "dynamic_conv", "dynamic_gather", "dynamic_iota", "dynamic_pad", "dynamic_reshape"),
    "real_dynamic_slice",
)
_DYNAMIC = frozenset(f"stablehlo.{name}" for name in _NAMES)
_WRAPPER = "stablehlo.shape_refinement_operand_wrapper"
_CALLS = frozenset(
    {_WRAPPER, "shape_assertion"} | {f"stablehlo.dynamic_{n}" for n in ("top_k", "reduce_window", "rng_bit_generator")}
)
_REFINE = NativePass("stablehlo-refine-shapes")
_CANONICALIZE = NativePass("func.func(stablehlo-canonicalize-dynamism)")


@register
@dataclass(frozen=True)
class RefineDynamism(Pass):
    """Replace dynamic operations by static ones where the program fixes their sizes.

    Raises (on run):
        UnsupportedError: the sizes that the program fixes do not fit an operation. XLA pads arrays to their bounds, so
            that it computes something of unequal ones.
    """

    name: ClassVar[str] = "refine-dynamism"

    def run(self, module: ir.Module) -> None:
        with in_context(module):
            if not any(map(_depends_on_sizes, operations(module))):
                return
            can_refine = _can_refine(module)
            before = copy_of(module) if can_refine and any(map(_carries_sizes, operations(module))) else None
            _refine(module, can_refine=can_refine)
            if before is not None and _mismatch(module) is not None:
                # The native pass gives a loop the sizes of its first values; other turns have others.
                _restore(module, before)
                _hide_sizes(module)
                _refine(module, can_refine=False)
            if (mismatch := _mismatch(module)) is not None:
                raise mismatch


def _refine(module: ir.Module, *, can_refine: bool) -> None:
    # Each turn of ours lets the native pass see further, past the operations that it does not know.
    while True:
        if can_refine:
            _REFINE.run(module)
        _CANONICALIZE.run(module)
        lowered = apply_patterns(module, dynamic_call).rewritten
        refined = can_refine and _refine_others(module)
        if not lowered and not refined:
            return


def _carries_sizes(op: AnyOp) -> bool:
    return op.name == "stablehlo.while" and not all(_is_static(result.type) for result in op.results)


def _hide_sizes(module: ir.Module) -> None:
    """Keep sizes from folding: a loop that carries several has none that is known."""
    for op in operations(module, _DYNAMIC):
        for number, operand in enumerate(op.operands):
            if number and operand.type.rank == 1 and isinstance(operand.type.element_type, ir.IntegerType):
                with ir.InsertionPoint(op), op.location:
                    hidden = ir.Operation.create(
                        "stablehlo.optimization_barrier", results=[operand.type], operands=[operand]
                    )
                op.operands[number] = hidden.results[0]


def _restore(module: ir.Module, before: ir.Module) -> None:
    for op in list(module.body.operations):
        op.operation.erase()
    with ir.InsertionPoint(module.body):
        for op in before.body.operations:
            op.operation.clone()


def _mismatch(module: ir.Module) -> UnsupportedError | None:
    """The error for sizes that do not fit each other."""
    try:
        module.operation.verify()
    except ir.MLIRError as error:
        return UnsupportedError(
            f"the sizes of arrays do not fit each other: {diagnostic_text(error)}",
            location=place(error),
            hint="arrays of bounded size are computed at their sizes, and not padded to bounds: set the same sizes "
            "where an operation takes several of them",
        )
    return None


def _depends_on_sizes(op: ir.Operation) -> bool:
    if op.name == "stablehlo.custom_call":
        return string_attribute(op, "call_target_name") in _CALLS
    return op.name in _DYNAMIC


def _can_refine(module: ir.Module) -> bool:
    """Whether all sizes of main's arguments are known."""
    entry = entry_function(module).operation
    type_ = ir.FunctionType(ir.TypeAttr(entry.attributes["function_type"]).value)
    arrays = [t for t in type_.inputs if isinstance(t, ir.RankedTensorType)]
    return all(t.has_static_shape for t in arrays)


def _refine_others(module: ir.Module) -> bool:
    """Give the results of bitcasts and of CHLO's elementwise operations and selections the sizes of their operands."""
    changed = False
    for op in operations(module):
        if not op.name.startswith(("chlo.", "stablehlo.bitcast_convert")):
            continue
        if all(_is_static(result.type) for result in op.results):
            continue
        if not all(_is_static(operand.type) for operand in op.operands):
            continue
        for result in op.results:
            sizes = _sizes(op)
            result.set_type(ir.RankedTensorType.get(sizes, result.type.element_type))
        changed = True
    if changed:
        declare_results(entry_function(module).operation)
    return changed


def declare_results(function: Any) -> None:
    """Give a function the types of the values that it returns."""
    type_ = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    *_, terminator = function.regions[0].blocks[0].operations
    results = [value.type for value in terminator.operation.operands]
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(type_.inputs, results))


def _sizes(op: AnyOp) -> list[int]:
    shapes = [list(operand.type.shape) for operand in op.operands]
    if op.name == "chlo.top_k":
        return [*shapes[0][:-1], integer(op, "k")]
    if op.name == "stablehlo.bitcast_convert":
        # Wider elements are made of those along the last dimension, narrower ones are along a new last one.
        return [*shapes[0], *op.results[0].type.shape[-1:]][: op.results[0].type.rank]
    return list(np.broadcast_shapes(*shapes))


def _is_static(type_: Any) -> bool:
    return not isinstance(type_, ir.RankedTensorType) or bool(type_.has_static_shape)
