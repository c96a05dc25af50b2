"""A program at smaller sizes: every dimension that belongs to a shrunk one, and every attribute that holds its size."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hloforge.dialect.errors import OptionError
from hloforge.dialect.mlir import in_context, ir
from hloforge.dialect.operations import blocks, operations
from hloforge.dialect.program import Program, Signature, entry_function
from hloforge.dialect.shapes import Shape
from hloforge.dialect.suggestions import did_you_mean
from hloforge.tools.shrink_loops import scale_counts
from hloforge.tools.shrink_rules import Shapes, Sizes, function, rule_of
from hloforge.tools.shrink_sizes import Size, refusal

_OF_PARAMETER = re.compile(r"(?P<name>.+)\[(?P<number>\d+)\]=(?P<new>\d+)")
_BY_SIZE = re.compile(r"(?P<old>\d+)=(?P<new>\d+)")
_LISTED = 12


@dataclass(frozen=True)
class Dims:
    """What ``--dims`` says.

    Attributes:
        by_size: the new size of every dimension of an old size.
        of_parameters: the new size of a dimension of a parameter, by name and number.
    """

    by_size: dict[int, int]
    of_parameters: dict[tuple[str, int], int]

    @classmethod
    def parse(cls, texts: Sequence[str]) -> Dims:
        """Read ``4096=64,x[1]=8``. Raises OptionError for anything else."""
        dims = cls({}, {})
        for part in (part.strip() for text in texts for part in text.split(",")):
            if match := _BY_SIZE.fullmatch(part):
                key: Any = int(match["old"])
                known: dict[Any, int] = dims.by_size
            elif match := _OF_PARAMETER.fullmatch(part):
                key, known = (match["name"], int(match["number"])), dims.of_parameters
            else:
                raise OptionError(
                    f"--dims: {part!r} is neither OLD=NEW nor PARAMETER[DIMENSION]=NEW",
                    hint="for example --dims=4096=64,32=4 or --dims='tokens[0]=2'",
                )
            new = int(match["new"])
            if new < 1:
                raise OptionError(f"--dims: {part}: a size is at least 1")
            if known.setdefault(key, new) != new:
                raise OptionError(f"--dims: {part}: {part.rpartition('=')[0]} was given {known[key]} before")
        return dims


def shrink(program: Program, dims: Dims) -> Program:
    """A copy of a program whose dimensions have other sizes; its names, layouts and donations are kept.

    Constants are cut: the first elements along each dimension remain. Loops that count to a shrunk size given by
    ``dims.by_size`` count to the new one. Other numbers of the program stay as they are.

    Raises:
        OptionError: a dimension that the program lacks, or, at the operation, sizes that do not fit each other.
    """
    copy = program.clone()
    module = copy.module
    with in_context(module):
        shapes = Shapes()
        everything = operations(module)
        for op in everything:
            if op.name == "func.func":
                function(op, shapes)
        in_order = _in_order(module.operation)
        for op in in_order:
            rule_of(op)(op, shapes)
        for op in in_order:
            for value in _values(op):
                shapes.of(value)
        _name(copy.signature, entry_function(module), shapes, dims)
        shapes.system.solve()
        for write in shapes.writers:
            write()
        scale_counts(module, dims.by_size)
        _retype(in_order, shapes)
        copy.signature = _signature(copy.signature, entry_function(module))
        copy.signature.attach(module)
        _verify(module, in_order)
    return copy


def _in_order(root: ir.Operation) -> list[ir.Operation]:
    """All operations below one, outer ones first."""
    found: list[ir.Operation] = []
    waiting = [root]
    while waiting:
        op = waiting.pop()
        inner = [one.operation for block in blocks(op) for one in block.operations]
        found += [op] if op is not root else []
        waiting += reversed(inner)
    return found


def _values(op: ir.Operation) -> Iterator[Any]:
    yield from op.results
    for block in blocks(op):
        yield from block.arguments


def _name(signature: Signature, entry: Any, shapes: Shapes, dims: Dims) -> None:
    """Give the sizes that the user names their new values."""
    arguments = list(next(blocks(entry)).arguments)
    leaves = [leaf.name for leaf in signature.flat_parameters]
    for (name, number), new in dims.of_parameters.items():
        if name not in leaves:
            raise OptionError(
                f"--dims: there is no parameter {name!r}",
                hint=did_you_mean(name, leaves, f"parameters: {', '.join(leaves[:_LISTED])}"),
            )
        sizes = shapes.of(arguments[leaves.index(name)])
        if number >= len(sizes):
            raise OptionError(f"--dims: {name}[{number}]: the parameter has {len(sizes)} dimensions, counted from 0")
        _give(sizes[number], new, f"--dims={name}[{number}]={new}", entry.operation)
    everything = {size.root(): None for sizes in shapes.of_value.values() for size in sizes}
    for old, new in dims.by_size.items():
        found = [size for size in everything if size.old == old]
        if not found:
            known = sorted({size.old for size in everything if size.old > 1}, reverse=True)
            listed = f"it has {', '.join(map(str, known[:_LISTED]))}{' …' if len(known) > _LISTED else ''}"
            raise OptionError(f"--dims: no dimension of the program has the size {old}", hint=listed)
        for size in found:
            if size.is_open():
                _give(size, new, f"--dims={old}={new}", entry.operation)


def _give(size: Size, new: int, reason: str, op: ir.Operation) -> None:
    root = size.root()
    if root.old < 0:
        raise OptionError(f"{reason}: this dimension is dynamic", hint="fix its size with --shape of hloforge compile")
    if root.new is not None and root.new != new:
        raise refusal(f"{reason}: the same size is {root.new} by {root.reason}", op)
    root.new, root.reason = new, reason


def _changed(type_: Any, sizes: Sizes) -> ir.Type | None:
    if not any(size.is_changed() for size in sizes):
        return None
    return ir.RankedTensorType.get([size.value() for size in sizes], type_.element_type, type_.encoding)


def _retype(in_order: Sequence[ir.Operation], shapes: Shapes) -> None:
    for value, sizes in shapes.of_value.items():
        if changed := _changed(value.type, sizes):
            value.set_type(changed)
    for op in in_order:
        if op.name == "func.func":
            block = next(blocks(op), None)
            if block is not None:
                returned = [value.type for value in list(block.operations)[-1].operation.operands]
                type_ = ir.FunctionType.get([argument.type for argument in block.arguments], returned)
                op.attributes["function_type"] = ir.TypeAttr.get(type_)


def _signature(signature: Signature, entry: Any) -> Signature:
    type_ = ir.FunctionType(ir.TypeAttr(entry.operation.attributes["function_type"]).value)
    given, made = iter(type_.inputs), iter(type_.results)
    parameters = tuple(replace(one, shape=_resized(one.shape, given)) for one in signature.parameters)
    return replace(signature, parameters=parameters, result=_resized(signature.result, made))


def _resized(shape: Shape, types: Iterator[ir.Type]) -> Shape:
    if shape.elements is not None:
        return replace(shape, elements=tuple(_resized(member, types) for member in shape.elements))
    type_ = next(types)
    if shape.element is None or not shape.is_static:
        return shape
    return replace(shape, dimensions=tuple(ir.RankedTensorType(type_).shape))


def _verify(module: ir.Module, in_order: Sequence[ir.Operation]) -> None:
    """Raises OptionError at the first operation whose new sizes break a rule of StableHLO."""
    try:
        module.operation.verify()
    except ir.MLIRError as error:
        for op in sorted(in_order, key=lambda op: len(op.regions)):
            try:
                op.verify()
            except ir.MLIRError as found:
                reason = str(found.error_diagnostics[0].message) if found.error_diagnostics else str(found)
                raise refusal(f"the new sizes break a rule: {reason}", op) from None
        raise error
