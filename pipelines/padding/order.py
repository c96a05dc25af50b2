"""Sorts, selections and linear algebra along rows: padding comes last, or is what the rows are not changed by."""

from __future__ import annotations

from typing import Any

from hloforge.dialect import ops
from hloforge.dialect.constants import constant
from hloforge.dialect.emission import create, flag, i64
from hloforge.dialect.mlir import ir
from hloforge.dialect.operations import integer, integers
from hloforge.dialect.regions import clone_with
from hloforge.dialect.values import Value
from hloforge.pipelines.padding.frame import Frame, least, refuse, rule
from hloforge.pipelines.padding.layouts import plain


@rule("sort")
def sort(frame: Frame, op: Any) -> None:
    """Real elements before padding, whatever the comparison says of it."""
    rank = len(op.operands[0].type.shape)
    along = (integer(op, "dimension") if "dimension" in op.attributes else -1) % rank
    values, layout = frame.together([Value(operand) for operand in op.operands])
    if layout[along] is None:
        for number, value in enumerate(values):
            op.operands[number] = value.ir
            frame.set(op.results[number], layout)
        return
    values = [frame.as_prefix(value, [along]) for value in values]
    layout = frame.layout(values[0])
    dim = layout[along]
    assert dim is not None
    is_padding = ops.broadcast_in_dim(ops.not_(frame.mask(dim)), list(values[0].dims), [along])
    keyed = [*values, is_padding]
    made = create(
        "stablehlo.sort",
        keyed,
        [value.type for value in keyed],
        1,
        dimension=i64(along),
        is_stable=op.attributes["is_stable"] if "is_stable" in op.attributes else flag(False),
    )
    _compare(op.regions[0].blocks[0], made)
    frame.replace(op, [Value(result) for result in list(made.results)[:-1]], [layout] * len(values))


def _compare(old: Any, made: Any) -> None:
    """The comparison of records that have one element more: whether they are padding."""
    scalar = ir.RankedTensorType.get([], ir.IntegerType.get_signless(1))
    types = [argument.type for argument in old.arguments]
    block = made.regions[0].blocks.append(*types, scalar, scalar, arg_locs=[made.location] * (len(types) + 2))
    known = dict(zip(old.arguments, list(block.arguments)[: len(types)], strict=True))
    with ir.InsertionPoint(block), made.location:
        before: Any = None
        for view in old.operations:
            inner = view.operation
            if inner.name == "stablehlo.return":
                before = Value(known[inner.operands[0]])
                break
            known.update(zip(inner.results, clone_with(inner, known).results, strict=True))
        one, other = (Value(argument) for argument in list(block.arguments)[-2:])
        real_first = ops.and_(ops.not_(one), other)
        both = ops.not_(ops.xor(one, other))
        found = ops.or_(real_first, ops.and_(both, before))
        create("stablehlo.return", [found], [], 0)


@rule("chlo.top_k")
def top_k(frame: Frame, op: Any) -> None:
    """Nothing is less than the padding, and what is equal to it comes before it."""
    x = Value(op.operands[0])
    last = x.rank - 1
    if frame.family.varies(frame.place(op)):
        raise refuse(op, "how many it selects depends on a size")
    x = frame.as_prefix(x, [last])
    dim = frame.layout(x)[last]
    if dim is not None:
        if x.element_type.is_float:
            # A NaN is greater than all numbers; -NaN is none of them.
            x = frame.masked(x, [last], constant(least(x.element_type), x.element_type))
        else:
            x = frame.masked(x, [last], least(x.element_type))
    op.operands[0] = x.ir
    for result in op.results:
        frame.set(result, [*frame.layout(x)[:last], None])


@rule("cholesky")
def cholesky(frame: Frame, op: Any) -> None:
    op.operands[0] = _square(frame, op, Value(op.operands[0])).ir
    frame.set(op.results[0], plain(frame.layout(op.operands[0])))


@rule("triangular_solve")
def triangular_solve(frame: Frame, op: Any) -> None:
    """The matrix continues with ones on its diagonal: padding of the other side changes none of its elements."""
    a, b = Value(op.operands[0]), Value(op.operands[1])
    batch = a.rank - 2
    for d in range(batch):
        dim = frame.common([frame.layout(a)[d], frame.layout(b)[d]])
        if dim is not None:
            a, b = frame.relaid(a, d, dim), frame.relaid(b, d, dim)
    a = _square(frame, op, a)
    side = batch if "left_side" in op.attributes and bool(ir.BoolAttr(op.attributes["left_side"]).value) else batch + 1
    if frame.layout(a)[batch] is not None:
        b = frame.masked(frame.as_prefix(b, [side]), [side], 0)
    op.operands[0], op.operands[1] = a.ir, b.ir
    frame.set(op.results[0], plain(frame.layout(b)))


def _square(frame: Frame, op: Any, x: Value) -> Value:
    """A matrix of an open size with the rows of the identity behind it."""
    first, last = x.rank - 2, x.rank - 1
    if frame.layout(x)[last] is None:
        return x
    x = frame.as_prefix(x, [first, last])
    layout = frame.layout(x)
    rows, columns = layout[first], layout[last]
    if rows is None or columns is None:
        raise refuse(op, "its matrices are of no square")
    extents = list(x.dims)
    diagonal = ops.eq(ops.iota("s32", extents, first), ops.iota("s32", extents, last))
    one = ops.convert_element_type(diagonal, x.element_type)
    made = ops.select(frame.inside(extents, {first: rows, last: columns}), x, one)
    frame.set(made, layout)
    return made


@rule("fft")
def fft(frame: Frame, op: Any) -> None:
    x = op.operands[0]
    count = len(integers(op, "fft_length"))
    layout = frame.layout(x)
    if any(dim is not None for dim in layout[len(layout) - count :]) or frame.family.varies(frame.place(op)):
        raise refuse(op, "a transform along an open size")
    frame.set(op.results[0], layout)
