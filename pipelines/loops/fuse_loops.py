"""``fuse-loops``: lower a loop of little work to one dispatch.

Before::

    %r:2 = stablehlo.while(%i = %zero, %s = %x) : tensor<i32>, tensor<3xf32> cond { ... } do { ... }

After, in outline::

    %r = flow.dispatch.region -> (tensor<3xf32>) {                              // the results that are used
      %last:2 = scf.while (%i = %first, %s = %vector) : (i32, vector<3xf32>) { ... } do { ... }
      flow.return (vector.transfer_write %last#1, ...) }

IREE's own form is a dispatch for every few operations and a branch on the host for every iteration, about 1.5 µs each:
for a few elements that is all of the time. What is in the regions stays StableHLO. ``carries.py`` says how values live
between iterations, ``loop_cost.py`` which loops gain.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from hloforge.dialect import ops
from hloforge.dialect.constants import constant
from hloforge.dialect.emission import emit
from hloforge.dialect.mlir import in_context, ir, scf
from hloforge.dialect.operations import defining_op, operations
from hloforge.dialect.program import entry_function
from hloforge.dialect.values import Value
from hloforge.pipelines.framework import builders
from hloforge.pipelines.framework.facts import REWRITES, Fact, Facts
from hloforge.pipelines.framework.machine import Machine
from hloforge.pipelines.framework.passes import CPU, MachinePass, register
from hloforge.pipelines.framework.patterns import replace
from hloforge.pipelines.loops.carries import Carry, Form, carry_of
from hloforge.pipelines.loops.loop_cost import LOOP, gains_by_fusion
from hloforge.pipelines.loops.split_products import split_products


@register
@dataclass(frozen=True)
class FuseLoops(MachinePass):
    """Lower each outermost loop to one dispatch where that is faster; leaves IREE's dialects, which no pass reads."""

    name: ClassVar[str] = "fuse-loops"
    targets: ClassVar[frozenset[str]] = CPU
    breaks: ClassVar[Facts] = REWRITES | frozenset({Fact.SHARED_DISPATCHES})

    def run(self, module: ir.Module) -> None:
        block = entry_function(module).operation.regions[0].blocks[0]
        with in_context(module):
            found = list(_outermost(block, self.machine))
            if not found:
                return
            with ir.InsertionPoint.at_block_begin(block):
                number = constant(0, "s32")
                opaque = emit("stablehlo.optimization_barrier", [number], number.type)
            for loop in found:
                split_products(loop)
                with ir.InsertionPoint(loop), loop.location:
                    replace(loop, _in_one_dispatch(loop, opaque))


def has_fused_loops(module: ir.Module) -> bool:
    """Whether the pass has made a dispatch of a loop of this module."""
    return bool(operations(module, {builders.DISPATCH}))


def _outermost(block: ir.Block, machine: Machine) -> list[Any]:
    """The loops to fuse in a block: where one does not gain, perhaps a loop inside it does."""
    found: list[Any] = []
    for op in block.operations:
        is_loop = op.operation.name == LOOP
        if is_loop and carries_of(op.operation) and gains_by_fusion(op.operation, machine):
            found.append(op.operation)
            continue
        for region in op.operation.regions:
            for inner in region.blocks:
                found += _outermost(inner, machine)
    return found


def carries_of(loop: ir.Operation) -> list[Carry] | None:
    """How a loop carries its values; None if it, or a loop inside it, cannot carry one in a dispatch."""
    carries = [carry_of(loop, number) for number in range(len(loop.operands))]
    known = [carry for carry in carries if carry is not None]
    if len(known) < len(carries):
        return None
    inner = (op.operation for region in loop.regions for op in region.blocks[0].operations)
    return known if all(_can_nest(op) for op in inner) else None


def _can_nest(op: ir.Operation) -> bool:
    if op.name != LOOP:
        inside = (inner.operation for region in op.regions for block in region.blocks for inner in block.operations)
        return all(_can_nest(inner) for inner in inside)
    return carries_of(op) is not None


def _in_one_dispatch(loop: Any, opaque: Value) -> list[Value]:
    carries = carries_of(loop)
    assert carries is not None
    used = [number for number in range(len(carries)) if _is_used(loop.results[number])]
    # A buffer needs a place in memory even if nobody reads it in the end.
    stored = [n for n, carry in enumerate(carries) if n in used or carry.is_buffer]
    inits = [_first_value(carry, Value(init)) for carry, init in zip(carries, loop.operands, strict=True)]

    def body(buffers: Sequence[Any]) -> list[Any]:
        zero = builders.one_workgroup_zero(opaque.ir)
        targets = dict(zip(stored, buffers, strict=True))
        zeros = [builders.multiple(zero, number + 1) for number in range(len(carries))]
        first = [init(targets.get(number), zeros[number]) for number, init in enumerate(inits)]
        results = _loop_below(loop, carries, first, zero)
        return [carries[number].store(results[number], zeros[number]) for number in stored]

    arrays = builders.dispatch([carries[number].stored_type for number in stored], body)
    found = {number: Value(array) for number, array in zip(stored, arrays, strict=True)}
    return [
        carry.unpack(found[number]) if number in found else Value(loop.operands[number])
        for number, carry in enumerate(carries)
    ]


def _is_used(value: Any) -> bool:
    return any(True for _ in value.uses)


# From the buffer of a carry and a zero to its value before the first iteration.
First = Callable[[Any, Any], Any]


