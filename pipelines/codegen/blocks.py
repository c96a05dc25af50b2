"""Blocks of operations as code: where arrays are, loops and branches of programs, and updates in place.

A loop's carries have memory of their own. What an iteration computes for a carry is written there at once where nobody
reads the old value any more, so that a state that is updated element by element, or in one row, never moves.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from hloforge.pipelines.codegen import singles
from hloforge.pipelines.codegen.algorithms.arrays import Elements
from hloforge.pipelines.codegen.contractions import LINE, pack_before
from hloforge.pipelines.codegen.elements import memory as elements
from hloforge.pipelines.codegen.emit import Emitter, Memory
from hloforge.pipelines.codegen.fused_rows import FusedRows, with_fused_rows
from hloforge.pipelines.codegen.fused_rows_writer import write_fused_rows
from hloforge.pipelines.codegen.graph import Array, Block, Op
from hloforge.pipelines.codegen.handing_out import hand_out
from hloforge.pipelines.codegen.index import linear
from hloforge.pipelines.codegen.kernel_program import ALIGNMENT, ENTRY, HOST_BYTES
from hloforge.pipelines.codegen.kernel_writer import KernelWriter
from hloforge.pipelines.codegen.lang.float_state import AARCH64, X86_64
from hloforge.pipelines.codegen.lang.outlining import LONG, VAST, Cut, ends, outline
from hloforge.pipelines.codegen.lang.values import I8, Value
from hloforge.pipelines.codegen.loop_sharing import shared_in_loop, update_nest
from hloforge.pipelines.codegen.loops import NestWriter
from hloforge.pipelines.codegen.loops_at_once import keep, together
from hloforge.pipelines.codegen.nest_loops import Share
from hloforge.pipelines.codegen.parts import memory_of
from hloforge.pipelines.codegen.repeated import WORTH, likeness
from hloforge.pipelines.codegen.sharing import element_cost, nest_cost, nest_workgroups, share_count
from hloforge.pipelines.codegen.slots import Arena, Slot, Where
from hloforge.pipelines.codegen.steps import Nest, Planner, Single, Step, is_update
from hloforge.pipelines.codegen.turns import TurningAddresses, Wheel, turns_of, wheels_of
from hloforge.pipelines.framework.machine import Machine

# Arrays of at most so many bytes are on the stack, of which a kernel takes a part only.
_SMALL = 1024
_STACK = 8192
# What an element costs that is moved, in sums.
_COPIED = 1
# A program's loop is never written out.
_LOOP = "unroll.disable"


class Generator:
    """What the blocks of a program share.

    Args:
        machine: the processor that the code is for.
        extensions: its instructions for products, by LLVM's names, as ``products/gemm.py`` takes them.
        architecture: ``x86-64`` or ``aarch64``.

    Attributes:
        slots: where arrays are.
        constants: the bytes of the program's constants.
        writer: the kernel that is being written.
        host_calls: the records of functions of the host that it calls, with their numbers.
        packed: the strips of products in loops (``Op.packed``).
        strips: those of products with constants (``Op.strips``).
        repeated: the ``likeness`` of operations in loops and branches that are functions.
        is_shared: whether the code that is being written is a workgroup's share.
        shares: how many workgroups copies and updates are shared out to.
        turning: slots of carries that change places in the code that is being written (``turns.py``).
    """

    def __init__(self, machine: Machine, extensions: frozenset[str] = frozenset(), architecture: str = X86_64) -> None:
        self.machine: Machine = machine
        self.architecture: str = architecture
        self.extensions: frozenset[str] = extensions
        self.arena = Arena()
        self.constants = bytearray()
        self.slots: dict[Array, Slot] = {}
        self.writer = self._new_writer()
        self.host_calls: dict[str, int] = {}
        self._host_numbers: list[Slot] = []
        self._host = Slot(Where.HOST, HOST_BYTES, "i64")
        self.packed: dict[Op, Slot] = {}
        self.strips: dict[Op, Slot] = {}
        self.repeated: frozenset[str] = frozenset()
        self.turning: frozenset[Slot] = frozenset()
        self.is_shared = False
        self.shares = 1
        self._dead: list[Slot] = []
        self._stack = 0
        self._count: Slot | None = None
        self._parts: dict[tuple[Slot, int, int], Slot] = {}

    def _new_writer(self) -> KernelWriter:
        # Every processor with AVX2 that is supported fuses.
        fuses = self.architecture == AARCH64 or "avx2" in self.extensions
        return KernelWriter(self.machine.vector_bytes, self.machine.l3_bytes, fuses=fuses)

    def in_memory(self, array: Array) -> bool:
        return array in self.slots

    def memory(self, array: Array) -> Memory | None:
        """Where an array is, in the code of the kernel that is being written."""
        slot = self.slots.get(array)
        return self.writer.memory(slot) if slot is not None else None

    def take(self, element: str, count: int, *, is_local: bool) -> Slot:
        """Memory for as many elements.

        Args:
            is_local: whether nobody asks for it after the kernel.
        """
        size = elements.size(element) * count
        if is_local and size <= _SMALL and self._stack + size <= _STACK:
            self._stack += size
            return Slot(Where.STACK, size, element)
        return Slot(Where.TRANSIENT, size, element, offset=self.arena.take(size))

    def constant(self, data: bytes, element: str = "i8") -> Slot:
        """A place among the program's constants."""
        self.constants += bytes(-len(self.constants) % ALIGNMENT)
        slot = Slot(Where.CONSTANT, len(data), element, offset=len(self.constants))
        self.constants += data
        return slot

    def count(self) -> Slot:
        """The program's count of random blocks, which lives as long as a loaded program: beside its constants."""
        if self._count is None:
            self._count = self.constant(bytes(8), "i64")
        return self._count

    def host(self) -> Value:
        """The table of the host, which calls by its functions."""
        return self.writer.memory(self._host).pointer

    def host_number(self, record: str) -> Value:
        """Where a kernel finds the number of a function of the host: among the constants, because its text would be of
        this program alone."""
        number = self.host_calls.setdefault(record, len(self.host_calls))
        if number == len(self._host_numbers):
            self._host_numbers.append(self.constant(number.to_bytes(8, "little"), "i64"))
        return self.writer.memory(self._host_numbers[number]).pointer

    @property
    def has_count(self) -> bool:
        """Whether something counts, so that what is beside the constants changes."""
        return self._count is not None

    def scratch(self, size: int) -> Value | None:
        """Memory for an algorithm, until the kernel ends."""
        return self.scratch_memory(size).pointer if size else None

    def scratch_memory(self, size: int) -> Memory:
        """As ``scratch``, with the metadata that it shares no memory with arrays."""
        return self.writer.memory(self.room("i8", size))

    def room(self, element: str, size: int) -> Slot:
        """Memory of so many bytes until the kernel ends."""
        slot = Slot(Where.TRANSIENT, size, element, offset=self.arena.take(size))
        self._dead.append(slot)
        return slot

    def required_scratch(self, size: int) -> Value:
        """As ``scratch``, for algorithms that take a pointer in any case."""
        found = self.scratch(max(size, 1))
        assert found is not None
        return found

    def pointer(self, array: Array) -> Value:
        """To an array that an algorithm reads, or makes."""
        return memory_of(self, array).pointer

    def elements(self, array: Array) -> Elements:
        """An array that an algorithm reads, or makes."""
        memory = memory_of(self, array)
        return Elements(memory.pointer, array.element, memory.access)

    def part(self, slot: Slot, offset: int, size: int) -> Slot:
        """So many bytes of an array's memory, which the code that reads them does not write."""
        key = slot, offset, size
        if key not in self._parts:
            self._parts[key] = replace(slot, offset=slot.offset + offset, size=size, whole=slot)
        return self._parts[key]

    def copy(self, array: Array, target: Slot, share: Share | None = None) -> None:
        """Write an array to a slot, or a workgroup's share of it, computing it if it is not in memory."""
        if self.slots.get(array) is target or not array.elements:
            return
        if share is not None:
            self._copy(array, target, share)
            return
        hand_out(self, min(self.shares, copy_workgroups(self, array)), lambda own: self._copy(array, target, own))

    def _copy(self, array: Array, target: Slot, share: Share | None) -> None:
        source, function = self.slots.get(array), self.writer.function
        memory = self.writer.memory(target)
        if source is None:
            nest = Nest(shape=array.shape, maps=[array])
            self.slots[array] = target
            others = lambda other: self.in_memory(other) and other is not array  # noqa: E731
            nest.split(others)
            NestWriter(self.writer, nest, self.memory, others, share).write()
            del self.slots[array]
            return
        own = self.writer.memory(source)
        if share is not None:
            lines = -(-target.size // LINE)
            start, stop = ((share.number + more) * lines for more in range(2))
            first, last = start.udiv(share.count) * LINE, (stop.udiv(share.count) * LINE).minimum(target.size)
            places = (function.offset(memory.pointer, I8, first), function.offset(own.pointer, I8, first))
            function.copy(*places, last - first)
            return
        if array.elements > 8:
            function.copy(memory.pointer, own.pointer, target.size)
            return
        for number in range(array.elements):
            memory.store(own.load(function.index(number)), function.index(number))

    def apart(self, array: Array, *slots: Slot) -> Array:
        """An array that can be read while slots are written: in memory of its own if it is computed of one."""
        if all(self.slots.get(read) not in slots for read in _tree(array, self.in_memory)):
            return array
        held = self.take(array.element, array.elements, is_local=True)
        self.copy(array, held)
        copied = Array(array.element, array.shape, None, array.block)
        self.slots[copied] = held
        return copied

    def give_back(self, slot: Slot) -> None:
        """Nobody reads it any more. Others may have it in the next kernel, because no two slots of a kernel overlap."""
        self._dead.append(slot)

    def next_kernel(self) -> KernelWriter:
        """Begin another kernel; the one before it."""
        done, self.writer = self.writer, self._new_writer()
        for slot in self._dead:
            if slot.where is Where.TRANSIENT:
                self.arena.give_back(slot.offset, slot.size)
        self._dead.clear()
        self._stack = 0
        return done


class BlockWriter:
    """Writes the steps of a block.

    Args:
        targets: where results have to be in the end; None where they may be anywhere.
        is_outer: whether the block is a function's, whose steps may be kernels of their own.
        carries: the arguments of the block whose memory the targets are; None for a target of its own.

    Attributes:
        copies_apart: copies an array in a kernel of its own, or tells that it is not worth one.
        groups: loops among the steps, behind each other, that may run at once.
    """

    def __init__(
        self,
        generator: Generator,
        block: Block,
        targets: Sequence[Slot | None],
        *,
        is_outer: bool = False,
        carries: Sequence[Array | None] = (),
    ) -> None:
        self._generator, self._block, self._targets = generator, block, list(targets)
        self._is_outer, self._carries = is_outer, list(carries)
        self.copies_apart: Callable[[Array, Slot], bool] = lambda array, target: False
        self.planner = Planner(block, generator.in_memory)
        steps = self.planner.steps()
        self.steps = with_fused_rows(steps, block, self.planner.in_memory, generator.machine)
        self.groups: list[list[Step]] = []
        if is_outer:
            self.steps, self.groups = together(generator, self.steps, self.reads)
        self._counts = [1] * len(self.steps)
        self._maker = {array: number for number, step in enumerate(self.steps) for array in step.makes}
        self._last = self._last_reads()
        self._wanted = self._wanted_slots()
        # Arrays that are still read, by their slots, and by the steps that read them last.
        self._users: dict[Slot, set[Array]] = defaultdict(set)
        self._ending: dict[int, list[Array]] = defaultdict(list)

    # Where arrays are

    def is_wanted(self, number: int) -> bool:
        """Whether the step that makes a result may write it to its target at once."""
        return self._wanted.get(self._block.results[number]) is self._targets[number]

    def place(self, targets: Sequence[tuple[Slot | None, Array | None]]) -> None:
        """Give all results targets, with the arguments whose memory these are; None for a target of its own."""
        self._targets, self._carries = [target for target, _ in targets], [carry for _, carry in targets]
        self._wanted = self._wanted_slots()

    def may_replace(self, array: Array, carry: Array) -> bool:
        """Whether what a step makes may be written where an argument is."""
        return (number := self._maker.get(array)) is not None and self._may_overwrite(array, carry, number)

    def is_made(self, array: Array) -> bool:
        """Whether a step makes an array."""
        return array in self._maker

    def target(self, array: Array) -> Slot | None:
        """Where the step that makes an array writes it, if that is decided."""
        return self._wanted.get(array)

    def retarget(self, number: int, target: Slot) -> None:
        """Give a result another target, which is no carry's."""
        self._targets[number], self._carries[number] = target, None
        self._wanted = self._wanted_slots()

    def _last_reads(self) -> dict[Array, int]:
        """The number of the last step that reads an array; one more for results of the block."""
        last: dict[Array, int] = {}
        for number, step in enumerate(self.steps):
            for array in _read(step, self.planner.in_memory):
                last[array] = number
        for array in self._block.results:
            for read in _tree(array, self.planner.in_memory):
                last[read] = len(self.steps)
        for group in self.groups:
            keep(group, self.steps, self.reads, last)
        return last

    def _wanted_slots(self) -> dict[Array, Slot]:
        """Targets that a step may write at once."""
        wanted: dict[Array, Slot] = {}
        maker = self._maker
        for place, (array, target) in enumerate(zip(self._block.results, self._targets, strict=True)):
            if target is None or array in wanted or array not in maker:
                continue
            carry = self._carries[place] if self._carries else None
            made: Array | None = array
            # What changes an array in place has its memory, so that this is the target as well.
            while made in maker and made not in wanted and self._may_write(made, carry, maker[made]):
                wanted[made] = target
                number, step = maker[made], self.steps[maker[made]]
                made = self._replaced(step.operation, made) if isinstance(step, Single) else None
                if made is not None and self._last.get(made, -1) > number:
                    break
        return wanted

    def _may_write(self, array: Array, carry: Array | None, number: int) -> bool:
        return carry is None or self._may_overwrite(array, carry, number)

    def _replaced(self, op: Op, result: Array) -> Array | None:
        """The operand whose memory a result of an operation may take, if nobody else reads it."""
        if op.name != "while":
            return _changes(op) if len(op.results) == 1 else None
        operand = op.operands[op.results.index(result)]
        in_memory = self.planner.in_memory
        is_read = any(read is operand for array in op.captured for read in _tree(array, in_memory))
        return None if is_read or op.operands.count(operand) > 1 else operand

    def _may_overwrite(self, array: Array, carry: Array, number: int) -> bool:
        """Whether nobody reads a carry's old value after a step has begun to write the new one."""
        last = self._last.get(carry, -1)
        if last < number:
            return True
        step = self.steps[number]
        if last > number or not isinstance(step, Nest):
            # An update in place writes where its operand is.
            return last == number and isinstance(step, Single) and self._replaced(step.operation, array) is carry
        if array not in step.maps or array.shape != carry.shape:
            return False
        if elements.size(array.element) != elements.size(carry.element):
            return False
        place, found = step.analysis(self.planner.in_memory)
        own = linear(step.at(place), array.shape)
        return all(read == own for loaded, read in found.loads if loaded is carry)

    def _slot(self, array: Array) -> Slot:
        """Memory for what a step makes."""
        generator = self._generator
        if array in self._wanted:
            slot = self._wanted[array]
        else:
            # Not on the stack, of which each workgroup has its own.
            is_local = not self._is_outer and not generator.is_shared
            slot = generator.take(array.element, array.elements, is_local=is_local)
            if slot.where is Where.STACK:
                # Before a step of an inner block that is shared takes it for memory of its own.
                generator.writer.memory(slot)
        self._put(array, slot)
        return slot

    def _put(self, array: Array, slot: Slot) -> None:
        """Let an array be in a slot, until it is read for the last time."""
        self._generator.slots[array] = slot
        if self._is_outer and array in self._last:
            self._users[slot].add(array)
            self._ending[self._last[array]].append(array)

    # Steps

    def write(self, on_step: Callable[[Step], None] = lambda _: None) -> None:
        """Write all steps, and results to their targets.

        Args:
            on_step: told of each step before it is written.
        """
        generator, function = self._generator, self._generator.writer.function
        in_memory = self.planner.in_memory
        counts = [_workgroups_in_loop(generator, step, in_memory) for step in self.steps]
        self._counts = shared_in_loop(generator, self._block, self.steps, in_memory, counts, self.reads)
        cuts: list[Cut] = []
        first = len(function.lines)
        for number, step in enumerate(self.steps):
            lines = len(function.lines)
            if not cuts or ends(lines - cuts[-1].place, step.signature):
                cuts.append(Cut(lines, function.block))
            on_step(step)
            self.write_step(number, step, None)
        self.finish()
        if len(function.lines) - first > VAST:
            outline(function, cuts, ENTRY)

    def write_step(self, number: int, step: Step, share: Share | None) -> None:
        generator, function = self._generator, self._generator.writer.function
        begin = Cut(len(function.lines), function.block)
        if share is not None:
            generator.is_shared = True
            self._write_step(number, step, share)
            generator.is_shared = False
        elif update_nest(step) is not None:
            generator.shares = self._counts[number]
            self._write_step(number, step, None)
            generator.shares = 1
        else:
            hand_out(generator, self._counts[number], lambda own: self._write_step(number, step, own))
        if self._is_turning(step):
            # As a function, whose arguments are apart: which address is whose changes in each turn.
            outline(function, [begin], ENTRY)
        self._release(number)

    def _is_turning(self, step: Step) -> bool:
        """Whether a step reads or makes arrays that change places."""
        if not self._generator.turning or (isinstance(step, Single) and step.operation.inner):
            return False
        slots = self._generator.slots
        return any(slots.get(array) in self._generator.turning for array in (*self.reads(step), *step.makes))

    def _write_step(self, number: int, step: Step, share: Share | None) -> None:
        if isinstance(step, Nest):
            self._write_nest(step, share)
        elif isinstance(step, FusedRows):
            for array in step.makes:
                self._slot(array)
            write_fused_rows(self._generator, step, share)
        else:
            assert isinstance(step, Single)
            function = self._generator.writer.function
            begin = Cut(len(function.lines), function.block)
            before, function.has_scalar_loops = function.has_scalar_loops, False
            if step.epilogue:
                for array in step.makes:
                    if array not in step.unstored:
                        self._slot(array)
                singles.write_with_epilogue(self._generator, step.operation, share, step.epilogue)
            else:
                self._write_single(number, step.operation, share)
            is_long = len(function.lines) - begin.place >= WORTH
            has_vectors = not function.has_scalar_loops
            function.has_scalar_loops |= before
            is_repeated = not self._is_outer and likeness(step.operation) in self._generator.repeated
            if is_long and (is_repeated or (has_vectors and share is None)):
                outline(function, [begin], ENTRY, has_vectors=has_vectors)

    def _release(self, number: int) -> None:
        """Give back what was read for the last time."""
        if not self._is_outer:
            return
        for array in self._ending.pop(number, ()):
            slot = self._generator.slots.get(array)
            if slot is not None and array in self._users[slot]:
                self._users[slot].discard(array)
                if not self._users[slot]:
                    self._generator.give_back(slot)

    def _write_nest(self, nest: Nest, share: Share | None) -> None:
        generator = self._generator
        for array in nest.makes:
            if array not in nest.unstored:
                self._slot(array)
        own = set(nest.makes)
        NestWriter(
            generator.writer,
            nest,
            generator.memory,
            lambda array: generator.in_memory(array) and array not in own,
            share,
        ).write()

    def _write_single(self, number: int, op: Op, share: Share | None) -> None:
        if op.name == "while":
            self._write_while(number, op)
        elif op.name in ("if", "case"):
            self._write_branches(op)
        elif (changed := _changes(op)) is not None:
            self._write_update(number, op, changed)
        else:
            for array in op.results:
                self._slot(array)
            singles.write(self._generator, op, share)

    # Updates

    def _write_update(self, number: int, op: Op, changed: Array) -> None:
        generator = self._generator
        slot = generator.slots.get(changed)
        wanted = self._wanted.get(op.results[0])
        is_dead = self._last.get(changed, -1) <= number and slot is not None and slot.is_writable
        is_own = changed.op is not None and changed.op.block is self._block
        is_carry = changed in self._carries and wanted is slot
        count = len(op.results)
        in_place = count == 1 and is_dead and (is_carry or (is_own and (wanted is None or wanted is slot)))
        if in_place:
            assert slot is not None
            self._last[op.results[0]] = max(self._last.get(op.results[0], -1), self._last.get(changed, -1))
            self._put(op.results[0], slot)
        else:
            operands = op.operands[:count]
            for result, operand in zip(op.results, operands, strict=True):
                self._copy_whole(operand, self._slot(result))
        singles.update(generator, op)

    def copy(self, array: Array, target: Slot) -> None:
        """Write an array to a slot, computing it if it is not in memory."""
        self._generator.copy(array, target)

    def reads(self, step: Step) -> set[Array]:
        """The arrays in memory that a step reads."""
        return _read(step, self.planner.in_memory)

    def finish(self, before_copy: Callable[[], None] = lambda: None) -> None:
        """Bring results to their targets.

        Args:
            before_copy: called before each copy; it may begin another kernel.
        """
        generator = self._generator
        waiting: list[tuple[Array, Slot]] = []
        for array, target in zip(self._block.results, self._targets, strict=True):
            if target is not None and generator.slots.get(array) is not target:
                waiting.append((array, target))
        overwritten = {id(target) for _, target in waiting}
        moved: list[tuple[Slot, Slot, Array]] = []
        for array, target in waiting:
            sources = [generator.slots.get(read) for read in _tree(array, generator.in_memory)]
            if len(waiting) > 1 and any(id(source) in overwritten for source in sources if source is not target):
                # It is read after another result has its place.
                before_copy()
                held = generator.take(array.element, array.elements, is_local=not self._is_outer)
                self.copy(array, held)
                moved.append((held, target, array))
        done = {id(target) for _, target, _ in moved}
        for array, target in waiting:
            if id(target) not in done:
                before_copy()
                self._final_copy(array, target)
        for held, target, array in moved:
            before_copy()
            before = generator.slots.get(array)
            generator.slots[array] = held
            self.copy(array, target)
            if before is None:
                del generator.slots[array]
            else:
                generator.slots[array] = before

    def _final_copy(self, array: Array, target: Slot) -> None:
        sources = [self._generator.slots.get(read) for read in _tree(array, self._generator.in_memory)]
        if target in sources and self._generator.slots.get(array) is None:
            held = self._generator.take(array.element, array.elements, is_local=True)
            self.copy(array, held)
            self._generator.slots[array] = held
            self.copy(array, target)
            del self._generator.slots[array]
            return
        self._copy_whole(array, target)

    def _copy_whole(self, array: Array, target: Slot) -> None:
        """The same where no kernel has to go on."""
        if not self.copies_apart(array, target):
            self.copy(array, target)

    # Control

    def _reusable(self, number: int, op: Op, operand: Array, result: Array) -> Slot | None:
        """The memory of a carry's first value, if nobody reads it afterwards."""
        slot = self._generator.slots.get(operand)
        is_own = operand.op is not None and operand.op.block is self._block
        is_dead = self._last.get(operand, -1) <= number and slot is not None and slot.is_writable
        return slot if is_own and is_dead and self._replaced(op, result) is operand else None

    def _keep(self, operand: Array, result: Array, slot: Slot) -> None:
        """Let a loop's result be in a slot, which its first value may be in."""
        self._last[result] = max(self._last.get(result, -1), self._last.get(operand, -1))
        self._put(result, slot)

    def _carried(self, number: int, op: Op, operand: Array, result: Array) -> Slot:
        """The memory of a loop's carry, which has its first value."""
        slot = self._reusable(number, op, operand, result)
        if result in self._wanted or slot is None:
            slot = self._slot(result)
        else:
            self._keep(operand, result, slot)
        self.copy(operand, slot)
        return slot

    def _turned(self, number: int, op: Op, wheel: Wheel, turns: int) -> list[Slot] | None:
        """The memory of a wheel's arrays, so that carries are in that of their results after so many turns.

        None if that takes copies in an order.
        """
        generator, last = self._generator, wheel.after(turns)
        slots: dict[int, Slot] = {}
        pairs = [(op.operands[carry], op.results[carry]) for carry in wheel.carries]
        for here, (_, result) in enumerate(pairs):
            if result in self._wanted:
                slots[last[here]] = self._wanted[result]
        for here, (operand, result) in enumerate(pairs):
            own = self._reusable(number, op, operand, result)
            if own is not None and here not in slots and own not in slots.values():
                slots[here] = own
        filled = {slots.get(here): operand for here, (operand, _) in enumerate(pairs)}
        for operand in op.operands:
            sources = [generator.slots.get(read) for read in _tree(operand, generator.in_memory)]
            if any(source is not None and filled.get(source, operand) is not operand for source in sources):
                return None
        for place in range(len(wheel.following)):
            if place not in slots:
                element, size = pairs[0][0].element, pairs[0][0].elements
                if place in last[: len(pairs)]:
                    slots[place] = generator.take(element, size, is_local=not self._is_outer)
                else:
                    slots[place] = generator.room(element, elements.size(element) * size)
        for here, (operand, result) in enumerate(pairs):
            self._keep(operand, result, slots[last[here]])
            self.copy(operand, slots[here])
        return [slots[place] for place in range(len(slots))]

    def _places(self, number: int, op: Op, wheel: Wheel) -> tuple[list[Slot], bool]:
        """The memory of a wheel's arrays, and whether carries are where results are after the loop."""
        turns = turns_of(op)
        found = None if turns is None else self._turned(number, op, wheel, turns)
        if found is not None:
            return found, True
        slots = [self._carried(number, op, op.operands[carry], op.results[carry]) for carry in wheel.carries]
        more = len(wheel.following) - len(slots)
        return slots + [self._generator.room(slots[0].element, slots[0].size) for _ in range(more)], False

    def _write_while(self, number: int, op: Op) -> None:
        generator = self._generator
        kernel, function = generator.writer, generator.writer.function
        condition, body = op.inner
        pack_before(generator, op)
        # Where carries are is decided when it is known which of them change places.
        undecided = [Slot(Where.TRANSIENT, 0, array.element) for array in body.arguments]
        generator.slots.update(zip(body.arguments, undecided, strict=True))
        writer = BlockWriter(generator, body, undecided, carries=body.arguments)
        wheels = wheels_of(body, writer)
        placed = [self._places(number, op, wheel) for wheel in wheels]
        where = {
            carry: slot for wheel, (slots, _) in zip(wheels, placed, strict=True) for carry, slot in wheel.at(slots)
        }
        carries = [
            where[n] if n in where else self._carried(number, op, operand, result)
            for n, (operand, result) in enumerate(zip(op.operands, op.results, strict=True))
        ]
        for block in (condition, body):
            generator.slots.update(zip(block.arguments, carries, strict=True))
        targets: list[tuple[Slot | None, Array | None]] = list(zip(carries, body.arguments, strict=True))
        for wheel, (slots, _) in zip(wheels, placed, strict=True):
            for carry, target, replaced in wheel.targets(slots):
                targets[carry] = target, None if replaced is None else body.arguments[replaced]
        writer.place(targets)
        turning = [
            TurningAddresses(kernel, wheel, slots, is_home=is_home)
            for wheel, (slots, is_home) in zip(wheels, placed, strict=True)
        ]
        head, inside, after = function.label(), function.label(), function.label()
        before = function.block
        function.do(f"br label %{head}")
        function.begin(head)
        place = len(function.lines)
        outer = generator.turning
        generator.turning = outer.union(*(slots for slots, _ in placed))
        for one in turning:
            one.enter()
        BlockWriter(generator, condition, [None]).write()
        (flag,) = condition.results
        holds = Emitter(function, generator.memory).element(flag, ())
        assert isinstance(holds, Value)
        function.do(f"br i1 {holds.text}, label %{inside}, label %{after}")
        function.begin(inside)
        writer.write()
        back = function.block
        # Without metadata of its own it would be given that of a loop before it which LLVM has written out.
        function.do(f"br label %{head}, !llvm.loop {function.metadata(_LOOP)}")
        function.lines[place:place] = [line for one in turning for line in one.phis(before, back)]
        function.begin(after)
        generator.turning = outer
        for one in turning:
            one.leave(generator.scratch_memory)
        # What it carries goes through memory, from where all of LLVM's passes take it.
        function.has_scalar_loops = True

    def _write_branches(self, op: Op) -> None:
        generator = self._generator
        slots = [self._slot(result) for result in op.results]
        function = generator.writer.function
        chosen = Emitter(function, generator.memory).element(op.operands[0], ())
        assert isinstance(chosen, Value)
        labels = [function.label() for _ in op.inner]
        after = function.label()
        if op.name == "if":
            function.do(f"br i1 {chosen.text}, label %{labels[0]}, label %{labels[1]}")
        else:
            cases = " ".join(f"i32 {number}, label %{label}" for number, label in enumerate(labels[:-1]))
            function.do(f"switch i32 {chosen.text}, label %{labels[-1]} [ {cases} ]")
        for label, block in zip(labels, op.inner, strict=True):
            function.begin(label)
            begin = Cut(len(function.lines), function.block)
            BlockWriter(generator, block, slots).write()
            if len(function.lines) - begin.place > LONG:
                outline(function, [begin], ENTRY)
            function.do(f"br label %{after}")
        function.begin(after)


def workgroups(generator: Generator, step: Step) -> int:
    """How many workgroups a step is worth."""
    if isinstance(step, Single):
        return singles.workgroups(generator, step.operation)
    if isinstance(step, FusedRows):
        return _fused_workgroups(step, generator.in_memory, lambda one: workgroups(generator, one))
    assert isinstance(step, Nest)
    return nest_workgroups(step, generator.in_memory)


def _fused_workgroups(fused: FusedRows, in_memory: Callable[[Array], bool], own: Callable[[Step], int]) -> int:
    """How many workgroups fused steps are worth: all loops together, or one of the products.

    Args:
        own: how many a step is worth.
    """
    loops = sum(nest_cost(step, in_memory) for step in fused.steps if isinstance(step, Nest))
    products = (own(step) for step in fused.steps if isinstance(step, Single))
    return max(share_count(loops, fused.blocks), min(max(products, default=1), fused.blocks))


def _workgroups_in_loop(generator: Generator, step: Step, in_memory: Callable[[Array], bool]) -> int:
    """As ``workgroups``; in loops updates are shared out as well."""
    if isinstance(step, FusedRows):
        return _fused_workgroups(step, in_memory, lambda one: _workgroups_in_loop(generator, one, in_memory))
    nest = step if isinstance(step, Nest) else update_nest(step)
    return workgroups(generator, step) if nest is None else nest_workgroups(nest, in_memory)


def copy_workgroups(generator: Generator, array: Array) -> int:
    """How many workgroups it is worth to copy an array, or to compute it into a copy's memory."""
    nest = Nest(shape=array.shape, maps=[array])
    cost = _COPIED if generator.in_memory(array) else max(element_cost(nest, generator.in_memory), _COPIED)
    return share_count(cost * array.elements, next((size for size in array.shape if size > 1), 1))


def _changes(op: Op) -> Array | None:
    """The array that an update changes in place."""
    return op.operands[0] if is_update(op) or op.name == "scatter" else None


def _tree(array: Array, in_memory: Callable[[Array], bool]) -> Iterator[Array]:
    """The arrays in memory that an array is computed of, itself if it is there."""
    waiting, seen = [array], {array}
    while waiting:
        top = waiting.pop()
        if in_memory(top) or top.op is None:
            yield top
            continue
        for operand in (*top.op.operands, *top.op.captured):
            if operand not in seen:
                seen.add(operand)
                waiting.append(operand)


def _read(step: Step, in_memory: Callable[[Array], bool]) -> set[Array]:
    """The arrays in memory that a step reads, those of outer blocks as well."""
    if isinstance(step, Nest):
        return {array for array, _ in step.loads(in_memory)}
    if isinstance(step, FusedRows):
        made = {array for one in step.steps for array in one.makes}
        return {array for one in step.steps for array in _read(one, in_memory)} - made
    assert isinstance(step, Single)
    op = step.operation
    found = {read for array in (*op.operands, *op.captured) for read in _tree(array, in_memory)}
    if step.epilogue:
        computed = (operand for array in step.epilogue if array.op for operand in array.op.operands)
        found |= {read for array in computed for read in _tree(array, in_memory)} - set(step.epilogue)
    return found
