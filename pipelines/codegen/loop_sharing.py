"""Which steps of a loop's body several threads work on.

A thread finds what it wrote itself in its own cache. What another thread wrote comes from there line by line: two
threads that each read and write the other's half of an array take 20 times as long as with their own (EPYC, 16 KB to
4 MB: 0.2 ns a byte of the array). So a step is shared where each thread reads what it wrote of an array, in the
steps of one iteration and from one to the next, or where there is so much to compute that the way of the arrays is
short beside it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hloforge.dialect.mlir import stablehlo
from hloforge.pipelines.codegen.elements import memory as elements
from hloforge.pipelines.codegen.fused_rows import FusedRows
from hloforge.pipelines.codegen.graph import Array, Block, Op
from hloforge.pipelines.codegen.products.blocking import nanoseconds
from hloforge.pipelines.codegen.sharing import element_cost
from hloforge.pipelines.codegen.steps import Nest, Single, Step, is_update

if TYPE_CHECKING:
    from hloforge.pipelines.codegen.blocks import Generator

# What a sum takes in a loop of vectors; a byte from the second-level cache, and one that another core wrote, with what
# that core needs to write it again; a hand-over; a workgroup of what is no loop over places.
_SUM_NS, _OWN_BYTE_NS, _BYTE_NS, _HANDED_NS, _GROUP_NS = 0.008, 0.02, 0.2, 1000, 10_000
# The part of an array that goes from one thread to the other where both take workgroups in their order: one of them now
# and then.
_EXCHANGED = 1 / 16
# How far the way through an array may be from that through a loop's places.
_LEAST_WAY, _MOST_WAY = 0.75, 1.34


@dataclass(eq=False)
class _Candidate:
    """A step.

    Attributes:
        count: of workgroups; 1 for a step that one thread does.
        ns: that one thread takes.
        reads: arrays that the loop changes, each with whether workgroups read parts of it in their order.
        makes: arrays in memory.
        in_order: whether workgroups write parts of them in their order.
    """

    count: int
    ns: float
    reads: dict[Array, bool]
    makes: Sequence[Array]
    in_order: bool


def shared_in_loop(
    generator: Generator,
    block: Block,
    steps: Sequence[Step],
    in_memory: Callable[[Array], bool],
    counts: Sequence[int],
    reads: Callable[[Step], Iterable[Array]],
) -> list[int]:
    """To how many workgroups each step of a block is shared out.

    Args:
        block: the body of a loop, or of a branch.
        counts: what each step is worth on its own.
        reads: arrays in memory that a step reads.
    """
    if max(counts, default=1) == 1:
        return list(counts)
    candidates = [
        _candidate(generator, block, step, count, in_memory, reads) for step, count in zip(steps, counts, strict=True)
    ]
    maker = {array: one for one in candidates for array in one.makes}
    if block.owner is not None and block.owner.name == "while":
        for argument, result in zip(block.arguments, block.results, strict=True):
            if result in maker:
                maker[argument] = maker[result]
    while True:
        stays = [one.count == 1 or _gain(one, candidates, maker) > 0 for one in candidates]
        if all(stays):
            return [one.count for one in candidates]
        for one, is_shared in zip(candidates, stays, strict=True):
            if not is_shared:
                one.count = 1


def update_nest(step: Step) -> Nest | None:
    """The loops of an update of a part; None for another step."""
    if not isinstance(step, Single) or not is_update(step.operation):
        return None
    change = step.operation.operands[1]
    return Nest(shape=change.shape, maps=[change]) if change.op is not None else None


def _gain(one: _Candidate, candidates: Sequence[_Candidate], maker: dict[Array, _Candidate]) -> float:
    """Nanoseconds that sharing a step saves."""
    moved = 0.0
    for array, in_order in one.reads.items():
        made = maker.get(array)
        stays = in_order and made is not None and made.count > 1 and made.in_order
        moved += _bytes(array) * (_EXCHANGED if stays else 1)
    for other in candidates:
        if other.count == 1:
            # It reads what other threads wrote.
            moved += sum(_bytes(array) / 2 for array in other.reads if maker.get(array) is one)
    return one.ns / 2 - moved * _BYTE_NS - _HANDED_NS


def _bytes(array: Array) -> int:
    return array.elements * elements.size(array.element)


def _candidate(
    generator: Generator,
    block: Block,
    step: Step,
    count: int,
    in_memory: Callable[[Array], bool],
    reads: Callable[[Step], Iterable[Array]],
) -> _Candidate:
    is_changed, nests = _changed(block), _nests(step)
    if count > 1 and nests:
        found: dict[Array, bool] = {}
        ns = 0.0
        for nest in nests:
            ways = _ways(nest, in_memory)
            for array, in_order in ways.items():
                found[array] = in_order and found.get(array, True)
            computed = element_cost(nest, in_memory) * math.prod(nest.shape) * _SUM_NS
            ns += max(computed, sum(map(_bytes, {*ways, *nest.makes} - nest.unstored)) * _OWN_BYTE_NS)
        own = {array for nest in nests for array in nest.makes}
        changed = {array: in_order for array, in_order in found.items() if is_changed(array) and array not in own}
        return _Candidate(count, ns, changed, step.makes, True)
    changed = {array: False for array in reads(step) if is_changed(array)}
    return _Candidate(count, max(count * _GROUP_NS, _product_ns(generator, step)), changed, step.makes, False)


def _nests(step: Step) -> list[Nest]:
    """The loops that a step is; none where it is something else as well."""
    if isinstance(step, FusedRows):
        nests = [one for one in step.steps if isinstance(one, Nest)]
        return nests if len(nests) == len(step.steps) else []
    nest = step if isinstance(step, Nest) else update_nest(step)
    return [nest] if nest is not None else []


def product_ns(generator: Generator, op: Op) -> float:
    """What a product takes."""
    dims = stablehlo.DotDimensionNumbers(op.attribute("dot_dimension_numbers")).lhs_contracting_dimensions
    multiplications = op.result.elements * math.prod(op.operands[0].shape[d] for d in dims)
    return nanoseconds(multiplications, 0, generator.machine.vector_bytes // elements.size(op.result.element))


def _product_ns(generator: Generator, step: Step) -> float:
    """What a product takes; 0 for another step."""
    if not isinstance(step, Single) or step.operation.name != "dot_general":
        return 0
    return product_ns(generator, step.operation)


def _changed(block: Block) -> Callable[[Array], bool]:
    """Whether an array has other numbers in each run of a block."""
    if block.owner is None or block.owner.name != "while":
        return lambda _: True
    same = {one for one, result in zip(block.arguments, block.results, strict=True) if one is result}
    return lambda array: array.block.inside(block) and array not in same


def _ways(nest: Nest, in_memory: Callable[[Array], bool]) -> dict[Array, bool]:
    """The arrays that a nest reads, and whether its outermost loop goes through each from begin to end."""
    place, found = nest.analysis(in_memory)
    outer = next((d for d, size in enumerate(nest.shape) if size > 1 and d not in nest.dims), None)
    if outer is None:
        return {array: False for array, _ in found.loads}
    (symbol, _), *_ = place[outer].terms
    ways: dict[Array, bool] = {}
    for array, number in found.loads:
        way = dict(number.terms).get(symbol, 0) * nest.shape[outer] / max(array.elements, 1)
        ways[array] = _LEAST_WAY <= way <= _MOST_WAY and ways.get(array, True)
    return ways
