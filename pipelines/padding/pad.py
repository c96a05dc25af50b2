"""``padded``: the program of a bucket, which computes for all sizes up to its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hloforge.dialect import ops
from hloforge.dialect.bounded_sizes import Padded
from hloforge.dialect.constants import constant
from hloforge.dialect.errors import Error
from hloforge.dialect.marks import LABELS, RESULT_NAMES
from hloforge.dialect.mlir import in_context, ir
from hloforge.dialect.operations import location_of
from hloforge.dialect.program import Parameter, Program, Signature, entry_function
from hloforge.dialect.shapes import Shape
from hloforge.dialect.values import Value
from hloforge.pipelines.framework.passes import NativePass
from hloforge.pipelines.padding import (  # noqa: F401  # they register their rules
    control,
    elementwise,
    indexing,
    order,
    reductions,
    shaping,
    windows,
)
from hloforge.pipelines.padding.family import Family, listed, prepared
from hloforge.pipelines.padding.frame import RULES, Frame, refuse
from hloforge.pipelines.padding.sizes import Point

_REGIONS = frozenset({"stablehlo.while", "stablehlo.case", "stablehlo.if"})


def padded(family: Family, program: Program, point: Point, names: tuple[str, ...], opened: Sequence[int]) -> Padded:
    """The program for all sizes of a family up to some.

    Args:
        program: that for exactly these sizes; it is left as it was.
        point: the sizes that are open in the family.
        names: of all open sizes, whose real values the program takes after its parameters.
        opened: which of them are open in the family; the others are fixed in it.

    Raises:
        UnsupportedError: an operation without a rule for padding; or the program is none of the family.
    """
    made = prepared(program)
    signature = made.signature
    with in_context(made.module):
        listing = listed(made)
        family.agrees(listing, point)
        entry = entry_function(made.module).operation
        block = entry.regions[0].blocks[0]
        with ir.InsertionPoint.at_block_begin(block), entry.location:
            anchor = constant(0, "s64").ir.owner.operation
        scalar = Shape.array("s64").mlir_type()
        reals = [Value(block.add_argument(scalar, entry.location)) for _ in names]
        frame = Frame(family, listing, point, [reals[number] for number in opened], anchor)
        for number, argument in enumerate(block.arguments):
            if number < len(block.arguments) - len(names):
                frame.set(argument, frame.prefixes(argument))
        rewrite_block(frame, block)
        cuts = _finish(frame, block)
        frame.erase_replaced()
        _retype(entry, block)
        results = [Shape.array("s32")] * len(cuts)
        signature = _with_sizes(made.module, signature, names, results)
        signature.attach(made.module)
        made.module.operation.verify()
    # Constants have become one for each use.
    NativePass("func.func(cse)").run(made.module)
    return Padded(Program(made.module, signature, program.name, program.source), tuple(cuts))


def with_sizes(program: Program, names: tuple[str, ...]) -> Padded:
    """A program for exactly some sizes, which takes them as that of a bucket does."""
    made = program.clone()
    with in_context(made.module):
        entry = entry_function(made.module).operation
        block = entry.regions[0].blocks[0]
        for _ in names:
            block.add_argument(Shape.array("s64").mlir_type(), entry.location)
        _retype(entry, block)
        signature = _with_sizes(made.module, made.signature, names, [])
        signature.attach(made.module)
        made.module.operation.verify()
    return Padded(Program(made.module, signature, program.name, program.source), ())


def rewrite_block(frame: Frame, block: Any) -> None:
    """Rewrite the operations of a block, whose arguments' layouts are known."""
    for view in list(block.operations):
        op = view.operation
        if not frame.knows(op):
            continue
        try:
            with ir.InsertionPoint(op), op.location:
                _rewrite(frame, op)
        except Error as error:
            error.location = error.location or location_of(op)
            raise


def _rewrite(frame: Frame, op: Any) -> None:
    place = frame.place(op)
    is_open = any(map(frame.is_open, op.operands)) or any(
        size.number is None for result in op.results for size in frame.dims(result)
    )
    depends = bool(frame.family.varies(place)) or frame.family.numbers(place) is not None
    if not is_open and not depends and op.name not in _REGIONS:
        return
    found = RULES.get(op.name)
    if found is None:
        raise refuse(op, "nothing is known of what it makes of elements that are none")
    _check_growth(frame, op)
    found(frame, op)


def _check_growth(frame: Frame, op: Any) -> None:
    """Refuse a size that is less for larger ones: the array of the largest would not hold it."""
    points = (*frame.family.fits.points, frame.point)
    for result in op.results:
        for size, extent in zip(frame.dims(result), result.type.shape, strict=True):
            inside = [point for point in points if all(a <= b for a, b in zip(point, frame.point, strict=True))]
            if size.number is None and any(size.at(point) > extent for point in inside):
                raise refuse(op, "a size becomes less as another grows")


def _finish(frame: Frame, block: Any) -> list[tuple[int, int]]:
    """Results whose real elements come first, and their sizes behind them."""
    last = list(block.operations)[-1].operation
    cuts: list[tuple[int, int]] = []
    with ir.InsertionPoint(last), last.location:
        values = [
            frame.as_prefix(Value(operand)) if _is_array(operand) else Value(operand) for operand in last.operands
        ]
        sizes = []
        for number, value in enumerate(values):
            for d, dim in enumerate(frame.layout(value)):
                if dim is not None:
                    cuts.append((number, d))
                    sizes.append(ops.convert_element_type(frame.size(dim.real), "s32"))
        ir.Operation.create("func.return", operands=[value.ir for value in [*values, *sizes]])
    last.erase()
    return cuts


def _is_array(value: Any) -> bool:
    return isinstance(value.type, ir.RankedTensorType)


def _retype(entry: Any, block: Any) -> None:
    """The type of ``main`` as its block has become."""
    last = list(block.operations)[-1].operation
    types = ir.FunctionType.get([a.type for a in block.arguments], [operand.type for operand in last.operands])
    entry.attributes["function_type"] = ir.TypeAttr.get(types)
    for name in ("arg_attrs", "res_attrs"):
        if name in entry.attributes:
            del entry.attributes[name]


def _with_sizes(module: ir.Module, signature: Signature, names: tuple[str, ...], sizes: list[Shape]) -> Signature:
    """The signature of a bucket's program: flat, with sizes at both ends."""
    for name in (RESULT_NAMES, LABELS):
        if name in module.operation.attributes:
            del module.operation.attributes[name]
    leaves = [Parameter(leaf.name, leaf.shape) for leaf in signature.flat_parameters]
    parameters = [*leaves, *(Parameter(f"size of {name}", Shape.array("s64")) for name in names)]
    results = [*signature.flat_results, *sizes]
    result = results[0] if len(results) == 1 else Shape.tuple_of(*results)
    return replace(signature, parameters=tuple(parameters), result=result, aliases=(), result_names=(), labels=())
