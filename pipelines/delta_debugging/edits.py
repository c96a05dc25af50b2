"""Small simplifications of a program: each gives another valid program, or none."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from hloforge.dialect.constants import dense
from hloforge.dialect.element_types import element_type
from hloforge.dialect.errors import Error
from hloforge.dialect.inlining import splice
from hloforge.dialect.mlir import AnyOp, in_context, ir, parse_module
from hloforge.dialect.operations import operations
from hloforge.dialect.program import Program, entry_function
from hloforge.pipelines.delta_debugging.outline import as_flat_program, crosses_border

# They hold a program together or talk to others.
_KEPT = re.compile(
    r"func\.|builtin\.|stablehlo\.(return|custom_call|infeed|outfeed|send|recv|all_|collective|reduce_scatter|composite)"
)
_SIZES = re.compile(r"tensor<((?:\d+x)+)")


@dataclass(frozen=True)
class Edit:
    """A change of one operation, by its number among all of the module.

    Attributes:
        what: for progress: ``bypass stablehlo.tanh``.
    """

    number: int
    what: str
    _apply: Callable[[Any], None]

    def __call__(self, program: Program) -> Program | None:
        """The changed program; None if the change makes none that is valid."""
        copy = program.clone()
        with in_context(copy.module):
            try:
                self._apply(operations(copy.module)[self.number].operation)
                erase_unused(copy.module)
                return as_flat_program(copy)
            except (Error, ir.MLIRError, ValueError):
                return None


def edits(program: Program) -> Iterator[Edit]:
    """Every change, those that may take most away first: branches and loops, then operations from the last."""
    ops = operations(program.module)
    for number, op in enumerate(ops):
        if op.name in ("stablehlo.if", "stablehlo.case"):
            for place in range(len(op.regions)):
                yield Edit(number, f"take branch {place} of {op.name}", _take_region(place))
        if op.name == "stablehlo.while":
            yield Edit(number, "one iteration instead of stablehlo.while", _take_region(1))
    for number, op in reversed(list(enumerate(ops))):
        if _KEPT.match(op.name) or op.name == "stablehlo.constant" or len(op.results) != 1:
            continue
        result = op.results[0]
        for place, operand in enumerate(op.operands):
            if operand.type == result.type:
                yield Edit(number, f"bypass {op.name}", _bypass(place))
        if crosses_border(result.type) and not _is_top(op, program):
            yield Edit(number, f"0 instead of {op.name}", _zero)


def _is_top(op: AnyOp, program: Program) -> bool:
    return bool(op.operation.parent == entry_function(program.module).operation)


def _take_region(number: int) -> Callable[[Any], None]:
    def apply(op: AnyOp) -> None:
        block = op.regions[number].blocks[0]
        if not block.arguments:
            # Branches take nothing; a loop's carries are its operands.
            for entry in list(block.operations)[:-1]:
                entry.operation.move_before(op)
            values = list(list(block.operations)[-1].operation.operands)
            for result, value in zip(op.results, values, strict=True):
                result.replace_all_uses_with(value)
            list(block.operations)[-1].operation.erase()
            op.erase()
            return
        splice(op, block)

    return apply


def _bypass(place: int) -> Callable[[Any], None]:
    def apply(op: AnyOp) -> None:
        op.results[0].replace_all_uses_with(op.operands[place])

    return apply


def _zero(op: AnyOp) -> None:
    type_ = op.results[0].type
    row = element_type(type_.element_type)
    value = dense(np.broadcast_to(np.zeros((), row.dtype), type_.shape), row)
    with ir.InsertionPoint(op), op.location:
        made = ir.Operation.create("stablehlo.constant", results=[type_], attributes={"value": value})
    op.results[0].replace_all_uses_with(made.results[0])


def erase_unused(module: ir.Module) -> None:
    """Erase operations whose results nobody uses, users first."""
    _erase_unused(module.operation)


def _erase_unused(parent: Any) -> None:
    for region in parent.regions:
        for block in region.blocks:
            for op in reversed([entry.operation for entry in block.operations]):
                # Nothing may look into what is erased.
                if _KEPT.match(op.name) or not op.results or any(True for r in op.results for _ in r.uses):
                    _erase_unused(op)
                else:
                    op.erase()


@dataclass(frozen=True)
class Resize:
    """Every dimension of one size becomes smaller."""

    size: int
    to: int
    everywhere: bool

    @property
    def what(self) -> str:
        return f"size {self.to} instead of {self.size}"

    def __call__(self, program: Program) -> Program | None:
        """The program of the smaller sizes; None if its operations do not fit together then."""
        text = program.text()
        if self.everywhere:
            # Limits of slices, sizes in attributes: wherever the number is but in the values of constants.
            parts = re.split(r"(dense<[^>]*>)", text)
            changed = "".join(
                p if p.startswith("dense<") else re.sub(rf"(?<![\w.%#@]){self.size}(?![\w.])", str(self.to), p)
                for p in parts
            )
        else:
            changed = text
        changed = _SIZES.sub(self._resized, changed)
        if changed == text:
            return None
        try:
            module = parse_module(changed)
            return as_flat_program(Program(module, program.signature, program.name, program.source))
        except (Error, ir.MLIRError):
            return None

    def _resized(self, match: re.Match[str]) -> str:
        sizes = [self.to if int(size) == self.size else int(size) for size in match[1].rstrip("x").split("x")]
        return "tensor<" + "".join(f"{size}x" for size in sizes)


def resizes(program: Program) -> Iterator[Resize]:
    """Smaller sizes for each size of the program, those of the largest arrays first."""
    found: dict[int, int] = {}
    for match in _SIZES.finditer(program.text(elide=16)):
        sizes = [int(size) for size in match[1].rstrip("x").split("x")]
        for size in sizes:
            found[size] = max(found.get(size, 0), prod(sizes))
    for size in sorted((size for size in found if size > 1), key=lambda size: -found[size]):
        for to in dict.fromkeys(candidate for candidate in (1, 2, 4, size // 4, size // 2) if 0 < candidate < size):
            yield Resize(size, to, False)
            yield Resize(size, to, True)
