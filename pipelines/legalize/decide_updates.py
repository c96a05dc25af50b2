"""``decide-updates``: copy insertion. Each update runs in place, or on a copy that nothing else reads.

Before::

    %u = stablehlo.dynamic_update_slice %v, %part, %i
    return %u, %v

After::

    %true = stablehlo.optimization_barrier (constant true)
    %w = stablehlo.optimization_barrier (stablehlo.select %true, %v, %true as numbers)
    %u = stablehlo.dynamic_update_slice %w, %part, %i
    return %u, %v

IREE 3.13 runs an update in the buffer of its operand, and elides the copy of an operand that is still needed in some
programs: it then reads the updated array for the old one. It takes the last use of an argument for permission to write
into the caller's buffer (iree-org/iree#16168). It also writes a part of an array over another part of the same one
where the two overlap, an element after the other. All these copies would be made anyway; a choice whose condition IREE
cannot see is one that it does not elide. What a loop updates is copied once before it, if it is read again. A donated
argument needs no copy.

Which arrays need a copy is a question of ``pipelines/analysis/aliasing.py``. Where IREE overwrites what is read in
spite of that, its compilation is proved wrong (``runtime/compile/in_place_audit.py``) and repeated with more copies: of
``parts``, where one dispatch would read an array and write a part of it, else of ``all`` that is updated.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from hloforge.dialect import ops
from hloforge.dialect.abi import donated_arguments
from hloforge.dialect.constants import constant
from hloforge.dialect.emission import emit
from hloforge.dialect.errors import PipelineError
from hloforge.dialect.idioms import zeros
from hloforge.dialect.mlir import AnyOp, in_context, ir
from hloforge.dialect.operations import operations
from hloforge.dialect.program import Signature, entry_function
from hloforge.dialect.traits import IN_PLACE
from hloforge.dialect.values import Value
from hloforge.pipelines.analysis.aliasing import (
    BARRIER,
    LOOP,
    SCATTER,
    UPDATE,
    Known,
    is_overwritten,
    overwritten,
    unsafe,
    writers,
)
from hloforge.pipelines.framework.facts import NORMALIZED, NOTHING, Fact, Facts
from hloforge.pipelines.framework.generics import restored, signless
from hloforge.pipelines.framework.passes import Pass, register

# Bits of the patterns with which IREE fills arrays.
_WIDEST_FILL = 64
# Operations with as many first values as arrays.
_SUMS = frozenset({"stablehlo.reduce", "stablehlo.reduce_window"})


@register
@dataclass(frozen=True)
class DecideUpdates(Pass):
    """Copy insertion: copy arrays before updates if something else reads them; run it after every other rewriting.

    Attributes:
        copied: what has copies: ``unsafe`` operands; the ``parts`` that updates write; ``all`` that is overwritten.
    """

    name: ClassVar[str] = "decide-updates"
    requires: ClassVar[Facts] = NORMALIZED | frozenset({Fact.HOST_CALLS, Fact.PHYSICAL_BORDER})
    establishes: ClassVar[Facts] = frozenset({Fact.UPDATES_DECIDED})
    breaks: ClassVar[Facts] = NOTHING
    copied: str = "unsafe"

    def __post_init__(self) -> None:
        if self.copied not in _WAYS:
            raise PipelineError(
                f"decide-updates copies no {self.copied!r}", hint=f"copied is one of {', '.join(_WAYS)}"
            )

    def run(self, module: ir.Module) -> None:
        block = entry_function(module).operation.regions[0].blocks[0]
        donated = donated_arguments(Signature.of(module))
        with in_context(module):
            if self.copied == "all":
                _keep_accumulators_apart(module)
            found = list(_WAYS[self.copied](module, block))
            copied = [(op, number) for op, number in found if Value(op.operands[number]).shape.is_static]
            if copied:
                _copy_each(copied, block)
            # After the updates, for a copy there may be all that an argument needs.
            exposed = [
                argument
                for number, argument in enumerate(block.arguments)
                if number not in donated and is_overwritten(argument)
            ]
            if exposed:
                _copy_arguments(exposed, block)


def _unsafe(_: ir.Module, block: ir.Block) -> Iterator[tuple[Any, int]]:
    known = Known()
    return ((op, number) for op in writers(block) for number in unsafe(op, known))


def _parts(module: ir.Module, _: Any) -> Iterator[tuple[Any, int]]:
    """What updates write."""
    for op in operations(module, {UPDATE, SCATTER}):
        numbers = [1] if op.name == UPDATE else range(len(op.operands) - len(op.results), len(op.operands))
        yield from ((op, number) for number in numbers)


def _writes(module: ir.Module, _: Any) -> Iterator[tuple[Any, int]]:
    """All that may be overwritten."""
    for op in operations(module, IN_PLACE):
        if op.name != LOOP:
            yield from ((op, number) for number in overwritten(op))


_WAYS = {"unsafe": _unsafe, "parts": _parts, "all": _writes}


def _keep_accumulators_apart(module: ir.Module) -> None:
    """Let sums in loops begin with numbers that IREE does not know.

    It fills the accumulators of equal sums once, also for those in a loop, and then adds to them in each iteration.
    """
    for op in operations(module, _SUMS):
        if not _stands_in_loop(op):
            continue
        arrays = len(op.results)
        for number in range(arrays, 2 * arrays):
            value = Value(op.operands[number])
            with ir.InsertionPoint(op), op.location:
                op.operands[number] = emit(BARRIER, [value], value.type).ir


def _stands_in_loop(op: AnyOp) -> bool:
    parent = op.parent
    while parent is not None and parent.operation.name != LOOP:
        parent = parent.operation.parent
    return parent is not None


def _copy_each(found: list[tuple[Any, int]], block: ir.Block) -> None:
    # With conditions of their own, equal copies stay two. Equal barriers would become one, also with that of the
    # arguments, hence one of several results.
    conditions = _conditions(len(found) + 1, block)[1:]
    for (op, number), condition in zip(found, conditions, strict=True):
        with ir.InsertionPoint(op), op.location:
            op.operands[number] = _copy(Value(op.operands[number]), condition).ir


def _copy_arguments(exposed: list[Any], block: Any) -> None:
    (condition,) = _conditions(1, block)
    barrier = condition.ir.owner
    for argument in exposed:
        uses = list(argument.uses)
        with ir.InsertionPoint.after(barrier), ir.Location.unknown():
            copied = _argument_copy(Value(argument), condition)
        for use in uses:
            use.owner.operands[use.operand_number] = copied.ir


def _conditions(count: int, block: ir.Block) -> list[Value]:
    """Conditions that are true, which IREE does not know."""
    with ir.InsertionPoint.at_block_begin(block):
        flag = constant(True)
        barrier = ir.Operation.create(BARRIER, results=[flag.type] * count, operands=[flag.ir] * count)
    return list(map(Value, barrier.results))


def _copy(value: Value, condition: Value) -> Value:
    # The other choice must differ, whatever number IREE finds that the array has in all positions.
    row = value.element_type
    if row.bits > _WIDEST_FILL:
        other = ops.neg(value)
    elif row.is_complex:
        part = ops.convert_element_type(condition, "f32")
        other = ops.broadcast(ops.complex(part, part), value.dims)
    elif row.name == "bf16":
        # IREE has no conversion to it.
        bits = ops.convert_element_type(condition, "u16")
        other = ops.broadcast(ops.bitcast_convert_type(bits, row), value.dims)
    else:
        other = ops.broadcast(ops.convert_element_type(condition, row), value.dims)
    copied = ops.select(condition, value, other)
    # Without the barrier, IREE copies while it updates.
    return emit(BARRIER, [copied], copied.type)


def _argument_copy(value: Value, condition: Value) -> Value:
    fills = value.shape.is_static and value.element_type.bits <= _WIDEST_FILL
    other = zeros(value.element_type, value.dims) if fills else _reversed(value)
    return ops.select(condition, value, other)


def _reversed(value: Value) -> Value:
    """Another array of the same shape, which may be dynamic; of a scalar, which is complex, its negation."""
    if not value.rank:
        return ops.neg(value)
    dimensions = ir.DenseI64ArrayAttr.get(list(range(value.rank)))
    # IREE refuses reversals of unsigned integers.
    plain = signless(value.ir)
    reversed_ = emit("stablehlo.reverse", [Value(plain)], plain.type, dimensions=dimensions)
    return restored(reversed_.ir, value.type)
