"""A program of StableHLO as kernels: the steps of ``main`` one after the other, in few kernels or in parallel ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from hloforge.dialect import budget
from hloforge.dialect.dense_values import constant_of
from hloforge.dialect.marks import BOUNDED_RESULTS
from hloforge.dialect.mlir import ir
from hloforge.pipelines.codegen import loops_at_once
from hloforge.pipelines.codegen.blocks import BlockWriter, Generator, copy_workgroups, workgroups
from hloforge.pipelines.codegen.elements import memory as elements
from hloforge.pipelines.codegen.first_elements import from_first_elements, slots_read
from hloforge.pipelines.codegen.graph import Array, Block, Op
from hloforge.pipelines.codegen.kernel_names import kernel_name
from hloforge.pipelines.codegen.kernel_program import ArrayType, Binding, Dispatch, KernelProgram
from hloforge.pipelines.codegen.kernel_writer import MOST_BINDINGS, KernelWriter
from hloforge.pipelines.codegen.known_factors import pack_constants
from hloforge.pipelines.codegen.lang.float_state import X86_64
from hloforge.pipelines.codegen.lang.outlining import ends
from hloforge.pipelines.codegen.nest_loops import Share
from hloforge.pipelines.codegen.orders import shorten
from hloforge.pipelines.codegen.origins import origins_of_results, origins_of_step
from hloforge.pipelines.codegen.packed_apart import packing_of, packs_apart, write_packing
from hloforge.pipelines.codegen.reading import forget, function_of
from hloforge.pipelines.codegen.refusal import RefusedError
from hloforge.pipelines.codegen.repeated import repeated
from hloforge.pipelines.codegen.slots import Slot, Where
from hloforge.pipelines.codegen.staging import copying, stage
from hloforge.pipelines.codegen.steps import Single, Step, check
from hloforge.pipelines.codegen.transforms import one_by_one
from hloforge.pipelines.framework.machine import Machine

# Bindings of a step for what it works in.
_SCRATCHES = 3
# Elements from which on a result lies in a parameter that the caller gives up.
_LARGE = 1 << 14


def generate(
    module: ir.Module,
    machine: Machine,
    *,
    extensions: frozenset[str] = frozenset(),
    architecture: str = X86_64,
    apart: bool = False,
    aliases: Mapping[int, int] | None = None,
) -> KernelProgram:
    """The kernels of a lowered module.

    Args:
        extensions: of the processor, by LLVM's names, for products and convolutions.
        architecture: of the processor, ``x86-64`` or ``aarch64``.
        apart: whether each step is a dispatch of its own, which tells the ``origins`` of what it computes.
        aliases: parameters that the caller gives up, by the numbers of the results that may lie in them.

    Raises:
        RefusedError: it has something that code generation does not take.
        OverBudgetError: there is no time left.
    """
    block = function_of(module)
    try:
        check(block)
        shorten(block)
        one_by_one(block)
        generator = Generator(machine, extensions, architecture)
        generator.repeated = repeated(block)
        return _Program(block, generator, apart=apart, aliases=aliases or {}, sizes=_sizes(module)).made()
    finally:
        forget(_all_ops(block))


def _sizes(module: ir.Module) -> tuple[tuple[int, ...], ...]:
    """Of what the program returns, where they are known at run time (``legalize-bounded-results``)."""
    attributes = module.operation.attributes
    if BOUNDED_RESULTS not in attributes:
        return ()
    return tuple(tuple(ir.DenseI64ArrayAttr(dims)) for dims in ir.ArrayAttr(attributes[BOUNDED_RESULTS]))


def _all_ops(block: Block) -> Iterator[Op]:
    for op in block.ops:
        yield op
        for inner in op.inner:
            yield from _all_ops(inner)


class _Program:
    def __init__(
        self,
        block: Block,
        generator: Generator,
        *,
        apart: bool,
        aliases: Mapping[int, int],
        sizes: tuple[tuple[int, ...], ...],
    ) -> None:
        self._sizes = sizes
        self._block, self._generator, self._is_apart = block, generator, apart
        arrays = block.results, block.arguments
        self._aliases = {one: other for one, other in aliases.items() if _fit(arrays[0][one], arrays[1][other])}
        self._kernels: list[str] = []
        self._texts: dict[str, int] = {}
        self._parts: dict[str, str] = {}
        self._names: list[str] = []
        # Of the kernel that is being written.
        self._steps: list[Step] = []
        self._dispatches: list[tuple[int, tuple[Slot, ...], int, int, frozenset[str]]] = []

    def made(self) -> KernelProgram:
        block, generator = self._block, self._generator
        for number, array in enumerate(block.arguments):
            is_given = number in self._aliases.values()
            generator.slots[array] = Slot(Where.PARAMETER, _type(array).size, array.element, number, is_given=is_given)
        for number, array in enumerate(block.weights.values()):
            generator.slots[array] = Slot(Where.WEIGHT, _type(array).size, array.element, number)
        pack_constants(generator, block)
        self._place_constants(block)
        results = [
            Slot(Where.RESULT, _type(array).size, array.element, number) for number, array in enumerate(block.results)
        ]
        writer = self._writer(results)
        writer.copies_apart = self._copies
        done: set[Step] = set()
        for number, step in enumerate(writer.steps):
            budget.enter(f"kernels: step {number + 1} of {len(writer.steps)}")
            done.update(self._at_once(writer, step))
            if step in done:
                continue
            count = workgroups(generator, step)
            if count > 1 or self._is_full(writer, step):
                self._end()
            origins = origins_of_step(step, writer.planner.in_memory) if self._is_apart else frozenset[str]()
            packed = self._pack(step, origins)
            if packed is not None:
                # Rows are cut otherwise then.
                count = workgroups(generator, step)
            share = Share(generator.writer.workgroup(), count) if count > 1 else None
            with from_first_elements(generator, step, writer.planner.in_memory):
                writer.write_step(number, step, share)
            self._steps.append(step)
            if packed is not None:
                generator.give_back(packed)
            if share or self._is_apart:
                self._end(count, origins)
        writer.finish(self._make_room)
        self._end(1, origins_of_results(block, writer.planner.in_memory) if self._is_apart else frozenset())
        return KernelProgram(
            parameters=tuple(map(_type, block.arguments)),
            results=tuple(map(_type, block.results)),
            transient=generator.arena.size,
            constants=bytes(generator.constants),
            has_variables=generator.has_count,
            host_calls=tuple(generator.host_calls),
            aliases=tuple(self._aliases.items()),
            weights=tuple((name, _type(array).size) for name, array in block.weights.items()),
            kernels=tuple(self._kernels),
            parts=tuple(self._parts.items()),
            names=tuple(self._names),
            sizes=self._sizes,
            dispatches=tuple(
                Dispatch(kernel, tuple(map(self._binding, slots)), count, shares, origins)
                for kernel, slots, count, shares, origins in self._dispatches
            ),
        )

    def _at_once(self, writer: BlockWriter, step: Step) -> Sequence[Step]:
        """Write the loops that begin with a step, where several may run at once. Returns what is written."""
        group = next((group for group in writer.groups if group[0] is step), None)
        if group is None or self._is_apart or not loops_at_once.may_run(self._generator, writer, group):
            return ()
        self._end()
        loops_at_once.write(self._generator, writer, group)
        self._steps += group
        self._end(len(group))
        return group

    def _pack(self, step: Step, origins: frozenset[str]) -> Slot | None:
        """Pack the right factor of a product in a kernel of its own, where that pays; None else."""
        generator = self._generator
        if not isinstance(step, Single) or not packs_apart(generator, step.operation):
            return None
        op = step.operation
        size, count = packing_of(generator, op)
        generator.packed[op] = slot = generator.take("i8", size, is_local=False)
        self._end()
        write_packing(generator, op, Share(generator.writer.workgroup(), count) if count > 1 else None)
        self._steps.append(step)
        self._end(count, origins)
        op.apart = True
        return slot

    def _writer(self, results: list[Slot]) -> BlockWriter:
        """What writes the steps of ``main``. Results lie in parameters where they can be written there at once."""
        block, generator = self._block, self._generator
        carries = [block.arguments[self._aliases[n]] if n in self._aliases else None for n in range(len(results))]
        targets = [generator.slots[carry] if carry else result for carry, result in zip(carries, results, strict=True)]
        writer = BlockWriter(generator, block, targets, is_outer=True, carries=carries)
        own = [number for number in self._aliases if not writer.is_wanted(number)]
        for number in own:
            generator.slots[block.arguments[self._aliases.pop(number)]].is_given = False
            writer.retarget(number, results[number])
        return writer

    def _place_constants(self, block: Block) -> None:
        """Constants that are no repeated number and not packed yet, of inner blocks as well."""
        for op in block.ops:
            if op.name == "constant" and not op.is_splat and op.result not in self._generator.slots:
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
            Where.HOST: parameters + results + 2,
            Where.WEIGHT: parameters + results + 3 + slot.number,
        }[slot.where]
        return Binding(buffer, slot.offset, slot.size)

    def _copies(self, array: Array, target: Slot) -> bool:
        """Copy an array by several workgroups, if it is worth them."""
        count = copy_workgroups(self._generator, array)
        if count < 2:
            return False
        self._end()
        self._generator.copy(array, target, Share(self._generator.writer.workgroup(), count))
        self._end(count)
        return True

    def _is_full(self, writer: BlockWriter, step: Step) -> bool:
        """Whether a step begins another kernel.

        Where one ends depends on the steps themselves, so that equal layers have equal kernels.
        """
        kernel = self._generator.writer
        slots = slots_read(self._generator, step, writer.reads(step), writer.planner.in_memory)
        most = len(kernel.slots) + len(slots - set(kernel.slots)) + 2 * len(step.makes) + _SCRATCHES
        return most > MOST_BINDINGS or ends(kernel.lines, step.signature)

    def _make_room(self) -> None:
        """Let a copy have bindings."""
        if len(self._generator.writer.slots) > MOST_BINDINGS - _SCRATCHES:
            self._end()

    def _end(self, count: int = 1, origins: frozenset[str] = frozenset()) -> None:
        """Finish a kernel, if it does anything."""
        steps, self._steps = self._steps, []
        if not self._generator.writer.lines:
            self._generator.next_kernel()
            return
        done, arena = self._generator.writer, self._generator.arena
        # What a result held before stays where the kernel does not write it.
        staged = stage(done, arena)
        self._generator.next_kernel()
        for kernel in copying(staged, self._generator.machine.vector_bytes):
            self._dispatch(kernel)
        self._dispatch(done, count, origins, steps)
        back = [(place, slot) for slot, place in staged if slot.is_writable]
        for kernel in copying(back, self._generator.machine.vector_bytes):
            self._dispatch(kernel)
        for _, place in staged:
            arena.give_back(place.offset, place.size)

    def _dispatch(
        self, kernel: KernelWriter, count: int = 1, origins: frozenset[str] = frozenset(), steps: Sequence[Step] = ()
    ) -> None:
        text = kernel.text()
        number = self._texts.setdefault(text, len(self._kernels))
        if number == len(self._kernels):
            self._kernels.append(text)
            self._names.append(kernel_name(number, steps))
            self._parts.update(kernel.parts())
        self._dispatches.append((number, tuple(kernel.bindings()), count, kernel.shares, origins))


def _fit(result: Array, parameter: Array) -> bool:
    """Whether a result may lie in a parameter. Small ones are copied, which takes some microseconds."""
    return _type(result) == _type(parameter) and result.elements >= _LARGE


def _type(array: Array) -> ArrayType:
    return ArrayType(array.element, array.shape, elements.size(array.element))
