"""How much a program computes: a rough count that chooses between a device with and without threads."""

from __future__ import annotations

from collections.abc import Sequence
from math import isqrt, prod
from typing import Any

from hloforge.dialect.mlir import ir
from hloforge.dialect.operations import operations
from hloforge.pipelines.optimize.below import DISPATCH
from hloforge.pipelines.optimize.scalar_code import WORK
from hloforge.pipelines.weights import weights_of

# Multiplications and additions that a core does in registers in the time of one element to and from memory. Measured:
# a product of two 256x256 matrices gains by threads about as an elementwise pass of a million elements.
_DENSITY = 32
# Multiplications of a product from which tiles pay.
_LARGE_PRODUCT = 1 << 28
# What stands in dispatches of scalar code, which say themselves how much they do: it names arrays, and takes parts.
_INSIDE = ("iree_tensor_ext.", "scf.for", "scf.yield", "tensor.", "vector.")
# Elementwise operations, and how many multiplications each takes as long as.
_COSTLY = """
cbrt cosine exponential exponential_minus_one log log_plus_one logistic power sine tan tanh
"""
_CHEAP = """
abs add and bitcast_convert ceil clamp compare convert divide floor maximum minimum multiply negate not or remainder
round_nearest_afz round_nearest_even rsqrt select shift_left shift_right_arithmetic shift_right_logical sign sqrt
subtract xor
"""
_ELEMENTWISE = {
    **{f"stablehlo.{name}": 8 for name in _COSTLY.split()},
    **{f"stablehlo.{name}": 1 for name in _CHEAP.split()},
}
# Operations that IREE gives the memory of an operand; dispatches of our own are among them.
_IN_PLACE = {DISPATCH, "stablehlo.dynamic_update_slice", "stablehlo.scatter", "stablehlo.while"}
# Operations from which IREE's search for constant expressions is slow, and elements of a constant worth finding.
_LONG, _TABLE = 256, 256


def heaviest_operation(module: Any) -> int:
    """The heaviest single operation of a module, in elements read or written; dynamic sizes count as 1.

    One heavy operation is worth splitting over threads; many light ones are not, whatever their sum.
    """
    found = operations(module)
    return max((*map(_work, found), *_elementwise_work(found)), default=0)


def gains_by_data_tiling(module: Any) -> bool:
    """Whether IREE should lay matrices out in tiles first: for large products of f32, and none of 16 bits.

    Measured: 1024³ takes half of the time so, 512³ the same, smaller ones up to twice, products of bf16 40 times.
    """
    dots = operations(module, ["stablehlo.dot_general"])
    elements = {str(dot.operands[0].type.element_type) for dot in dots}
    return not elements & {"bf16", "f16"} and any(
        str(dot.operands[0].type.element_type) == "f32" and _multiplications(dot) >= _LARGE_PRODUCT for dot in dots
    )


def hoists_in_vain(module: Any) -> bool:
    """Whether IREE would look long for constant expressions, and find none that are worth computing once.

    Its search takes minutes for some hundred operations in one kernel (tanh of c128: 468 operations, 200 s); what it
    finds matters where a program has tables or weights. Programs of loops are left alone: without hoisted constants
    IREE takes some loops in other forms, one of which was wrong (docs/status.md). So are updates of arrays, which IREE
    makes in the memory of constants that others read (``jnp.insert`` beside a median), and programs of weights.
    """
    found = operations(module)
    if any(op.name in _IN_PLACE for op in found) or weights_of(module):
        return False
    tables = (op for op in found if op.name == "stablehlo.constant" and _elements(op.results[0].type) >= _TABLE)
    return len(found) >= _LONG and all(map(_is_splat, tables))


def _is_splat(constant: Any) -> bool:
    """Whether one number fills a constant; not known of complex ones, which the bindings do not read."""
    if isinstance(constant.results[0].type.element_type, ir.ComplexType):
        return False
    value = constant.attributes["value"]
    return isinstance(value, ir.DenseElementsAttr) and bool(value.is_splat)


def _work(op: Any) -> int:
    if op.name.startswith(_INSIDE):
        return 0
    if WORK in op.attributes and (multiplications := int(op.attributes[WORK].value)):
        return 2 * multiplications // _DENSITY
    sizes = [_elements(value.type) for value in op.results]
    if op.name == "stablehlo.dot_general":
        return 2 * _multiplications(op) // _DENSITY
    if op.name == "stablehlo.convolution":
        kernel = _elements(op.operands[1].type)
        widest = max((int(size) for size in op.results[0].type.shape), default=1)
        return 2 * sizes[0] * max(1, kernel // max(1, widest)) // _DENSITY
    return max((_elements(value.type) for value in (*op.operands, *op.results)), default=0)


def _elementwise_work(found: Sequence[Any]) -> list[int]:
    """The work of each group of elementwise operations that IREE computes in one pass over memory."""
    groups: dict[Any, set[Any]] = {}
    for op in found:
        if op.name not in _ELEMENTWISE:
            continue
        groups[op] = group = {op}
        for operand in op.operands:
            source = None if isinstance(operand.owner, ir.Block) else operand.owner
            if source in groups and groups[source] is not group and _is_passed_on(operand, op.results[0]):
                small, group = sorted((group, groups[source]), key=len)
                group |= small
                groups |= dict.fromkeys(small, group)
    distinct = {id(group): group for group in groups.values()}.values()
    return [_group_work(group) for group in distinct]


def _group_work(group: set[Any]) -> int:
    elements = _elements(next(iter(group)).results[0].type)
    return elements * (1 + sum(_ELEMENTWISE[op.name] for op in group) // _DENSITY)


def _is_passed_on(value: Any, result: Any) -> bool:
    """Whether a value is of the result's size, and only elementwise operations read it: it need not lie in memory."""
    users = (use.owner.operation.name for use in value.uses)
    return _elements(value.type) == _elements(result.type) and all(name in _ELEMENTWISE for name in users)


def _multiplications(op: Any) -> int:
    """The multiplications of a dot_general."""
    lhs, rhs, out = (_elements(value.type) for value in (*op.operands, op.results[0]))
    # lhs * rhs = batch² · m · n · k² and out = batch · m · n; the batch is counted once more than needed at most.
    return out * max(1, isqrt(lhs * rhs // max(1, out)))


def _elements(type_: Any) -> int:
    if not isinstance(type_, ir.RankedTensorType):
        return 0
    return prod(1 if type_.is_dynamic_dim(d) else int(type_.get_dim_size(d)) for d in range(type_.rank))
