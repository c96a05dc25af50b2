"""Builders of operations below StableHLO: one-workgroup dispatches, loops, vectors, slices.

``arith``, ``math``, ``scf`` and ``vector`` are built by jaxlib's own functions. By name are built the dialects of which
jaxlib ships no functions (``tensor``, ``linalg``, IREE's own, all unverified), and also ``arith.constant``, ``scf.for``
and ``scf.if``: jaxlib overrides their functions with other parameters, which a type checker does not see.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from hloforge.dialect.mlir import AnyOp, SSAValue, arith, ir, scf, vector_dialect

# The code generator's choice for the dispatch: no tiles over workgroups, no tiles at all, but vectors. IREE's own
# choice would distribute the heaviest operation over workgroups, each of which would run the whole loop.
_ONE_WORKGROUP = (
    "#iree_codegen.compilation_info<lowering_config = #iree_cpu.lowering_config<distribution = [], "
    "vector_common_parallel = [], vector_reduction = []>, translation_info = "
    "#iree_codegen.translation_info<pipeline = #iree_cpu.pipeline<DoubleTilingExpert>>>"
)

DISPATCH = "flow.dispatch.region"

# What builds an operation from its operands, such as ``arith.addf``; a conversion takes the type of its result first.
Builder: TypeAlias = Callable[..., Any]


def stands_in_dispatch(op: AnyOp) -> bool:
    """Whether an operation is part of a dispatch already."""
    parent = op.parent
    while parent is not None and not parent.operation.name.startswith("flow."):
        parent = parent.operation.parent
    return parent is not None


def create(name: str, operands: Sequence[Any], types: Sequence[Any], regions: int = 0, **attributes: Any) -> Any:
    """An operation at the insertion point, from and to ``ir`` objects."""
    return ir.Operation.create(
        name, results=list(types), operands=list(operands), attributes=attributes, regions=regions
    )


def constant(value: Any) -> Any:
    """A constant of an attribute that has a type: a number, or a vector of numbers."""
    # Most of what kernels are made of: each step less is measured in the time of lowering.
    return ir.Operation.create("arith.constant", results=[value.type], attributes={"value": value}).result


def index(number: int) -> Any:
    """A constant of type ``index``."""
    return constant(ir.IntegerAttr.get(ir.IndexType.get(), number))


def zero(element: ir.Type) -> Any:
    """A scalar zero of a signless integer or float type."""
    make = ir.IntegerAttr.get if isinstance(element, ir.IntegerType) else ir.FloatAttr.get
    return constant(make(element, 0))


def empty(type_: ir.Type) -> Any:
    """An array without contents."""
    return create("tensor.empty", (), [type_]).result


def element_of(scalar_tensor: SSAValue) -> Any:
    """The scalar in a 0-d tensor."""
    return create("tensor.extract", [scalar_tensor], [scalar_tensor.type.element_type]).result


def scalar_tensor(scalar: Any) -> Any:
    """The 0-d tensor of a scalar."""
    type_ = ir.RankedTensorType.get([], scalar.type)
    return create("tensor.from_elements", [scalar], [type_]).results[0]


def full_vector(scalar: SSAValue, length: int) -> Any:
    """A vector of equal elements."""
    return vector_dialect.broadcast(ir.VectorType.get([length], scalar.type), scalar)


def only_element(vector: Any) -> Any:
    """The scalar in a vector of one element."""
    return vector_dialect.extract(vector, [], [0])


def read_vector(array: SSAValue, position: Sequence[SSAValue], length: int) -> Any:
    """``length`` elements along the last dimension, as a vector; they must exist."""
    element = array.type.element_type
    along = ir.AffineMap.get_minor_identity(len(position), 1)
    vector = ir.VectorType.get([length], element)
    return vector_dialect.transfer_read(vector, array, position, along, zero(element), [True])


def write_vector(vector: SSAValue, array: SSAValue, position: Sequence[SSAValue]) -> Any:
    """The array with a vector written along its last dimension; it must fit."""
    along = ir.AffineMap.get_minor_identity(len(position), 1)
    return vector_dialect.transfer_write(array.type, vector, array, position, along, [True])


def for_range(
    start: Any, stop: Any, step: Any, carried: Sequence[Any], body: Callable[..., Sequence[Any]]
) -> list[Any]:
    """``for i in range(start, stop, step): carried = body(i, *carried)``; the bounds are of type ``index``."""
    types = [value.type for value in carried]
    loop = create("scf.for", [start, stop, step, *carried], types, 1)
    block = ir.Block.create_at_start(loop.regions[0], [ir.IndexType.get(), *types])
    with ir.InsertionPoint(block):
        scf.yield_(body(*block.arguments))
    return list(loop.results)


def for_each(start: Any, stop: int, step: int, array: Any, body: Callable[[Any, Any], Any]) -> Any:
    """``for i in range(start, stop, step): array = body(i, array)``; returns the array."""
    return for_range(start, index(stop), index(step), [array], lambda i, array: [body(i, array)])[0]


def write_rows(source: Callable[[Sequence[Any], int], Any], array: Any, start: Any) -> Any:
    """Write the whole of a static array, a vector at a time.

    Args:
        source: from the position of a vector and its length to the vector.
        start: an ``index`` that is 0, from which the outermost dimension is written.
    """
    *outer, last = (int(size) for size in array.type.shape)
    length = last if last <= 16 else next(size for size in (16, 8, 4, 2, 1) if last % size == 0)

    def along(sizes: list[int], position: list[Any], into: Any) -> Any:
        first = index(0) if position else start
        if sizes:
            return for_each(first, sizes[0], 1, into, lambda i, rows: along(sizes[1:], [*position, i], rows))
        return for_each(
            first,
            last,
            length,
            into,
            lambda i, row: write_vector(source([*position, i], length), row, [*position, i]),
        )

    return along(outer, [], array)


def one_workgroup_zero(opaque: Any) -> Any:
    """The ``index`` 0 by an operation that fixes how IREE generates code for the dispatch around it.

    Whatever the dispatch stores must depend on it, or IREE may drop it, and with it the fixing.

    Args:
        opaque: a ``tensor<i32>`` that holds 0, which the compiler must not know.
    """
    i32 = opaque.type.element_type
    scalar = ir.Attribute.parse("affine_map<() -> ()>")
    generic = create(
        "linalg.generic",
        [opaque, empty(opaque.type)],
        [opaque.type],
        1,
        indexing_maps=ir.ArrayAttr.get([scalar, scalar]),
        iterator_types=ir.ArrayAttr.get([]),
        operandSegmentSizes=ir.DenseI32ArrayAttr.get([1, 1]),
        compilation_info=ir.Attribute.parse(_ONE_WORKGROUP),
    )
    block = ir.Block.create_at_start(generic.regions[0], [i32, i32])
    with ir.InsertionPoint(block):
        create("linalg.yield", [arith.addi(block.arguments[0], block.arguments[0])], ())
    return arith.index_cast(ir.IndexType.get(), element_of(generic.results[0]))


def multiple(zero: Any, number: int) -> Any:
    """The same ``index`` 0, which the compiler does not know for the same.

    IREE takes equal results of a dispatch for its first result, so no two may be written by equal operations.
    """
    return arith.muli(zero, index(number)) if number > 1 else zero


def held(array: Any, zero: Any) -> Any:
    """The same array in the same place, by an operation: its first element is written over itself.

    IREE moves reshapes of what no operation makes out of a dispatch, and those of a loop's arguments with them.

    Args:
        zero: an ``index`` that is 0, which the compiler must not know.
    """
    rank = len(array.type.shape)
    return write_vector(read_vector(array, [zero] * rank, 1), array, [index(0)] * rank)


def dispatch(types: Sequence[Any], body: Callable[[Sequence[Any]], Sequence[Any]]) -> list[Any]:
    """One dispatch of one workgroup.

    Args:
        types: of the results, static.
        body: from the results' buffers to the results.
    """
    region = create(DISPATCH, (), types, 2, operandSegmentSizes=ir.DenseI32ArrayAttr.get([0, 0]))
    with ir.InsertionPoint(ir.Block.create_at_start(region.regions[0], [])):
        create("flow.return", body([empty(type_) for type_ in types]), ())
    return list(region.results)
