"""Loops and branches: a loop over an open size runs as often as the real size says, and its carries need no masks."""

from __future__ import annotations

from typing import Any

from hloforge.dialect.mlir import ir
from hloforge.dialect.values import Value
from hloforge.pipelines.padding.frame import Frame, rule
from hloforge.pipelines.padding.layouts import Layout, plain


@rule("while")
def while_(frame: Frame, op: Any) -> None:
    from hloforge.pipelines.padding.pad import rewrite_block

    layouts: list[Layout] = []
    for number, operand in enumerate(op.operands):
        value = frame.as_prefix(Value(operand)) if frame.is_open(operand) else Value(operand)
        op.operands[number] = value.ir
        layouts.append(plain(frame.layout(value)))
    for region in op.regions:
        block = region.blocks[0]
        for argument, layout in zip(block.arguments, layouts, strict=True):
            frame.set(argument, layout)
        rewrite_block(frame, block)
    _meet(frame, op.regions[1].blocks[0], layouts)
    for result, layout in zip(op.results, layouts, strict=True):
        frame.set(result, layout)


@rule("case", "if")
def case(frame: Frame, op: Any) -> None:
    from hloforge.pipelines.padding.pad import rewrite_block

    layouts = [tuple(frame.prefixes(result)) for result in op.results]
    for region in op.regions:
        rewrite_block(frame, region.blocks[0])
        _meet(frame, region.blocks[0], layouts)
    for result, layout in zip(op.results, layouts, strict=True):
        frame.set(result, layout)


def _meet(frame: Frame, block: Any, layouts: list[Layout]) -> None:
    """What a block returns, in given layouts."""
    last = list(block.operations)[-1].operation
    with ir.InsertionPoint(last), last.location:
        for number, layout in enumerate(layouts):
            value = Value(last.operands[number])
            for d, dim in enumerate(layout):
                if dim is not None:
                    value = frame.relaid(value, d, dim)
            last.operands[number] = value.ir
