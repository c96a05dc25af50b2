"""``unroll-short-loops``: write out loops of a few elementwise iterations.

Before::

    %last:3 = stablehlo.while(%i = %zero, %h = %x, %r = %rotations) cond { %i < 2 } do {
      %n = slice %r [0:1]
      %next = shift_left %h, %n
      %other = reverse %r
      return %i + 1, %next, %other }

After::

    %n = constant 13
    %first = shift_left %x, %n
    %m = constant 17
    %second = shift_left %first, %m

An iteration on the host takes IREE 3.13 about 4 µs and reads and writes all that it carries. Written out, all of them
are one dispatch, and what depends on the counter is known. JAX's normal numbers (threefry, five iterations) take
0.45 of the time, and compile in half. Loops with products are those of ``unroll-loops``.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

import numpy as np

from hloforge.dialect import ops
from hloforge.dialect.mlir import SSAValue, in_context, ir
from hloforge.dialect.mlir_elements import element_of
from hloforge.dialect.operations import operations
from hloforge.dialect.regions import ELEMENTWISE
from hloforge.pipelines.evaluation.known import KnownValues
from hloforge.pipelines.framework.passes import CPU, Pass, register
from hloforge.pipelines.loops.unroll_loops import count_of, end_of, is_static

# What IREE fuses with elementwise operations on both sides.
_MOVES = "bitcast_convert broadcast_in_dim constant iota reshape slice"
_PLAIN = ELEMENTWISE | {f"stablehlo.{name}" for name in _MOVES.split()}
# Iterations, and operations of all of them together: their code takes time to compile.
_MOST_TURNS, _MOST_OPERATIONS = 8, 384
# Elements of what is computed here: tables of a few numbers, which are cut up.
_MOST_KNOWN = 64


@register
@dataclass(frozen=True)
class UnrollShortLoops(Pass):
    """Replace loops of few iterations, all of them elementwise, by their iterations."""

    name: ClassVar[str] = "unroll-short-loops"
    targets: ClassVar[frozenset[str]] = CPU

    def run(self, module: ir.Module) -> None:
        with in_context(module):
            for loop in operations(module, ["stablehlo.while"]):
                count = count_of(loop)
                if count is not None and count.turns <= _MOST_TURNS and _is_short(loop, count.turns):
                    _unroll(loop, count.turns)


def _is_short(loop: ir.Operation, turns: int) -> bool:
    body = [op.operation for op in loop.regions[1].blocks[0].operations][:-1]
    is_plain = all(op.name in _PLAIN for op in body) and all(map(is_static, body))
    return is_plain and turns * len(body) <= _MOST_OPERATIONS


def _unroll(loop: Any, turns: int) -> None:
    body = loop.regions[1].blocks[0]
    turn = [op.operation for op in body.operations][:-1]
    returned = list(end_of(body).operands)
    carried = list(loop.operands)
    known = KnownValues(_MOST_KNOWN)
    with ir.InsertionPoint(loop), loop.location:
        for _ in range(turns):
            values = dict(zip(body.arguments, carried, strict=True))
            for op in turn:
                operands = [values.get(operand, operand) for operand in op.operands]
                values |= dict(zip(op.results, _made(op, operands, known), strict=True))
            carried = [values.get(value, value) for value in returned]
    for result, value in zip(loop.results, carried, strict=True):
        result.replace_all_uses_with(value)
    loop.erase()


def _made(op: ir.Operation, operands: list[SSAValue], known: KnownValues) -> list[SSAValue]:
    """The results of an operation on other operands: a constant if all are known."""
    (result,) = op.results
    if prod(result.type.shape) <= _MOST_KNOWN and (found := known.result(op, operands)) is not None:
        made = ops.constant(np.asarray(found), element_of(result.type.element_type).name).ir
        known.add(made, found)
        return [made]
    copy = op.clone().operation
    for place, operand in enumerate(operands):
        copy.operands[place] = operand
    return list(copy.results)
