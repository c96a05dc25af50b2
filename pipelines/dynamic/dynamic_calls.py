"""The custom calls that represent operations whose attributes JAX computes from sizes.

Before, where the sizes have become constants::

    %r:2 = stablehlo.custom_call @stablehlo.dynamic_top_k(%x, %k) : (tensor<4x9xf32>, tensor<i32>) -> ...

After::

    %r:2 = chlo.top_k(%x, k = 3) : tensor<4x9xf32> -> (tensor<4x3xf32>, tensor<4x3xi32>)

StableHLO has no operation of this kind, so that JAX exports a call; its results are static where these operands are.
Source: XLA "experimental StableHLO dynamism operations" (``stablehlo_ext``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hloforge.dialect.computations import fill_region
from hloforge.dialect.constants import sizes_of
from hloforge.dialect.dense_values import array_of
from hloforge.dialect.element_types import element_type
from hloforge.dialect.emission import create, emit, emit_all, i64, i64s
from hloforge.dialect.errors import PassError
from hloforge.dialect.mlir import AnyOp, SSAValue, dense_elements, ir
from hloforge.dialect.operations import defining_op, location_of, string_attribute
from hloforge.dialect.regions import inline_region
from hloforge.dialect.shapes import Shape
from hloforge.dialect.values import Value
from hloforge.pipelines.framework.patterns import NoMatch, Replacement, pattern

TOP_K = "stablehlo.dynamic_top_k"
REDUCE_WINDOW = "stablehlo.dynamic_reduce_window"
RNG_BIT_GENERATOR = "stablehlo.dynamic_rng_bit_generator"


def constant_operand(value: SSAValue) -> np.ndarray[Any, Any] | None:
    """The elements of a constant integer operand; None for any other value."""
    op = defining_op(value, "stablehlo.constant")
    return None if op is None else array_of(op.attributes["value"])


@pattern("stablehlo.custom_call")
def dynamic_call(op: ir.Operation) -> Replacement:
    """One of the calls above -> the operation that it represents; operands of static size and constant sizes."""
    lower = _LOWERINGS.get(string_attribute(op, "call_target_name"))
    return NoMatch("another call") if lower is None else lower(op)


def _top_k(op: ir.Operation) -> Replacement:
    operand, count = op.operands
    k = constant_operand(count)
    if k is None:
        return NoMatch("k is known at run time only")
    shape = Shape.of_type(operand.type)
    kept = (*shape.dimensions[:-1], int(k.reshape(-1)[0]))
    flags = (*shape.dynamic[:-1], False)
    shapes = [Shape(shape.element, kept, flags), Shape(element_type("s32"), kept, flags)]
    return _as_declared(emit_all("chlo.top_k", [Value(operand)], shapes, k=i64(kept[-1])), op)


def _rng_bit_generator(op: AnyOp) -> Replacement:
    state, sizes = op.operands
    size = constant_operand(sizes)
    if size is None:
        return NoMatch("its size is known at run time only")
    element = Shape.of_type(op.results[1].type).element
    shapes = [Shape.of_type(state.type), Shape(element, tuple(map(int, size)))]
    algorithm = op.attributes["rng_algorithm"]
    return _as_declared(emit_all("stablehlo.rng_bit_generator", [Value(state)], shapes, rng_algorithm=algorithm), op)


def _reduce_window(op: ir.Operation) -> Replacement:
    *arrays, window, strides, base_dilations, window_dilations, padding = op.operands
    numbers = [constant_operand(value) for value in (window, strides, base_dilations, window_dilations, padding)]
    count = len(arrays) // 2
    operands = [Shape.of_type(array.type) for array in arrays[:count]]
    if any(number is None for number in numbers) or not all(shape.is_static for shape in operands):
        return NoMatch("its sizes are known at run time only")
    sizes, steps, base, dilation, pads = (np.asarray(number) for number in numbers)
    spread = [max(0, (size - 1) * d + 1) if size else 0 for size, d in zip(operands[0].dimensions, base, strict=True)]
    extent = (sizes - 1) * dilation + 1
    places = np.maximum(0, (np.array(spread) + pads.sum(axis=1) - extent) // steps + 1)
    shapes = [Shape(shape.element, tuple(map(int, places))) for shape in operands]
    types = [shape.mlir_type() for shape in shapes]
    made = create(
        "stablehlo.reduce_window",
        [Value(array) for array in arrays],
        types,
        1,
        window_dimensions=i64s(sizes),
        window_strides=i64s(steps),
        base_dilations=i64s(base),
        window_dilations=i64s(dilation),
        padding=dense_elements(pads.astype(np.int64)),
    )
    region = called_region(op)
    scalars = [argument.type for argument in region.blocks[0].arguments]
    fill_region(made.regions[0], scalars, lambda *values: inline_region(region, values))
    return _as_declared([Value(result) for result in made.results], op)


def called_region(call: Any) -> Any:
    """The body of the function that a call of ``dynamic_reduce_window`` names."""
    callee = str(ir.FlatSymbolRefAttr(call.attributes["called_computations"][0]).value)
    module = call.parent
    while module.name != "builtin.module":
        module = module.parent
    for entry in module.regions[0].blocks[0].operations:
        if entry.operation.name == "func.func" and string_attribute(entry, "sym_name") == callee:
            return entry.operation.regions[0]
    raise PassError(f"the computation @{callee} is missing", location=location_of(call))


def _as_declared(values: Sequence[Value], op: AnyOp) -> list[Value]:
    """The values in the types of the operation's results, which may leave more sizes open."""
    pairs = zip(values, op.results, strict=True)
    return [value if value.type == result.type else _opened(value, result.type) for value, result in pairs]


def _opened(value: Value, type_: ir.Type) -> Value:
    return emit("stablehlo.dynamic_reshape", [value, sizes_of(value)], type_)


_LOWERINGS: dict[str, Callable[[Any], Replacement]] = {
    TOP_K: _top_k,
    RNG_BIT_GENERATOR: _rng_bit_generator,
    REDUCE_WINDOW: _reduce_window,
}
