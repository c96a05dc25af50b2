"""What a step computes of the program as it was written: the names in the locations of its operations.

A profile puts names of its own there (``runtime/profiling/labels.py``), which tell what a dispatch computes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from hloforge.dialect.mlir import ir
from hloforge.pipelines.codegen.fused_rows import FusedRows
from hloforge.pipelines.codegen.graph import Array, Block, Op
from hloforge.pipelines.codegen.steps import Nest, Single, Step

InMemory = Callable[[Array], bool]


def origins_of_step(step: Step, in_memory: InMemory) -> frozenset[str]:
    """Of the operations that a step computes, those whose results it computes as it reads them included.

    Args:
        in_memory: whether an array is stored, by this step or another.
    """
    if isinstance(step, Nest):
        own = [array.op for array in step.maps if array.op is not None] + step.reductions
        return _names(own, step.makes, in_memory)
    if isinstance(step, FusedRows):
        return frozenset[str]().union(*(origins_of_step(one, in_memory) for one in step.steps))
    assert isinstance(step, Single)
    own = [array.op for array in step.epilogue if array.op is not None]
    return _names([step.operation, *own], step.makes, in_memory)


def origins_of_results(block: Block, in_memory: InMemory) -> frozenset[str]:
    """Of what a block computes only where it gives its results back."""
    found = [op for array in block.results for op in _computed(array, (), in_memory)]
    return _names(found, (), in_memory)


def location_names(location: Any) -> Iterator[str]:
    """All names in a location, in any order."""
    if isinstance(location, ir.NameLoc):
        yield location.name_str
        yield from location_names(location.child_loc)
    elif isinstance(location, ir.CallSiteLoc):
        yield from location_names(location.callee)
        yield from location_names(location.caller)
    elif isinstance(location, ir.FusedLoc):
        for part in location.locations:
            yield from location_names(part)


def _names(ops: Iterable[Op], made: Sequence[Array], in_memory: InMemory) -> frozenset[str]:
    seen: set[Op] = set()
    waiting = list(ops)
    while waiting:
        op = waiting.pop()
        if op in seen:
            continue
        seen.add(op)
        waiting += (inner for block in op.inner for inner in block.ops)
        for operand in (*op.operands, *op.captured):
            waiting += _computed(operand, made, in_memory)
    # Numbers that are the same everywhere have the location of one of their uses.
    return frozenset(name for op in seen if op.name != "constant" for name in location_names(op.mlir.location))


def _computed(array: Array, made: Sequence[Array], in_memory: InMemory) -> list[Op]:
    """What makes an array, if it is computed where it is read."""
    return [array.op] if array.op is not None and array not in made and not in_memory(array) else []
