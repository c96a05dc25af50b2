"""Limit the nesting depth of a program, once at import.

Python's stack holds 1,000 calls and MLIR's some thousands of regions, so whatever walks a program by recursion fails on
one that nests without end. A few kB of text suffice: calls, types and locations of MLIR are shared, and may double at
each level. So ``bound_nesting`` looks at every program that is read, without recursion, before anything else does:

* regions and calls, as deep as they are once calls are inlined: more than ``LIMIT`` is an error at the operation;
* tuples: deeper than ``LIMIT``, or of more than ``_LEAVES`` elements in all, is an error;
* locations change no result: one that is too deep or too large becomes the first file position in it.

Measured: 128 ``if``s in each other compile in 4 s and as many ``while``s in 7; 256 ``while``s exceed Python's stack.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from hloforge.dialect.errors import ImporterError, Location
from hloforge.dialect.mlir import AnyOp, in_context, ir
from hloforge.dialect.operations import location_of

LIMIT = 128
_LEAVES = 1 << 16
# Positions of a location: a call stack of Python has up to 1,000 frames, of which nobody reads that many.
_POSITIONS = 512
# Brackets in each other that jaxlib's parsers take on a stack of 8 MiB.
_BRACKETS = 4096

_FUNCTION = "func.func"
# The attributes by which operations name functions that are inlined, or called.
_CALLEES = {
    "func.call": "callee",
    "stablehlo.composite": "decomposition",
    "stablehlo.custom_call": "called_computations",
    "mhlo.async_start": "called_computation",
    "mhlo.custom_call": "called_computations",
}
_FLATTER = "flatten it: a select instead of a branch, one `case` of many branches, or functions that do not nest"
_STRING = re.compile(rb'"(?:[^"\\\n]|\\.)*+"?')


def bound_nesting(module: ir.Module, file: str, place: Callable[[Any], Location | None] = location_of) -> None:
    """Shorten locations that are too deep, and refuse what else is.

    Args:
        place: where an operation is, if its location says that in another way.

    Raises:
        ImporterError: at the operation that is nested too deeply, or has such a type.
    """
    with in_context(module):
        nesting = _Nesting(file, place)
        try:
            module.operation.walk(nesting.visit, ir.WalkOrder.PRE_ORDER)
        except RuntimeError:
            # Of damaged bytecode: the bindings make no Python string of such a name, as of a symbol or location.
            raise ImporterError("names in the program are not UTF-8 text", location=Location(file)) from None
        if nesting.refusal:
            raise nesting.refusal
        nesting.check()


def check_brackets(text: bytes, file: str) -> None:
    """Refuse text whose brackets nest so deeply that a parser would not survive it.

    Raises:
        ImporterError: at the line of the first such bracket.
    """
    # Each opening bracket but the one in the middle of ``)->(`` costs a byte or two: small files cannot nest deeply.
    if text.count(b"{") + text.count(b"(") + text.count(b"[") + text.count(b"<") <= _BRACKETS:
        return
    plain = np.frombuffer(_STRING.sub(lambda found: b" " * len(found[0]), text), np.uint8)
    steps = np.zeros(plain.shape, np.int32)
    for opening, closing in (b"{}", b"()", b"[]"):
        steps += plain == opening
        steps -= plain == closing
    steps += plain == ord("<")
    # ``->`` closes nothing.
    steps[1:] -= (plain[1:] == ord(">")) & (plain[:-1] != ord("-"))
    deep = np.flatnonzero(np.cumsum(steps) > _BRACKETS)
    if len(deep):
        line = text.count(b"\n", 0, int(deep[0])) + 1
        raise ImporterError(
            f"brackets are nested more than {_BRACKETS} deep here", location=Location(file, line), hint=_FLATTER
        )


class _Nesting:
    """What one walk finds, and the answers that are shared by equal types and locations."""

    def __init__(self, file: str, place: Callable[[Any], Location | None]) -> None:
        self.file = file
        self.place = place
        # Operations with regions: how many are around what is in them.
        self.depths: dict[Any, int] = {}
        self.function = ""
        # Of a type: an exception out of a walk's callback would lose its kind.
        self.refusal: ImporterError | None = None
        # Of each function, the deepest operation with how deep it is, and calls likewise.
        self.deepest: dict[str, tuple[int, Any]] = {}
        self.calls: dict[str, list[tuple[int, str, Any]]] = {}
        # Depth and leaves of types, depth and positions of locations.
        self.types: dict[Any, tuple[int, int]] = {}
        self.locations: dict[Any, tuple[int, int]] = {}

    def visit(self, op: AnyOp) -> Any:
        name = op.name
        if (shorter := self.shortened(op.location)) is not None:
            op.location = shorter
        for result in op.results:
            if isinstance(result.type, ir.TupleType):
                self.check_type(result.type, op)
        regions = op.regions
        if len(regions):
            self.enter(op, name, regions)
        if name in _CALLEES:
            self.call(op, name)
        return ir.WalkResult.INTERRUPT if self.refusal else ir.WalkResult.ADVANCE

    def enter(self, op: AnyOp, name: str, regions: Any) -> None:
        if name == _FUNCTION:
            self.function = ir.StringAttr(op.attributes["sym_name"]).value
            type_ = ir.FunctionType(ir.TypeAttr(op.attributes["function_type"]).value)
            for one in (*type_.inputs, *type_.results):
                self.check_type(one, op)
            self.depths[op] = 0
        else:
            depth = self.depths[op] = self.depth_of(op) + 1
            if depth > self.deepest.get(self.function, (0, None))[0]:
                self.deepest[self.function] = depth, op
        for region in regions:
            for block in region.blocks:
                for argument in block.arguments:
                    self.check_type(argument.type, op)
                    if (shorter := self.shortened(argument.location)) is not None:
                        argument.set_location(shorter)

    def call(self, op: AnyOp, name: str) -> None:
        attribute = _CALLEES[name]
        given = op.attributes.get(attribute, [])
        for callee in given if isinstance(given, ir.ArrayAttr) else [given]:
            if isinstance(callee, ir.FlatSymbolRefAttr):
                self.calls.setdefault(self.function, []).append((self.depth_of(op) + 1, callee.value, op))

    def depth_of(self, op: AnyOp) -> int:
        parent = op.parent
        return 0 if parent is None else self.depths.get(parent.operation, 0)

    def check(self) -> None:
        """Refuse the operation at which regions and calls together go too deep."""
        totals: dict[str, int] = {}
        for name in {*self.deepest, *self.calls}:
            waiting = [(name, False)]
            active = set()
            while waiting:
                current, is_left = waiting.pop()
                if is_left:
                    active.discard(current)
                    totals[current] = self.total(current, totals)
                elif current not in totals and current not in active:
                    # What calls itself is refused where calls are inlined.
                    active.add(current)
                    waiting.append((current, True))
                    waiting += [(callee, False) for _, callee, _ in self.calls.get(current, ()) if callee not in active]

    def total(self, name: str, totals: dict[str, int]) -> int:
        depth, where = self.deepest.get(name, (0, None))
        for above, callee, op in self.calls.get(name, ()):
            if above + totals.get(callee, 0) > depth:
                depth, where = above + totals.get(callee, 0), op
        if depth > LIMIT:
            raise self.error(f"regions and calls are nested more than {LIMIT} deep", where)
        return depth

    def check_type(self, type_: Any, op: AnyOp) -> None:
        if not isinstance(type_, ir.TupleType):
            return
        waiting = [(type_, False)]
        while waiting:
            current, is_left = waiting.pop()
            if current in self.types:
                continue
            members = [current.get_type(number) for number in range(current.num_types)]
            inner = [ir.TupleType(member) for member in members if isinstance(member, ir.TupleType)]
            if not is_left:
                waiting += [(current, True), *((member, False) for member in inner)]
                continue
            known = [self.types[member] for member in inner]
            depth = 1 + max((depth for depth, _ in known), default=0)
            leaves = len(members) - len(inner) + sum(leaves for _, leaves in known)
            if depth > LIMIT:
                self.refusal = self.error(f"a tuple is nested more than {LIMIT} deep", op)
            if leaves > _LEAVES:
                self.refusal = self.error(f"a tuple has more than {_LEAVES:,} elements", op)
            self.types[current] = depth, leaves

    def shortened(self, location: Any) -> Any | None:
        """What represents a location that is too deep or too large; None if it is not."""
        if isinstance(location, ir.FileLineColLoc | ir.UnknownLoc):
            return None
        depth, positions = self.measure(location)
        if depth <= LIMIT and positions <= _POSITIONS:
            return None
        return _first_position(location)

    def measure(self, location: Any) -> tuple[int, int]:
        """How deep a location is, and how many positions it has; each different one is looked at once."""
        waiting = [(location, False)]
        while waiting:
            current, is_left = waiting.pop()
            key = current.attr
            if key in self.locations:
                continue
            children = _children(current)
            if children and not is_left:
                waiting += [(current, True), *((child, False) for child in children)]
                continue
            known = [self.locations[child.attr] for child in children]
            depth = 1 + max((depth for depth, _ in known), default=0)
            self.locations[key] = depth, max(1, sum(positions for _, positions in known))
        return self.locations[location.attr]

    def error(self, message: str, op: AnyOp) -> ImporterError:
        where = self.place(op)
        if where is None or where.file == "-":
            where = Location(self.file, where.line if where else 0, where.column if where else 0)
        return ImporterError(message, location=where, hint=_FLATTER)


def _children(location: Any) -> list[Any]:
    if isinstance(location, ir.NameLoc):
        return [location.child_loc]
    if isinstance(location, ir.CallSiteLoc):
        return [location.callee, location.caller]
    return list(location.locations) if isinstance(location, ir.FusedLoc) else []


def _first_position(location: Any) -> Any:
    """The first file position of a location, in its order; else its first name, if it has one."""
    seen: set[Any] = set()
    waiting: list[Any] = [location]
    name: ir.Location = ir.Location.unknown()
    while waiting:
        current = waiting.pop()
        if isinstance(current, ir.FileLineColLoc):
            return current
        if isinstance(current, ir.NameLoc) and isinstance(name, ir.UnknownLoc):
            name = ir.Location.name(current.name_str)
        if current.attr not in seen:
            seen.add(current.attr)
            waiting += reversed(_children(current))
    return name
