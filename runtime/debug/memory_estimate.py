"""Estimate the memory of a program if each value has its own buffer from its operation to its last use.

That is an upper estimate of the program as it was read: IREE fuses operations, so that most values between them are
never stored, and reuses buffers; what it adds (alignment, workspaces of kernels) is not known here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from hloforge.dialect.mlir import AnyOp, ir
from hloforge.dialect.operations import location_of, operations
from hloforge.dialect.program import Signature, entry_function
from hloforge.dialect.shapes import Shape

_CONSTANT = "stablehlo.constant"
# Levels of operations inside of operations that are looked at.
_NESTED = 100
# Values that are named at the peak.
_LARGEST = 10


@dataclass(frozen=True)
class LiveValue:
    """A value that lives at the peak: its operation, shape, bytes and position in the user's file."""

    operation: str
    shape: str
    bytes: int
    location: str


@dataclass(frozen=True)
class MemoryEstimate:
    """Bytes; values of dynamic size count as none.

    Attributes:
        arguments, results: of the program, as XLA lays them out.
        constants: of all constants.
        peak: the most that values live at one time take, results of the program among them; arguments and constants
            are left out.
        at: the operation of that time.
        largest: the largest of these values.
        dynamic: how many values have a size that only a call knows.
    """

    arguments: int
    results: int
    constants: int
    peak: int
    at: LiveValue | None = None
    largest: tuple[LiveValue, ...] = ()
    dynamic: int = 0

    @property
    def total(self) -> int:
        """Arguments, constants and values at the peak."""
        return self.arguments + self.constants + self.peak


def shape_bytes(shape: Shape) -> int | None:
    """Bytes in XLA's memory; None for dynamic sizes and tokens."""
    if shape.element is None or not shape.is_static:
        return None
    return (shape.element_count * max(shape.element.bits, 4) + 7) // 8


def shape_of(type_: Any) -> Shape | None:
    """The shape of a value; None for what is no array of XLA's."""
    try:
        return Shape.of_type(type_)
    except ValueError:
        return None


def memory_estimate(module: ir.Module, signature: Signature) -> MemoryEstimate:
    """The estimate for a module without calls, as ``normalize`` leaves it."""
    walk = _Walk()
    (entry,) = entry_function(module).operation.regions[0].blocks
    peak, at, living = walk.block(entry)
    constants = sum(_bytes(op.results[0]) or 0 for op in operations(module, [_CONSTANT]))
    return MemoryEstimate(
        arguments=sum(shape_bytes(leaf.shape) or 0 for leaf in signature.flat_parameters),
        results=sum(shape_bytes(shape) or 0 for shape in signature.flat_results),
        constants=constants,
        peak=peak,
        at=None if at is None else _live(at.results[0] if len(at.results) else None, at, peak),
        largest=tuple(_live(value, value.owner, size) for value, size in living[:_LARGEST]),
        dynamic=walk.dynamic,
    )


@dataclass
class _Walk:
    dynamic: int = 0
    sizes: dict[Any, int] = field(default_factory=dict)

    def block(self, block: ir.Block, depth: int = 0) -> tuple[int, Any, list[tuple[Any, int]]]:
        """The peak of the values of a block and of those inside its operations; where, and what lives there."""
        body = [op.operation for op in block.operations]
        last: dict[Any, int] = {}
        for number, op in enumerate(body):
            for value in _used(op):
                last[value] = number
        living: dict[Any, int] = {}
        ending: dict[int, list[Any]] = {}
        now, peak, at, then = 0, 0, None, list[tuple[Any, int]]()
        for number, op in enumerate(body):
            made = {} if op.name == _CONSTANT else {result: self.size(result) for result in op.results}
            for result, size in made.items():
                living[result] = size
                now += size
                ending.setdefault(last.get(result, number), []).append(result)
            inner, inner_at, inner_living = self.inside(op, depth)
            if now + inner > peak:
                peak, at = now + inner, inner_at or op
                then = sorted([*living.items(), *inner_living], key=lambda entry: -entry[1])[:_LARGEST]
            for value in ending.get(number, ()):
                now -= living.pop(value)
        return peak, at, then

    def inside(self, op: AnyOp, depth: int) -> tuple[int, Any, list[tuple[Any, int]]]:
        """Of the region that takes most: regions of an operation run in turn."""
        if depth >= _NESTED:
            return 0, None, []
        found = [self.block(block, depth + 1) for region in op.regions for block in region.blocks]
        return max(found, key=lambda entry: entry[0], default=(0, None, []))

    def size(self, value: Any) -> int:
        found = _bytes(value)
        self.dynamic += found is None
        return found or 0


def _used(op: AnyOp) -> Iterable[Any]:
    """What an operation reads, and what those inside of it read."""
    yield from op.operands
    if len(op.regions):
        for inner in operations(op):
            yield from inner.operands


def _bytes(value: Any) -> int | None:
    shape = shape_of(value.type)
    if shape is None:
        return 0
    return 0 if shape.element is None else shape_bytes(shape)


def _live(value: Any, owner: Any, size: int) -> LiveValue:
    shape = None if value is None else shape_of(value.type)
    op = owner if isinstance(owner, ir.Operation) else owner.operation
    return LiveValue(op.name, str(shape or ""), size, str(location_of(op) or ""))
