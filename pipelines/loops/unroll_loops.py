"""``unroll-loops``: unroll loops with little work per iteration.

Before::

    %last:2 = stablehlo.while(%i = %zero, %h = %x) cond { %i < 64 } do {
      %next = dot_general %h, %w
      return %i + 1, %next }

After::

    %last:2 = stablehlo.while(%i = %zero, %h = %x) cond { %i < 64 } do {
      %first = dot_general %h, %w
      %second = dot_general %first, %w
      ...
      return %i + 8, %eighth }

An iteration of a loop on the host takes IREE 3.13 about 4 µs beside its dispatches: two LSTMs take 1.5 ms with one step
in an iteration, 0.96 with eight. Loops without products become one dispatch or run element by element
(``fuse-loops``, ``interchange-loops``); these and loops of much work are left.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar, NamedTuple

from hloforge.dialect import ops
from hloforge.dialect.mlir import AnyOp, SSAValue, in_context, ir
from hloforge.dialect.operations import defining_op, operations, splat
from hloforge.dialect.regions import ELEMENTWISE, clone_with
from hloforge.dialect.values import Value
from hloforge.pipelines.framework.machine import Machine
from hloforge.pipelines.framework.passes import CPU, MachinePass, register
from hloforge.pipelines.loops.fuse_loops import carries_of
from hloforge.pipelines.loops.loop_cost import gains_by_fusion, multiplications

_PRODUCT = "stablehlo.dot_general"
# What is known to be the same in a further iteration. Nothing else has regions, waits for the host or draws numbers.
_NAMES = """
    broadcast_in_dim concatenate dot_general dynamic_slice dynamic_update_slice iota pad reduce reshape reverse slice
    transpose
"""
_PLAIN = ELEMENTWISE | {f"stablehlo.{name}" for name in _NAMES.split()}
# Iterations in one at most, and operations of all of them together: each is a part of the code, which takes time to
# compile.
_MOST_TURNS, _MOST_OPERATIONS = 8, 512
# Multiplications of an iteration's products, some 20 µs, and elements of other results, of which 4 µs are a small part:
# by those of a further dispatch.
_MOST_WORK, _MOST_ELEMENTS = 16, 8


class Count(NamedTuple):
    """A loop's counter: the carry's number, its step, and how many iterations it counts."""

    number: int
    step: int
    turns: int


@register
@dataclass(frozen=True)
class UnrollLoops(MachinePass):
    """Unroll loops by a factor that divides the trip count."""

    name: ClassVar[str] = "unroll-loops"
    targets: ClassVar[frozenset[str]] = CPU

    def run(self, module: ir.Module) -> None:
        with in_context(module):
            for loop in operations(module, ["stablehlo.while"]):
                count = count_of(loop)
                if count is None or not _does_little(loop, self.machine):
                    continue
                length = len(list(loop.regions[1].blocks[0].operations))
                most = min(_MOST_TURNS, _MOST_OPERATIONS // length)
                times = max((n for n in range(2, most + 1) if count.turns % n == 0), default=1)
                if times > 1 and not (carries_of(loop) and gains_by_fusion(loop, self.machine)):
                    _unroll(loop, count, times)


def count_of(loop: ir.Operation) -> Count | None:
    """The counter of a loop whose number of iterations is known."""
    condition, body = (region.blocks[0] for region in loop.regions)
    test = defining_op(end_of(condition).operands[0], "stablehlo.compare")
    if test is None or "LT" not in str(test.attributes["comparison_direction"]):
        return None
    counter, bound = test.operands
    if counter.owner != condition or not isinstance(counter.type.element_type, ir.IntegerType):
        return None
    number = ir.BlockArgument(counter).arg_number
    step = defining_op(end_of(body).operands[number], "stablehlo.add")
    if step is None or step.operands[0] != body.arguments[number]:
        return None
    known = [_constant(value) for value in (loop.operands[number], bound, step.operands[1])]
    if any(value is None for value in known):
        return None
    first, limit, by = (int(value) for value in known if value is not None)
    return Count(number, by, (limit - first) // by) if by > 0 and limit > first and not (limit - first) % by else None


def _constant(value: SSAValue) -> int | None:
    """A number that the program knows."""
    op = defining_op(value, "stablehlo.constant")
    if op is None or value.type.shape or value.type.element_type.is_unsigned:
        return None
    return int(splat(op))


def end_of(block: ir.Block) -> ir.Operation:
    return list(block.operations)[-1].operation


def _does_little(loop: ir.Operation, machine: Machine) -> bool:
    """Whether an iteration multiplies a little, and does nothing that is not known to be plain."""
    *body, _ = (op.operation for op in loop.regions[1].blocks[0].operations)
    products = [op for op in body if op.name == _PRODUCT]
    if not products or any(op.name not in _PLAIN for op in body) or not all(map(is_static, body)):
        return False
    others = [op for op in body if op.name not in (_PRODUCT, "stablehlo.dynamic_update_slice")]
    largest = max((prod(result.type.shape) for op in others for result in op.results), default=0)
    is_small = largest <= _MOST_ELEMENTS * machine.dispatch_elements
    return is_small and sum(map(multiplications, products)) <= machine.work_of(_MOST_WORK)


def is_static(op: AnyOp) -> bool:
    return all(isinstance(value.type, ir.RankedTensorType) and value.type.has_static_shape for value in op.results)


def _unroll(loop: Any, count: Count, times: int) -> None:
    body = loop.regions[1].blocks[0]
    *turn, end = (op.operation for op in body.operations)
    returned = list(end.operands)
    counter = Value(body.arguments[count.number])
    following = list(returned)
    with ir.InsertionPoint(end), loop.location:
        for number in range(1, times):
            # The counter is one sum, by which IREE finds how many iterations there are.
            following[count.number] = ops.add(counter, number * count.step).ir
            known = dict(zip(body.arguments, following, strict=True))
            for op in turn:
                known.update(zip(op.results, clone_with(op, known).results, strict=True))
            following = [known.get(value, value) for value in returned]
        following[count.number] = ops.add(counter, times * count.step).ir
    for place, value in enumerate(following):
        end.operands[place] = value
