"""Operations with an algorithm that stand several times in loops and branches: each is a function of its kernel.

Their code is long and depends on types and attributes alone, and its numbers are in memory before and afterwards, so
that a call costs nothing beside it. The four QR factorizations of a step of divide and conquer are then compiled once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from hloforge.pipelines.codegen.graph import Block, Op
from hloforge.pipelines.library_calls.registry import target_of

# Lines from which on code is worth a function.
WORTH = 80
_NAMES = (
    "block_product cholesky convolution custom_call dot_general fft grouped_product reduce_window scatter "
    "select_and_scatter sort triangular_solve"
)
_ALGORITHMS = frozenset(_NAMES.split())


def repeated(block: Block) -> frozenset[str]:
    """The ``likeness`` of each operation that stands more than once in the inner blocks of a program."""
    found = Counter(likeness(op) for op in _inner(block) if op.name in _ALGORITHMS)
    return frozenset(name for name, count in found.items() if count > 1)


def likeness(op: Op) -> str:
    """What operations have in common whose code may be equal. Whether it is, the code tells."""
    name = target_of(op.mlir) if op.name == "custom_call" else op.name
    types = (f"{array.element}{array.shape}" for array in (*op.operands, *op.results))
    return " ".join((name, *types))


def _inner(block: Block) -> Iterator[Op]:
    for op in block.ops:
        for inner in op.inner:
            yield from inner.ops
            yield from _inner(inner)
