"""Small readers of MLIR operations: walking, locations, symbols."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cmp_to_key
from types import MappingProxyType
from typing import Any, Final

from hloforge.dialect.errors import Location
from hloforge.dialect.mlir import AnyOp, ir, rewrite


class _Census(threading.local):
    """What ``counted`` knows of the module that this thread works on.

    Attributes:
        context: that of the module; None if nothing is known.
        total: operations in it.
        counts: how many have a name, as far as known.
    """

    context: ir.Context | None = None
    total = 0
    counts: Mapping[str, int] = MappingProxyType({})


_census = _Census()
# From so many operations on MLIR's own walk is shorter, whose preparation takes as long as ours for 10 to 100.
_LARGE: Final = 200
# MLIR's walk makes an object of an operation's own class, which takes as long as five steps of ours.
_RARE: Final = 1 / 5


@contextmanager
def counted(module: ir.Module) -> Iterator[None]:
    """Let ``operations`` choose how to walk through a module by what is in it. It finds the same without."""
    before = (_census.context, _census.total, _census.counts)
    counts = Counter(op.name for op in operations(module))
    _census.context, _census.total, _census.counts = module.context, counts.total(), counts
    try:
        yield
    finally:
        _census.context, _census.total, _census.counts = before


def is_large(module: ir.Module) -> bool:
    """Whether ``operations`` finds single names by MLIR's walk: what ``counted`` has counted, and many operations."""
    return module.context is _census.context and _census.total >= _LARGE


def operations(root: ir.Module | AnyOp, names: Iterable[str] | None = None) -> list[ir.Operation]:
    """All operations below ``root`` in post-order (inner ones first), ``root`` itself left out.

    Args:
        names: keep only these operation names.
    """
    if names is None:
        return _walked(root, None)
    wanted = frozenset(names)
    if not isinstance(root, ir.Module) or not is_large(root):
        return _walked(root, wanted)
    most = _census.total * _RARE
    expected = sum(_census.counts.get(name, 0) for name in wanted)
    found = _rare(root, wanted) if expected <= most else _walked(root, wanted)
    if (len(found) <= most) != (expected <= most):
        _census.counts = {**_census.counts, **dict.fromkeys(wanted, 0), **Counter(op.name for op in found)}
    return found


def _walked(root: ir.Module | AnyOp, wanted: frozenset[str] | None) -> list[ir.Operation]:
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


def _rare(root: ir.Module, wanted: frozenset[str]) -> list[ir.Operation]:
    """The operations of some names, found by MLIR's walk, which calls Python for these alone.

    The walk applies patterns, which do nothing here but remember the operation. They are functions in C, so that no
    signal's exception passes through MLIR, which has no way to hand it on.
    """
    found: dict[ir.OpView, object] = {}
    patterns = rewrite.RewritePatternSet(root.context)
    for name in wanted:
        patterns.add(name, found.__setitem__)
    rewrite.walk_and_apply_patterns(root.operation, patterns.freeze())
    return [op.operation for op in found]


def types_of(root: ir.Module | AnyOp) -> set[ir.Type]:
    """The types of all values below ``root``, and those that its functions take and return."""
    found: set[ir.Type] = set()
    go_on = ir.WalkResult.ADVANCE

    def visit(op: ir.Operation) -> ir.WalkResult:
        for result in op.results:
            found.add(result.type)
        for region in op.regions:
            for block in region.blocks:
                found.update(argument.type for argument in block.arguments)
            if "function_type" in op.attributes:
                type_ = ir.FunctionType(ir.TypeAttr(op.attributes["function_type"]).value)
                found.update(type_.inputs, type_.results)
        return go_on

    root.operation.walk(visit)
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


def in_order(found: Iterable[ir.Operation]) -> list[ir.Operation]:
    """Some operations of one block in the order in which they stand there."""

    def compared(one: ir.Operation, other: ir.Operation) -> int:
        return -1 if one.is_before_in_block(other) else 1

    return sorted(found, key=cmp_to_key(compared))


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


def symbols(op: AnyOp) -> set[str]:
    """The functions that an operation names. A constant names none, and the bindings cannot read complex ones."""
    if op.name.endswith(".constant"):
        return set()
    named: list[Any] = [op.attributes[name] for name in op.attributes]
    members = [member for one in named for member in (one if isinstance(one, ir.ArrayAttr) else [one])]
    return {member.value for member in members if isinstance(member, ir.FlatSymbolRefAttr)}
