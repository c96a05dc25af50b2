"""The graph of a program as an outline: operations grouped by the scopes of a framework, with operands and users.

Scopes are the parts of names such as ``jit(f)/encoder/layer_0/dot_general``, which JAX, PyTorch, TensorFlow and XLA's
metadata keep in locations; what an operation has inside (the body of a loop) is below it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from hloforge.dialect.mlir import AnyOp, ir
from hloforge.dialect.operations import location_of, scope_names
from hloforge.dialect.program import Signature, entry_function
from hloforge.pipelines.capability.audit import describe
from hloforge.runtime.debug.lowering_record import STRUCTURE
from hloforge.runtime.debug.memory_estimate import shape_of

# Levels of scopes, and of operations inside of operations, that are shown.
_SCOPES = 12
_NESTED = 16


@dataclass(frozen=True)
class Node:
    """A scope, a parameter or an operation.

    Attributes:
        kind: ``scope``, ``parameter`` or ``operation``.
        name: of the scope or parameter, or the kind of operation.
        end: the number of the first node that is not below this one; nodes are in depth-first order.
        shape: of the results; with layouts for parameters.
        location: in the user's file.
        operands: the numbers of the nodes that it reads.
    """

    kind: str
    name: str
    end: int
    shape: str = ""
    location: str = ""
    operands: tuple[int, ...] = ()


@dataclass
class _Scope:
    """A scope while the program is read; ``entries`` in the order of their first operations."""

    name: str
    entries: list[_Scope | Any] = field(default_factory=list)
    scopes: dict[str, _Scope] = field(default_factory=dict)

    def below(self, path: tuple[str, ...]) -> _Scope:
        scope = self
        for name in path:
            if name not in scope.scopes:
                scope.scopes[name] = _Scope(name)
                scope.entries.append(scope.scopes[name])
            scope = scope.scopes[name]
        return scope


@dataclass(frozen=True)
class Outline:
    """The nodes in depth-first order, and how many operations are left out."""

    nodes: tuple[Node, ...]
    left_out: int = 0


def outline(module: ir.Module, signature: Signature, most: int) -> Outline:
    """The outline of ``main`` in a normalized module, of its first ``most`` operations."""
    (entry,) = entry_function(module).operation.regions[0].blocks
    writer = _Writer(most)
    for argument, leaf in zip(entry.arguments, signature.flat_parameters, strict=False):
        writer.define([argument], len(writer.nodes))
        writer.nodes.append(["parameter", leaf.name, len(writer.nodes) + 1, str(leaf.shape), "", ()])
    writer.block(entry)
    return Outline(tuple(Node(*fields) for fields in writer.finished()), writer.left_out)


class _Writer:
    def __init__(self, most: int) -> None:
        self.most = most
        self.count = 0
        self.left_out = 0
        self.nodes: list[list[Any]] = []
        self.values: dict[Any, int] = {}
        self.reads: list[tuple[int, list[Any]]] = []

    def define(self, values: Any, number: int) -> None:
        for value in values:
            self.values[value] = number

    def block(self, block: ir.Block, around: tuple[str, ...] = (), depth: int = 0) -> None:
        """The operations of a block, below scopes inside of the one ``around`` it."""
        root = _Scope("")
        for op in block.operations:
            if op.operation.name not in STRUCTURE:
                path = _scope_near(op.operation)
                inside = path[len(around) :] if path[: len(around)] == around else path
                root.below(inside).entries.append(op.operation)
        self.scope(_shortened(root), depth)

    def scope(self, scope: _Scope, depth: int) -> None:
        for entry in scope.entries:
            if isinstance(entry, _Scope):
                self.nested(entry, depth)
            else:
                self.operation(entry, depth)

    def nested(self, scope: _Scope, depth: int) -> None:
        number = len(self.nodes)
        self.nodes.append(["scope", scope.name, 0, "", "", ()])
        self.scope(scope, depth)
        if len(self.nodes) == number + 1:
            self.nodes.pop()
        else:
            self.nodes[number][2] = len(self.nodes)

    def operation(self, op: AnyOp, depth: int) -> None:
        if self.count >= self.most or depth > _NESTED:
            self.left_out += 1
            return
        self.count += 1
        number = len(self.nodes)
        shapes = ", ".join(_shape_text(result.type) for result in op.results)
        self.nodes.append(["operation", describe(op), 0, shapes, str(location_of(op) or ""), ()])
        self.define(op.results, number)
        self.reads.append((number, list(op.operands)))
        for region in op.regions:
            for inner in region.blocks:
                # Arguments of a block hold what the operation reads, or what it computed in the previous iteration.
                self.define(inner.arguments, number)
                self.block(inner, scope_of(op), depth + 1)
        self.nodes[number][2] = len(self.nodes)

    def finished(self) -> Iterator[list[Any]]:
        """Scopes may hold operations of different times, so that what is read is known only at the end."""
        for number, operands in self.reads:
            read = {self.values[value]: None for value in operands if value in self.values}
            self.nodes[number][5] = tuple(place for place in read if place != number)
        yield from self.nodes


def _shortened(scope: _Scope) -> _Scope:
    """A scope without levels that hold one scope and nothing else: their names become one."""
    for place, entry in enumerate(scope.entries):
        if isinstance(entry, _Scope):
            inner = _shortened(entry)
            while len(inner.entries) == 1 and isinstance(inner.entries[0], _Scope):
                (only,) = inner.entries
                inner = _Scope(f"{inner.name}/{only.name}", only.entries)
            scope.entries[place] = inner
    return scope


@cache
def _path(name: str) -> tuple[str, ...]:
    return tuple(scope_names(name))[:-1][:_SCOPES]


def scope_of(op: AnyOp) -> tuple[str, ...]:
    """The scopes that the user's framework named around an operation, outer ones first; none if it named none."""
    return next((path for name in _names(op.location) if (path := _path(name))), ())


def _scope_near(op: AnyOp) -> tuple[str, ...]:
    """The scopes of an operation; of a constant without any, those of the first operation that reads it."""
    path = scope_of(op)
    if path or op.name != "stablehlo.constant":
        return path
    reader = next(iter(op.results[0].uses), None)
    return () if reader is None else scope_of(reader.owner)


def _names(location: Any) -> Iterator[str]:
    """The names inside a location that are no operation's own."""
    if isinstance(location, ir.NameLoc):
        yield location.name_str
        yield from _names(location.child_loc)
    elif isinstance(location, ir.CallSiteLoc):
        yield from _names(location.callee)
        yield from _names(location.caller)
    elif isinstance(location, ir.FusedLoc):
        for child in location.locations:
            yield from _names(child)


def _shape_text(type_: Any) -> str:
    return str(shape_of(type_) or type_)
