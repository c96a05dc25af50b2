"""Arrays by a rule from an element's position to its value: one ``linalg.generic``, of any size.

What StableHLO's dynamic operations do is a rule of this kind, and IREE tiles, fuses and distributes it like its own.
The builders work on ``ir`` objects: positions are of type ``index``, elements signless.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from hloforge.dialect.emission import emit
from hloforge.dialect.mlir import SSAValue, arith, ir, scf
from hloforge.dialect.values import Value
from hloforge.pipelines.framework.builders import Builder, create, index

# A number that is known now, or an ``index``.
Number: TypeAlias = Any


def signless(value: SSAValue) -> Any:
    """An array of unsigned integers as one of signless ones, which hold the same bits; others as they are."""
    type_ = signless_type(value.type)
    return value if type_ == value.type else emit("stablehlo.bitcast_convert", [Value(value)], type_).ir


def signless_type(type_: ir.RankedTensorType) -> ir.RankedTensorType:
    """The type of an array of unsigned integers as one of signless ones; others as they are."""
    element = type_.element_type
    if not isinstance(element, ir.IntegerType) or not element.is_unsigned:
        return type_
    return ir.RankedTensorType.get(type_.shape, ir.IntegerType.get_signless(element.width))


def restored(array: SSAValue, type_: ir.Type) -> Value:
    """What ``signless`` made, in a type of the same sizes."""
    return Value(array) if array.type == type_ else emit("stablehlo.bitcast_convert", [Value(array)], type_)


def sizes_of(array: SSAValue) -> list[Number]:
    """The sizes of a signless array."""
    return [size_at(array, d) for d in range(array.type.rank)]


def size_at(array: SSAValue, dimension: int) -> Number:
    """The size of one dimension."""
    if not array.type.is_dynamic_dim(dimension):
        return int(array.type.get_dim_size(dimension))
    return create("tensor.dim", [array, index(dimension)], [ir.IndexType.get()]).results[0]


def as_declared(sizes: Sequence[Number], type_: Any) -> list[Number]:
    """The sizes of an array of type ``type_``: numbers where it knows them, and an ``index`` where it does not."""
    return [as_value(size) if type_.is_dynamic_dim(d) else int(type_.get_dim_size(d)) for d, size in enumerate(sizes)]


def entry(integers: SSAValue, *position: int) -> Number:
    """An element of an integer array as an ``index``."""
    return as_index(signless(integers), [index(number) for number in position], integers.type.element_type)


def as_index(integers: SSAValue, position: Sequence[SSAValue], element: Any) -> Any:
    """An element of a signless array that represents integers of type ``element``, as an ``index``."""
    number = create("tensor.extract", [integers, *position], [integers.type.element_type]).results[0]
    if isinstance(element, ir.IndexType):
        return number
    cast = arith.index_castui if element.is_unsigned else arith.index_cast
    return cast(ir.IndexType.get(), number)


def array_by_index(sizes: Sequence[Number], element: ir.Type, rule: Callable[..., Any]) -> Any:
    """An array of which ``rule(position, ...)`` gives the element at each position.

    Args:
        sizes: numbers for static dimensions.
        rule: from one ``index`` a dimension to a scalar of type ``element``; it may read arrays with ``extract``.
    """
    known = [size if isinstance(size, int) else ir.ShapedType.get_dynamic_size() for size in sizes]
    type_ = ir.RankedTensorType.get(known, element)
    init = create("tensor.empty", [size for size in sizes if not isinstance(size, int)], [type_]).results[0]
    rank = len(sizes)
    generic = create(
        "linalg.generic",
        [init],
        [type_],
        1,
        indexing_maps=ir.ArrayAttr.get([ir.AffineMapAttr.get(ir.AffineMap.get_identity(rank))]),
        iterator_types=iterators(rank, 0),
        operandSegmentSizes=ir.DenseI32ArrayAttr.get([0, 1]),
    )
    with ir.InsertionPoint(ir.Block.create_at_start(generic.regions[0], [element])):
        position = [create("linalg.index", (), [ir.IndexType.get()], dim=_i64(d)).results[0] for d in range(rank)]
        create("linalg.yield", [rule(*position)], ())
    return generic.result


def repeated(array: SSAValue, sizes: Sequence[Number], mapped: Sequence[int | None]) -> Any:
    """An array along further dimensions: dimension ``d`` of it is dimension ``mapped[d]``, or has size 1 for None."""
    known = [size if isinstance(size, int) else ir.ShapedType.get_dynamic_size() for size in sizes]
    element = array.type.element_type
    type_ = ir.RankedTensorType.get(known, element)
    init = create("tensor.empty", [size for size in sizes if not isinstance(size, int)], [type_]).results[0]
    places = [ir.AffineExpr.get_constant(0) if d is None else ir.AffineExpr.get_dim(d) for d in mapped]
    rank = len(sizes)
    maps = [ir.AffineMap.get(rank, 0, places), ir.AffineMap.get_identity(rank)]
    generic = create(
        "linalg.generic",
        [array, init],
        [type_],
        1,
        indexing_maps=ir.ArrayAttr.get([ir.AffineMapAttr.get(map_) for map_ in maps]),
        iterator_types=iterators(rank, 0),
        operandSegmentSizes=ir.DenseI32ArrayAttr.get([1, 1]),
    )
    block = ir.Block.create_at_start(generic.regions[0], [element, element])
    with ir.InsertionPoint(block):
        create("linalg.yield", [block.arguments[0]], ())
    return generic.result


def iterators(parallel: int, reduction: int) -> ir.ArrayAttr:
    """The iterator types of a ``linalg.generic``."""
    kinds = ["parallel"] * parallel + ["reduction"] * reduction
    return ir.ArrayAttr.get([ir.Attribute.parse(f"#linalg.iterator_type<{kind}>") for kind in kinds])


def extract(array: SSAValue, position: Sequence[Number]) -> Any:
    """The element at a position."""
    return create("tensor.extract", [array, *map(as_value, position)], [array.type.element_type]).result


def as_value(number: Number) -> Any:
    """A number as an ``ir.Value``."""
    return index(number) if isinstance(number, int) else number


def _i64(number: int) -> ir.Attribute:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), number)


def add(a: Number, b: Number) -> Number:
    return _folded(arith.addi, a, b, lambda x, y: x + y)


def subtract(a: Number, b: Number) -> Number:
    return _folded(arith.subi, a, b, lambda x, y: x - y)


def multiply(a: Number, b: Number) -> Number:
    return _folded(arith.muli, a, b, lambda x, y: x * y)


def divide(a: Number, b: Number) -> Number:
    """The quotient rounded toward 0; ``b`` is positive."""
    return a if isinstance(b, int) and b == 1 else _folded(arith.divsi, a, b, None)


def remainder(a: Number, b: Number) -> Number:
    """The remainder with the sign of ``a``; ``b`` is positive."""
    return 0 if isinstance(b, int) and b == 1 else _folded(arith.remsi, a, b, None)


def minimum(a: Number, b: Number) -> Number:
    return _folded(arith.minsi, a, b, min)


def maximum(a: Number, b: Number) -> Number:
    return _folded(arith.maxsi, a, b, max)


def clamp(low: Number, number: Number, high: Number) -> Number:
    """The number within bounds, of which the lower one wins."""
    return maximum(low, minimum(number, high))


def _folded(build: Builder, a: Number, b: Number, fold: Callable[[int, int], int] | None) -> Number:
    if isinstance(a, int) and isinstance(b, int) and fold:
        return fold(a, b)
    return build(as_value(a), as_value(b))


def compare(direction: str, a: Number, b: Number) -> Any:
    """An i1: ``eq``, ``ne``, ``lt``, ``le``, ``gt`` or ``ge`` of signed numbers."""
    predicate = arith.CmpIPredicate[direction if direction in ("eq", "ne") else f"s{direction}"]
    return arith.cmpi(predicate, as_value(a), as_value(b))


def both(conditions: Sequence[Any]) -> Any:
    """Whether all of some i1 hold; there is at least one."""
    first, *others = conditions
    for other in others:
        first = arith.andi(first, other)
    return first


def choose(condition: Any, then: Callable[[], Any], otherwise: Any) -> Any:
    """``then()`` where the condition holds, evaluated only there."""
    branch = create("scf.if", [condition], [otherwise.type], 2)
    inside, outside = (ir.Block.create_at_start(region, []) for region in branch.regions)
    with ir.InsertionPoint(inside):
        scf.yield_([then()])
    with ir.InsertionPoint(outside):
        scf.yield_([otherwise])
    return branch.results[0]
