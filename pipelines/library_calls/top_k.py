"""The largest elements, as XLA's custom calls name them. Source: XLA "TopK", "ApproxTopK"; JAX ``approx_max_k``."""

from __future__ import annotations

from collections.abc import Sequence

from hloforge.dialect import ops
from hloforge.dialect.emission import i64
from hloforge.dialect.mlir import inlined_func_call, ir
from hloforge.dialect.operations import operations
from hloforge.dialect.values import Value, leaves
from hloforge.pipelines.library_calls.registry import CustomCall, custom_call_target

# How exact an approximation has to be. Ours is exact.
_RECALL = ("recall_target", "reduction_input_size_override", "is_fallback", "aggregate_to_topk", "top_k")


@custom_call_target("ApproxTopK", "PartialReduce")
def approx_top_k(call: CustomCall) -> list[Value]:
    """Arrays and a first value for each -> the first elements along a dimension, in the comparator's order.

    XLA may miss some of them, and returns more than k for a caller that chooses among them itself.
    """
    arrays = call.operands[: len(call.operands) // 2]
    if call.text:  # JSON, as programs for TPUs have it
        return _first(call, arrays, int(call.configuration("").get("reduction_dim", arrays[0].rank - 1)))
    dimension = call.setting("reduction_dim")
    for name in _RECALL:
        call.setting(name, 0)
    return _first(call, arrays, dimension)


@custom_call_target("TopK", "__gpu$TopK")
def top_k(call: CustomCall) -> list[Value]:
    """x -> the largest elements along its last dimension, and their positions.

    An optimized program spells the order of floats out, as one of their bits: any comparator but "greater" sorts.
    """
    (operand,) = call.operands
    if call.computations and not _descends(call):
        places = ops.iota("s32", operand.dims, operand.rank - 1)
        return _first(call, [operand, places], operand.rank - 1)
    k = i64(call.shapes[0].dimensions[-1])
    types = [result.type for result in call.op.results]
    made = ir.Operation.create("chlo.top_k", results=types, operands=[operand.ir], attributes={"k": k})
    return [Value(result) for result in made.results]


def _computation(call: CustomCall) -> ir.Operation:
    """The function that the call calls."""
    module = call.op
    while module.parent is not None:
        module = module.parent.operation
    functions = operations(module, {"func.func"})
    name = call.computations[0]
    return next(op for op in functions if ir.StringAttr(op.attributes["sym_name"]).value == name)


def _first(call: CustomCall, arrays: Sequence[Value], dimension: int) -> list[Value]:
    """As many elements as the results have, in the order of the call's comparator.

    That of an optimized program compares keys alone, two numbers, though there are positions beside them.
    """
    comparator = _computation(call)
    count = len(comparator.regions[0].blocks[0].arguments)

    def before(*elements: Value) -> Value:
        compared = [element.ir for element in elements[:count]]
        (result,) = inlined_func_call(comparator, compared, call.op.location)
        return Value(result)

    ordered = leaves(ops.sort(arrays, before, dimension, is_stable=True))
    return [
        ops.slice(array, [0] * array.rank, shape.dimensions, [1] * array.rank)
        for array, shape in zip(ordered, call.shapes, strict=True)
    ]


def _descends(call: CustomCall) -> bool:
    comparisons = operations(_computation(call), {"stablehlo.compare"})
    return [str(op.attributes["comparison_direction"]).split()[-1].rstrip(">") for op in comparisons] == ["GT"]
