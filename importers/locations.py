"""From the labels of importers/hlo_proto.py to MLIR locations that name the user's file.

An operation of HLO text gets ``loc("instruction"("model.hlo":12:3))``; if the instruction carries metadata, the name
and source line that the framework wrote follow it in a fused location. A proto has no lines, so there the name is
alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from hloforge.dialect.errors import Location
from hloforge.dialect.mlir import AnyOp, in_context, ir
from hloforge.importers.hlo_proto import LABEL, Instruction
from hloforge.importers.hlo_text import Position

# How much of a line is shown.
_WIDTH = 160
_FUNCTION = re.compile(r"\(@([^)]+)\)")
_LABEL = re.compile(re.escape(LABEL) + r"(\d+)")


@dataclass
class Locator:
    """Knows what each label represents.

    Attributes:
        file: what to call the input.
        instructions: by label number.
        positions: where instructions are in the text, by label number; empty for a proto.
        lines: the line of each computation of the text, by function name.
    """

    file: str
    instructions: list[Instruction] = field(default_factory=list)
    positions: dict[int, Position] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)

    def name(self, number: int) -> str:
        """The instruction's name as the user wrote it."""
        position = self.positions.get(number)
        return position.name if position else self.instructions[number].name

    def find(self, text: str) -> Location | None:
        """The position of the first label in a diagnostic, or the line of the function that it names."""
        match = _LABEL.search(text)
        if match is None or int(match[1]) >= len(self.instructions):
            function = _FUNCTION.search(text)
            line = self.lines.get(function[1]) if function else None
            return Location(self.file, line) if line else None
        return self.place(int(match[1]))

    def place(self, number: int) -> Location:
        """Where the instruction of a label is."""
        position = self.positions.get(number)
        return Location(self.file, position.line, position.column) if position else Location(self.file)

    def explain(self, text: str) -> str:
        """A diagnostic with the labels replaced by instruction names."""
        return _LABEL.sub(lambda match: self.name(int(match[1])), text)

    def apply(self, module: ir.Module) -> dict[int, list[Any]]:
        """Exchange every label of the module for its location.

        Returns:
            The operations of each label.
        """
        with in_context(module):
            relocation = _Relocation(self)
            relocation.visit(module.operation, ir.Location.file(self.file, 0, 0))
        return relocation.operations


class _Relocation:
    """One walk over a module; locations are built once per label."""

    def __init__(self, locator: Locator) -> None:
        self.locator = locator
        self.built: dict[int, Any] = {}
        self.operations: dict[int, list[Any]] = {}

    def visit(self, op: ir.Operation, inherited: ir.Location) -> None:
        number = _label_number(op.location)
        if number is not None:
            self.operations.setdefault(number, []).append(op)
        location = self.resolve(op.location) or self.function(op) or inherited
        op.location = location
        for region in op.regions:
            for block in region.blocks:
                for argument in block.arguments:
                    argument.set_location(self.resolve(argument.location) or location)
                nearest = location
                for child in block.operations:
                    # A terminator carries no label: it is where the value before it is.
                    self.visit(child.operation, nearest)
                    nearest = child.operation.location

    def function(self, op: ir.Operation) -> Any | None:
        if op.name != "func.func":
            return None
        line = self.locator.lines.get(ir.StringAttr(op.attributes["sym_name"]).value, 0)
        return ir.Location.file(self.locator.file, line, 1) if line else None

    def resolve(self, location: Any) -> Any | None:
        """The location with labels replaced; None if it says nothing."""
        if isinstance(location, ir.NameLoc):
            return self.named(location)
        if isinstance(location, ir.FusedLoc):
            members = [found for member in location.locations if (found := self.resolve(member))]
            return ir.Location.fused(members) if members else None
        if isinstance(location, ir.CallSiteLoc):
            return self.resolve(location.callee)
        return None if isinstance(location, ir.UnknownLoc) else location

    def named(self, location: ir.Location) -> Any:
        number = _label_number(location)
        if number is None:
            return location
        if number not in self.built:
            self.built[number] = self.build(number)
        return self.built[number]

    def build(self, number: int) -> ir.Location:
        instruction = self.locator.instructions[number]
        position = self.locator.positions.get(number)
        place = ir.Location.file(self.locator.file, position.line, position.column) if position else None
        own = ir.Location.name(self.locator.name(number), place)
        if not (instruction.op_name or instruction.source_file):
            return own
        line: ir.Location | None = (
            ir.Location.file(instruction.source_file, instruction.source_line, 0) if instruction.source_file else None
        )
        origin = ir.Location.name(instruction.op_name, line) if instruction.op_name else line
        return ir.Location.fused([own] if origin is None else [own, origin])


def _label_number(location: ir.Location) -> int | None:
    if not isinstance(location, ir.NameLoc):
        return None
    match = _LABEL.match(location.name_str)
    return int(match[1]) if match else None


def pointed_at(text: str, line: int, column: int) -> str:
    """A line of a text and a caret under a column, which counts from 1; of a long line the part around it."""
    lines = text.splitlines()
    if not 0 < line <= len(lines):
        return ""
    whole = lines[line - 1]
    begin = len(whole) - len(whole.lstrip())
    if column - begin > _WIDTH:
        begin = column - _WIDTH // 2
    shown = whole[begin : begin + _WIDTH].rstrip().replace("\t", " ")
    at = column - 1 - begin
    return f"{shown}\n{' ' * at}^" if 0 <= at <= len(shown) else shown


def rename_buffer(module: ir.Module, file: str) -> None:
    """Name the file in the locations that MLIR's parser made: it calls every buffer ``-``."""
    cache: dict[tuple[int, int], Any] = {}

    def renamed(location: Any) -> Any:
        if not isinstance(location, ir.FileLineColLoc) or location.filename != "-":
            return location
        key = (location.start_line, location.start_col)
        if key not in cache:
            cache[key] = ir.Location.file(file, *key)
        return cache[key]

    def visit(op: AnyOp) -> Any:
        op.location = renamed(op.location)
        for region in op.regions:
            for block in region.blocks:
                for argument in block.arguments:
                    argument.set_location(renamed(argument.location))
        return ir.WalkResult.ADVANCE

    with in_context(module):
        module.operation.walk(visit)
