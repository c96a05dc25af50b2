"""Small readers of MLIR operations: walking, locations, symbols."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from hloforge.dialect.errors import Location
from hloforge.dialect.mlir import ir


def operations(root: Any, names: Iterable[str] | None = None) -> list[Any]:
    """All operations below ``root`` in post-order (inner ones first), ``root`` itself left out.

    Args:
        names: keep only these operation names.
    """
    wanted = None if names is None else frozenset(names)
    found: list[Any] = []
    # Half of the time of a pass that finds nothing is spent here.
    keep, go_on = found.append, ir.WalkResult.ADVANCE

    def visit(op: Any) -> Any:
        if wanted is None or op.name in wanted:
            keep(op)
        return go_on

    top = root.operation
    top.walk(visit, ir.WalkOrder.POST_ORDER)
    # The root comes last.
    if found and found[-1] == top:
        found.pop()
    return found


def blocks(op: Any) -> Iterator[Any]:
    """The blocks of an operation's regions."""
    for region in op.operation.regions:
        yield from region.blocks


def drop_argument_locations(module: Any) -> None:
    """Forget where the arguments of all blocks are, in whose locations a file can write anything."""
    nowhere = ir.Location.unknown(module.context)
    for op in operations(module):
        for block in blocks(op):
            for argument in block.arguments:
                argument.set_location(nowhere)


def in_block(op: Any, block: Any) -> Any:
    """The operation of a block that is this one, or around it; None if there is none."""
    while op is not None and op.block != block:
        op = None if op.parent is None else op.parent.operation
    return op


def string_attribute(op: Any, name: str) -> str:
    """The text of a string or symbol attribute; empty if the operation lacks it."""
    attributes = op.operation.attributes
    return str(attributes[name].value) if name in attributes else ""


def integers(op: Any, name: str) -> list[int]:
    """The numbers of a dense array or dense elements attribute; empty if the operation lacks it."""
    attributes = op.operation.attributes
    return [int(number) for number in attributes[name]] if name in attributes else []


def location_of(op: Any) -> Location | None:
    """The user's position of an operation: the first file location, else the instruction's name."""
    location = op.operation.location
    return file_location(location) or _named(location)


def file_location(location: Any) -> Location | None:
    """The first file position inside an MLIR location."""
    if isinstance(location, ir.FileLineColLoc):
        return Location(location.filename, location.start_line, location.start_col)
    return _first(location, file_location)


def _named(location: Any) -> Location | None:
    if isinstance(location, ir.NameLoc):
        return Location(location.name_str)
    return _first(location, _named)


def _first(location: Any, find: Callable[[Any], Location | None]) -> Location | None:
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
