"""A program of StableHLO as kernels: the steps of ``main`` one after the other, in few kernels or in parallel ones."""

from __future__ import annotations

import math

import numpy as np

from hloforge.dialect.dense_values import constant_of
from hloforge.dialect.mlir import ir
from hloforge.pipelines.codegen import singles
from hloforge.pipelines.codegen.blocks import BlockWriter, Generator
from hloforge.pipelines.codegen.elements import memory as elements
from hloforge.pipelines.codegen.graph import Array, Block
from hloforge.pipelines.codegen.kernel_program import ArrayType, Binding, Dispatch, KernelProgram
from hloforge.pipelines.codegen.kernel_writer import MOST_BINDINGS, KernelWriter
from hloforge.pipelines.codegen.loops import Share
from hloforge.pipelines.codegen.orders import shorten
from hloforge.pipelines.codegen.reading import function_of
from hloforge.pipelines.codegen.refusal import RefusedError
from hloforge.pipelines.codegen.slots import Slot, Where
from hloforge.pipelines.codegen.steps import Nest, Single, Step, check
from hloforge.pipelines.framework.machine import Machine

# Lines of a kernel after which another one begins, because LLVM's time grows faster than a function.
_LONG = 1500
# In sums: what a workgroup should have to do at least, some 150 µs, because handing work over takes that long.
_SHARE = 1 << 20
_MOST_SHARES = 8


def generate(module: ir.Module, machine: Machine) -> KernelProgram:
    """The kernels of a lowered module.

    Raises:
        RefusedError: it has something that code generation does not take.
    """
    block = function_of(module)
    check(block)
    shorten(block)
    return _Program(block, machine).made()


class _Program:
    def __init__(self, block: Block, machine: Machine) -> None:
        self._block = block
        self._generator = Generator(machine)
        self._kernels: list[str] = []
        self._texts: dict[str, int] = {}
        self._dispatches: list[tuple[int, tuple[Slot, ...], int]] = []
        self._transient = 0

    def made(self) -> KernelProgram:
        block, generator = self._block, self._generator
        for number, array in enumerate(block.arguments):
            generator.slots[array] = Slot(Where.PARAMETER, _type(array).size, array.element, number)
        self._place_constants(block)
        results = [
            Slot(Where.RESULT, _type(array).size, array.element, number) for number, array in enumerate(block.results)
        ]
        writer = BlockWriter(generator, block, results, is_outer=True)
        for number, step in enumerate(writer.steps):
            count = self._shares(step)
            if count > 1 or self._is_full(step):
                self._end()
            share = Share(generator.writer.workgroup(), count) if count > 1 else None
            writer.write_step(number, step, share)
            if share:
                self._end(count)
        writer.finish()
        self._end()
        return KernelProgram(
            parameters=tuple(map(_type, block.arguments)),
            results=tuple(map(_type, block.results)),
            transient=generator.arena.size,
            constants=bytes(generator.constants),
            kernels=tuple(self._kernels),
            dispatches=tuple(
                Dispatch(kernel, tuple(map(self._binding, slots)), count) for kernel, slots, count in self._dispatches
            ),
        )

    def _place_constants(self, block: Block) -> None:
        """Constants that are no repeated number, of inner blocks as well."""
        for op in block.ops:
            if op.name == "constant" and not op.is_splat:
                data = np.ascontiguousarray(constant_of(op.mlir)).tobytes()
                expected = _type(op.result).size
                if len(data) != expected:
                    raise RefusedError(f"a constant of type {op.result.element}")
                self._generator.slots[op.result] = self._generator.constant(data, op.result.element)
            for inner in op.inner:
                self._place_constants(inner)

    def _binding(self, slot: Slot) -> Binding:
        parameters, results = len(self._block.arguments), len(self._block.results)
        buffer = {
            Where.PARAMETER: slot.number,
            Where.RESULT: parameters + slot.number,
            Where.TRANSIENT: parameters + results,
            Where.CONSTANT: parameters + results + 1,
        }[slot.where]
        return Binding(buffer, slot.offset, slot.size)

    def _shares(self, step: Step) -> int:
        """How many workgroups a step is worth."""
        if isinstance(step, Single):
            return singles.workgroups(self._generator, step.operation)
        assert isinstance(step, Nest)
        outer = next((size for d, size in enumerate(step.shape) if size > 1 and d not in step.dims), 1)
        if outer == 1 or 0 in step.shape:
            return 1
        cost = step.analysis(self._generator.in_memory)[1].cost * math.prod(step.shape)
        return max(1, min(cost // _SHARE, _MOST_SHARES, outer))

    def _is_full(self, step: Step) -> bool:
        writer = self._generator.writer
        return writer.lines > _LONG or len(writer.slots) + 2 * len(step.reads) + len(step.makes) > MOST_BINDINGS

    def _end(self, count: int = 1) -> None:
        """Finish a kernel, if it does anything."""
        if not self._generator.writer.lines:
            self._generator.next_kernel()
            return
        done: KernelWriter = self._generator.next_kernel()
        if len(done.slots) > MOST_BINDINGS:
            raise RefusedError(f"a kernel of {len(done.slots)} arrays")
        text = done.text()
        number = self._texts.setdefault(text, len(self._kernels))
        if number == len(self._kernels):
            self._kernels.append(text)
        self._dispatches.append((number, tuple(done.slots), count))


def _type(array: Array) -> ArrayType:
    return ArrayType(array.element, array.shape, elements.size(array.element))
