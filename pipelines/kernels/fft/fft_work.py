"""How ``dispatch-fft`` shares out transforms among workgroups, and where their stages leave what the next one reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hloforge.dialect.mlir import arith, ir
from hloforge.pipelines.framework.builders import empty, index
from hloforge.pipelines.framework.machine import Machine
from hloforge.pipelines.kernels.fft.fft_kernel import Memory
from hloforge.pipelines.kernels.fft.fft_steps import Step
from hloforge.pipelines.kernels.lang import loops as code

# What a dispatch may have on its stack: IREE's limit on any processor; no model has a smaller nearest cache.
_STACK_BYTES = 1 << 15
# Workgroups of a worker that have memory of their own off the stack. IREE hands out so many at once.
_GROUPS_OF_WORKER = 8
# Lines of a row of some columns, as many as pay for reading another page for each row.
_ROW_LINES = 4
# Multiplications and additions of a step, for each float, as a step's code has them; they decide about threads alone.
_WORK = 8


@dataclass(frozen=True)
class Work:
    """The transforms of one axis: of the rows of a matrix, or of the columns of matrices one below the other.

    Attributes:
        steps: of each transform.
        kind: of the transforms.
        transforms: how many rows or matrices there are.
        height: rows of a transform: 1, or the points of a column.
        turned: how many rows are transformed together as columns; 1 for each alone.
        given, wanted: floats of a row of the operand and of the result.
    """

    steps: Sequence[Step]
    kind: str
    transforms: int
    height: int
    turned: int
    given: int
    wanted: int

    def dispatch(self, array: Any, table: Any, machine: Machine) -> Any:
        """One dispatch from ``[transforms * height, given]`` to ``[transforms * height, wanted]``."""
        element = array.type.element_type
        plan = _Plan.of(self, int(element.width) // 8, machine)

        def matrix(rows: int, floats: int) -> Any:
            return ir.RankedTensorType.get([rows, floats], element)

        def run(places: Sequence[Any], sources: Sequence[Any], _: Sequence[Any], targets: Sequence[Any]) -> None:
            block, number = places
            row = code.combine(arith.muli, number, plan.group * self.height)
            # The last block of columns overlaps the one before where they do not divide.
            last = (self.wanted - plan.wanted) // 2
            column = code.combine(arith.minsi, code.combine(arith.muli, block, plan.wanted // 2), last)
            column = code.combine(arith.muli, column, 2)
            rows = plan.group * self.height
            given = code.load(sources[0], matrix(rows, plan.given), [row, column])
            factors = code.load(sources[1], table.type, [0])
            own = code.combine(arith.addi, code.combine(arith.muli, number, plan.blocks), block)
            place = [code.combine(arith.muli, own, plan.points), 0]
            between = matrix(plan.points, plan.floats)
            scratch = [code.load(target, between, place) for target in targets[1:]]
            scratch += [empty(between) for _ in range(plan.scratch - len(scratch))]
            results = code.for_each(
                plan.group,
                [empty(matrix(rows, plan.wanted)), *scratch],
                lambda at, *carried: self._transform(
                    code.combine(arith.minsi, at, plan.group - self.turned), machine.half_line, given, factors, *carried
                ),
                step=self.turned,
            )
            code.store(results[0], targets[0], [row, column])
            for left, target in zip(results[1:], targets[1:], strict=False):
                code.store(left, target, place)

        groups = self.transforms // plan.group
        return code.workgroups(
            [plan.blocks, groups],
            [array, table],
            (),
            [matrix(self.transforms * self.height, self.wanted)],
            run,
            scratch=[] if plan.on_stack else [matrix(plan.blocks * groups * plan.points, plan.floats)] * plan.scratch,
            work=_WORK * len(self.steps) * self.transforms * self.height * max(self.given, self.wanted),
        )[0]

    def _transform(self, at: Any, vector_bytes: int, given: Any, table: Any, out: Any, *scratch: Any) -> list[Any]:
        """All steps of one transform, in vectors of so many bytes; returns the memory that they wrote into."""
        along, count = self.height == 1, len(self.steps)
        row = at if along else code.combine(arith.muli, at, self.height)
        arrays = [out, *scratch]
        source = Memory(given, along, row, vector_bytes, interleaved=True, swapped=self.kind == "IFFT")
        for number, step in enumerate(self.steps):
            left = count - 1 - number
            place = _place(left, len(scratch))
            if place == 0:
                is_last = left == 0
                swapped = is_last and self.kind in ("IFFT", "IRFFT")
                target = Memory(arrays[0], along, row, vector_bytes, interleaved=is_last, swapped=swapped)
            else:
                target = Memory(arrays[place], along and self.turned == 1, index(0), vector_bytes)
            source = step.run(source, target, table)
            arrays[place] = source.array
        return arrays


def _place(left: int, scratch: int) -> int:
    """Where the step writes after which some are left: 0 for the result's memory."""
    if left == 0:
        return 0
    return left % 2 if scratch == 1 else 1 + left % 2


