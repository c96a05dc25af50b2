"""Small readers of MLIR operations: walking, locations, symbols."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from hloforge.dialect.errors import Location
from hloforge.dialect.mlir import AnyOp, ir


def operations(root: ir.Module | AnyOp, names: Iterable[str] | None = None) -> list[ir.Operation]:
    """All operations below ``root`` in post-order (inner ones first), ``root`` itself left out.

    Args:
        names: keep only these operation names.
    """
    wanted = None if names is None else frozenset(names)
    found: list[ir.Operation] = []
    # Half of the time of a pass that finds nothing is spent here.
    keep, go_on = found.append, ir.WalkResult.ADVANCE

    def visit(op: ir.Operation) -> ir.WalkResult:
        if wanted is None or op.name in wanted:
            keep(op)
        return go_on

    top = root.operation
    top.walk(visit, ir.WalkOrder.POST_ORDER)
    # The root comes last.
    if found and found[-1] == top:
        found.pop()
    return found


def defining_op(value: Any, *names: str) -> ir.Operation | None:
    """The operation that makes a value (of ``ir``); None for an argument of a block.

    Args:
        names: give None for operations of other names.
    """
    if isinstance(value.owner, ir.Block):
        return None
    op: ir.Operation = value.owner.operation
    return op if not names or op.name in names else None


def is_made_by(value: Any, *names: str) -> bool:
    """Whether an operation of one of these names makes a value (of ``ir``)."""
    return defining_op(value, *names) is not None


def block_of(value: Any) -> ir.Block:
    """The block that a value (of ``ir``) belongs to: as its argument, or as a result of one of its operations."""
    return value.owner if isinstance(value.owner, ir.Block) else value.owner.operation.block


def blocks(op: ir.Module | AnyOp) -> Iterator[ir.Block]:
    """The blocks of an operation's regions."""
    for region in op.operation.regions:
        yield from region.blocks


def drop_argument_locations(module: ir.Module) -> None:
    """Forget where the arguments of all blocks are, in whose locations a file can write anything."""
    nowhere = ir.Location.unknown(module.context)
    for op in operations(module):
        for block in blocks(op):
            for argument in block.arguments:
                argument.set_location(nowhere)


def in_block(op: ir.Operation | None, block: ir.Block) -> Any:
    """The operation of a block that is this one, or around it; None if there is none."""
    while op is not None and op.block != block:
        op = None if op.parent is None else op.parent.operation
    return op


def stands_in(op: AnyOp, name: str) -> bool:
    """Whether an operation stands immediately in one of this name."""
    return op.parent is not None and op.parent.name == name


def string_attribute(op: ir.Module | AnyOp, name: str) -> str:
    """The text of a string or symbol attribute; empty if the operation lacks it."""
    # Of a class with a value, which the stubs do not tell.
    attributes: Any = op.operation.attributes
    return str(attributes[name].value) if name in attributes else ""


def integers(op: AnyOp, name: str) -> list[int]:
    """The numbers of a dense array or dense elements attribute; empty if the operation lacks it."""
    # Of a class that can be iterated, which the stubs do not tell.
    attributes: Any = op.operation.attributes
    return [int(number) for number in attributes[name]] if name in attributes else []


def integer(op: AnyOp, name: str) -> int:
    """The number of an integer attribute."""
    return ir.IntegerAttr(op.attributes[name]).value


def splat(op: AnyOp) -> Any:
    """The number that a constant repeats."""
    # Of a class with a value, which the stubs do not tell.
    attribute: Any = ir.DenseElementsAttr(op.attributes["value"]).get_splat_value()
    return attribute.value


def location_of(op: ir.Module | AnyOp) -> Location | None:
    """The user's position of an operation: the first file location, else the instruction's name."""
    location = op.operation.location
    return file_location(location) or _named(location)


def file_location(location: ir.Location) -> Location | None:
    """The first file position inside an MLIR location."""
    if isinstance(location, ir.FileLineColLoc):
        return Location(location.filename, location.start_line, location.start_col)
    return _first(location, file_location)


def _named(location: ir.Location) -> Location | None:
    if isinstance(location, ir.NameLoc):
        return Location(location.name_str)
    return _first(location, _named)


def _first(location: ir.Location, find: Callable[[ir.Location], Location | None]) -> Location | None:
    # The stubs say "object" of the parts of a fused location.
    children: list[Any] = []
    if isinstance(location, ir.NameLoc):
        children = [location.child_loc]
    elif isinstance(location, ir.CallSiteLoc):
        children = [location.callee, location.caller]
    elif isinstance(location, ir.FusedLoc):
        children = list(location.locations)
    return next((found for child in children if (found := find(child))), None)


def scope_names(name: str) -> list[str]:
    """The names of a path of scopes, which slashes separate but inside of parentheses: ``transpose(jvp(a/b))``."""
    pieces, depth = [""], 0
    for char in name:
        depth = max(0, depth + (char == "(") - (char == ")"))
        if char == "/" and not depth:
            pieces.append("")
        else:
            pieces[-1] += char
    return [piece for piece in pieces if piece]
