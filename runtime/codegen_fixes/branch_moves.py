"""Reorder the register moves at branches of IREE's virtual machine, which IREE's compiler orders wrongly.

A branch gives its target block arguments by moving registers one after the other. Numbers of 64 bits take two registers
of 32. IREE 3.13 orders the moves so that none overwrites what a later one reads, but compares the registers by their
first halves only::

    i58 -> i48, i59 -> i49, i49 -> i2      (the last one reads what the second one has overwritten)

A loop then counted on from the size of an array: it ended too early, or never. This happens where a loop or a
conditional carries host numbers of both widths, such as a counter and the offset of an array in memory, and depends on
which registers are free: any operation anywhere near changes it. So the moves of a finished vmfb are put in order here.

A register that refers to an array may be moved with the right to it, and is empty then. The compiler does so also where
the target block goes on to read the register (iree-org/iree#24753): "ref is null". Here registers keep what they refer
to unless the branch itself gives them something else; arrays then live until the register is used again.
"""

from __future__ import annotations

from collections.abc import Iterable

from hloforge.dialect.errors import CompileError
from hloforge.runtime.codegen_fixes.bytecode import MOVED, REFERENCE, Function, UnknownFormError, functions, with_moves

Pairs = list[tuple[int, int]]


def with_ordered_moves(vmfb: bytes) -> bytes:
    """A vmfb whose branches move registers as the compiler meant them to; the same bytes if they already do.

    Raises:
        CompileError: the moves cannot be ordered without a free register, or the bytecode is not understood.
    """
    try:
        changes = {place: pairs for function in functions(vmfb) for place, pairs in _corrections(function)}
    except UnknownFormError as error:
        raise CompileError(f"cannot check what IREE's compiler made: {error}", hint="use IREE 3.13.0") from None
    return with_moves(vmfb, changes) if changes else vmfb


def _corrections(function: Function) -> Iterable[tuple[int, Pairs]]:
    spare = _spare_registers(function)
    for place, pairs in function.moves:
        numbers = [pair for pair in pairs if not pair[0] & REFERENCE]
        references = _keeping([pair for pair in pairs if pair[0] & REFERENCE])
        if _overwrites_what_it_reads(numbers, spare):
            yield place, references + _ordered(numbers, spare)
        elif any(pair not in pairs for pair in references):
            yield place, references + numbers


def _keeping(references: Pairs) -> Pairs:
    """The same moves, without the end of what a register refers to if nothing takes its place."""
    targets = {target for _, target in references}
    return [(source if source & ~MOVED in targets else source & ~MOVED, target) for source, target in references]


def _spare_registers(function: Function) -> set[int]:
    """The registers that hold a number only between two moves of the same branch, which breaks cycles."""
    spare, others = set(), set(function.used)
    for _, pairs in function.moves:
        written: set[int] = set()
        read_after: set[int] = set()
        for source, target in pairs:
            (read_after if source in written else others).add(source)
            written.add(target)
        spare |= read_after
        others |= written - read_after
    return spare - others


def _overwrites_what_it_reads(numbers: Pairs, spare: set[int]) -> bool:
    written: set[int] = set()
    for source, target in numbers:
        if source in written and source not in spare:
            return True
        written.add(target)
    return False


def _ordered(numbers: Pairs, spare: set[int]) -> Pairs:
    """As many moves, of which none overwrites what a later one reads, to the same end."""
    held: dict[int, int] = {}
    meant: dict[int, int] = {}
    for source, target in numbers:
        (held if target in spare else meant)[target] = held.get(source, source)
    pending = {target: source for target, source in meant.items() if target != source}
    free, made = sorted(held), Pairs()
    while pending:
        ready = [target for target in pending if target not in pending.values()]
        if ready:
            made += [(pending.pop(target), target) for target in ready]
            continue
        if not free:
            raise CompileError(
                "IREE's compiler swaps numbers of 32 and 64 bits at a branch, and leaves no register for it",
                hint="change the loop's carries, for instance their order",
            )
        # Every target that is left is read once: what the first one holds waits in a spare register.
        target, waiting = next(iter(pending)), free.pop()
        made.append((target, waiting))
        pending = {to: waiting if source == target else source for to, source in pending.items()}
    if len(made) > len(numbers):
        raise CompileError("IREE's compiler left no room for the moves of a branch", hint="change the loop's carries")
    idle = next(iter(meant))
    return made + [(idle, idle)] * (len(numbers) - len(made))