@dataclass(frozen=True)
class _Plan:
    """What a workgroup does.

    Attributes:
        given, wanted: floats of a row, of those columns that it takes.
        blocks: of columns, and so workgroups beside each other.
        group: transforms one after the other.
        scratch: matrices that the steps write beside the result; it is one of two, if the other one may be the result.
        points, floats: the sizes of these.
        on_stack: whether they are small.
    """

    given: int
    wanted: int
    blocks: int
    group: int
    scratch: int
    points: int
    floats: int
    on_stack: bool

    @classmethod
    def of(cls, work: Work, bytes_: int, machine: Machine) -> _Plan:
        most = max((step.points for step in work.steps[:-1]), default=0)
        if work.height == 1:
            fits, given, wanted, blocks = most <= work.wanted // 2 and work.turned == 1, work.given, work.wanted, 1
            points, floats = (1, 2 * most) if work.turned == 1 else (most, 2 * work.turned)
        else:
            floats = _columns(work.wanted, machine.line_bytes // bytes_, _ROW_LINES * machine.line_bytes // bytes_)
            blocks, given, wanted = -(-work.wanted // floats), floats, floats
            # Blocks that overlap must not write anything but the result.
            fits = most <= work.height and work.wanted % floats == 0
            points = most
        scratch = min(len(work.steps) - 1, 1 if fits else 2)
        on_stack = scratch * points * floats * bytes_ <= _STACK_BYTES
        group = cls._group(work, blocks, wanted, machine, on_stack=on_stack)
        return cls(given, wanted, blocks, group, scratch, points, floats, on_stack)

    @staticmethod
    def _group(work: Work, blocks: int, wanted: int, machine: Machine, *, on_stack: bool) -> int:
        """Few large groups where each has memory of its own, else several, that share out evenly."""
        most = _GROUPS_OF_WORKER * machine.workers
        least = work.turned if on_stack else max(work.turned, -(-work.transforms * blocks // most))
        sizes = [
            size for size in range(min(least, work.transforms), work.transforms + 1) if work.transforms % size == 0
        ]
        # Each number is read and written several times.
        floats = machine.computed_elements
        most = min(floats // (work.height * wanted), work.transforms * blocks // 4) if on_stack else least
        return max([size for size in sizes if size <= most], default=sizes[0])


def _columns(floats: int, least: int, most: int) -> int:
    """How many floats of a row a workgroup takes: all, a divisor, or as many as fit."""
    if floats <= most:
        return floats
    divisor = 2 * _divisor(floats // 2, most // 2)
    return divisor if divisor >= least else most


def _divisor(number: int, most: int) -> int:
    """The largest divisor up to a limit."""
    return max(divisor for divisor in range(1, min(number, most) + 1) if number % divisor == 0)
