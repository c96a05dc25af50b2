"""How much a program computes: a rough count that chooses between a device with and without threads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isqrt, prod
from typing import Any

from hloforge.dialect.mlir import AnyOp, SSAValue, ir
from hloforge.dialect.operations import defining_op, integers, is_made_by, operations
from hloforge.dialect.traits import ELEMENTWISE, TRANSCENDENTAL
from hloforge.pipelines.framework.machine import AVX2, Machine
from hloforge.pipelines.weights import weights_of

# Multiplications of a product from which tiles pay.
_LARGE_PRODUCT = 1 << 28
# What is no operation on arrays.
_INSIDE = ("func.", "tensor.")
# What moves nothing by itself: it names arrays, or is done where its result is read.
_FREE_NAMES = """
broadcast_in_dim case constant dynamic_slice get_tuple_element if iota optimization_barrier reshape return slice while
"""
_FREE = frozenset(f"stablehlo.{name}" for name in _FREE_NAMES.split())
# Elementwise operations: what each costs, and each array that a pass over memory reads or writes, in parts of an
# element of 1024² by tanh, of which a core makes a million in 0.45 ms. Copying as many takes a half of that.
_PARTS = 64
_WORD, _FUNCTION, _CHEAP_COST = 16, 32, 2
# A million numbers that are moved for themselves take 0.45 ms of one core, and 0.33 of two.
_BY_NUMBERS = 2
# Integers are divided one by one, by known numbers as those of 64 bits are multiplied, in parts.
_DIVISION, _LONG_PRODUCT = 512, 16
_COSTLY = TRANSCENDENTAL - {"stablehlo.rsqrt", "stablehlo.sqrt"}
_ELEMENTWISE = {name: _FUNCTION if name in _COSTLY else _CHEAP_COST for name in sorted(ELEMENTWISE)}
# Light operations beside each heavy one of a loop's iteration, at most.
_LIGHT = 4
# What is computed where it is read.
_REPEATED = {"stablehlo.broadcast_in_dim", "stablehlo.constant", "stablehlo.iota"}
# Where the results of a reduction are looked for: operations, at most, and what only spreads numbers.
_NEAR = 64
_SPREAD = ("stablehlo.broadcast_in_dim", "stablehlo.reshape")
# Operations of loops that threads share out well; an iteration of others may be in place.
_SHARED = ("stablehlo.convolution", "stablehlo.dot_general", "stablehlo.reduce", *_ELEMENTWISE)
# Operations that IREE gives the memory of an operand.
_IN_PLACE = {"stablehlo.dynamic_update_slice", "stablehlo.scatter", "stablehlo.while"}
_FEW_STEPS = 16
_SOURCES = {"stablehlo.constant", "stablehlo.iota"}
# Operations from which IREE's search for constant expressions is slow, and elements of a constant worth finding.
_LONG, _TABLE = 256, 256


def heaviest_operation(module: ir.Module, machine: Machine = AVX2) -> int:
    """The heaviest single operation of a module, in elements read and written; dynamic sizes count as 1.

    One heavy operation is worth splitting over threads; many light ones are not, whatever their sum. In a loop, whose
    iterations are taken to be many, an operation weighs more than outside, if not too many light ones are beside it.
    """
    found = operations(module)
    works = [(op, work) for op in found if (work := _work(op, machine))] + _elementwise_work(found, machine)
    by_loop: dict[Any, list[int]] = {}
    for op, work in works:
        if (loop := _loop_of(op)) is not None:
            by_loop.setdefault(loop, []).append(work if op.name.startswith(_SHARED) else 1)
    return max((*(work for _, work in works), *(_loop_work(turn, machine) for turn in by_loop.values())), default=0)


def _loop_of(op: ir.Operation) -> ir.Operation | None:
    """The loop that runs an operation as a dispatch of its own."""
    parent = op.parent
    while parent is not None and parent.operation.name != "stablehlo.while":
        parent = parent.operation.parent
    return None if parent is None else parent.operation


def _loop_work(works: Sequence[int], machine: Machine) -> int:
    """What the heaviest operation of a loop weighs in a program."""
    heavy = sum(work >= machine.loop_elements for work in works)
    light = sum(0 < work < machine.loop_elements for work in works)
    # A running call hands over a further dispatch sooner than its first one.
    return machine.wake_ns // machine.handover_ns * max(works) if light <= _LIGHT * heavy else 0


def gains_by_data_tiling(module: ir.Module) -> bool:
    """Whether IREE should lay matrices out in tiles first: for large products of f32, and none of 16 bits.

    Measured: 1024³ takes half of the time so, 512³ the same, smaller ones up to twice, products of bf16 40 times.
    """
    dots = operations(module, ["stablehlo.dot_general"])
    elements = {str(dot.operands[0].type.element_type) for dot in dots}
    return not elements & {"bf16", "f16"} and any(
        str(dot.operands[0].type.element_type) == "f32" and _multiplications(dot) >= _LARGE_PRODUCT for dot in dots
    )


def hoists_in_vain(module: ir.Module) -> bool:
    """Whether IREE finds no constant expressions that are worth computing once, or looks too long for them.

    What it finds it compiles as a module of its own, and reads from memory in each call: in vain where it is counted
    and compared only (JAX's normal numbers: a third of 1.2 s, and a table for each call to read). Its search takes
    minutes for some hundred operations in one kernel (tanh of c128: 468 operations, 200 s). It pays where a program
    has tables or weights, or functions of constants. Programs of loops are left alone: without hoisted constants
    IREE takes some loops in other forms, one of which was wrong (docs/status.md). So are updates of arrays, which IREE
    makes in the memory of constants that others read (``jnp.insert`` beside a median), and programs of weights.
    """
    found = operations(module)
    if any(op.name in _IN_PLACE for op in found) or weights_of(module):
        return False
    tables = (op for op in found if op.name == "stablehlo.constant" and _elements(op.results[0].type) >= _TABLE)
    return all(map(_is_splat, tables)) and (len(found) >= _LONG or not _computes_of_constants(found))


def _computes_of_constants(found: Sequence[ir.Operation]) -> bool:
    """Whether more than counting and comparing depends on constants alone: a function, or the many steps of one."""
    constant: set[Any] = set()
    steps = 0
    for op in found:
        if op.name not in _SOURCES and not (len(op.operands) and all(operand in constant for operand in op.operands)):
            continue
        steps += op.name not in _SOURCES | _REPEATED
        if steps > _FEW_STEPS or op.name not in _SOURCES | _REPEATED | (ELEMENTWISE - _COSTLY):
            return True
        constant.update(op.results)
    return False


def _is_splat(constant: ir.Operation) -> bool:
    """Whether one number fills a constant; not known of complex ones, which the bindings do not read."""
    if isinstance(constant.results[0].type.element_type, ir.ComplexType):
        return False
    value = constant.attributes["value"]
    return isinstance(value, ir.DenseElementsAttr) and bool(value.is_splat)


def _work(op: Any, machine: Machine) -> int:
    if op.name.startswith(_INSIDE) or op.name in _FREE or op.name in _ELEMENTWISE:
        return 0
    sizes = [_elements(value.type) for value in op.results]
    if op.name == "stablehlo.dot_general":
        return 2 * _multiplications(op) // machine.memory_work
    if op.name == "stablehlo.convolution":
        kernel = _elements(op.operands[1].type)
        widest = max((int(size) for size in op.results[0].type.shape), default=1)
        return 2 * sizes[0] * max(1, kernel // max(1, widest)) // machine.memory_work
    if op.name == "stablehlo.dynamic_update_slice":
        return _elements(op.operands[1].type)
    if op.name == "stablehlo.reduce":
        # It writes nothing to speak of, where others write as much as they read.
        return max(_elements(value.type) for value in op.operands) // 2
    moved = max((_elements(value.type) for value in (*op.operands, *op.results)), default=0)
    return _BY_NUMBERS * moved if _moves_numbers(op) else moved


def _moves_numbers(op: AnyOp) -> bool:
    """Whether a transposition moves numbers for themselves, not whole rows."""
    return op.name == "stablehlo.transpose" and integers(op, "permutation")[-1:] != [op.results[0].type.rank - 1]


def _elementwise_work(found: Sequence[ir.Operation], machine: Machine) -> list[tuple[Any, int]]:
    """The work of each group of elementwise operations that IREE computes in one pass over memory, with one of them."""
    groups: dict[Any, set[Any]] = {}
    for op in found:
        if op.name not in _ELEMENTWISE:
            continue
        groups[op] = group = {op}
        for operand in op.operands:
            source = defining_op(operand)
            if source in groups and groups[source] is not group and _is_passed_on(operand, op.results[0]):
                small, group = sorted((group, groups[source]), key=len)
                group |= small
                groups |= dict.fromkeys(small, group)
    distinct = {id(group): group for group in groups.values()}
    works = {number: _group_work(group) for number, group in distinct.items()}
    for op in found:
        if op.name == "stablehlo.reduce" and _is_along_rows(op):
            for group in _normalized(op, groups):
                works[id(group)] += _work(op, machine)
    return [(next(iter(group)), works[number]) for number, group in distinct.items()]


def _is_along_rows(op: ir.Operation) -> bool:
    """Whether a reduction leaves one number of a row: IREE computes what the row becomes by it in the same dispatch."""
    dimensions, rank = integers(op, "dimensions"), op.operands[0].type.rank
    return len(op.results) == 1 and sorted(dimensions) == [*range(rank - len(dimensions), rank)]


def _normalized(op: AnyOp, groups: Mapping[Any, set[Any]]) -> list[set[Any]]:
    """The passes over arrays of as many elements as a reduction reads that take its results, a number for each row."""
    elements = _elements(op.operands[0].type)
    found: list[set[Any]] = []
    seen: set[Any] = set()
    waiting = [op.results[0]]
    while waiting and len(seen) < _NEAR:
        for user in {use.owner.operation for use in waiting.pop().uses} - seen:
            seen.add(user)
            if user not in groups and user.name not in _SPREAD:
                continue
            if user in groups and _elements(user.results[0].type) == elements:
                found.append(groups[user])
            elif user.name in _SPREAD or _elements(user.results[0].type) < elements:
                waiting.append(user.results[0])
    return list({id(group): group for group in found}.values())


def _group_work(group: set[ir.Operation]) -> int:
    elements = _elements(next(iter(group)).results[0].type)
    read = {operand for op in group for operand in op.operands if _is_read(operand, group, elements)}
    written = sum(not _is_passed_on(op.results[0], op.results[0]) for op in group)
    words = _WORD * (len(read) + max(1, written))
    return elements * (words + sum(map(_cost, group))) // _PARTS


def _cost(op: ir.Operation) -> int:
    """What an elementwise operation costs an element, in parts."""
    element = op.results[0].type.element_type
    if isinstance(element, ir.IntegerType):
        if op.name in {"stablehlo.divide", "stablehlo.remainder"}:
            return _LONG_PRODUCT if _is_known(op.operands[1]) else _DIVISION
        if op.name == "stablehlo.multiply" and element.width == 64:
            return _LONG_PRODUCT
    return _ELEMENTWISE[op.name]


def _is_known(value: Any) -> bool:
    """Whether a constant number fills an array."""
    while is_made_by(value, "stablehlo.broadcast_in_dim"):
        value = value.owner.operands[0]
    return is_made_by(value, "stablehlo.constant")


def _is_read(value: SSAValue, group: set[ir.Operation], elements: int) -> bool:
    """Whether a group of operations of so many elements reads an operand from memory."""
    if _elements(value.type) != elements or isinstance(value.owner, ir.Block):
        return _elements(value.type) == elements
    return value.owner not in group and value.owner.name not in _REPEATED


def _is_passed_on(value: SSAValue, result: SSAValue) -> bool:
    """Whether a value is of the result's size, and only elementwise operations read it: it need not lie in memory."""
    users = (use.owner.operation.name for use in value.uses)
    return _elements(value.type) == _elements(result.type) and all(name in _ELEMENTWISE for name in users)


def _multiplications(op: AnyOp) -> int:
    """The multiplications of a dot_general."""
    lhs, rhs, out = (_elements(value.type) for value in (*op.operands, op.results[0]))
    # lhs * rhs = batch² · m · n · k² and out = batch · m · n; the batch is counted once more than needed at most.
    return out * max(1, isqrt(lhs * rhs // max(1, out)))


def _elements(type_: Any) -> int:
    if not isinstance(type_, ir.RankedTensorType):
        return 0
    return prod(1 if type_.is_dynamic_dim(d) else int(type_.get_dim_size(d)) for d in range(type_.rank))