def _first_value(carry: Carry, init: Value) -> First:
    """Says before the dispatch how its first value is made inside."""
    if not carry.is_buffer:
        return lambda buffer, zero: carry.enter_first(init, zero)
    splat = _splat(init)
    if splat is not None:
        scalar = carry.bits_of(splat).ir
        return lambda buffer, zero: builders.write_rows(
            lambda _, length: builders.full_vector(builders.element_of(scalar), length), buffer, zero
        )
    # IREE would copy what makes an array into the dispatch, and the array onto the stack.
    array = carry.pack(emit("stablehlo.optimization_barrier", [init], init.type)).ir
    return lambda buffer, zero: _written(array, buffer, zero)


def _splat(value: Value) -> Value | None:
    """The scalar that fills an array; None where there is none, and of complex ones, which the bindings do not read."""
    if isinstance(value.ir.owner, ir.Block) or value.element_type.is_complex:
        return None
    op = value.ir.owner.operation
    if op.name == "stablehlo.broadcast_in_dim" and not op.operands[0].type.shape:
        return Value(op.operands[0])
    if op.name == "stablehlo.constant" and ir.DenseElementsAttr(op.attributes["value"]).is_splat:
        scalar = ir.RankedTensorType.get([], value.type.element_type)
        dense = ir.DenseElementsAttr.get_splat(scalar, ir.DenseElementsAttr(op.attributes["value"]).get_splat_value())
        return Value(builders.create("stablehlo.constant", (), [scalar], value=dense).results[0])
    return None


def _loop_below(loop: Any, carries: Sequence[Carry], first: Sequence[Any], zero: Any) -> list[Any]:
    """``scf.while`` at the insertion point for a ``stablehlo.while``, whose regions it takes."""
    made = scf.WhileOp([carry.carried_type for carry in carries], first)
    blocks = [region.blocks[0] for region in loop.regions]
    for block, region in zip(blocks, made.regions, strict=True):
        block.append_to(region)
        _drop_barriers(block)
        _spread_flags_as_bytes(block)
        _lower_inner_loops(block, zero)
        _take_carried(block, carries, zero)
    condition, body = (list(block.operations)[-1].operation for block in blocks)
    with ir.InsertionPoint(condition), condition.location:
        flag = builders.element_of(condition.operands[0])
        scf.condition(flag, list(blocks[0].arguments))
    following = [_next_value(carry, value, body) for carry, value in zip(carries, body.operands, strict=True)]
    with ir.InsertionPoint(body), body.location:
        for number, carry in enumerate(carries):
            if carry.form is Form.REWRITTEN:
                following[number] = _written(following[number], blocks[1].arguments[number], builders.index(0))
        scf.yield_(following)
    condition.erase()
    body.erase()
    return list(made.results)


def _drop_barriers(block: ir.Block) -> None:
    """Barriers prevent rewrites of dispatches around a loop; inside one IREE cannot place them in memory."""
    for op in list(block.operations):
        if op.operation.name == "stablehlo.optimization_barrier":
            replace(op.operation, [Value(operand) for operand in op.operation.operands])


def _spread_flags_as_bytes(block: ir.Block) -> None:
    """Make an array of a single flag by way of bytes: IREE stores flags as bytes, and forgets it for a single one."""
    for op in list(block.operations):
        if op.operation.name not in ("stablehlo.broadcast_in_dim", "stablehlo.reshape"):
            continue
        operand, result = op.operation.operands[0], op.operation.results[0]
        if str(operand.type) != "tensor<i1>" or not result.type.shape:
            continue
        with ir.InsertionPoint(op), op.location:
            byte = ops.convert_element_type(Value(operand), "s8")
            spread = ops.broadcast_in_dim(byte, [int(size) for size in result.type.shape], ())
            replace(op.operation, [ops.ne(spread, 0)])


def _lower_inner_loops(block: ir.Block, zero: Any) -> None:
    for op in list(block.operations):
        if op.operation.name != LOOP:
            for region in op.operation.regions:
                for inner in region.blocks:
                    _lower_inner_loops(inner, zero)
            continue
        loop = op.operation
        carries = carries_of(loop)
        assert carries is not None
        with ir.InsertionPoint(loop), loop.location:
            first = [carry.enter(Value(init)) for carry, init in zip(carries, loop.operands, strict=True)]
            results = _loop_below(loop, carries, first, zero)
            replace(loop, [carry.leave(result) for carry, result in zip(carries, results, strict=True)])


def _take_carried(block: ir.Block, carries: Sequence[Carry], zero: Any) -> None:
    """Make a block of StableHLO take its arguments as a fused loop carries them."""
    arrays = list(block.arguments)
    with ir.InsertionPoint.at_block_begin(block):
        for carry, array in zip(carries, arrays, strict=True):
            carried = block.add_argument(carry.carried_type, ir.Location.unknown())
            if _is_used(array):
                value = builders.held(carried, zero) if carry.is_buffer else carried
                array.replace_all_uses_with(carry.leave(value).ir)
    for _ in arrays:
        block.erase_argument(0)


def _next_value(carry: Carry, value: Any, end: Any) -> Any:
    """A returned array as the loop carries it, read before anything may be written over it."""
    op = defining_op(value)
    here = ir.InsertionPoint(end) if op is None or op.block != end.block else ir.InsertionPoint.after(op)
    with here, end.location:
        return carry.enter(Value(value))


def _written(array: Any, buffer: Any, start: Any) -> Any:
    return builders.write_rows(lambda position, length: builders.read_vector(array, position, length), buffer, start)
